"""What happens to draws, as frames of the journal: drawn, told, cancelled."""

from collections.abc import Sequence
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


def drawn(
    moment: int,
    time: float,
    ask: int,
    group_size: int,
    draws: Sequence[Draw],
    shares_E: NDArray[np.float64],
    beliefs: Beliefs,
    pool: PromptPool,
) -> bytes:
    """An ask and its draws, shape (n,) each; `shares_E` are the environments' shares of them."""
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
        "reason": np.array([_REASON[draw.reason] for draw in draws], dtype=np.uint8),
        "propensity": np.array([draw.propensity for draw in draws]),
        "share": shares_E[codes],
        "mean": beliefs.mean.astype(np.float64),
        "std": beliefs.std.astype(np.float64),
    }
    if pool.has_levels:
        columns["level"] = pool.block_levels[pool.blocks[rows]]
    return encode(DRAWN, moment, values, columns)


def told(
    moment: int, time: float, outcomes: Sequence[GroupOutcome], verdicts: Sequence[Verdict], pool: PromptPool
) -> bytes:
    """A tell: K outcomes and their verdicts; columns of rollouts stand end to end, `sizes` says where each begins."""
    codes: dict[str, int] = {}
    columns: dict[str, NDArray[Any]] = {
        "ticket": _integers([outcome.ticket for outcome in outcomes]),
        "policy_version": _integers([outcome.policy_version for outcome in outcomes]),
        "status": np.array([_STATUS[outcome.status] for outcome in outcomes], dtype=np.uint8),
        "keep": np.array([verdict.keep for verdict in verdicts], dtype=np.uint8),
        "verdict": np.array([codes.setdefault(verdict.reason, len(codes)) for verdict in verdicts], dtype=np.uint8),
        "sizes": np.array([len(cast(Any, outcome.rewards)) for outcome in outcomes], dtype=np.int32),
        "rewards": _joined([outcome.rewards for outcome in outcomes]),
    }
    for name in ("successes", "tokens", "interrupted"):
        given = [value for outcome in outcomes if (value := getattr(outcome, name)) is not None]
        if given:
            columns[f"has_{name}"] = np.array([getattr(o, name) is not None for o in outcomes], dtype=np.uint8)
            columns[name] = _joined(given)
    values: dict[str, Any] = {"time": time, "reasons": list(codes)}
    if elsewhere := [place for place, outcome in enumerate(outcomes) if outcome.ticket is None]:
        rows = [int(cast(int, outcomes[place].index)) for place in elsewhere]
        names = [[row, pool.key(row), int(pool.codes[row])] for row in rows]
        values["elsewhere"] = [[place, *name] for place, name in zip(elsewhere, names, strict=True)]
    return encode(TOLD, moment, values, columns)


def cancelled(moment: int, time: float, tickets: Sequence[int]) -> bytes:
    """Tickets whose rollouts never come back."""
    return encode(CANCELLED, moment, {"time": time}, {"ticket": np.array(tickets, dtype=np.int64)})


def _integers(values: Sequence[int | None]) -> NDArray[np.int64]:
    return np.array([NONE if value is None else value for value in values], dtype=np.int64)


def _joined(columns: Sequence[Any]) -> NDArray[np.float64]:
    return np.frombuffer(b"".join([np.ascontiguousarray(column).data for column in columns]), dtype=np.float64)
