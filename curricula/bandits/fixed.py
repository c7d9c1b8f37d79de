"""Shares that do not learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader


class FixedShares:
    """The base mix itself: declared weights, else the sizes of the environments."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights / weights.sum()

    def shares(self, costs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The base mix, whatever was seen."""
        return self.weights

    def update(self, codes: NDArray[np.int64], informative: NDArray[np.bool_]) -> None:
        """Nothing to learn."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {"type": "size_proportional"}

    def load(self, state: Reader) -> None:
        """Nothing to take over."""
