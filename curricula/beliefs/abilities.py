"""The ability of the policy in each environment, filtered from its groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.grid import rates
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_PRIOR_VARIANCE = 1.5**2
_ROUNDS = 3
_LONGEST_STEP = 1.5
_FURTHEST = 9.0  # further out, all prompts are solved or none is; and failures would only say "never solved"
_LEAST_PART = 0.1
_SURPRISE = 3.0
_ALIKE, _MOVE_ALIKE = 0.98, 0.8
_SMALL = 1e-9


class Abilities:
    """Normal densities of the abilities, in logits.

    From one batch to the next A ~ N(A, C + Q). A batch of groups (k_j, n_j) of prompts with posteriors pi_j before it
    has the log-likelihood

        sum_j log sum_d pi_j(d) p(A, d)^k_j (1 - p(A, d))^(n_j - k_j),   p(A, d) = sigmoid(A + d)

    whose maximum with the prior is found by three Newton steps; C is the inverse of the observed information I of the
    batch (Louis, JRSS B 1982), at least a tenth of what it were if deviations were known, plus that of the prior. Since
    pi_j holds what was known when the prompt was chosen, choosing brings no bias. Abilities stay within 9 logits.

    With V = C + Q, a batch that says nothing new moves the mean by about N(0, V g), g = I / (I + 1/V). A move of more
    than 3 such standard deviations says that the ability may have jumped: V is widened by the square of move / g, which
    is where the batch alone would put it, and the batch is learned anew. That stands if the batch is then likelier by
    exp(3^2 / 2), by its likelihood and the chance of the move: few groups that all failed lie far out as normal ones
    go, and are common. Were the likelihood normal, the two conditions would be one.

    Paired abilities come in twos: those at 2 e and 2 e + 1 are correlated by .98 a priori, and their moves by .8, jumps
    among them. What a batch says of one of them then moves the other as well: a Kalman filter of the two, with I about
    where the batch alone would put each.

    Args:
        count: Abilities.
        noise: Q.
        paired: Whether they come in twos.
    """

    def __init__(self, count: int, noise: float, paired: bool = False) -> None:
        self.noise = noise
        self.mean_E: Floats = np.zeros(count)
        self.variance_E: Floats = np.full(count, _PRIOR_VARIANCE)
        # Covariance of each pair.
        self.shared_P: Floats = np.full(count // 2 if paired else 0, _ALIKE * _PRIOR_VARIANCE)

    def update(self, codes_K: Codes, prior_KN: Floats, passed_K: Floats, tried_K: Floats) -> None:
        """Learn K groups: environments (K,), posteriors before (K, nodes), successes (K,) of rollouts (K,)."""
        count = len(self.mean_E)
        told_E = self._both(np.bincount(codes_K, minlength=count) > 0)
        before_E = np.minimum(self.variance_E + self.noise * told_E, _PRIOR_VARIANCE)
        mean_E, information_E = self._climb(before_E, codes_K, prior_KN, passed_K, tried_K)
        # Under the model the mean moves by a part of what the batch asks for, with variance before * part.
        part_E = np.maximum(information_E / (information_E + 1.0 / before_E), 1e-9)
        asked_E = (mean_E - self.mean_E) / part_E
        jumped_E = told_E & (asked_E**2 * part_E > _SURPRISE**2 * before_E)
        moved_E = np.zeros(count)
        if jumped_E.any():
            moved_E = self._both(np.where(jumped_E, asked_E**2, 0.0))
            wide_E = np.minimum(before_E + moved_E, _PRIOR_VARIANCE)
            far_E, there_E = self._climb(wide_E, codes_K, prior_KN, passed_K, tried_K)
            batch = codes_K, prior_KN, passed_K, tried_K
            won_E = _log_likelihood(far_E, *batch) - _log_likelihood(mean_E, *batch)
            jumped_E &= 2.0 * won_E + (mean_E - self.mean_E) ** 2 / before_E > _SURPRISE**2
            jumped_E = self._both(jumped_E)
            moved_E = np.where(jumped_E, wide_E - before_E, 0.0)
            before_E = before_E + moved_E
            mean_E = np.where(jumped_E, far_E, mean_E)
            information_E = np.where(jumped_E, there_E, information_E)
        if self.shared_P.size:
            moved_P = self.noise * told_E[::2] + moved_E.reshape(-1, 2).min(axis=1)
            self._join(before_E, moved_P, mean_E, information_E, told_E[::2])
            return
        self.mean_E = np.where(told_E, mean_E, self.mean_E)
        self.variance_E = np.where(told_E, 1.0 / (information_E + 1.0 / before_E), self.variance_E)

    def _both(self, values_E: NDArray[Any]) -> NDArray[Any]:
        """The larger of each pair for both of it."""
        return np.repeat(values_E.reshape(-1, 2).max(axis=1), 2) if self.shared_P.size else values_E

    def _join(
        self, before_E: Floats, moved_P: Floats, mean_E: Floats, information_E: Floats, told_P: NDArray[np.bool_]
    ) -> None:
        """Update pairs together, each ability with what its own groups say of it apart from its prior.

        `moved_P` is the variance of this move that both abilities of a pair have.
        """
        first_P, second_P = before_E.reshape(-1, 2).T
        widest = np.sqrt(first_P * second_P)
        shared_P = np.minimum(self.shared_P + _MOVE_ALIKE * moved_P, _ALIKE * widest)
        # Precisions of the prior, then of the posterior.
        scale = first_P * second_P - shared_P**2
        one, two, cross = second_P / scale, first_P / scale, -shared_P / scale
        one, two = one + information_E[::2], two + information_E[1::2]
        scale = one * two - cross**2
        pull_E = (mean_E - self.mean_E) * (information_E + 1.0 / before_E)
        moves = np.stack([two * pull_E[::2] - cross * pull_E[1::2], one * pull_E[1::2] - cross * pull_E[::2]], axis=1)
        moved = np.clip(self.mean_E.reshape(-1, 2) + moves / scale[:, None], -_FURTHEST, _FURTHEST)
        # Rounding must not leave more doubt than there was.
        variance = np.minimum(np.stack([two, one], axis=1) / scale[:, None], _PRIOR_VARIANCE)
        told = told_P[:, None]
        self.mean_E = np.where(told, moved, self.mean_E.reshape(-1, 2)).reshape(-1)
        self.variance_E = np.where(told, variance, self.variance_E.reshape(-1, 2)).reshape(-1)
        self.shared_P = np.where(told_P, -cross / scale, self.shared_P)

    def _climb(
        self, before_E: Floats, codes_K: Codes, prior_KN: Floats, passed_K: Floats, tried_K: Floats
    ) -> tuple[Floats, Floats]:
        """The most likely abilities under priors of variance (E,), and the information of the batch there."""
        count = len(self.mean_E)
        mean_E, information_E = self.mean_E, np.zeros(count)
        for _ in range(_ROUNDS):
            rate_EN = rates(mean_E)
            weight_KN = prior_KN * likelihood(rate_EN, codes_K, passed_K, tried_K)
            weight_KN /= weight_KN.sum(axis=1, keepdims=True)
            # Moments of the pass rate under the posterior give all that is needed: k - n p is linear in it.
            rate_KN = rate_EN[codes_K]
            first_K = np.einsum("kn,kn->k", weight_KN, rate_KN)
            second_K = np.einsum("kn,kn,kn->k", weight_KN, rate_KN, rate_KN)
            # "Never solved" does not move with the ability, so it has no part in the slope.
            moving_K = 1.0 - weight_KN[:, 0]
            slope_K = passed_K * moving_K - tried_K * first_K
            complete_K = (first_K - second_K) * tried_K
            missing_K = passed_K**2 * moving_K - 2.0 * passed_K * tried_K * first_K + tried_K**2 * second_K - slope_K**2
            complete_E = np.bincount(codes_K, complete_K, count)
            observed_E = complete_E - np.bincount(codes_K, missing_K, count)
            information_E = np.maximum(observed_E, _LEAST_PART * complete_E)
            gain_E = np.bincount(codes_K, slope_K, count) - (mean_E - self.mean_E) / before_E
            step_E = gain_E / (information_E + 1.0 / before_E)
            mean_E = np.clip(mean_E + np.clip(step_E, -_LONGEST_STEP, _LONGEST_STEP), -_FURTHEST, _FURTHEST)
        return mean_E, information_E

    def state_dict(self) -> dict[str, Any]:
        """Means and variances, of pairs side by side, and what pairs share."""
        each = 2 if self.shared_P.size else 1
        columns = {"mean": self.mean_E, "variance": self.variance_E}
        return {name: column.reshape(-1, each).copy() for name, column in columns.items()} | {
            "shared": self.shared_P.copy()
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        each = 2 if self.shared_P.size else 1
        shape = (self.mean_E.size // each, each)
        mean = state.array("mean", np.float64, shape, low=-_FURTHEST, high=_FURTHEST)
        variance = state.array("variance", np.float64, shape, low=1e-12, high=_PRIOR_VARIANCE)
        shared = state.array("shared", np.float64, self.shared_P.shape, low=-_PRIOR_VARIANCE, high=_PRIOR_VARIANCE)
        if each == 2:
            state.ensure("shared", "less than the variances", bool((shared**2 < variance.prod(axis=1)).all()))
        self.mean_E, self.variance_E, self.shared_P = mean.reshape(-1), variance.reshape(-1), shared


def _log_likelihood(mean_E: Floats, codes_K: Codes, prior_KN: Floats, passed_K: Floats, tried_K: Floats) -> Floats:
    """Of each environment's groups at abilities (E,), shape (E,)."""
    rate_EN = np.clip(rates(mean_E), _SMALL, 1.0 - _SMALL)
    log_KN = passed_K[:, None] * np.log(rate_EN)[codes_K] + (tried_K - passed_K)[:, None] * np.log1p(-rate_EN)[codes_K]
    peak_K = log_KN.max(axis=1)
    log_K: Floats = np.log((prior_KN * np.exp(log_KN - peak_K[:, None])).sum(axis=1)) + peak_K
    return np.bincount(codes_K, log_K, len(mean_E)).astype(np.float64)


def likelihood(rate_EN: Floats, codes_K: Codes, passed_K: Floats, tried_K: Floats) -> Floats:
    """p^k (1 - p)^(n - k) at each node, scaled to a maximum of 1 for each group.

    Args:
        rate_EN: Pass rates at the nodes, of each environment.
        codes_K: Environment of each group.
        passed_K: k, successes.
        tried_K: n, rollouts.

    Returns:
        Shape (K, nodes).
    """
    rate_EN = np.clip(rate_EN, _SMALL, 1.0 - _SMALL)
    # Logarithms of the few nodes, not of the many groups.
    log_KN = passed_K[:, None] * np.log(rate_EN)[codes_K]
    log_KN += (tried_K - passed_K)[:, None] * np.log1p(-rate_EN)[codes_K]
    log_KN -= log_KN.max(axis=1, keepdims=True)
    return np.exp(log_KN, out=log_KN)
