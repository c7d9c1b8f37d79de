"""Parts: the Parquet files of a log, each complete whenever it can be seen."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow, parquet
from curricula.log.frames import frames, read_journal
from curricula.log.ledger import Ledger, OpenDraw
from curricula.log.runs import JOURNALS, OUTCOMES, RUNS, Run, read_open
from curricula.log.schema import FORMAT, PREFIX, READABLE, schema

_logger = logging.getLogger("curricula")


class Part(NamedTuple):
    """A part that was read: its rows, and what it says of the run at its end."""

    table: Any
    upto: int
    open: list[OpenDraw]


def part_paths(folder: Path, run: Run) -> list[Path]:
    """Parts of a run, in order."""
    return sorted((folder / OUTCOMES).glob(f"{run.name}-*.parquet"))


def journal_paths(folder: Path, run: Run) -> list[Path]:
    """Journals of a run that are not in its parts yet, in order."""
    return sorted((folder / JOURNALS).glob(f"{run.name}-*.journal"))


def warn_of_missing(folder: Path, runs: Mapping[int, Run]) -> None:
    """Warn once of what the names of files show to be gone: a part among others, a run's record, a run continued."""
    gone: list[str] = []
    for run in runs.values():
        numbers = _numbers(part_paths(folder, run))
        present = set(numbers)
        gone += [
            f"{OUTCOMES}/{run.name}-{n:05d}.parquet" for n in range(1, max(numbers, default=0)) if n not in present
        ]
    files = [*(folder / OUTCOMES).glob("[0-9]*.parquet"), *(folder / JOURNALS).glob("[0-9]*.journal")]
    named = {path.stem.partition("-")[0] for path in files}
    named |= {f"{run.continues:04d}" for run in runs.values() if run.continues is not None}
    # Looked up anew: a run may have begun since the records were read.
    gone += [f"{RUNS}/{name}.json" for name in sorted(named) if not (folder / RUNS / f"{name}.json").exists()]
    if gone:
        shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3:,} more" if len(gone) > 3 else "")
        _logger.warning("%s: %s missing from the log; outcomes of theirs are left out", folder, shown)


def read_part(path: Path, *, rows: bool = True) -> Part:
    """A part, its table None without `rows`; CurriculaValueError where it is damaged or none."""
    try:
        with parquet().ParquetFile(path) as file:
            said: dict[bytes, bytes] = file.metadata.metadata or {}
            if (version := int(said[PREFIX + b"format"])) not in READABLE:
                raise CurriculaValueError(f"{path}: expected an outcome log of format {FORMAT}; got {version}")
            upto, open_draws = int(said[PREFIX + b"upto"]), read_open(json.loads(said[PREFIX + b"open"]))
            table = _completed(file.read(), version) if rows else None
    except (OSError, ValueError, KeyError, TypeError, arrow().ArrowException) as error:
        if isinstance(error, CurriculaValueError):
            raise
        raise CurriculaValueError(
            f"{path}: expected a part of an outcome log; got a damaged or foreign file ({type(error).__name__}); move "
            "it away to read the rest"
        ) from error
    return Part(table, upto, open_draws)


def write_part(path: Path, table: Any, run: Run, upto: int, open_draws: list[OpenDraw]) -> None:
    """Write a part beside its place, flush it to disk, and put it there."""
    said = {"format": FORMAT, "run": run.id, "seed": run.seed, "fingerprint": run.fingerprint, "upto": upto}
    temporary = path.with_name(f".{path.name}.tmp")
    with parquet().ParquetWriter(temporary, schema(), compression="zstd") as writer:
        writer.write_table(table)
        texts = {name: str(value) for name, value in said.items()} | {"open": json.dumps(open_draws)}
        writer.add_key_value_metadata({PREFIX.decode() + name: text for name, text in texts.items()})
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def ledger_of(run: Run, last: Part | None) -> Ledger:
    """Where a run's events become rows, at the end of its last part."""
    upto, waiting = (run.start, run.open) if last is None else (last.upto, last.open)
    return Ledger(run.environments, {"run": run.number, "seed": run.seed}, upto, waiting)


def settle(folder: Path, run: Run, journals: list[Path], *, final: bool) -> None:
    """Move the rows of journals into a part of their own; a crash at any point leaves what can be settled again.

    A part never changes: readers may open it as often as they like. It says up to which moment the run's parts go, so
    that events which are in a journal still are not taken twice.

    Args:
        folder: The log's.
        run: Whose journals they are.
        journals: All that are complete, in order.
        final: Whether the run is over: draws that are still open become rows.
    """
    paths = part_paths(folder, run)
    last = read_part(paths[-1], rows=False) if paths else None
    ledger = ledger_of(run, last)
    for journal in journals:
        for frame in frames(read_journal(journal), journal):
            ledger.feed(frame)
    if final:
        ledger.finish(run.expiry)
    if ledger.rows:
        # Not their count: where one is missing, that would be the name of another.
        path = folder / OUTCOMES / f"{run.name}-{max(_numbers(paths), default=0) + 1:05d}.parquet"
        write_part(path, ledger.table(), run, ledger.moment, list(ledger.open.values()))
    elif not final:
        return  # draws alone: they wait in their journals
    for journal in journals:
        journal.unlink(missing_ok=True)


def _completed(table: Any, version: int) -> Any:
    """A table of a readable format as one of today's."""
    if version == 1:
        for name in ("weight", "belief_pool", "device_seconds"):
            place = schema().get_field_index(name)
            table = table.add_column(place, schema().field(place), arrow().nulls(len(table), arrow().float64()))
    return table.cast(schema())


def _numbers(paths: list[Path]) -> list[int]:
    """Numbers of parts; a file whose name someone changed has none."""
    ends = [path.stem.rpartition("-")[2] for path in paths]
    return [int(end) for end in ends if end.isdecimal()]
