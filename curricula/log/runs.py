"""The runs of a log: what each was, and which one goes on where another was saved."""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from curricula.errors import CurriculaValueError
from curricula.log.ledger import OpenDraw
from curricula.log.schema import FORMAT, READABLE

RUNS, OUTCOMES, JOURNALS = "runs", "outcomes", "journals"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a log, as `runs/NUMBER.json` holds it.

    Attributes:
        number: Counts the runs of a log from 1.
        id: Names the run everywhere.
        seed: Of its curriculum.
        started: Unix seconds.
        fingerprint: Of the pool.
        environments: Names in the order of their codes.
        blocks: Environment, level and prompts of each block of the pool; the level is null where it has none.
        expiry: Asks after which a draw that was never told is given up.
        continues: Number of the run whose saved state it took over; null for a fresh start.
        start: Moment at which it begins: up to there its history is that of the run it continues.
        open: Draws that were open then.
    """

    number: int
    id: str
    seed: int
    started: float
    fingerprint: str
    environments: list[str]
    blocks: list[list[Any]]
    expiry: int
    continues: int | None
    start: int
    open: list[OpenDraw]

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.number:04d}"


def new_id() -> str:
    """A name that no other run has."""
    return uuid.uuid4().hex


def write_run(folder: Path, run: Run, mix: str) -> None:
    """Write `runs/NUMBER.yaml`, the resolved mix, and `runs/NUMBER.json`."""
    _replace(folder / RUNS / f"{run.name}.yaml", mix)
    _replace(folder / RUNS / f"{run.name}.json", json.dumps({"format": FORMAT, **asdict(run)}))


def read_runs(folder: Path) -> dict[int, Run]:
    """All runs of a log, by number.

    Raises:
        CurriculaValueError: Not a log, or one that is damaged.
    """
    if not (folder / RUNS).is_dir():
        got = "no such folder" if not folder.exists() else "one without runs/" if folder.is_dir() else "a file"
        raise CurriculaValueError(f"{folder}: expected the folder of an outcome log; got {got}; check the path")
    runs: dict[int, Run] = {}
    for path in sorted((folder / RUNS).glob("[0-9]*.json")):
        try:
            fields = cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
            if (version := fields.pop("format")) not in READABLE:
                raise CurriculaValueError(f"{path}: expected an outcome log of format {FORMAT}; got {version!r}")
            waiting = read_open(fields.pop("open"))
            run = Run(**fields, open=waiting)
            sound = run.continues is None or run.continues < run.number
            if not (sound and run.name == path.stem and all(len(block) == 3 for block in run.blocks)):
                raise ValueError("values that do not fit together")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, CurriculaValueError):
                raise
            raise CurriculaValueError(
                f"{path}: expected what a run of an outcome log is; got a damaged file ({type(error).__name__}); move "
                "it and the files of its number away"
            ) from error
        runs[run.number] = run
    return runs


def read_open(values: Sequence[Sequence[Any]]) -> list[OpenDraw]:
    """Open draws from JSON; raises TypeError or ValueError where they cannot be."""
    draws = [OpenDraw(*value) for value in values]
    for draw in draws:
        kinds = tuple(map(type, (draw.ticket, draw.row, draw.ask, draw.key, draw.environment)))
        if kinds != (int, int, int, str, str):
            raise ValueError("an open draw that is none")
    return draws


def valid_until(runs: Mapping[int, Run]) -> dict[int, float]:
    """Moment up to which each run's rows stand; what comes later was superseded when a run was resumed.

    Of all runs that go back to the same fresh start, the newest counts, with what came before the states that it
    and its ancestors took over.
    """
    root: dict[int, int] = {}
    for number, run in sorted(runs.items()):
        root[number] = root.get(run.continues or 0, number)
    until: dict[int, float] = dict.fromkeys(runs, -1.0)
    for newest in {root[number]: number for number in sorted(runs)}.values():
        run, end = runs[newest], float("inf")
        while True:
            until[run.number] = end
            if run.continues is None or run.continues not in runs:
                break
            end = min(end, run.start)
            run = runs[run.continues]
    return until


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
