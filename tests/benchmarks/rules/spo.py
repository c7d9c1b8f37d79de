"""SPO's prompt weights."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule

_EXPLORE = 0.05


class Spo(Rule):
    """Draws in proportion to the spread of each prompt's tracked success, plus a little for all.

    Single-stream Policy Optimization, arXiv 2509.13232: w = sqrt(p (1 - p)) + 0.05 with p = a / (a + b);
    a <- rho a + successes, b <- rho b + failures, rho = 2^(-KL / 0.06) since the prompt's last visit. Where the KL
    divergence is not known, rho is constant. Before any evidence a = b = 1.
    """

    name = "spo"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator, decay: float = 0.9) -> None:
        super().__init__(pool, group_size, rng)
        self.decay = decay
        self.alpha, self.beta = np.ones(len(pool)), np.ones(len(pool))

    def _choose(self, n: int, free: Rows) -> Rows:
        rate = self.alpha[free] / (self.alpha[free] + self.beta[free])
        return self.weighted(n, free, np.sqrt(rate * (1.0 - rate)) + _EXPLORE)

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        self.alpha[rows] = self.decay * self.alpha[rows] + passed
        self.beta[rows] = self.decay * self.beta[rows] + (tried - passed)
