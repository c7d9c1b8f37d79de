"""Difficulty pools as prime-rl has them."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule

_HARD, _NORMAL = 0.25, 0.75
_WEIGHTS = np.array([0.2, 1.0, 0.2])


class PrimePools(Rule):
    """Draws weighted by the pool that the latest group mean puts a prompt in.

    prime-rl, DifficultyPoolSampler with its default pools: hard up to 0.25 with weight 0.2, normal up to 0.75 with
    weight 1, easy above with weight 0.2; unseen prompts have weight 1.
    """

    name = "prime_pools"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.weights = np.ones(len(pool))

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.weighted(n, free, self.weights[free])

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        self.weights[rows] = _WEIGHTS[np.searchsorted([_HARD, _NORMAL], passed / tried)]
