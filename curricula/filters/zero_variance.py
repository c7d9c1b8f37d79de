"""Groups whose results are all alike teach nothing."""

from typing import Literal

import numpy as np

from curricula.config.schema import TOLERANCE
from curricula.filters.base import Flags, Groups, Judgement


class ZeroVariance:
    """Drops groups without a difference between their live members, on the raw results.

    A group is mixed when its largest and smallest result differ by more than `tolerance`. A standard deviation is
    never compared with 0: that of [.1, .1, .1] is 1.4e-17. Where the trainer normalises components by themselves,
    a group is mixed when any of them differs, unless successes were told or are defined by the mix: a length penalty
    must not make an all-wrong group worth training on. `on="components"` has components decide even then.
    """

    reason: Judgement = "zero_variance"

    def __init__(self, tolerance: float = TOLERANCE, on: Literal["success", "components"] = "success") -> None:
        self.tolerance, self.on = tolerance, on

    def mixed(self, groups: Groups) -> Flags:
        """Which groups hold a difference that can be learned from, shape (K,); fewer than two live members hold none.

        >>> flags = np.zeros((3, 3), dtype=bool)
        >>> results = np.array([[1, 1, np.nan], [0, 1, 1], [1, np.nan, np.nan]])
        >>> ZeroVariance().mixed(Groups(results, None, flags[:, 0], ~flags, flags, flags))
        array([False,  True, False])
        """
        spread_K = groups.spread_K
        if (alone_K := groups.component_spread_K) is not None:
            known = alone_K >= 0
            spread_K = np.where(known if self.on == "components" else known & ~groups.declared_K, alone_K, spread_K)
        return (spread_K > self.tolerance) & (groups.live_K > 1)

    def drops(self, groups: Groups) -> Flags:
        """Groups of two or more live members that are all alike, shape (K,)."""
        return (groups.live_K > 1) & ~self.mixed(groups)
