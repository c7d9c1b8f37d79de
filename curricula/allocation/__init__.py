"""Compute for each environment: a budget split by what fitted curves say that it would gain."""

from curricula.allocation.allocate import Method, allocate
from curricula.allocation.result import Allocation, Band

__all__ = ["Allocation", "Band", "Method", "allocate"]
