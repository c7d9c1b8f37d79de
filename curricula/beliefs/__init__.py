"""Posteriors over each prompt's pass rate."""

from curricula.beliefs.arcsine_kalman import ArcsineKalman
from curricula.beliefs.base import Assessment, Belief
from curricula.beliefs.build import build_belief
from curricula.beliefs.decayed_beta import DecayedBeta
from curricula.beliefs.hierarchical import Hierarchical

__all__ = ["ArcsineKalman", "Assessment", "Belief", "DecayedBeta", "Hierarchical", "build_belief"]
