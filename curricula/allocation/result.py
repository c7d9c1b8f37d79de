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
        proportional: what a split by weights would; without weights, one by what was spent before.
        bound: what no split gains more than, of what was maximised: under `thompson`, of the curves that were drawn.
        gap: (bound − gain) / bound of that: so much at most was missed.
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
    marginal: dict[str, float]
    reasons: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def to_dict(self) -> dict[str, Any]:
        """What a program would read, as JSON takes it; a band is [mean, low, high]."""
        return {
            **asdict(self),
            "gains": {name: list(band) for name, band in self.gains.items()},
            "total": list(self.total),
        }
