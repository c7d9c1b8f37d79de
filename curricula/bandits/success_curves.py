"""Success of each environment against what was spent in it, as a bounded number of points."""

from typing import Any, NamedTuple

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader

MOST = 64
WIDTH = 16
_FIELDS = 7
_GROUPS, _TOKENS, _ROLLOUTS, _W, _WY, _WYY, _WW = range(_FIELDS)
# Points are of as many neighbouring bins as this takes, in groups that all weigh alike.
_LEAST_EFFECTIVE = 5.0
# A prompt counts for two that were drawn by chance, at most: one rare draw is no longer all of its bin. In simulated
# worlds that leaves three times as many points, and they are off by no more (by .03 on average, as without).
_MOST_WEIGHT = 2.0
_LARGEST = 1e120


def rows_of(values: Floats, weights: Floats, tokens: Floats, rollouts: Floats) -> Floats:
    """Fields (K, F) of K groups, of which sums are taken; a weight above 2 counts as 2.

    Args:
        values: Shape (K,), y (`Scored.corrected_K`).
        weights: Shape (K,), w (`Scored.weight_K`).
        tokens: Shape (K,), that had been spent when each was told.
        rollouts: Shape (K,), likewise.
    """
    w = np.minimum(weights, _MOST_WEIGHT)
    return np.column_stack([np.ones(len(w)), tokens, rollouts, w, w * values, w * values**2, w * w])


def stretches(sums_BEF: Floats, shares_E: Floats) -> Codes | None:
    """Which stretch (B,) each bin is of: neighbours are of one until the mean by shares has an effective sample of 5.

    Those left at the end go with the stretch before them; None where all bins together do not suffice.
    """
    numbers: Codes = np.zeros(len(sums_BEF), dtype=np.int64)
    number, waiting = 0, np.zeros(sums_BEF.shape[1:])
    for place, sums_EF in enumerate(sums_BEF):
        numbers[place] = number
        waiting = waiting + sums_EF
        w, ww = waiting[:, _W], waiting[:, _WW]
        if (w > 0).all() and _LEAST_EFFECTIVE * float((shares_E**2 * ww / w**2).sum()) <= 1:
            number, waiting = number + 1, np.zeros(waiting.shape)
    return np.minimum(numbers, number - 1) if number else None


def means_of(sums_BF: Floats) -> tuple[Floats, Floats]:
    """Scores (B,) of stretches of one environment, and their standard errors.

    The variance of y is that within stretches; of all of them together where they have little more than a group each,
    and a rate's largest where even those are too few.
    """
    w, ww = sums_BF[:, _W], sums_BF[:, _WW]
    mean = sums_BF[:, _WY] / w
    effective = float((w**2 / ww).sum())
    if effective >= 2 * len(w):
        within = float((sums_BF[:, _WYY] - sums_BF[:, _WY] * mean).sum() / w.sum())
        variance = max(within, 1e-6) * effective / (effective - len(w))
    else:
        effective = float(w.sum() ** 2 / ww.sum())
        about = float(sums_BF[:, _WYY].sum() / w.sum() - (sums_BF[:, _WY].sum() / w.sum()) ** 2)
        variance = max(about, 1e-6) * effective / (effective - 1) if effective >= 2 else 0.25
    return np.clip(mean, 0.0, 1.0), np.sqrt(variance * ww) / w


class Points(NamedTuple):
    """Points of one environment, (n,) each."""

    compute: Floats
    score: Floats
    noise: Floats


