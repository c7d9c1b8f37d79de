"""Decayed Beta posteriors as columns, which several rules share."""

import numpy as np

from curricula.objectives import group_signal
from rules.base import Floats, Rows


class DecayedBetas:
    """Beta(a, b) for each of N prompts, decayed towards Beta(1, 1) whenever the prompt is observed.

    a <- decay a + (1 - decay) + successes, b likewise with failures: MoPPS, arXiv 2507.04632.
    """

    def __init__(self, size: int, decay: float) -> None:
        self.decay = decay
        self.alpha, self.beta = np.ones(size), np.ones(size)

    def learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn successes (K,) of rollouts (K,)."""
        self.alpha[rows] = self.decay * self.alpha[rows] + (1.0 - self.decay) + passed
        self.beta[rows] = self.decay * self.beta[rows] + (1.0 - self.decay) + (tried - passed)

    def mean(self, rows: Rows) -> Floats:
        """Posterior means (M,)."""
        return self.alpha[rows] / (self.alpha[rows] + self.beta[rows])

    def informative(self, rows: Rows, group_size: int) -> Floats:
        """Chance that a group is mixed (M,), beta-binomial."""
        return np.asarray(group_signal(self.alpha[rows], self.beta[rows], group_size), dtype=np.float64)
