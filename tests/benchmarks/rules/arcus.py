"""ARCUS: a Kalman filter of the arcsine of the square root of the pass rate."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule

_RIGHT = np.pi / 2.0


class Arcus(Rule):
    """The prompts most likely to give a mixed group under an arcsine Kalman filter.

    ARCUS, arXiv 2609.38018, with psi = arcsin sqrt(p) ~ N(mu, P). Each unit of time mu += v sin 2 mu, P += Q.
    A group with m of G right is z = arcsin sqrt((m + 3/8) / (G + 3/4)) with variance R = 1 / (4 G + 2); at m = 0
    z = 0, at m = G z = pi/2, both with R = 1 / (2 G). A group is informative with probability
    1 - [exp(-G mu^2 / a) + exp(-G (pi/2 - mu)^2 / a)] / sqrt(a), a = 1 + 2 G P. Before any evidence psi has the
    mean and the variance of the uniform distribution on [0, pi/2].

    Args:
        pool: The prompts.
        group_size: Rollouts per group.
        rng: Breaks ties.
        drift: v, per unit of time.
        noise: Q, per unit of time.
    """

    name = "arcus"

    def __init__(
        self,
        pool: PromptPool,
        group_size: int,
        rng: np.random.Generator,
        drift: float = 0.005,
        noise: float = 0.001,
    ) -> None:
        super().__init__(pool, group_size, rng)
        self.drift, self.noise = drift, noise
        self.mean = np.full(len(pool), _RIGHT / 2.0)
        self.variance = np.full(len(pool), _RIGHT * _RIGHT / 12.0)

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.top(n, free, self._informative(free))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        measured = np.arcsin(np.sqrt((passed + 0.375) / (tried + 0.75)))
        measured = np.where(passed == 0.0, 0.0, np.where(passed == tried, _RIGHT, measured))
        spread = np.where((passed == 0.0) | (passed == tried), 1.0 / (2.0 * tried), 1.0 / (4.0 * tried + 2.0))
        gain = self.variance[rows] / (self.variance[rows] + spread)
        self.mean[rows] += gain * (measured - self.mean[rows])
        self.variance[rows] *= 1.0 - gain

    def _step(self) -> None:
        self.mean += self.drift * np.sin(2.0 * self.mean)
        self.variance += self.noise

    def _informative(self, rows: Rows) -> Floats:
        mean, group = self.mean[rows], self.group_size
        wide = 1.0 + 2.0 * group * self.variance[rows]
        alike = np.exp(-group * mean**2 / wide) + np.exp(-group * (_RIGHT - mean) ** 2 / wide)
        return 1.0 - alike / np.sqrt(wide)

    def forecast(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,).

        E[sin^2 psi] = (1 - exp(-2 P) cos 2 mu) / 2 for psi ~ N(mu, P).
        """
        rate = (1.0 - np.exp(-2.0 * self.variance[rows]) * np.cos(2.0 * self.mean[rows])) / 2.0
        return rate, self._informative(rows)
