"""Shares that do not learn."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader


class FixedShares:
    """The same shares, whatever was seen: declared quotas, the sizes of the environments, or equal ones.

    Args:
        weights: Shape (E,), positive.

    >>> FixedShares(np.array([1.0, 3.0])).shares(np.ones(2), np.random.default_rng(0))
    array([0.25, 0.75])
    """

    def __init__(self, weights: Floats) -> None:
        self.weights = weights / weights.sum()

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """The weights, of sum 1."""
        return self.weights

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """Nothing to learn."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load(self, state: Reader) -> None:
        """Nothing to take over."""
