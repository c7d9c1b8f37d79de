"""Which groups are worth training on, and which prompts are worth a group; each decision with a reason."""

from curricula.filters.base import AfterFilter, BeforeFilter, Groups, Judgement
from curricula.filters.chain import Filters, chance_rates, holds_back
from curricula.filters.overlong import Overlong
from curricula.filters.pass_rate_cap import PassRateCap
from curricula.filters.predicted import PredictedZeroVariance
from curricula.filters.zero_variance import ZeroVariance

__all__ = [
    "AfterFilter",
    "BeforeFilter",
    "Filters",
    "Groups",
    "Judgement",
    "Overlong",
    "PassRateCap",
    "PredictedZeroVariance",
    "ZeroVariance",
    "chance_rates",
    "holds_back",
]
