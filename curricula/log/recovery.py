"""Settling what runs left behind that ended without closing their log."""

from pathlib import Path

from curricula.log.locks import Lock
from curricula.log.parts import journal_paths, settle
from curricula.log.runs import RUNS, read_runs


def recover(folder: Path) -> None:
    """Make parts of the journals of runs that are over; a run whose process is alive is left alone."""
    runs = read_runs(folder)
    for path in sorted((folder / RUNS).glob("[0-9]*.lock")):
        lock = Lock.take(path, new=False)
        if lock is None:
            continue
        if (run := runs.get(int(path.stem))) is not None:
            settle(folder, run, journal_paths(folder, run), final=True)
        lock.release()
