"""The probability that an ask would draw a prompt, though nothing is drawn."""

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.candidates import Candidates
from curricula.choosing.strata import inclusion, whole_draws
from curricula.config import SelectionConfig

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PART = 1 << 20


class Forecast:
    """Probabilities over the whole numbers of draws that each kind may get.

    Args:
        candidates: M of them.
        scores: What each is worth, shape (M,).
        config: The rule that draws.
    """

    def __init__(self, candidates: Candidates, scores: Floats, config: SelectionConfig) -> None:
        self.candidates, self.scores, self.config = candidates, scores, config
        self._sizes_R = candidates.sizes_E2.reshape(-1)
        self._starts_R = self._sizes_R.cumsum() - self._sizes_R
        # For each kind, the probability of each number of draws above 0.
        self._likely: list[dict[int, float]] = [{} for _ in range(self._sizes_R.size)]

    def add(self, expected_R: Floats, likely_R: Floats) -> None:
        """Mean draws of each kind (2 E,), in a case of this probability (2 E,)."""
        least_R, more_R = whole_draws(expected_R)
        columns = (least_R.tolist(), more_R.tolist(), likely_R.tolist(), self._likely)
        for least, more, likely, known in zip(*columns, strict=True):
            for number, part in ((least, 1.0 - more), (least + 1, more)):
                if number > 0 and part * likely > 0.0:
                    known[number] = known.get(number, 0.0) + part * likely

    def chances(self, kind: int, positions: Ints, scores: Floats) -> Floats:
        """Probabilities of prompts of a kind: at positions (K,), of scores (K,); also of those that are no candidates.

        Such a one takes the place of a candidate.
        """
        size, start = int(self._sizes_R[kind]), int(self._starts_R[kind])
        result = np.zeros(positions.size)
        if size == 0:
            return result
        held, own = self.candidates.positions[start : start + size], self.scores[start : start + size]
        order = held.argsort()
        at = order[np.minimum(held.searchsorted(positions, sorter=order), size - 1)]
        missing = np.flatnonzero(held[at] != positions)
        for number, likely in self._likely[kind].items():
            chance = inclusion(own[None], np.array([number]), self.config)[0][0][at]
            for part in np.split(missing, range(max(1, _PART // size), missing.size, max(1, _PART // size))):
                rows = np.tile(own, (part.size, 1))
                rows[:, 0] = scores[part]
                if part.size:
                    chance[part] = inclusion(rows, np.full(part.size, number), self.config)[0][:, 0]
            result += likely * chance
        return np.minimum(float(self.candidates.reach_E2.reshape(-1)[kind]) * result, 1.0)


def spread(wanted_E: Floats, free_E: Ints, shares: Floats) -> Floats:
    """Mean draws of environments that have so many candidates: what one cannot take goes to others by their shares.

    >>> spread(np.array([6.0, 2.0, 0.0]), np.array([3, 99, 99]), np.array([0.75, 0.25, 0.0])).round(6)
    array([3., 5., 0.])
    """
    mean_E = np.minimum(wanted_E, free_E)
    while (missing := float(wanted_E.sum() - mean_E.sum())) > 1e-9 and (room := free_E - mean_E > 1e-9).any():
        extra = np.where(room, shares + 1e-9, 0.0)
        mean_E = np.minimum(mean_E + missing * extra / extra.sum(), free_E)
    return mean_E
