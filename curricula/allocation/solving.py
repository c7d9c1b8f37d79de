"""The split of a budget that gains most, when gains are neither concave nor convex."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from curricula.allocation.gains import Gains, hull
from curricula.scaling.laws import Floats

# Cells of the first grid; each round of refinement looks at REACH steps either way, of a quarter of the last size.
CELLS = 256
REACH = 8
FINER = 4.0
ROUNDS = 6
AGAIN = 6
# A start that is further below the best is not refined.
BEHIND = 0.02
# Places for the bound: those of the grid, and as many again that lie ever closer to nothing.
GEOMETRIC = 96
NEAREST = 1e-7


class Problem:
    """Maximise the sum of gains over splits x (E,) of a budget, low <= x <= high.

    Young environments gain more with each unit (a sigmoid is convex before its bend), so that following the slope
    starves them: the first solution is exact on a grid, by dynamic programming, and is then refined by the same on ever
    finer grids about it. What it may miss is bounded from above by the concave envelopes, whose optimum is found by
    taking their steepest pieces first (the Lagrangian bound).

    Args:
        gains: of E environments.
        budget: above 0.
        low: Shape (E,), least compute of each.
        high: Shape (E,), most compute of each; sums of the two hold the budget between them.
    """

    def __init__(self, gains: Sequence[Gains], budget: float, low: Floats, high: Floats) -> None:
        self.gains, self.budget, self.low = gains, budget, low
        self.left = max(budget - float(low.sum()), 0.0)
        self.room = np.minimum(high - low, self.left)

    def value(self, x: Floats) -> float:
        """What a split gains."""
        return float(sum(float(gain(np.array([part]))[0]) for gain, part in zip(self.gains, x, strict=True)))

    def solve(self, others: Sequence[Floats]) -> Floats:
        """The best split found, no worse than `others`, which are within the bounds."""
        found = [*others, self.low + self._along_envelopes()]
        values = [self.value(x) for x in found]
        if (whole := self._on_grid()) is not None:
            found.append(self.low + whole)
            values.append(self.value(found[-1]))
        ranked = sorted(range(len(found)), key=lambda place: -values[place])
        near = values[ranked[0]] - BEHIND * abs(values[ranked[0]])
        refined = [self._refine(found[place]) for place in ranked[:2] if values[place] >= near]
        reached = [self.value(x) for x in refined]
        best = int(np.argmax(reached))
        # What is not certainly better by more than rounding is not worth leaving an even split for.
        if reached[best] > values[0] + 1e-9 * max(abs(values[0]), 1e-3):
            return refined[best]
        return found[0]

    def bound(self) -> float:
        """A value that no split exceeds."""
        offset = sum(float(gain(np.array([low]))[0]) for gain, low in zip(self.gains, self.low, strict=True))
        if self.left <= 0:
            return offset

        def above(gain: Gains, low: float, z: Floats) -> Floats:
            return gain.above(low + z) - gain(np.array([low]))[0]

        return offset + self._fill(above)[1]

    def _along_envelopes(self) -> Floats:
        return self._fill(lambda gain, low, z: gain(low + z) - gain(np.array([low]))[0])[0]

    def _fill(self, values: Callable[[Gains, float, Floats], Floats]) -> tuple[Floats, float]:
        """The optimum of the concave envelopes of `values`: the part of each above its least, and the sum."""
        pieces: list[tuple[float, int, float]] = []
        start = 0.0
        for code, gain in enumerate(self.gains):
            if self.room[code] <= 0:
                continue
            z = self._places(self.room[code])
            top = hull(z, values(gain, self.low[code], z))
            start += float(top[0])
            pieces += [(rise / step, code, step) for rise, step in zip(np.diff(top), np.diff(z), strict=True)]
        taken, left, total = np.zeros(len(self.gains)), self.left, start
        for slope, code, step in sorted(pieces, key=lambda piece: -piece[0]):
            part = min(step, left)
            taken[code] += part
            total += slope * part
            left -= part
            if left <= 0:
                break
        return taken, total

    def _places(self, room: float) -> Floats:
        near = np.geomspace(NEAREST, 1.0, GEOMETRIC)
        return room * np.unique(np.concatenate([np.linspace(0, 1, CELLS // 2 + 1), near]))

    def _on_grid(self) -> Floats | None:
        """The best split on the grid; None where the most that each may have leaves none on it."""
        if self.left <= 0:
            return None
        z = np.linspace(0, self.left, CELLS + 1)
        worth = np.full((len(self.gains), CELLS + 1), -np.inf)
        for code, gain in enumerate(self.gains):
            fits = z <= self.room[code] * (1 + 1e-12)
            worth[code, fits] = gain(self.low[code] + z[fits])
        places = _best_sum(worth, CELLS, CELLS)
        return None if places is None else z[places]

    def _refine(self, x: Floats) -> Floats:
        """Move compute among environments in ever smaller steps, the best moves of all together each time."""
        step = self.left / CELLS / FINER
        moves = np.arange(-REACH, REACH + 1)
        for _ in range(ROUNDS if self.left > 0 else 0):
            for _ in range(AGAIN):
                worth = np.full((len(x), len(moves)), -np.inf)
                for code, gain in enumerate(self.gains):
                    z = x[code] - self.low[code] + moves * step
                    fits = (z >= 0) & (z <= self.room[code]) | (moves == 0)
                    worth[code, fits] = gain(self.low[code] + np.maximum(z[fits], 0))
                places = _best_sum(worth, REACH * len(x), 2 * REACH * len(x))
                if places is None or (places == REACH).all():
                    break
                x = x + moves[places] * step
            step /= FINER
        return np.maximum(x, self.low)


def _best_sum(worth: Floats, total: int, most: int) -> npt.NDArray[np.int64] | None:
    """One place for each row of `worth` (E, k), that sum to `total` and whose values sum to most; (E,)."""
    best, size = np.zeros(1), worth.shape[1]
    chosen: list[npt.NDArray[np.int64]] = []
    for row in worth:
        states = min(len(best) + size - 1, most + 1)
        padded = np.full(states + size - 1, -np.inf)
        padded[size - 1 : size - 1 + len(best)] = best[:states]
        # sums[s, j]: place j here, s - j before.
        before = np.lib.stride_tricks.sliding_window_view(padded, size)[:states, ::-1]
        sums = before + row
        chosen.append(sums.argmax(axis=1))
        best = sums[np.arange(states), chosen[-1]]
    if total >= len(best) or not np.isfinite(best[total]):
        return None
    places = np.zeros(len(worth), np.int64)
    for code in range(len(worth) - 1, -1, -1):
        places[code] = chosen[code][total]
        total -= int(places[code])
    return places
