"""What every belief about pass rates offers."""

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Normaliser = Literal["batch", "group"]


class Assessment(NamedTuple):
    """What is believed of M prompts.

    Attributes:
        means: Shape (M,), expected pass rate of each.
        signals: Shape (M,), expected signal of a group of each under the posterior, not at its mean.
        spreads: Shape (M,), standard deviation of the signal under the posterior; 0 from beliefs that do not say.
    """

    means: Floats
    signals: Floats
    spreads: Floats


class Belief(Protocol):
    """A posterior over the pass rate of each prompt of a pool, today.

    `curricula.testing.check_belief` runs what is asked of an implementation here on it.
    """

    @property
    def predicted(self) -> bool:
        """Whether it makes use of predictions; else there is no predictor beside it."""
        ...

    def place(self, rows: Rows, predictions: Floats) -> None:
        """Take predicted logits (M,) of unvisited rows (M,), on any scale, as what is known of their difficulty."""
        ...

    def ability(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the ability for new prompts of each environment, in logits, (E,) each."""
        ...

    def tick(self) -> None:
        """An ask was made: all evidence is that much older."""
        ...

    @property
    def visited(self) -> int:
        """Prompts with evidence of their own."""
        ...

    def seen(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows have evidence of their own, shape (M,)."""
        ...

    def assess(self, rows: Rows, group_size: int, normaliser: Normaliser) -> Assessment:
        """Expected pass rate and expected signal of rows (M,), for groups of `group_size` rollouts."""
        ...

    def moments(self, rows: Rows) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of each row's pass rate, shape (M,) each."""
        ...

    def pool_means(self, windows_E2: Rows) -> Floats:
        """Mean belief over the eligible prompts of each environment, shape (E,); no work that grows with the pool.

        Args:
            windows_E2: Shape (E, 2), the range of eligible blocks of each environment.
        """
        ...

    def update(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn K outcomes in order: successes (K,), fractions allowed, of rollouts (K,) at rows (K,).

        A row may come more than once.
        """
        ...

    def clear(self) -> None:
        """Forget all evidence."""
        ...

    def recount(self) -> None:
        """Take sums over prompts anew: a state was loaded whose prompts are not all there any more."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """State: JSON values and arrays."""
        ...

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        ...


class PromptByPrompt:
    """What beliefs share that know each prompt by itself: no ability, no predictions, and no clock but its visits."""

    pool: PromptPool
    predicted = False

    def place(self, rows: Rows, predictions: Floats) -> None:
        """Predictions are not made use of."""

    def ability(self) -> tuple[Floats, Floats]:
        """Nothing is known: 0, within infinity."""
        count = len(self.pool.environments)
        return np.zeros(count), np.full(count, np.inf)

    def tick(self) -> None:
        """Evidence ages at visits alone."""
