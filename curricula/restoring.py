"""Saving and reading the small parts of a curriculum's state."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from curricula.errors import CheckpointError, CurriculaValueError
from curricula.pool import PromptPool
from curricula.stateful import Reader
from curricula.windows import Windows

_logger = logging.getLogger("curricula")


def rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """State of a PCG64 generator; its 128-bit integers are hexadecimal, since not every JSON reader has them."""
    state = cast(dict[str, Any], rng.bit_generator.state)
    inner = state["state"]
    return {
        "type": state["bit_generator"],
        "state": f"{inner['state']:032x}",
        "inc": f"{inner['inc']:032x}",
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def read_rng(reader: Reader) -> np.random.Generator:
    """A generator in the saved state; raises CheckpointError where it cannot be one."""
    reader.ensure("type", "PCG64", reader.text("type") == "PCG64")
    numbers = [reader.text(name) for name in ("state", "inc")]
    for name, text in zip(("state", "inc"), numbers, strict=True):
        reader.ensure(name, "32 hexadecimal digits", re.fullmatch("[0-9a-f]{32}", text) is not None)
    state, increment = (int(text, 16) for text in numbers)
    reader.ensure("inc", "an odd increment", increment % 2 == 1)
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": increment},
        "has_uint32": reader.integer("has_uint32", high=1),
        "uinteger": reader.integer("uinteger", high=(1 << 32) - 1),
    }
    return np.random.Generator(bits)


def read_windows(reader: Reader, pool: PromptPool) -> Windows:
    """Eligible levels of every environment; raises CheckpointError where one holds no prompt."""
    windows = Windows(pool)
    for code, name in enumerate(pool.environments):
        value = reader.raw(name)
        items = cast(list[Any], value) if isinstance(value, (list, tuple)) else []
        reader.ensure(name, "two levels", len(items) == 2 and all(type(item) is int for item in items))
        try:
            windows.restore(code, pool.find_window(name, *items))
        except (CurriculaValueError, OverflowError) as error:
            raise CheckpointError(f"{reader.place}.{name}: {error}") from error
    return windows


def read_json(reader: Reader, name: str) -> object:
    """The value that a text of JSON holds; raises CheckpointError where it holds none."""
    try:
        return json.loads(reader.text(name))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{reader.place}.{name}: expected JSON; got text that is not") from error


def log_changes(saved: object, present: Mapping[str, Any]) -> None:
    """Say where the mix differs from that of the saved run."""
    before = _leaves(saved)
    after = _leaves(present)
    # Of a section that became one of another type, the type says it all.
    both = before.keys() & after.keys()
    typed = [place for place in both if place.endswith(".type") and before[place] != after[place]]
    for place in sorted(before.keys() | after.keys()):
        if any(place.startswith(kind.removesuffix("type")) and place != kind for kind in typed):
            continue
        old, new = before.get(place), after.get(place)
        if old != new:
            _logger.warning("the mix changed at %s: the saved run had %r, this one has %r", place, old, new)


def _leaves(value: object, place: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        return {place: value}
    leaves: dict[str, Any] = {}
    for name, item in cast(Mapping[str, Any], value).items():
        leaves |= _leaves(item, f"{place}.{name}" if place else str(name))
    return leaves


def changed(saved: Any, mix: Any, *path: str) -> bool:
    """Whether two mixes differ at a key, as far as the saved one tells."""
    for name in path:
        saved = cast(dict[str, Any], saved).get(name) if isinstance(saved, dict) else None
        mix = cast(dict[str, Any], mix).get(name) if isinstance(mix, dict) else None
    return mix is not None and saved != mix
