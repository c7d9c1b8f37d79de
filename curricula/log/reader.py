"""Reading a log: finished parts, and what is in journals still, also while it is written."""

import contextlib
import os
from pathlib import Path
from typing import Any

from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow, compute
from curricula.log.frames import frames, read_journal
from curricula.log.parts import journal_paths, ledger_of, part_paths, read_part, warn_of_missing
from curricula.log.runs import Run, read_runs, valid_until
from curricula.log.schema import schema


def read_log(folder: str | os.PathLike[str], *, superseded: bool = False) -> Any:
    """All outcomes of a log as a pyarrow table, those of a run that is being written included.

    Args:
        folder: The log.
        superseded: Keep rows that a resumed run made void, with a column `superseded`. Without them, what is left is
            what the resumed runs' curricula were told.

    Returns:
        The table, run by run in the order of `told_at`; `curricula.log.schema` says what its columns are. Draws
        whose fate is not known have the status open.

    Raises:
        CurriculaValueError: Not a log, or one that is damaged: the line names the file.
    """
    pa, pc = arrow(), compute()
    root = Path(folder)
    runs = read_runs(root)
    # Journals first: what is settled into parts meanwhile is then in both, and passed over in the journal.
    journals: dict[int, list[tuple[Path, bytes]]] = {}
    for number, run in runs.items():
        journals[number] = []
        for path in journal_paths(root, run):
            with contextlib.suppress(FileNotFoundError):
                journals[number].append((path, read_journal(path)))
    warn_of_missing(root, runs)
    until = valid_until(runs)
    tables: list[Any] = []
    for number, run in runs.items():
        parts = [read_part(path) for path in part_paths(root, run)]
        ledger = ledger_of(run, parts[-1] if parts else None)
        for path, content in journals[number]:
            for frame in frames(content, path):
                ledger.feed(frame)
        ledger.finish(run.expiry)
        table = pa.concat_tables([*(part.table for part in parts), ledger.table()])
        void = pc.greater(pc.cast(table["told_at"], pa.float64()), until[number])
        tables.append(table.append_column("superseded", void) if superseded else table.filter(pc.invert(void)))
    return pa.concat_tables(tables) if tables else schema().empty_table()


def read_history(folder: str | os.PathLike[str]) -> tuple[Run, Any]:
    """The newest run of a log, and all rows of its history: its own, and those of the runs that it continues.

    Raises:
        CurriculaValueError: Not a log, a damaged one, or one without a run.
    """
    table, runs = read_log(folder), read_runs(Path(folder))
    if not runs:
        raise CurriculaValueError(f"{os.fspath(folder)}: expected an outcome log with draws; got one without any")
    newest = number = max(runs)
    history = [newest]
    while (number := runs[number].continues or 0) in runs:
        history.append(number)
    return runs[newest], table.filter(compute().is_in(table["run"], value_set=arrow().array(history, "int32")))
