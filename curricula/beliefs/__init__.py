"""Posteriors over each prompt's pass rate."""

from curricula.beliefs.base import Assessment, Belief
from curricula.beliefs.decayed_beta import DecayedBeta

__all__ = ["Assessment", "Belief", "DecayedBeta"]
