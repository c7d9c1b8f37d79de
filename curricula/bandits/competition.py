"""Shares that environments win prompt by prompt."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader

_KEPT = 0.5


class Competition:
    """Shares of the best candidates of all environments together, smoothed over asks.

    The candidates of an ask compete by expected signal per token, times what the reward says that a unit of signal is
    worth in their environment; an environment's share is the part of the best that is its own. At a common threshold no
    draw could be moved to another environment and gain, which no rule that sees environments as a whole can tell.

    Args:
        base: Shape (E,), shares before the first competition.
    """

    def __init__(self, base: Floats) -> None:
        self.won_E: Floats = base / base.sum()

    def after(self, won_E: Floats) -> Floats:
        """Smoothed shares (E,) after those won in an ask (E,), of sum 1; nothing changes."""
        return _KEPT * self.won_E + (1.0 - _KEPT) * won_E

    def win(self, won_E: Floats) -> None:
        """Take the shares won in an ask (E,), of sum 1."""
        self.won_E = self.after(won_E)

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """Shares as of the last competition, shape (E,)."""
        return self.won_E

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """Nothing to learn: what groups gave is in the beliefs."""

    def state_dict(self) -> dict[str, Any]:
        """The smoothed shares."""
        return {"won": self.won_E.copy()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        won = state.array("won", np.float64, self.won_E.shape, high=1.0 + 1e-9)
        state.ensure("won", "shares that sum to 1", abs(float(won.sum()) - 1.0) < 1e-6)
        self.won_E = won
