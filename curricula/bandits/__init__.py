"""Shares of the environments: which of them the next rollouts are spent on."""

from curricula.bandits.base import Bandit
from curricula.bandits.bounds import base_mix, bounded_shares, resolve_bounds
from curricula.bandits.competition import Competition
from curricula.bandits.control import TrainedShares
from curricula.bandits.exp3s import Exp3S
from curricula.bandits.fixed import FixedShares
from curricula.bandits.mixer import Mixer
from curricula.bandits.rewards import Informative, LearningProgress, MeanAdvantage, Reward
from curricula.bandits.thompson import DiscountedThompson
from curricula.bandits.ucb import SlidingWindowUCB

__all__ = [
    "Bandit",
    "Competition",
    "DiscountedThompson",
    "Exp3S",
    "FixedShares",
    "Informative",
    "LearningProgress",
    "MeanAdvantage",
    "Mixer",
    "Reward",
    "SlidingWindowUCB",
    "TrainedShares",
    "base_mix",
    "bounded_shares",
    "resolve_bounds",
]
