"""Intervals of a ratio over prompts, and of paired differences, by a bootstrap over prompts and seeds."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate with its 95% limits."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def signed(self) -> str:
        """As a difference: with its sign."""
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


class Resamples:
    """The same resamples of prompts and of seeds for every ratio, so that differences are paired.

    A ratio of seed s is sum over prompts of part / sum over prompts of whole; a resample draws prompts and seeds
    with replacement and takes the mean ratio over its seeds. What was chosen is not chosen anew.

    Args:
        prompts: N.
        seeds: S.
        count: Resamples.
        rng: The only source of randomness.
    """

    def __init__(self, prompts: int, seeds: int, count: int, rng: np.random.Generator) -> None:
        self.weights_BN = rng.multinomial(prompts, np.full(prompts, 1.0 / prompts), size=count).astype(np.float64)
        self.seeds_BS = rng.integers(seeds, size=(count, seeds))

    def ratios(self, part_SN: Floats, whole_SN: Floats) -> tuple[float, Floats]:
        """Mean ratio over the seeds, and the ratio of each resample (B,)."""
        ratio_BS = (self.weights_BN @ part_SN.T) / (self.weights_BN @ whole_SN.T)
        resampled = np.take_along_axis(ratio_BS, self.seeds_BS, axis=1).mean(axis=1)
        return float((part_SN.sum(axis=1) / whole_SN.sum(axis=1)).mean()), resampled


def interval(value: float, resampled_B: Floats) -> Interval:
    """The estimate between the percentiles of its resamples."""
    low, high = np.percentile(resampled_B, [2.5, 97.5])
    return Interval(value, float(low), float(high))
