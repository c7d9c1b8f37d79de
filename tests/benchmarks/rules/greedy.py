"""Greedy beta-binomial selection."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule
from rules.betas import DecayedBetas


class Greedy(Rule):
    """The prompts most likely to give a mixed group under decayed Beta posteriors.

    Maximises E[1 - p^G - (1 - p)^G], beta-binomial, with the decay of MoPPS (arXiv 2507.04632); nothing explores
    but the prior Beta(1, 1) of unseen prompts.

    Args:
        pool: The prompts.
        group_size: Rollouts per group.
        rng: Breaks ties.
        decay: Tuned by the benchmarks, which report the best.
    """

    name = "greedy"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator, decay: float = 0.9) -> None:
        super().__init__(pool, group_size, rng)
        self.betas = DecayedBetas(len(pool), decay)

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.top(n, free, self.betas.informative(free, self.group_size))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        self.betas.learn(rows, passed, tried)

    def forecast(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,)."""
        return self.betas.mean(rows), self.betas.informative(rows, self.group_size)
