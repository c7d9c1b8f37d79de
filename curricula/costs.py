"""What a rollout costs in tokens: per prompt, shrunk to its environment, shrunk to the whole."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.sums import rounds
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_RATE = 1.0 / 3.0
_PRIOR_ROLLOUTS = 8.0
_UNIT = 16.0  # what float16 holds reaches to 65,504
_MOST = 65504.0


class TokenCosts:
    """Expected tokens per rollout.

    A prompt's running mean starts at its environment's mean and moves a third of the way at each visit (half of
    it at the first), so one number of two bytes per prompt is all it takes: exact to 0.05%, up to a million tokens.
    An environment's mean is discounted at every told group of any environment, and shrunk to the mean of all. Where
    tokens are never told, every rollout costs 1.
    """

    def __init__(self, pool: PromptPool, discount: float) -> None:
        self.pool, self.discount = pool, discount
        self.mean = np.zeros(len(pool), dtype=np.float16)
        self.sums_E2: Floats = np.zeros((len(pool.environments), 2))

    def environments(self) -> Floats:
        """Expected tokens per rollout of each environment, shape (E,), positive."""
        tokens, rollouts = self.sums_E2.sum(axis=0)
        overall = tokens / rollouts if rollouts > 0.0 else 1.0
        return (_PRIOR_ROLLOUTS * overall + self.sums_E2[:, 0]) / (_PRIOR_ROLLOUTS + self.sums_E2[:, 1])

    def prompts(self, rows: Rows) -> Floats:
        """Expected tokens per rollout of each row, shape (M,), positive."""
        known = self.mean[rows].astype(np.float64) * _UNIT
        return np.where(known > 0.0, known, self.environments()[self.pool.codes[rows]])

    def update(self, rows: Rows, tokens: Floats, rollouts: Floats) -> None:
        """Learn K groups: tokens summed over the rollouts (K,) that were counted (K,); none counted teaches nothing."""
        told = rollouts > 0.0
        self.sums_E2 *= self.discount**rows.size
        if not told.any():
            return
        rows, tokens, rollouts = rows[told], tokens[told], rollouts[told]
        # An empty completion still costs a forward pass.
        each = np.maximum(tokens / rollouts, 1.0)
        codes = self.pool.codes[rows]
        np.add.at(self.sums_E2, codes, np.stack([each * rollouts, rollouts], axis=1))
        means = self.environments()[codes]
        for part in rounds(rows):
            old, value = self.mean[rows[part]].astype(np.float64) * _UNIT, each[part]
            new = np.where(old > 0.0, old + _RATE * (value - old), 0.5 * (means[part] + value))
            self.mean[rows[part]] = np.minimum(new / _UNIT, _MOST)

    def state_dict(self) -> dict[str, Any]:
        """Means of the rows with a known one, and the environments' sums."""
        rows = np.flatnonzero(self.mean)
        return {"rows": rows, "mean": self.mean[rows], "sums": self.sums_E2.copy()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        rows = state.rows("rows", len(self.pool))
        mean = state.array("mean", np.float16, (rows.size,), low=1e-3, high=_MOST)
        sums = state.array("sums", np.float64, self.sums_E2.shape, high=1e120)
        self.mean[rows], self.sums_E2 = mean, sums
