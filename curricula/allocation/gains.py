"""What compute would gain in one environment, and the least concave function above that."""

from dataclasses import dataclass, field

import numpy as np

from curricula.allocation.slopes import steepest
from curricula.scaling.curves import Curves
from curricula.scaling.laws import Floats

# A curve that in one cell rises by less than this part of what its steepest place allows is bounded by its right end.
_STEEP = 2.0


@dataclass(frozen=True, slots=True)
class Gains:
    """Weighted gain of an environment for its part of the budget.

    Attributes:
        curves: n curves of equal weight.
        spent: compute so far, in the unit of the curves.
        cost: compute of the budget for a unit of that.
        weight: of the environment.
    """

    curves: Curves
    spent: float
    cost: float
    weight: float
    _before: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_before", self.curves([self.spent])[0])

    def draws(self, compute: Floats) -> Floats:
        """Gain of each curve for `compute` (m,) of the budget: (m, n), not weighted."""
        return self.curves(self.spent + compute / self.cost) - self._before

    def __call__(self, compute: Floats) -> Floats:
        """Mean weighted gain for `compute` (m,): (m,)."""
        if self.weight == 0:
            return np.zeros(len(compute))
        return self.weight * self.draws(compute).mean(axis=1)

    def above(self, compute: Floats) -> Floats:
        """Values at ascending `compute` (m,) that no gain is above where they are joined by straight lines: (m,)."""
        if self.weight == 0:
            return np.zeros(len(compute))
        draws = self.draws(compute)
        left, right = draws[:-1], draws[1:]
        steps = np.diff(compute)[:, None] / self.cost
        rises = steepest(self.curves, self.spent + compute / self.cost) * steps
        jumps = rises > _STEEP * (right - left)
        jumps &= right > left
        starts = np.where(jumps, right, left).mean(axis=1)
        ends = np.where(jumps, right, left + rises).mean(axis=1)
        value = draws.mean(axis=1)
        value[:-1] = np.maximum(value[:-1], starts)
        value[1:] = np.maximum(value[1:], ends)
        return self.weight * value


def hull(x: Floats, y: Floats) -> Floats:
    """The least concave function above the points, at their places: (m,).

    Args:
        x: (m,), ascending.
        y: (m,).

    >>> hull(np.arange(4.0), np.array([0.0, 0.1, 2.0, 2.5])).tolist()
    [0.0, 1.0, 2.0, 2.5]
    """
    corners: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for place in range(len(xs)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (ys[b] - ys[a]) * (xs[place] - xs[a]) > (ys[place] - ys[a]) * (xs[b] - xs[a]):
                break
            corners.pop()
        corners.append(place)
    return np.interp(x, x[corners], y[corners])
