"""Checks of what a mix gives in `predictor.params`, before anything is built with it."""

import math
from typing import TypeGuard

from curricula.config.section import shown
from curricula.errors import ConfigError

_MOST_COUNT = 1 << 31
_MOST_NUMBER = 1e12


class Unfit(ConfigError):
    """What a predictor refuses in its section; `build_predictor` says where that section stands.

    Attributes:
        key: Within the section.
        why: What was expected, and what was given.
    """

    def __init__(self, key: tuple[str, ...], why: str) -> None:
        super().__init__(f"curriculum.predictor.{'.'.join(key)}: {why}")
        self.key, self.why = key, why


def whole(name: str, value: object, low: int = 1, high: int = _MOST_COUNT) -> int:
    """A whole number within bounds; raises ConfigError where it is none.

    >>> whole("memory", 5)
    5
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _error(name, f"a whole number from {low} to {high}", value)
    return value


def positive(name: str, value: object, high: float = _MOST_NUMBER) -> float:
    """A number above 0 and up to `high`; raises ConfigError where it is none.

    >>> positive("penalty", 3)
    3.0
    """
    if not _is_number(value) or not math.isfinite(value) or not 0.0 < value <= high:
        raise _error(name, f"a number above 0, up to {high:g}", value)
    return float(value)


def words(name: str, value: object) -> str:
    """Text that is not empty; raises ConfigError where it is none.

    >>> words("model", "a/b")
    'a/b'
    """
    if not isinstance(value, str) or not value.strip():
        raise _error(name, "text that is not empty", value)
    return value


def _is_number(value: object) -> TypeGuard[int | float]:
    # A whole number too large for a float is no number here.
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20)


def _error(name: str, expected: str, value: object) -> Unfit:
    return Unfit(("params", name), f"expected {expected}; got {shown(value)}; change it")
