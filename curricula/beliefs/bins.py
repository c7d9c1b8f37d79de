"""Bins of predicted difficulty: equal parts of each environment's prompts."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.shapes import BINS
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_EDGES: Floats = np.array([NormalDist().inv_cdf(place / BINS) for place in range(1, BINS)])
_KEPT = 0.99


class Bins:
    """Sorts predictions into 16 bins of each environment, by mean and spread of its recent predictions.

    Without predictions, prompts with levels are sorted by those: a higher level is taken to be harder, until
    outcomes say otherwise.

    Attributes:
        block_bins: Shape (B,), bin of the prompts of each block that have no prediction; 0 without levels.
    """

    def __init__(self, pool: PromptPool) -> None:
        count = len(pool.environments)
        self.moments_E3: Floats = np.zeros((count, 3))
        self.block_bins: Rows = np.zeros(len(pool.block_sizes), dtype=np.int64)
        for first, last in pool.block_ranges_E2.tolist():
            if last - first > 1:
                sizes = pool.block_sizes[first:last].astype(np.float64)
                above = 1.0 - (sizes.cumsum() - 0.5 * sizes) / sizes.sum()
                self.block_bins[first:last] = 1 + np.minimum((above * BINS).astype(np.int64), BINS - 1)

    def of(self, codes: NDArray[Any], predictions: Floats) -> Rows:
        """Bins (M,) of predictions (M,) in environments (M,); they join what spread and mean are taken from."""
        count = len(self.moments_E3)
        added = [np.bincount(codes, weights, count) for weights in (None, predictions, predictions**2)]
        self.moments_E3 = _KEPT * self.moments_E3 + np.stack(added, axis=1)
        number, total, squares = np.maximum(self.moments_E3, [1e-9, -np.inf, 0.0]).T
        mean = total / number
        spread = np.sqrt(np.maximum(squares / number - mean * mean, 0.0))
        # Predictions that are all alike say nothing: they share the middle.
        z = (predictions - mean[codes]) / np.maximum(spread[codes], 1e-9 * (1.0 + np.abs(mean[codes])))
        return np.asarray(1 + np.searchsorted(_EDGES, z, side="right"), dtype=np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Moments of recent predictions."""
        return {"moments": self.moments_E3.copy()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        self.moments_E3 = state.array("moments", np.float64, self.moments_E3.shape, low=-1e30, high=1e30)
