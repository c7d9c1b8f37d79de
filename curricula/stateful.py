"""Reading saved state with every value checked, so that a damaged one is refused before anything changes."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from curricula.errors import CheckpointError

MOST = 1 << 62
"""Bound of saved counters: they go on counting after a load, in 64 bits."""


class Reader:
    """A view of one mapping of a saved state; every accessor raises CheckpointError naming the key.

    >>> Reader({"asks": 3}, "state").integer("asks")
    3
    """

    def __init__(self, state: object, place: str) -> None:
        if not isinstance(state, Mapping):
            raise CheckpointError(f"{place}: expected a mapping; got {type(state).__name__}")
        self._state = cast(Mapping[str, Any], state)
        self.place = place

    @property
    def state(self) -> Mapping[str, Any]:
        """The mapping itself."""
        return self._state

    def _get(self, name: str) -> Any:
        if name not in self._state:
            raise CheckpointError(f"{self.place}.{name}: expected in the saved state; it is missing")
        return self._state[name]

    def _refuse(self, name: str, expected: str, value: object) -> CheckpointError:
        return CheckpointError(f"{self.place}.{name}: expected {expected}; got {str(value)[:80]}")

    def raw(self, name: str) -> Any:
        """The value as it was saved."""
        return self._get(name)

    def optional(self, name: str) -> Any:
        """The value as it was saved; None where a version before did not save it."""
        return self._state.get(name)

    def section(self, name: str) -> "Reader":
        """A nested mapping."""
        return Reader(self._get(name), f"{self.place}.{name}")

    def integer(self, name: str, low: int = 0, high: int = MOST) -> int:
        """An integer within bounds (both included)."""
        value = self._get(name)
        if type(value) is not int or not low <= value <= high:
            raise self._refuse(name, f"an integer in [{low}, {high}]", value)
        return value

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self._get(name)
        if type(value) is not bool:
            raise self._refuse(name, "true or false", value)
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self._get(name)
        if type(value) is not str:
            raise self._refuse(name, "a string", value)
        return value

    def array(
        self,
        name: str,
        dtype: DTypeLike,
        shape: tuple[int | None, ...],
        low: float = 0,
        high: float = MOST,
    ) -> NDArray[Any]:
        """A copy of an array of this exact dtype and shape (None fits any length), with values within bounds."""
        value = self._get(name)
        wanted = np.dtype(dtype)
        if not isinstance(value, np.ndarray):
            raise self._refuse(name, f"an array of {wanted}", type(value).__name__)
        array = cast(NDArray[Any], value)
        if array.dtype != wanted:
            raise self._refuse(name, f"an array of {wanted}", array.dtype)
        if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
            raise self._refuse(name, f"shape {shape}", array.shape)
        # NaN compares false, and is refused with the rest.
        if array.size and not bool(((array >= low) & (array <= high)).all()):
            raise self._refuse(name, f"values in [{low}, {high}]", "others")
        return array.copy()

    def rows(self, name: str, size: int) -> NDArray[np.int64]:
        """Strictly ascending rows of a pool of `size` prompts."""
        rows = self.array(name, np.int64, (None,), low=0, high=size - 1)
        self.ensure(name, "ascending distinct rows", bool((rows[1:] > rows[:-1]).all()))
        return rows

    def ensure(self, name: str, expected: str, holds: bool) -> None:
        """Raise CheckpointError unless a condition on the value holds."""
        if not holds:
            raise self._refuse(name, expected, "others")
