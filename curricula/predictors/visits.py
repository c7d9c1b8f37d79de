"""First visits in the order they came, to be learned from: those that wait, and those that are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_MOST = 1e12
_FIRST, _LEAST, _PART = 32, 256, 8


def next_count(count: int) -> int:
    """First visits at which there is a fit after the one at `count`.

    Powers of two from 32 to 256, then every 256, and from 2,048 on an eighth more each time: all fits together cost
    about nine times the last.

    >>> [next_count(count) for count in (0, 32, 128, 256, 512, 8192)]
    [32, 64, 256, 512, 768, 9216]
    """
    if count < _LEAST:
        return max(_FIRST, 2 * count)
    return count + max(_LEAST, count // _PART)


class Visits:
    """First visits, oldest first.

    Attributes:
        rows: Shape (L,), rows of the pool.
        values_L3: Successes, rollouts, and the environment's ability at the time.

    Args:
        size: How many are kept, the newest; None keeps all.

    >>> visits = Visits(size=2)
    >>> visits.extend(np.array([5, 6, 7]), np.array([1.0, 0.0, 4.0]), np.full(3, 4.0), np.zeros(3))
    >>> visits.rows
    array([6, 7])
    """

    def __init__(self, size: int | None = None) -> None:
        self._size = size
        self.rows: Rows = np.zeros(0, dtype=np.int64)
        self.values_L3: Floats = np.zeros((0, 3))

    def __len__(self) -> int:
        return self.rows.size

    def extend(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Enter K visits, shape (K,) each; offsets that are not finite are brought to where they are."""
        offsets = np.clip(np.nan_to_num(offsets, posinf=_MOST, neginf=-_MOST), -_MOST, _MOST)
        self._keep(
            np.concatenate([self.rows, rows]),
            np.concatenate([self.values_L3, np.stack([passed, tried, offsets], axis=1)]),
        )

    def take(self, count: int) -> tuple[Rows, Floats, Floats, Floats]:
        """Remove and return the oldest visits: rows, successes, rollouts and offsets."""
        rows, values = self.rows[:count], self.values_L3[:count]
        self._keep(self.rows[count:], self.values_L3[count:])
        return rows, values[:, 0], values[:, 1], values[:, 2]

    def state_dict(self) -> dict[str, Any]:
        """Rows and values."""
        return {"rows": self.rows.copy(), "values": self.values_L3.copy()}

    def load(self, state: Reader, prompts: int) -> None:
        """Take over saved visits of a pool of so many prompts; raises CheckpointError where they cannot be right."""
        rows = state.array("rows", np.int64, (None,), high=prompts - 1)
        self._keep(rows, state.array("values", np.float64, (rows.size, 3), low=-_MOST, high=_MOST))

    def _keep(self, rows: Rows, values: Floats) -> None:
        start = 0 if self._size is None else max(0, rows.size - self._size)
        self.rows, self.values_L3 = rows[start:], values[start:]
