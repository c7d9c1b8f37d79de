"""Rewards by which what a group gave is worth the same everywhere."""

from typing import Any

import numpy as np

from curricula.bandits.base import Floats
from curricula.stateful import Reader


class Flat:
    """What such rewards have in common: they learn nothing, so there is nothing to forget or to keep.

    Args:
        arms: E.
    """

    def __init__(self, arms: int) -> None:
        self._worth_E: Floats = np.ones(arms)

    def worth(self) -> Floats:
        """The same everywhere."""
        return self._worth_E

    def ceiling(self) -> Floats:
        """The same everywhere."""
        return self._worth_E

    def clear(self) -> None:
        """Nothing depends on what success is."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load(self, state: Reader) -> None:
        """Nothing to take over."""
