"""The mix's filters, put to work together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from curricula.config import FilterConfig, OverlongConfig, PassRateCapConfig, ZeroVarianceConfig
from curricula.filters.base import AfterFilter, BeforeFilter, Flags, Floats, Groups, Judgement
from curricula.filters.overlong import Overlong
from curricula.filters.pass_rate_cap import PassRateCap
from curricula.filters.predicted import PredictedZeroVariance
from curricula.filters.zero_variance import ZeroVariance


class Filters:
    """Judges groups after their rollouts were scored.

    Whatever the mix says, a group without a reward is "unscorable", one without a member that can be trained on is
    "no_signal", and one with a single such member is "single"; the mix's filters come between the first and the
    others, in their order. Without a filter that drops it, a group that is all alike is kept as "unfiltered".
    """

    def __init__(self, configs: Sequence[FilterConfig]) -> None:
        self._after: list[AfterFilter] = []
        tolerant = ZeroVariance()
        for config in configs:
            if isinstance(config, OverlongConfig):
                self._after.append(Overlong(config.most, config.interrupted))
            elif isinstance(config, ZeroVarianceConfig):
                self._after.append(rule := ZeroVariance(config.tolerance, config.on))
                # Dropped by any filter is dropped by the most tolerant one: what that one keeps is informative.
                tolerant = rule if len(self._zero()) == 1 or rule.tolerance > tolerant.tolerance else tolerant
        self._rule = tolerant

    def judge(self, groups: Groups) -> tuple[list[Judgement], Flags]:
        """Judge K groups.

        Returns:
            What became of each; and which hold a difference between their members, shape (K,), kept or not.
        """
        mixed = self._rule.mixed(groups)
        live = groups.live_K
        judgements = np.where(mixed, "informative", "unfiltered").astype("<U16")
        judgements[live == 1] = "single"
        judgements[live == 0] = "no_signal"
        # The first filter that drops a group names the reason, so they are written last to first.
        for rule in reversed(self._after):
            judgements[rule.drops(groups)] = rule.reason
        judgements[~groups.scored_KG.any(axis=1)] = "unscorable"
        return judgements.tolist(), mixed

    def _zero(self) -> list[ZeroVariance]:
        return [rule for rule in self._after if isinstance(rule, ZeroVariance)]


def chance_rates(means_M: Floats, informative_M: Floats, filters: Sequence[FilterConfig]) -> NDArray[np.float64]:
    """At what rate each of M prompts is drawn by chance, relative to an even draw: 1 where nothing holds it back.

    Of several filters that hold a prompt back, the lowest rate counts.

    Args:
        means_M: Expected pass rate of each.
        informative_M: Probability that a group of each is informative, in [0, 1].
        filters: The mix's; those that act after generation say nothing here.

    >>> chance_rates(np.array([0.95, 0.5]), np.array([0.3, 0.9]), [PassRateCapConfig(type="pass_rate_cap")])
    array([0.02, 1.  ])
    """
    rates = np.ones(means_M.shape)
    for config in filters:
        if (rule := _before(config)) is not None:
            held = ~rule[0].admits(means_M, informative_M)
            rates[held] = np.minimum(rates[held], rule[1])
    return rates


def holds_back(filters: Sequence[FilterConfig]) -> bool:
    """Whether any of the filters acts before generation."""
    return any(_before(config) is not None for config in filters)


def _before(config: FilterConfig) -> tuple[BeforeFilter, float] | None:
    if isinstance(config, OverlongConfig | ZeroVarianceConfig):
        return None
    if isinstance(config, PassRateCapConfig):
        return PassRateCap(config.above), config.review
    return PredictedZeroVariance(config.below), config.probe
