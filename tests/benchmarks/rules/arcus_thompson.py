"""The arcsine Kalman filter with posterior sampling."""

import numpy as np

from rules.arcus import Arcus
from rules.base import Floats, Rows


class ArcusThompson(Arcus):
    """The prompts whose sample of psi lies closest to pi / 4, that is p = 1/2.

    The filter of `Arcus` (arXiv 2609.38018), read by posterior sampling as in MoPPS, with each prompt's own visits
    as its clock: mu += v sin 2 mu and P += Q after each of them.
    """

    name = "arcus_thompson"

    def _choose(self, n: int, free: Rows) -> Rows:
        samples = self.rng.normal(self.mean[free], np.sqrt(self.variance[free]))
        return self.top(n, free, -np.abs(samples - np.pi / 4.0))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        super()._learn(rows, passed, tried)
        self.mean[rows] += self.drift * np.sin(2.0 * self.mean[rows])
        self.variance[rows] += self.noise

    def _step(self) -> None:
        return
