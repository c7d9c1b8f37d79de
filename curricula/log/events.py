"""What happens to draws, as frames of the journal: drawn, told, cancelled."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.log.frames import encode
from curricula.pool import PromptPool
from curricula.records import REASONS, STATUSES, Beliefs, Draw, GroupOutcome, Verdict

DRAWN, TOLD, CANCELLED = 1, 2, 3
NONE = -(1 << 63)
"""Stands for an absent integer in a column."""

_REASON = {reason: code for code, reason in enumerate(REASONS)}
_STATUS = {status: code for code, status in enumerate(STATUSES)}
ROLLOUTS = ("successes", "tokens", "interrupted", "truncated", "trainable", "components")
_FIELDS = attrgetter("ticket", "policy_version", "status", "rewards", *ROLLOUTS)


def drawn(
    moment: int,
    time: float,
    ask: int,
    group_size: int,
    draws: Sequence[Draw],
    of_E: NDArray[np.float64],
    beliefs: Beliefs,
    weights: Sequence[float],
    pool: PromptPool,
) -> bytes:
    """An ask and its draws, shape (n,) each; `of_E` (2, E) are environments' shares of them and their mean beliefs."""
    rows = np.array([draw.index for draw in draws], dtype=np.int64)
    codes = pool.codes[rows]
    values = {
        "time": time,
        "ask": ask,
        "group_size": group_size,
        "policy_version": draws[0].policy_version,
        "key": [draw.key for draw in draws],
    }
    columns: dict[str, NDArray[Any]] = {
        "ticket": np.array([draw.ticket for draw in draws], dtype=np.int64),
        "row": rows,
        "code": codes,
        "reason": _bytes([_REASON[draw.reason] for draw in draws]),
        "propensity": np.array([draw.propensity for draw in draws]),
        "share": of_E[0, codes],
        "mean": beliefs.mean.astype(np.float64),
        "std": beliefs.std.astype(np.float64),
        "weight": np.array(weights, dtype=np.float64),
        "pool": of_E[1, codes],
    }
    if pool.has_levels:
        columns["level"] = pool.block_levels[pool.blocks[rows]]
    return encode(DRAWN, moment, values, columns)


def told(
    moment: int,
    time: float,
    outcomes: Sequence[GroupOutcome],
    verdicts: Sequence[Verdict],
    pool: PromptPool,
    device_seconds: float | None = None,
) -> bytes:
    """A tell: K outcomes and their verdicts.

    Columns of rollouts stand end to end, and `sizes` says how many are whose. What is the same for all (ok, none) is
    left out, as it is in nearly every tell.
    """
    fields = list(zip(*map(_FIELDS, outcomes), strict=True))
    tickets, versions, statuses, rewards = fields[:4]
    reasons = [verdict.reason for verdict in verdicts]
    codes = {reason: code for code, reason in enumerate(dict.fromkeys(reasons))}
    columns: dict[str, NDArray[Any]] = {
        "ticket": _integers(tickets),
        "keep": _bytes([verdict.keep for verdict in verdicts]),
        "verdict": _bytes(map(codes.__getitem__, reasons)),
        "sizes": np.array(list(map(len, rewards)), dtype=np.int32),
        "rewards": _joined(rewards),
    }
    if any(version is not None for version in versions):
        columns["policy_version"] = _integers(versions)
    if statuses.count("ok") < len(statuses):
        columns["status"] = _bytes([_STATUS[status] for status in statuses])
    for name, given in zip(ROLLOUTS, fields[4:], strict=True):
        present = [value for value in given if value is not None]
        if not present:
            continue
        if len(present) < len(given):
            columns[f"has_{name}"] = _bytes([value is not None for value in given])
        if name == "components":
            columns["width"] = np.array([0 if value is None else value.shape[1] for value in given], dtype=np.int32)
        columns[name] = _joined(present)
    values: dict[str, Any] = {"time": time, "reasons": list(codes)}
    if device_seconds is not None:
        values["device_seconds"] = device_seconds
    if None in tickets:
        elsewhere = [(place, int(cast(int, o.index))) for place, o in enumerate(outcomes) if o.ticket is None]
        values["elsewhere"] = [[place, row, pool.key(row), int(pool.codes[row])] for place, row in elsewhere]
    return encode(TOLD, moment, values, columns)


def cancelled(moment: int, time: float, tickets: Sequence[int]) -> bytes:
    """Tickets whose rollouts never come back."""
    return encode(CANCELLED, moment, {"time": time}, {"ticket": np.array(tickets, dtype=np.int64)})


def _integers(values: Sequence[int | None]) -> NDArray[np.int64]:
    if None in values:
        values = [NONE if value is None else value for value in values]
    return np.array(values, dtype=np.int64)


def _bytes(values: Iterable[int]) -> NDArray[np.uint8]:
    return np.frombuffer(bytes(values), dtype=np.uint8)


def _joined(columns: Sequence[Any]) -> NDArray[np.float64]:
    try:
        content = b"".join(columns)
    except (BufferError, TypeError):  # columns of an array, which are no single block of memory
        content = b"".join([column.tobytes() for column in columns])
    return np.frombuffer(content, dtype=np.float64)
