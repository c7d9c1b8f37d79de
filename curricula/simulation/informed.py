"""A reference that knows the law of the world but no prompt: exact Bayes on a grid."""

import numpy as np
from numpy.typing import NDArray

from curricula.simulation.law import Floats, sigmoid
from curricula.simulation.world import TOKENS_NOISE, Rows, World

_CELL = 0.2
_REACH = 4.5
_POINTS = np.linspace(-4.0, 4.0, 33)
_LEAST_STD = 0.02
_FALLS_PER_STEP = 1.0 / 200.0
_EVERY = 10


class InformedFilter:
    """Takes the greatest E[p(1-p)] under the exact posterior of a learner who is told the law.

    It is told: the distribution of difficulty and the share of unlearnable prompts of each environment, how the
    feature goes with difficulty, how ability grows with the signal of a batch, drifts, is forgotten and is held up by
    prerequisites, and that a regression of a known size may come with chance 1/200 at every step where the law has
    one (not when). It is not told any prompt's difficulty or cost, nor the abilities: it filters them. The growth of
    ability is known from the groups it sees; what drift and regressions leave open is a normal density per
    environment, updated on a grid by the likelihood of each batch under the prompts' posteriors before it.

    A prompt's posterior is a weight for each of M difficulties, 0.2 logits apart, and one for "unlearnable".

    Args:
        world: Whose law, rows and features it is told; it reads nothing else of it.
        per_token: Whether signal is divided by the expected tokens, the posterior mean of a lognormal.
        worth: Whether it is multiplied by what signal in the prompt's environment adds to held-out success: then the
            filter knows which environments to learn, too, which no rule is told.
    """

    def __init__(self, world: World, per_token: bool = False, worth: bool = False) -> None:
        self.law, self.codes_N = world.law, world.codes_N
        self._per_token, self._worth, self._count = per_token, worth, len(world.law.environments)
        self.ability_E: Floats = np.zeros(self._count)
        self.variance_E: Floats = np.zeros(self._count)
        self._falls_E: Floats = np.zeros(self._count)
        for fall in self.law.regressions:
            self._falls_E[fall.environment] = fall.amount
        self.visits_N: Rows = np.zeros(len(world), dtype=np.int64)
        parts = [part for environment in self.law.environments for part in environment.difficulty]
        low = min(mean - _REACH * std for _, mean, std in parts)
        high = max(mean + _REACH * std for _, mean, std in parts)
        self.grid_M: Floats = np.arange(low, high + _CELL, _CELL, dtype=np.float64)
        self.weight_NM: Floats = np.empty((len(world), len(self.grid_M)))
        self.hopeless_N: Floats = np.empty(len(world))
        self._log_cost_N: Floats = np.empty(len(world))
        self._cost_precision_N: Floats = np.empty(len(world))
        for code, environment in enumerate(self.law.environments):
            rows = self.codes_N == code
            shape = sum(w * _normal(self.grid_M, mean, std) for w, mean, std in environment.difficulty)
            r = environment.correlation
            expected_M = r * (self.grid_M - environment.centre) / environment.scale
            weight = shape * _normal(world.feature_N[rows, None], expected_M, np.sqrt(1.0 - r * r))
            weight /= weight.sum(axis=1, keepdims=True)
            # Whether a prompt is unlearnable does not depend on its difficulty, so its feature says nothing of that.
            self.weight_NM[rows] = weight * (1.0 - environment.unlearnable)
            self.hopeless_N[rows] = environment.unlearnable
            spread = max(environment.tokens_spread, 1e-6)
            self._log_cost_N[rows] = np.log(environment.tokens) - 0.5 * spread**2
            self._cost_precision_N[rows] = 1.0 / spread**2
        self._blur_MM: Floats | None = None
        if self.law.prompt_drift > 0.0:
            blur = _normal(self.grid_M[:, None], self.grid_M, self.law.prompt_drift * np.sqrt(_EVERY))
            self._blur_MM = blur / blur.sum(axis=1, keepdims=True)
        self._steps = 0

    def signal(self) -> Floats:
        """E[p(1-p)] of each row, shape (N,), at the ability as it is filtered."""
        value_N = np.empty(len(self.codes_N))
        for code in range(self._count):
            nodes, chances = self._spread(code)
            rate_QM = sigmoid(nodes[:, None] - self.grid_M)
            value_M = chances @ (rate_QM * (1.0 - rate_QM))
            rows = self.codes_N == code
            value_N[rows] = self.weight_NM[rows] @ value_M
        if self.law.memorisation > 0.0:
            rows = np.flatnonzero(self.visits_N)
            logit = self.ability_E[self.codes_N[rows]] + self.law.bonus(self.visits_N[rows])
            rate = sigmoid(logit[:, None] - self.grid_M)
            value_N[rows] = (self.weight_NM[rows] * rate * (1.0 - rate)).sum(axis=1)
        return value_N

    def choose(self, n: int) -> Rows:
        """The n rows of the greatest expected signal, per expected token where the objective is that."""
        value = self.signal()
        if self._per_token:
            value = value * np.exp(-self._log_cost_N - 0.5 / self._cost_precision_N)
        if self._worth:
            value = value * self.law.worth(self.ability_E)[self.codes_N]
        return np.argpartition(-value, n - 1)[:n]

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats) -> None:
        """Filter abilities, then the prompts seen, then costs; then predict the growth that the batch brings."""
        size = successes_KG.shape[1]
        passed_K = successes_KG.sum(axis=1)
        codes_K = self.codes_N[rows]
        for code in np.unique(codes_K).tolist():
            here = codes_K == code
            self._update(code, rows[here], passed_K[here], size)
        logs = np.log(tokens_KG).mean(axis=1) + 0.5 * TOKENS_NOISE**2
        added = size / TOKENS_NOISE**2
        precision = self._cost_precision_N[rows] + added
        self._log_cost_N[rows] += (logs - self._log_cost_N[rows]) * added / precision
        self._cost_precision_N[rows] = precision
        rate_K = passed_K / size
        signal_K = rate_K * (1.0 - rate_K)
        signal_E = np.bincount(codes_K, signal_K, self._count) / len(rows)
        kept_E = np.bincount(codes_K[signal_K > 0.0], minlength=self._count)
        self.ability_E = self.law.grow(self.ability_E, signal_E, kept_E)
        self.variance_E = self.variance_E + self.law.drift**2
        np.add.at(self.visits_N, rows[signal_K > 0.0], 1)
        self._steps += 1
        if self._blur_MM is not None and self._steps % _EVERY == 0:
            self.weight_NM = self.weight_NM @ self._blur_MM

    def _update(self, code: int, rows: Rows, passed_K: Floats, size: int) -> None:
        nodes, chances = self._spread(code)
        fall = self._falls_E[code]
        if fall > 0.0:
            # Before the batch the ability may have fallen, and noise alone cannot tell: both are weighed.
            nodes = np.concatenate([nodes, nodes - fall])
            chances = np.concatenate([chances * (1.0 - _FALLS_PER_STEP), chances * _FALLS_PER_STEP])
        shift_K = self.law.bonus(self.visits_N[rows])
        logit_QKM = nodes[:, None, None] + shift_K[:, None] - self.grid_M
        # Of the binomial, only what depends on the pass rate: k log p + (n - k) log(1 - p).
        log_QKM = -passed_K[:, None] * np.logaddexp(0.0, -logit_QKM)
        log_QKM -= (size - passed_K)[:, None] * np.logaddexp(0.0, logit_QKM)
        like_QKM = np.exp(log_QKM)
        none_K = (passed_K == 0).astype(np.float64)
        total_QK = np.einsum("qkm,km->qk", like_QKM, self.weight_NM[rows]) + none_K * self.hopeless_N[rows]
        log_Q = np.log(np.maximum(total_QK, 1e-300)).sum(axis=1) + np.log(np.maximum(chances, 1e-300))
        after_Q = np.exp(log_Q - log_Q.max())
        after_Q /= after_Q.sum()
        if len(nodes) > 1:
            self.ability_E[code] = after_Q @ nodes
            self.variance_E[code] = after_Q @ (nodes - self.ability_E[code]) ** 2
        # Each prompt's own factor is the likelihood of its group, averaged over the ability.
        mean_KM = np.einsum("q,qkm->km", after_Q, like_QKM)
        weight_KM = self.weight_NM[rows] * mean_KM
        hopeless_K = self.hopeless_N[rows] * none_K
        norm_K = weight_KM.sum(axis=1) + hopeless_K
        self.weight_NM[rows] = weight_KM / norm_K[:, None]
        self.hopeless_N[rows] = hopeless_K / norm_K

    def _spread(self, code: int) -> tuple[Floats, Floats]:
        """Abilities on a grid, and their chances."""
        mean, std = float(self.ability_E[code]), float(np.sqrt(self.variance_E[code]))
        if std == 0.0:
            return np.array([mean]), np.ones(1)
        chances = np.exp(-0.5 * _POINTS**2)
        return mean + max(std, _LEAST_STD) * _POINTS, chances / chances.sum()


def _normal(x: NDArray[np.float64], mean: Floats | float, std: float) -> Floats:
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / std
