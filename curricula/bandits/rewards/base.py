"""What every reward of a bandit over environments offers."""

from typing import Any, Protocol

from curricula.bandits.base import Floats
from curricula.scored import Scored
from curricula.stateful import Reader


class Reward(Protocol):
    """What the groups of an environment are worth, in two parts: what each gave, and what that is good for."""

    def observe(self, groups: Scored, rated: bool) -> Floats:
        """Learn from K groups, and say what each gave.

        Args:
            groups: In the order they were told.
            rated: Whether results are success rates; else they are rewards of any scale.

        Returns:
            Shape (K,), in [0, 1].
        """
        ...

    def worth(self) -> Floats:
        """What a unit of that is worth in each environment, shape (E,), positive, up to a common factor."""
        ...

    def ceiling(self) -> Floats:
        """What a unit of it may be worth at best, as far as is known; shape (E,), in (0, 1]."""
        ...

    def clear(self) -> None:
        """Forget what depends on how success is measured, when it comes to be measured in another way."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """State: JSON values and arrays."""
        ...

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        ...
