"""What bandits over environments are rewarded for."""

from curricula.bandits.rewards.base import Reward
from curricula.bandits.rewards.informative import Informative
from curricula.bandits.rewards.learning_progress import LearningProgress
from curricula.bandits.rewards.mean_advantage import MeanAdvantage

__all__ = ["Informative", "LearningProgress", "MeanAdvantage", "Reward"]
