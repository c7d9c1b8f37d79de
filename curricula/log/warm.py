"""Starting warm: a curriculum is told what an earlier run was told of the same prompts."""

import os
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from curricula.compute import Compute
from curricula.errors import CurriculaValueError
from curricula.log.events import ROLLOUTS
from curricula.log.reader import read_log
from curricula.pool import PromptPool
from curricula.records import GroupOutcome

if TYPE_CHECKING:
    from curricula.curriculum import Curriculum

_CHUNK = 1 << 16


class WarmStart(NamedTuple):
    """What came of a warm start.

    Attributes:
        outcomes: Outcomes that were told.
        prompts: Prompts of the pool that they are of.
        unmatched: Outcomes of prompts that the pool does not have; they were passed over.
    """

    outcomes: int
    prompts: int
    unmatched: int


def warm_start(curriculum: "Curriculum", log: "str | os.PathLike[str] | Any") -> WarmStart:
    """Tell a curriculum, in their order, the outcomes of a log whose prompts are in its pool by key.

    They teach what is believed of prompts and costs; they are no part of the run's own figures, nor of its own log.

    Args:
        curriculum: One that has not drawn yet, or any.
        log: The folder of an outcome log, or a table that `read_log` gave.

    Raises:
        CurriculaValueError: Not a log, a damaged one, or one without any outcome of a prompt of the pool.

    >>> from curricula import Curriculum, PromptPool, read_log
    >>> warm_start(Curriculum(PromptPool(["sums"])), "no-such-folder")
    Traceback (most recent call last):
    curricula.errors.CurriculaValueError: no-such-folder: expected the folder of an outcome log; got no such folder; ...
    """
    where, table = "log", cast(Any, log)
    if isinstance(log, (str, os.PathLike)):
        where, table = os.fspath(cast(str, log)), read_log(cast(str, log))
    columns = ("key", "index", "told_at", "run", "status", "verdict", "rewards", *ROLLOUTS)
    rows = [row for row in table.select(columns).to_pylist() if row["rewards"] is not None and row["status"] == "ok"]
    # An outcome of a draw that had been given up, or told before, taught nothing then.
    rows = [row for row in rows if row["key"] is not None and row["verdict"] not in ("duplicate", "cancelled")]
    index = _rows_of(curriculum.pool, {row["key"]: row["index"] for row in rows})
    matched = [row for row in rows if row["key"] in index]
    if not matched:
        raise CurriculaValueError(
            f"{where}: expected outcomes of prompts of this pool; got {len(rows)} outcomes, none of "
            "a prompt that it has; is it the log of another data set, or are the keys made of other columns?"
        )
    own, curriculum.log = curriculum.log, None
    spent, curriculum.compute = curriculum.compute, Compute()
    try:
        for _, together in groupby(matched, key=lambda row: (row["run"], row["told_at"])):
            curriculum.tell([_outcome(row, index[row["key"]]) for row in together])
    finally:
        curriculum.log, curriculum.compute = own, spent
    return WarmStart(len(matched), len(index), len(rows) - len(matched))


def _outcome(row: dict[str, Any], index: int) -> GroupOutcome:
    return GroupOutcome(None, row["rewards"], index=index, **{name: row[name] for name in ROLLOUTS})


def _rows_of(pool: PromptPool, logged: dict[str, int | None]) -> dict[str, int]:
    """Rows of the pool by key, for the logged keys that it has; the rows that were logged are looked at first."""
    found = {key: row for key, row in logged.items() if row is not None and row < len(pool) and pool.key(row) == key}
    missing = logged.keys() - found.keys()
    for start in range(0, len(pool) if missing else 0, _CHUNK):
        rows = range(start, min(start + _CHUNK, len(pool)))
        found |= {key: row for key, row in zip(pool.keys_of(rows), rows, strict=True) if key in missing}
    return found
