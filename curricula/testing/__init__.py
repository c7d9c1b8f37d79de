"""Checks of users' own parts: each runs what is asked of one protocol, and raises AssertionError where it fails."""

from curricula.testing.bandit import check_bandit
from curricula.testing.belief import check_belief
from curricula.testing.predictor import check_predictor

__all__ = ["check_bandit", "check_belief", "check_predictor"]
