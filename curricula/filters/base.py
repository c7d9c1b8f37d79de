"""What every filter sees and answers: after generation, which groups to drop; before it, which prompts to hold back."""

from dataclasses import dataclass, field
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
        live_K: Members of each group that have a result and can be trained on.
        spread_K: Largest minus smallest result of each group; negative where none is known.
        component_spread_K: That of the component that differs most; None where there are no components.
    """

    results_KG: Floats
    components_KGC: Floats | None
    declared_K: Flags
    scored_KG: Flags
    truncated_KG: Flags
    interrupted_KG: Flags

    live_K: NDArray[np.int64] = field(init=False)
    spread_K: Floats = field(init=False)
    component_spread_K: Floats | None = field(init=False)

    def __post_init__(self) -> None:
        # Once for all filters.
        parts = self.components_KGC
        object.__setattr__(self, "live_K", (~np.isnan(self.results_KG)).sum(axis=1))
        object.__setattr__(self, "spread_K", spread(self.results_KG))
        object.__setattr__(self, "component_spread_K", None if parts is None else spread(parts).max(axis=1))


def spread(values: Floats) -> Floats:
    """Largest minus smallest along the second axis; negative where nothing is known."""
    live = ~np.isnan(values)
    return np.where(live, values, -np.inf).max(axis=1) - np.where(live, values, np.inf).min(axis=1)


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
