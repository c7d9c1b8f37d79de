"""Forced length interruption: at a random length the thinking is closed, and the answer gets tokens of its own."""

from curricula_trl.interruption.checks import check_lengths
from curricula_trl.interruption.interruption import Interruption, interruption_of

__all__ = ["Interruption", "check_lengths", "interruption_of"]
