"""What every rule over environments offers."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader


class Bandit(Protocol):
    """Raw shares of environments, before floors and caps, learned from what their groups gave."""

    def shares(self, costs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Shares of shape (E,), of sum 1, given the expected tokens of a rollout in each environment (E,)."""
        ...

    def update(self, codes: NDArray[np.int64], informative: NDArray[np.bool_]) -> None:
        """Learn from K groups in the order they were told: environment codes (K,), mixed or not (K,)."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """State: JSON values and arrays."""
        ...

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        ...
