"""Shares of the environments: which of them the next rollouts are spent on."""

from curricula.bandits.base import Bandit
from curricula.bandits.bounds import base_mix, bounded_shares, resolve_bounds
from curricula.bandits.fixed import FixedShares
from curricula.bandits.thompson import DiscountedThompson

__all__ = ["Bandit", "DiscountedThompson", "FixedShares", "base_mix", "bounded_shares", "resolve_bounds"]
