"""Shares of the environments: which of them the next rollouts are spent on."""

from curricula.bandits.base import Bandit
from curricula.bandits.bounds import bounded_shares, resolve_bounds
from curricula.bandits.fixed import FixedShares
from curricula.bandits.thompson import DiscountedThompson

__all__ = ["Bandit", "DiscountedThompson", "FixedShares", "bounded_shares", "resolve_bounds"]
