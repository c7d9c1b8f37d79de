"""MoPPS: Thompson sampling near one half."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule
from rules.betas import DecayedBetas


class Mopps(Rule):
    """The prompts whose Thompson samples from decayed Beta posteriors lie closest to one half.

    Model Predictive Prompt Selection, arXiv 2507.04632: a <- 0.9 a + 0.1 + successes and b likewise from Beta(1, 1);
    r_i ~ Beta(a_i, b_i); the batch is the n prompts of smallest (r_i - 0.5)^2.
    """

    name = "mopps"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.betas = DecayedBetas(len(pool), decay=0.9)

    def _choose(self, n: int, free: Rows) -> Rows:
        samples = self.rng.beta(self.betas.alpha[free], self.betas.beta[free])
        return self.top(n, free, -((samples - 0.5) ** 2))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        self.betas.learn(rows, passed, tried)

    def forecast(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,)."""
        return self.betas.mean(rows), self.betas.informative(rows, self.group_size)
