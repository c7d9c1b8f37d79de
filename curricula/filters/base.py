"""What every filter sees and answers: after generation, which groups to drop; before it, which prompts to hold back."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
Judgement = Literal["informative", "unfiltered", "zero_variance", "overlong", "single", "no_signal", "unscorable"]
"""What became of a scored group; the first two are trained on."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """K scored groups of at most G rollouts, in raw results: nothing here has been normalised.

    Attributes:
        results_KG: Successes where they say what is wanted, else rewards; NaN where a member is not live.
        components_KGC: Rewards by component, where the trainer normalises each by itself; NaN as above. None where
            no group has any.
        declared_K: Whether `results_KG` are successes that were told or that the mix defines, and so decide alone.
        scored_KG: Members that have a reward, whether or not they can be trained on.
        truncated_KG: Members that were cut off at the limit of tokens.
        interrupted_KG: Members that were cut short on purpose.
    """

    results_KG: Floats
    components_KGC: Floats | None
    declared_K: Flags
    scored_KG: Flags
    truncated_KG: Flags
    interrupted_KG: Flags

    @property
    def live_K(self) -> NDArray[np.int64]:
        """Members of each group that have a result and can be trained on."""
        return (~np.isnan(self.results_KG)).sum(axis=1)


class AfterFilter(Protocol):
    """Drops groups once their rollouts are scored."""

    @property
    def reason(self) -> Judgement:
        """The reason that the verdicts on dropped groups give."""
        ...

    def drops(self, groups: Groups) -> Flags:
        """Which of K groups are not to be trained on, shape (K,)."""
        ...


class BeforeFilter(Protocol):
    """Holds prompts back before rollouts are spent on them: they are left to chance, and never shut out."""

    def admits(self, means_M: Floats, informative_M: Floats) -> Flags:
        """Which of M prompts may be drawn for their signal, shape (M,).

        Args:
            means_M: Expected pass rate of each.
            informative_M: Probability that a group of each is informative.
        """
        ...
