"""Saved state carried over to a data set that changed since: prompts are found again by their keys."""

import logging
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.axes import Axis, axis_of
from curricula.errors import CheckpointError, CurriculaValueError
from curricula.matching import Ints, Remap, find_digests, find_renamed
from curricula.pool import PromptPool
from curricula.stateful import Reader

State = Mapping[str, Any]

_ANOTHER = (
    "state: expected the state of this pool; got that of another one: its environments, its keys or their order "
    "differ; resume with the data set of the saved run"
)
_TICKET = {"number": np.int64, "row": np.int64, "weight": np.float64, "share": np.float64, "ask": np.int64}
_logger = logging.getLogger("curricula")


def key_state(state: State, pool: PromptPool) -> dict[str, Any]:
    """Who the prompts are that a state speaks of: their rows, digests of their keys, and their environments."""
    found = [*_row_arrays(state["learner"]), *_row_arrays(state["tickets"])]
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
    return {
        "size": len(pool),
        "names": list(pool.environments),
        "rows": rows,
        "digests": pool.key_digests(rows).view(np.int64),
        "codes": pool.codes[rows].astype(np.int64),
    }


def remapped(state: State, pool: PromptPool, fresh: State) -> dict[str, Any]:
    """A state of another pool, as one of this pool, as far as prompts are found again.

    Args:
        state: What was saved.
        pool: The pool of today.
        fresh: State of a curriculum on it that has seen nothing; environments that are new are as there.

    Raises:
        CheckpointError: Fewer than half of the prompts that it speaks of are found, or it is damaged.
    """
    if "keys" not in state:
        raise CheckpointError(_ANOTHER)
    reader = Reader(state, "state")
    keys = reader.section("keys")
    raw = keys.raw("names")
    keys.ensure("names", "a list of names", isinstance(raw, list) and all(type(n) is str for n in cast(list[Any], raw)))
    names, size = cast(list[str], raw), keys.integer("size", low=1)
    rows = keys.rows("rows", size)
    digests = keys.array("digests", np.int64, rows.shape, low=-(1 << 63), high=1 << 63).view(np.uint64)
    codes = keys.array("codes", np.int64, rows.shape, high=len(names) - 1)
    found = find_digests(digests, pool)
    there = found >= 0
    if not rows.size or 2 * int(there.sum()) < rows.size:
        raise CheckpointError(_ANOTHER)
    homes = pool.codes[found[there]].astype(np.int64)
    renamed = find_renamed(names, codes[there], homes, pool)
    today = {name: code for code, name in enumerate(pool.environments)}
    now = np.array([today.get(renamed.get(name, name), -1) for name in names], dtype=np.int64)
    remap = Remap(pool, rows, found, names, now, renamed)
    tickets, cancelled = _tickets(reader.section("tickets"), remap)
    result = {
        **state,
        "fingerprint": pool.fingerprint,
        "windows": _windows(reader.section("windows"), fresh["windows"], remap),
        "shares": fresh["shares"] if remap.moves else state["shares"],
        "ahead": fresh["ahead"],
        "learner": _section(reader.section("learner").state, fresh["learner"], "", remap),
        "tickets": tickets,
    }
    _logger.warning(
        "the data set changed since the state was saved: it had %d prompts and has %d; of the %d that the state speaks "
        "of, %d are found by their keys and %d are gone; %d of them are in another environment than before; "
        "%d draws in flight are cancelled%s",
        *(size, len(pool), there.size, there.sum(), (~there).sum(), (now[codes[there]] != homes).sum(), cancelled),
        _changes(remap),
    )
    return result


def _section(saved: State, fresh: State, place: str, remap: Remap) -> dict[str, Any]:
    """A mapping of the state with all that is in it."""
    axes: dict[str, Axis] = {name: axis_of(f"{place}{name}") or "whole" for name in saved}
    if "code" in axes.values() and bool((remap.codes < 0).any()):
        return dict(fresh)  # of a window some of whose entries are gone, nothing is left that means what it did
    order: Ints | None = None
    result: dict[str, Any] = {}
    if "rows" in saved:
        rows = remap.row(Reader(saved, f"state.learner.{place}").array("rows", np.int64, (None,)), "state.learner")
        order = np.flatnonzero(rows >= 0)
        # What ascends is kept so; what does not is in the order of its visits.
        if bool((saved["rows"][1:] > saved["rows"][:-1]).all()):
            order = order[np.argsort(rows[order])]
        result["rows"] = rows[order]
    for name, value in saved.items():
        if isinstance(value, Mapping):
            inner = fresh.get(name)
            inside = cast(State, inner if isinstance(inner, Mapping) else {})
            result[name] = _section(cast(State, value), inside, f"{place}{name}.", remap)
        elif axes[name] == "batch":
            visits = Reader(saved, f"state.learner.{place}").section("visits")
            sizes = Reader(saved, f"state.learner.{place}").array(name, np.int64, (None,))
            result[name] = _batches(sizes, visits, remap)
        elif isinstance(value, np.ndarray) and name != "rows":
            array = cast(NDArray[Any], value)
            result[name] = _array(array, fresh.get(name), axes[name], order, f"{place}{name}", remap)
        elif name != "rows":
            result[name] = len(remap.pool.environments) if name == "arms" else value
    return result


