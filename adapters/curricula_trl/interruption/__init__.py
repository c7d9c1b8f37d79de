"""Forced length interruption: at a random length the thinking is closed, and the answer gets tokens of its own."""

from curricula_trl.interruption.checks import check_mix
from curricula_trl.interruption.interruption import Ends, Interruption, interruption_of

__all__ = ["Ends", "Interruption", "check_mix", "interruption_of"]
