"""Informative groups as the reward."""

from typing import Any

import numpy as np

from curricula.bandits.base import Floats
from curricula.scored import Scored
from curricula.stateful import Reader


class Informative:
    """1 for a group whose results differ, 0 for another: the chance of a gradient, whatever it teaches.

    An environment whose results are noise is always informative, and this reward goes for it.

    Args:
        arms: E.
    """

    def __init__(self, arms: int) -> None:
        self._worth_E: Floats = np.ones(arms)

    def observe(self, groups: Scored, rated: bool) -> Floats:
        """Whether each group is informative, shape (K,)."""
        return groups.mixed_K.astype(np.float64)

    def worth(self) -> Floats:
        """The same everywhere."""
        return self._worth_E

    def ceiling(self) -> Floats:
        """The same everywhere."""
        return self.worth()

    def clear(self) -> None:
        """Nothing depends on what success is."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load(self, state: Reader) -> None:
        """Nothing to take over."""
