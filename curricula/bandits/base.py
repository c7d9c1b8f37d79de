"""What every rule over environments offers."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Bandit(Protocol):
    """Raw shares of E environments, before floors and caps, learned from the rewards of their groups.

    `curricula.testing.check_bandit` runs what is asked of an implementation here on it. One that is named in a mix
    by its import path (`type: "module:Class"`) is made as `Class(arms, **arguments)`.
    """

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """Shares of the next draws.

        Args:
            costs: Shape (E,), positive: what a unit of reward costs in each environment, up to a common factor.
                Rollouts that are k times as long make it k times as dear; a reward that is worth k times as much
                makes it k times as cheap.
            rng: The only source of randomness.

        Returns:
            Shape (E,), not negative, of sum 1.
        """
        ...

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """Learn from K groups in the order they were told.

        Args:
            codes: Shape (K,), the environment of each.
            rewards: Shape (K,), in [0, 1], fractions allowed.
            shares: Shape (K,), the share that its environment had when it was drawn; 0 where the group comes from
                elsewhere and was not drawn.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """State: JSON values and arrays."""
        ...

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        ...


def by_environment(codes: Codes, arms: int) -> NDArray[np.intp]:
    """Places of K groups, environment by environment, in the order they came within each; shape (K,)."""
    # Numbers of 16 bits are sorted by counting, several times as fast.
    return np.argsort(codes.astype(np.uint16) if arms <= 1 << 16 else codes, kind="stable")
