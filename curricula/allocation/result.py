"""What an allocation is."""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple


class Band(NamedTuple):
    """A mean, and the ends of the 90% band about it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Allocation:
    """A budget split among environments; mappings are by environment.

    Attributes:
        budget: compute to split.
        method: expected or thompson.
        shares: of the budget, of sum 1.
        compute: what each gets of it.
        spent: compute before, in the unit of the environment's fit.
        gains: the rise of each score that is forecast, with its band; not weighted.
        total: the weighted sum of the gains.
        equal: what an equal split would gain, weighted, within the same floors and caps.
        proportional: what a split by weights would; without weights, one by what was spent before, at its costs.
        bound: what no split gains more than, of what was maximised: under `thompson`, of the curves that were drawn.
        gap: the bound less the gain, in parts of the larger of the two: so much at most was missed, what was not clear
            enough to leave the even split for included. At most 1.
        trust: how far the split goes from the even one to the best: 0 where nothing clear is gained, 1 all the way.
        marginal: weighted gain for one more unit of the budget, by the concave envelope of the gains.
        reasons: environments and what their fits cannot tell.
    """

    budget: float
    method: str
    shares: dict[str, float]
    compute: dict[str, float]
    spent: dict[str, float]
    gains: dict[str, Band]
    total: Band
    equal: float
    proportional: float
    bound: float
    gap: float
    trust: float
    marginal: dict[str, float]
    reasons: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def to_dict(self) -> dict[str, Any]:
        """What a program would read, as JSON takes it; a band is [mean, low, high]."""
        return {
            **asdict(self),
            "gains": {name: list(band) for name, band in self.gains.items()},
            "total": list(self.total),
        }
