"""A regression line for each environment, over the groups that it was trained on."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats, by_environment
from curricula.stateful import Reader

_FIELDS = 9  # sums of w, wx, wx^2, wy, wxy, wy^2, w^2, w^2 x, w^2 x^2
_LEAST_GROUPS = 10.0
_MOST_WEIGHT = 1e3  # one group that stands for a thousand is no regression
_LEAST, _MOST = 1e-12, 1e30  # sums outside are none that groups can make, and products of these are finite


class Trends:
    """Weighted least squares of y on x in each of E environments, discounted at each of its own groups.

    x counts the environment's groups that were trained on before, as seen from now (0 is now, the past is negative).
    With sums over the groups of weights w discounted by age, the slope is b = S_xy / S_xx about the weighted means,
    and its standard error that of a weighted sum of independent residuals of one variance s^2:

        se^2 = s^2 * sum of w^2 (x - mean x)^2 / S_xx^2,
        s^2 = (S_yy - b S_xy) / sum of w * n / (n - 2),   n = (sum of w)^2 / sum of w^2

    A group of weight 0 says nothing, and what was said before grows old by it: w^2 counts d^-i times, with d the
    discount and i the number of groups of weight 0 since. So without such groups these are the plain equations,
    and i of them in a row multiply se^2 by d^-i and n by d^i: evidence that nothing renews loses its certainty, at the
    rate at which it would lose its weight, until n < 10 and nothing is known.

    Told one by one or in batches, the sums are the same. A tell costs the same whatever came before.

    Args:
        arms: E.
        memory: Groups of an environment after which one counts for 1/e.

    >>> trends = Trends(arms=1, memory=1000.0)
    >>> rise = 0.2 + 0.001 * np.arange(200.0)
    >>> noise = np.where(np.arange(200) % 2, 0.05, -0.05)
    >>> trends.observe(np.zeros(200, dtype=np.int64), rise + noise, np.ones(200), np.ones(200, dtype=bool))
    >>> slope, error = trends.slopes()
    >>> slope.round(4), error.round(5)
    (array([0.001]), array([6.e-05]))
    """

    def __init__(self, arms: int, memory: float) -> None:
        self.discount = 1.0 - 1.0 / memory
        self.sums_EF: Floats = np.zeros((arms, _FIELDS))

    def observe(self, codes: Codes, values: Floats, weights: Floats, trained: Any) -> None:
        """Enter K groups in the order they were told.

        Args:
            codes: Shape (K,), their environments.
            values: Shape (K,), y.
            weights: Shape (K,), w >= 0; 1000 at most counts. At 0 only x grows, and what was before loses certainty.
            trained: Shape (K,), whether x grows after each.
        """
        if not len(codes):
            return
        arms = len(self.sums_EF)
        order = by_environment(codes, arms)
        code, y, w, step = codes[order], values[order], weights[order], trained[order].astype(np.float64)
        count_E = np.bincount(code, minlength=arms)
        starts_E = np.cumsum(count_E) - count_E
        steps_E = np.bincount(code, step, arms)
        age = count_E[code] - 1.0 - (np.arange(len(code)) - starts_E[code])
        walked = np.cumsum(step)
        first = walked[starts_E[code]] - step[starts_E[code]]
        x = walked - step - first - steps_E[code]
        mute = (w <= 0.0).astype(np.float64)
        mutes_E = np.bincount(code, mute, arms)
        silent = np.cumsum(mute)
        before = silent[starts_E[code]] - mute[starts_E[code]]
        idle = mutes_E[code] - (silent - before)
        kept = np.minimum(w, _MOST_WEIGHT)
        u = np.exp(np.log(self.discount) * age) * kept
        v = np.exp(np.log(self.discount) * (2.0 * age - idle)) * kept * kept
        ux, uy, vx = u * x, u * y, v * x
        columns = np.stack([u, ux, ux * x, uy, ux * y, uy * y, v, vx, vx * x])
        told_E = np.flatnonzero(count_E)
        held = self.sums_EF[told_E]
        decay, shift = self.discount ** count_E[told_E], steps_E[told_E]
        held[:, :6] *= decay[:, None]
        held[:, 6:] *= (self.discount ** (2.0 * count_E[told_E] - mutes_E[told_E]))[:, None]
        for nought, one, two in ((0, 1, 2), (6, 7, 8)):
            held[:, two] += shift * (shift * held[:, nought] - 2.0 * held[:, one])
            held[:, one] -= shift * held[:, nought]
        held[:, 4] -= shift * held[:, 3]
        self.sums_EF[told_E] = held + np.add.reduceat(columns, starts_E[told_E], axis=1).T

    def slopes(self) -> tuple[Floats, Floats]:
        """Slope and standard error of each environment, shape (E,) each; 0 and infinity where nothing is known."""
        w, x, xx, y, xy, yy, v, vx, vxx = self.sums_EF.T
        total = np.where(w > _LEAST, w, 1.0)
        mean_x, mean_y = x / total, y / total
        about_xx = xx - x * mean_x
        about_xy, about_yy = xy - x * mean_y, yy - y * mean_y
        groups = np.where(w > _LEAST, w * w / np.maximum(v, _LEAST), 0.0)
        known = (groups > _LEAST_GROUPS) & (about_xx > np.maximum(1e-6 * xx, _LEAST))
        spread = np.where(known, about_xx, 1.0)
        slope = about_xy / spread
        left = np.maximum(about_yy - slope * about_xy, 0.0)
        known &= left > np.maximum(1e-9 * yy, _LEAST)
        variance = left / total * groups / np.maximum(groups - 2.0, 1.0)
        lever = np.maximum(vxx - 2.0 * mean_x * vx + mean_x**2 * v, 0.0)
        error = np.sqrt(variance * lever) / spread
        return np.where(known, slope, 0.0), np.where(known, error, np.inf)

    def clear(self) -> None:
        """Forget all groups."""
        self.sums_EF[:] = 0.0

    def state_dict(self) -> dict[str, Any]:
        """The sums."""
        return {"sums": self.sums_EF.copy()}

    def load(self, state: Reader) -> None:
        """Take over sums."""
        self.sums_EF = state.array("sums", np.float64, self.sums_EF.shape, low=-_MOST, high=_MOST)