def _array(saved: NDArray[Any], fresh: Any, axis: Axis, order: Ints | None, place: str, remap: Remap) -> NDArray[Any]:
    place = f"state.learner.{place}"
    if axis == "row":
        if order is None or saved.ndim == 0 or len(saved) <= order.max(initial=-1):
            raise CheckpointError(f"{place}: expected an entry for each of its rows; got shape {saved.shape}")
        return saved[order]
    if axis == "rows":
        rows = remap.row(saved, place)
        return rows[rows >= 0]
    if axis == "block" and isinstance(fresh, np.ndarray):
        return cast(NDArray[Any], fresh)
    if not remap.moves or axis not in ("code", "environment", "share"):
        return saved
    count = len(remap.names)
    if axis == "code":
        if saved.dtype != np.int64 or ((saved < 0) | (saved >= count)).any():
            raise CheckpointError(f"{place}: expected codes of {count} environments; got others")
        return remap.codes[saved]
    if saved.shape[:1] != (count,):
        raise CheckpointError(f"{place}: expected an entry for each of {count} environments; got shape {saved.shape}")
    result = np.zeros((len(remap.pool.environments), *saved.shape[1:]), dtype=saved.dtype)
    if isinstance(fresh, np.ndarray) and cast(NDArray[Any], fresh).shape == result.shape:
        result[...] = fresh
    there = remap.codes >= 0
    result[remap.codes[there]] = saved[there]
    return result / result.sum() if axis == "share" and result.sum() > 0.0 else result


def _batches(sizes: Ints, visits: Reader, remap: Remap) -> Ints:
    """Sizes of batches of visits, without those that are gone."""
    there = remap.row(visits.array("rows", np.int64, (None,)), visits.place) >= 0
    if int(sizes.sum()) != there.size:
        raise CheckpointError(f"{visits.place}: expected as many as all batches hold; got {there.size}")
    left = np.bincount(np.repeat(np.arange(sizes.size), sizes)[there], minlength=sizes.size)
    return left[left > 0].astype(np.int64)


def _tickets(state: Reader, remap: Remap) -> tuple[dict[str, Any], int]:
    """Tickets with today's rows; those of prompts that are gone are cancelled, and how many of them were in flight."""
    gone: list[Ints] = [state.array("cancelled", np.int64, (None,))]
    result: dict[str, Any] = {"issued": state.integer("issued")}
    for kind in ("expired", "in_flight"):
        section = state.section(kind)
        numbers = section.array("number", np.int64, (None,))
        columns = {name: section.array(name, dtype, numbers.shape) for name, dtype in _TICKET.items()}
        rows = remap.row(columns["row"], section.place)
        kept = rows >= 0
        gone.append(numbers[~kept])
        result[kind] = {name: column[kept] for name, column in columns.items()} | {"row": rows[kept]}
    return {**result, "cancelled": np.concatenate(gone)}, len(gone[-1])


def _windows(saved: Reader, fresh: State, remap: Remap) -> dict[str, Any]:
    """Windows of environments that there were, where they still hold prompts; of others as they are today."""
    before = {new: old for old, new in remap.renamed.items()}
    windows = dict(fresh)
    for name in fresh:
        old = before.get(name, name)
        if old in remap.names:
            window = saved.raw(old)
            try:
                remap.pool.find_window(name, *window)
            except (CurriculaValueError, TypeError, OverflowError):
                continue
            windows[name] = window
    return windows


def _changes(remap: Remap) -> str:
    told = [f"; environment {old} is called {new} now" for old, new in remap.renamed.items()]
    gone = [name for name, code in zip(remap.names, remap.codes.tolist(), strict=True) if code < 0]
    known = {*remap.names, *remap.renamed.values()}
    new = [name for name in remap.pool.environments if name not in known]
    told += [
        f"; environments that are {word}: {', '.join(found)}" for word, found in (("gone", gone), ("new", new)) if found
    ]
    return "".join(told)


def _row_arrays(state: State) -> list[Ints]:
    arrays: list[Ints] = []
    for name, value in state.items():
        if isinstance(value, Mapping):
            arrays += _row_arrays(cast(State, value))
        elif name in ("rows", "row") and isinstance(value, np.ndarray):
            arrays.append(cast(Ints, value))
    return arrays
