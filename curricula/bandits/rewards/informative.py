"""Informative groups as the reward."""

import numpy as np

from curricula.bandits.base import Floats
from curricula.bandits.rewards.flat import Flat
from curricula.scored import Scored


class Informative(Flat):
    """1 for a group whose results differ, 0 for another: the chance of a gradient, whatever it teaches.

    An environment whose results are noise is always informative, and this reward goes for it.

    Args:
        arms: E.
    """

    def observe(self, groups: Scored, rated: bool) -> Floats:
        """Whether each group is informative, shape (K,)."""
        return groups.mixed_K.astype(np.float64)
