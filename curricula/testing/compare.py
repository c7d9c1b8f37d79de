"""What the checks compare: saved states, and the global generators that nobody may touch."""

import random
from typing import Any, cast

import numpy as np


def same_state(one: Any, other: Any) -> bool:
    """Whether two saved states hold the same, bit for bit.

    >>> same_state({"a": {"b": np.ones(2)}}, {"a": {"b": np.ones(2)}}), same_state({"a": 1}, {"a": 2})
    (True, False)
    """
    if not isinstance(one, dict):
        return bool(np.array_equal(one, other))
    left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
    return left.keys() == right.keys() and all(same_state(left[name], right[name]) for name in left)


def global_generators() -> tuple[Any, Any]:
    """State of numpy's and of Python's global generator."""
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002  the global generator is what is watched
    return repr(legacy), random.getstate()
