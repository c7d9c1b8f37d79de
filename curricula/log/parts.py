"""Parts: the Parquet files of a log, each complete whenever it can be seen."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow, parquet
from curricula.log.frames import frames, read_journal
from curricula.log.ledger import Ledger, OpenDraw
from curricula.log.runs import JOURNALS, OUTCOMES, Run, read_open
from curricula.log.schema import FORMAT, PREFIX, schema


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


def read_part(path: Path, *, rows: bool = True) -> Part:
    """A part, its table None without `rows`; CurriculaValueError where it is damaged or none."""
    try:
        with parquet().ParquetFile(path) as file:
            said: dict[bytes, bytes] = file.metadata.metadata or {}
            if (version := int(said[PREFIX + b"format"])) != FORMAT:
                raise CurriculaValueError(f"{path}: expected an outcome log of format {FORMAT}; got {version}")
            upto, open_draws = int(said[PREFIX + b"upto"]), read_open(json.loads(said[PREFIX + b"open"]))
            table = file.read().cast(schema()) if rows else None
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
        for frame in frames(read_journal(journal)):
            ledger.feed(frame)
    if final:
        ledger.finish(run.expiry)
    if ledger.rows:
        path = folder / OUTCOMES / f"{run.name}-{len(paths) + 1:05d}.parquet"
        write_part(path, ledger.table(), run, ledger.moment, list(ledger.open.values()))
    elif not final:
        return  # draws alone: they wait in their journals
    for journal in journals:
        journal.unlink(missing_ok=True)
