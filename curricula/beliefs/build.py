"""From the mix's `belief` section to a belief."""

from curricula.beliefs.arcsine_kalman import ArcsineKalman
from curricula.beliefs.base import Belief
from curricula.beliefs.decayed_beta import DecayedBeta
from curricula.beliefs.hierarchical import Hierarchical
from curricula.config import ArcsineKalmanConfig, BeliefConfig, HierarchicalConfig
from curricula.pool import PromptPool


def build_belief(config: BeliefConfig, pool: PromptPool) -> Belief:
    """The belief that a mix asks for, without any evidence."""
    if isinstance(config, HierarchicalConfig):
        return Hierarchical(pool, config)
    if isinstance(config, ArcsineKalmanConfig):
        return ArcsineKalman(pool, config.drift, config.noise)
    return DecayedBeta(pool, config)
