"""The noise of a curve's points: how large, how correlated, and what is believed of both beforehand."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curricula.scaling.laws import Floats
from curricula.scaling.observations import Observations

# Correlation of neighbouring points' deviations, with its probability beforehand: checkpoints share their past.
CORRELATIONS = ((0.0, 0.75), (0.3, 0.15), (0.6, 0.07), (0.85, 0.03))
# Where no standard errors are given, the deviations' size: log-normal about .01. Where they are, a factor on them.
SIZE = (np.log(0.01), 0.6)
SIZES = np.geomspace(0.0005, 0.3, 22)
FACTOR = (np.log(1.1), 0.35)
FACTORS = np.geomspace(0.6, 6, 16)


@dataclass(frozen=True, slots=True)
class Noise:
    """Deviations of standard deviation scale × unit, an autoregression of order 1 in each series.

    Attributes:
        unit: (n,), the standard errors given, or ones.
        scales: (k,), the sizes considered.
        log_prior: (k,), of each, normalised.
        series: (n,).
    """

    unit: Floats
    scales: Floats
    log_prior: Floats
    series: npt.NDArray[np.int64]

    @classmethod
    def of(cls, observed: Observations) -> "Noise":
        """Sizes to consider for these points."""
        known = observed.noise is not None
        scales, (centre, width) = (FACTORS, FACTOR) if known else (SIZES, SIZE)
        log_prior = -0.5 * ((np.log(scales) - centre) / width) ** 2
        unit = observed.noise if observed.noise is not None else np.ones(len(observed))
        return cls(unit, scales, log_prior - np.logaddexp.reduce(log_prior), observed.series)

    def whiten(self, values: Floats, correlation: float) -> Floats:
        """`values` (n, …) in units of the noise, each less what its predecessor in the series says."""
        white = values / self.unit.reshape(-1, *[1] * (values.ndim - 1))
        if correlation:
            later = self._followers
            white[later] = (white[later] - correlation * white[later - 1]) / np.sqrt(1 - correlation**2)
        return white

    def log_determinant(self, correlation: float) -> float:
        """Half the log-determinant of the covariance at scale 1."""
        return float(np.log(self.unit).sum() + 0.5 * len(self._followers) * np.log1p(-(correlation**2)))

    @property
    def _followers(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self.series[1:] == self.series[:-1]) + 1
