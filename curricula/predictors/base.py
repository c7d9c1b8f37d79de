"""What every predictor of difficulty offers."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Predictor(Protocol):
    """Predicts the pass rate of prompts from what is known of them before any rollout: text, columns, states.

    A predictor is told first visits only. Prompts that were chosen for their results are no sample of the pool, and a
    fit on them has a slope that is too flat. Neither method draws from a global generator, and a saved and restored
    predictor predicts exactly what it would have.

    `curricula.testing.check_predictor` runs what is asked of an implementation here on it.
    """

    def predict(self, rows: Rows) -> Floats:
        """Predicted logit of the pass rate of rows (M,), relative to the environment's ability, shape (M,).

        Finite, on any scale: the belief calibrates it. 0.0 where nothing is known.
        """
        ...

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Learn K first visits.

        Args:
            rows: Shape (K,), rows of the pool.
            passed: Shape (K,), successes, fractions allowed.
            tried: Shape (K,), rollouts.
            offsets: Shape (K,), the environment's ability (logit) at that time.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """State: JSON values and arrays."""
        ...

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        ...
