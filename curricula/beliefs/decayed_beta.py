"""Decayed Beta beliefs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.base import Assessment, Normaliser, PromptByPrompt
from curricula.beliefs.sums import rounds, window_sums
from curricula.config import DecayedBetaConfig
from curricula.objectives import expected_signal
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_FIRST_VISIT_DISCOUNT = 0.98
_PRIOR_VISITS = 2.0


class DecayedBeta(PromptByPrompt):
    """Decayed Beta beliefs whose prior is the environment's own mean.

    A prompt's evidence is (k, n): successes and rollouts, both multiplied by `decay` before each new group is
    added. Its posterior is Beta(s m + k, s (1 - m) + n - k), where s is `strength` and m is the mean of the first
    visits in its environment, discounted and shrunk to one half. First visits are used because prompts chosen
    for what is known of them are no sample of the environment.

    Evidence is float32 and starts as untouched zero pages: a pool of 20 million costs what was visited.

    References:
        MoPPS, arXiv 2507.04632 (the decay).
    """

    def __init__(self, pool: PromptPool, config: DecayedBetaConfig) -> None:
        self.pool = pool
        self.decay, self.strength = config.decay, config.strength
        self.clear()

    def clear(self) -> None:
        """Forget all evidence."""
        size, environments = len(self.pool), len(self.pool.environments)
        self.passed = np.zeros(size, dtype=np.float32)
        self.tried = np.zeros(size, dtype=np.float32)
        self.visited = 0
        self.first_E2: Floats = np.zeros((environments, 2))
        # The mean of a block's posteriors is m * prior + evidence, so a change of m moves it without a pass
        # over prompts: prior = sum of s / (s + n), evidence = sum of k / (s + n).
        self.prior_B: Floats = self.pool.block_sizes.astype(np.float64)
        self.evidence_B: Floats = np.zeros(len(self.prior_B))

    def environment_means(self) -> Floats:
        """Expected pass rate of an unseen prompt in each environment, shape (E,)."""
        return (0.5 * _PRIOR_VISITS + self.first_E2[:, 0]) / (_PRIOR_VISITS + self.first_E2[:, 1])

    def posterior(self, rows: Rows) -> tuple[Floats, Floats]:
        """Parameters of the Beta posterior of each row, shape (M,) each, both positive."""
        prior = self.environment_means()[self.pool.codes[rows]]
        passed = self.passed[rows].astype(np.float64)
        alpha = self.strength * prior + passed
        beta = self.strength * (1.0 - prior) + (self.tried[rows] - passed)
        return alpha, beta

    def seen(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows were visited, shape (M,)."""
        return self.tried[rows] > 0.0

    def assess(self, rows: Rows, group_size: int, normaliser: Normaliser) -> Assessment:
        """Expected pass rate and signal of rows (M,), both in closed form."""
        alpha, beta = self.posterior(rows)
        signals = expected_signal(alpha, beta, group_size, normaliser).astype(np.float64)
        return Assessment(alpha / (alpha + beta), signals, np.zeros(rows.size))

    def moments(self, rows: Rows) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of each row, shape (M,) each."""
        alpha, beta = self.posterior(rows)
        total = alpha + beta
        return alpha / total, np.sqrt(alpha * beta / (total * total * (total + 1.0)))

    def pool_means(self, windows_E2: Rows) -> Floats:
        """Mean of the beliefs over the eligible prompts of each environment, shape (E,); O(levels).

        Args:
            windows_E2: Shape (E, 2), the range of eligible blocks of each environment.
        """
        if len(self.prior_B) == len(self.first_E2):
            return (self.environment_means() * self.prior_B + self.evidence_B) / self.pool.block_sizes
        columns = np.stack([self.prior_B, self.evidence_B, self.pool.block_sizes.astype(np.float64)])
        prior, evidence, sizes = window_sums(columns, windows_E2)
        return (self.environment_means() * prior + evidence) / sizes

    def update(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn K outcomes in order: successes (K,) of rollouts (K,) at rows (K,); a row may come more than once."""
        for places in rounds(rows):
            self._update_distinct(rows[places], passed[places], tried[places])

    def _update_distinct(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        old_k, old_n = self.passed[rows].astype(np.float64), self.tried[rows].astype(np.float64)
        fresh = old_n == 0.0
        if fresh.any():
            for code, rate in zip(self.pool.codes[rows[fresh]], passed[fresh] / tried[fresh], strict=True):
                self.first_E2[code] *= _FIRST_VISIT_DISCOUNT
                self.first_E2[code] += (rate, 1.0)
            self.visited += int(fresh.sum())
        self.tried[rows] = self.decay * old_n + tried
        # Rounding to float32 must not leave more successes than rollouts.
        self.passed[rows] = np.minimum(self.decay * old_k + passed, self.tried[rows])
        new_k, new_n = self.passed[rows].astype(np.float64), self.tried[rows].astype(np.float64)
        blocks, s = self.pool.blocks[rows], self.strength
        np.add.at(self.prior_B, blocks, s / (s + new_n) - s / (s + old_n))
        np.add.at(self.evidence_B, blocks, new_k / (s + new_n) - old_k / (s + old_n))

    def recount(self) -> None:
        """Take the sums over blocks anew."""
        rows = np.flatnonzero(self.tried)
        passed, tried = self.passed[rows].astype(np.float64), self.tried[rows].astype(np.float64)
        blocks, s = self.pool.blocks[rows], self.strength
        self.prior_B = self.pool.block_sizes.astype(np.float64)
        self.evidence_B = np.zeros(len(self.prior_B))
        np.add.at(self.prior_B, blocks, s / (s + tried) - 1.0)
        np.add.at(self.evidence_B, blocks, passed / (s + tried))

    def state_dict(self) -> dict[str, Any]:
        """Evidence of the visited rows only, and the sums as they are: a resumed run must not differ by a rounding."""
        rows = np.flatnonzero(self.tried)
        return {
            "type": "decayed_beta",
            "rows": rows,
            "passed": self.passed[rows],
            "tried": self.tried[rows],
            "first": self.first_E2.copy(),
            "prior": self.prior_B.copy(),
            "evidence": self.evidence_B.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        rows = state.rows("rows", len(self.pool))
        passed = state.array("passed", np.float32, (rows.size,))
        tried = state.array("tried", np.float32, (rows.size,), low=1e-30)
        first = state.array("first", np.float64, self.first_E2.shape, high=1e6)
        prior = state.array("prior", np.float64, self.prior_B.shape, low=-1e-6, high=len(self.pool))
        evidence = state.array("evidence", np.float64, self.prior_B.shape, low=-1e-6, high=len(self.pool))
        state.ensure("passed", "at most as many successes as rollouts", bool((passed <= tried).all()))
        state.ensure("first", "at most as many successes as visits", bool((first[:, 0] <= first[:, 1] + 1e-9).all()))
        self.passed[rows], self.tried[rows] = passed, tried
        self.visited = rows.size
        self.first_E2, self.prior_B, self.evidence_B = first, prior, evidence