class SuccessCurves:
    """Bins of groups, in the order they were told: first of 16 groups each; when 64 are full, neighbours are joined.

    A bin has sums, so that joining loses nothing but the places in between: of groups, of the tokens and rollouts that
    had been spent when each of them was told, and of weights w, w y, w y^2 and w^2. Its score is the weighted mean of
    y, with the standard error s sqrt(sum of w^2) / sum of w; s^2 is pooled over the environment's bins.

    Args:
        arms: E.

    >>> curves = SuccessCurves(1)
    >>> zeros, ones = np.zeros(64, dtype=np.int64), np.ones(64)
    >>> curves.observe(zeros, np.arange(64) % 2, ones, 100 * ones, 8 * ones)
    >>> [part.round(3).tolist() for part in curves.points(0, "rollouts")]
    [[68.0, 196.0, 324.0, 452.0], [0.5, 0.5, 0.5, 0.5], [0.129, 0.129, 0.129, 0.129]]
    """

    def __init__(self, arms: int) -> None:
        self.spent_E2: Floats = np.zeros((arms, 2))
        self.clear()

    def clear(self) -> None:
        """Forget the points; what was spent stays."""
        arms = len(self.spent_E2)
        self.bins_EBF: Floats = np.zeros((arms, MOST, _FIELDS))
        self.full_E = np.zeros(arms, dtype=np.int64)
        self.width_E = np.full(arms, WIDTH, dtype=np.int64)

    def observe(self, codes: Codes, values: Floats, weights: Floats, tokens: Floats, rollouts: Floats) -> None:
        """Enter K groups in the order they were told.

        Args:
            codes: Shape (K,), their environments.
            values: Shape (K,), y.
            weights: Shape (K,), w >= 0; what is above 2 counts as 2, and a group of weight 0 only costs.
            tokens: Shape (K,), that it cost.
            rollouts: Shape (K,), likewise.
        """
        for code in sorted(set(codes.tolist())):
            mine = codes == code
            cost = np.cumsum(np.stack([tokens[mine], rollouts[mine]], axis=1), axis=0) + self.spent_E2[code]
            self.spent_E2[code] = cost[-1]
            rows = rows_of(values[mine], weights[mine], cost[:, 0], cost[:, 1])[weights[mine] > 0]
            while len(rows):
                if self.full_E[code] == MOST:
                    self._join(code)
                bin_F = self.bins_EBF[code, self.full_E[code]]
                taken = int(self.width_E[code] - bin_F[_GROUPS])
                bin_F += rows[:taken].sum(axis=0)
                self.full_E[code] += int(bin_F[_GROUPS] >= self.width_E[code])
                rows = rows[taken:]

    def _join(self, code: int) -> None:
        pairs = self.bins_EBF[code].reshape(MOST // 2, 2, _FIELDS).sum(axis=1)
        self.bins_EBF[code] = 0.0
        self.bins_EBF[code, : MOST // 2] = pairs
        self.full_E[code], self.width_E[code] = MOST // 2, 2 * self.width_E[code]

    def points(self, code: int, axis: str) -> Points:
        """The points of an environment, in the order of compute; of "tokens" or "rollouts"."""
        bins_BF = self.bins_EBF[code, : self.full_E[code]]
        numbers = stretches(bins_BF[:, None], np.ones(1))
        if numbers is None:
            return Points(np.zeros(0), np.zeros(0), np.zeros(0))
        sums_BF = np.zeros((numbers[-1] + 1, _FIELDS))
        np.add.at(sums_BF, numbers, bins_BF)
        spent = sums_BF[:, _TOKENS if axis == "tokens" else _ROLLOUTS] / sums_BF[:, _GROUPS]
        return Points(spent, *means_of(sums_BF))

    def state_dict(self) -> dict[str, Any]:
        """The sums."""
        return {
            "spent": self.spent_E2.copy(),
            "bins": self.bins_EBF.copy(),
            "full": self.full_E.copy(),
            "width": self.width_E.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over sums."""
        arms = len(self.spent_E2)
        spent = state.array("spent", np.float64, (arms, 2), high=_LARGEST)
        bins = state.array("bins", np.float64, (arms, MOST, _FIELDS), low=-_LARGEST, high=_LARGEST)
        full = state.array("full", np.int64, (arms,), high=MOST)
        width = state.array("width", np.int64, (arms,), low=1)
        filled = np.arange(MOST) < full[:, None]
        state.ensure("bins", "weights above 0 in bins that are full", bool((bins[..., [_GROUPS, _W, _WW]] >= 0).all()
            and (bins[filled][:, [_GROUPS, _W, _WW]] > 0).all()))  # fmt: skip
        self.spent_E2, self.bins_EBF, self.full_E, self.width_E = spent, bins, full, width
