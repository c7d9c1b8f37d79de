"""`OutcomeLog`: every draw and every outcome of a curriculum, on disk before `tell` returns."""

import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curricula.config import resolved
from curricula.errors import CheckpointError, CurriculaValueError
from curricula.log import events
from curricula.log.frames import Journal, frames, read_journal
from curricula.log.ledger import OpenDraw
from curricula.log.locks import Lock
from curricula.log.parts import journal_paths, ledger_of, part_paths, read_part, settle
from curricula.log.recovery import recover
from curricula.log.runs import JOURNALS, OUTCOMES, RUNS, Run, new_id, read_open, read_runs, write_run
from curricula.pool import PromptPool
from curricula.records import Beliefs, Draw, GroupOutcome, Verdict
from curricula.scored import Floats
from curricula.stateful import Reader

if TYPE_CHECKING:
    from curricula.curriculum import Curriculum

_JOURNAL_ROWS, _FLUSH_ROWS, _PATIENCE = 4096, 1024, 8
_logger = logging.getLogger("curricula")


class OutcomeLog:
    """Writes a log; `curricula.open_log` makes one and ties it to a curriculum.

    Each event is one write to a journal, so that it survives the end of the process, `kill -9` included. Every 4,096
    rows, when it is closed, and at a flush of 1,024 rows or more, the journal becomes a part in Parquet, in another
    thread. `outcomes/` holds nothing but whole Parquet files that never change; `read_log` reads them and the journals.

    A disk that fails does not end a run: it is said once, and the log ends there.

    Args:
        folder: Where to; made where it is not there. Runs that ended without closing it are recovered.
        pool: The prompts.
        seed: Of the curriculum.
        expiry: Asks after which a draw that was never told is given up.
        mix: The resolved mix, as YAML.

    Raises:
        CurriculaValueError: A folder that cannot be written, or that holds a damaged log.
    """

    def __init__(self, folder: str | os.PathLike[str], pool: PromptPool, *, seed: int, expiry: int, mix: str) -> None:
        self.folder = Path(folder)
        self._pool, self._seed, self._expiry, self._mix = pool, seed, expiry, mix
        self._moment = 0
        self._continues: int | None = None
        self._open: list[OpenDraw] = []
        self._run: Run | None = None
        self._lock: Lock | None = None
        self._journal: Journal | None = None
        self._journals = self._rows = 0
        self._failed = False
        self._executor: ThreadPoolExecutor | None = None
        self._working: Future[None] | None = None
        try:
            for name in (RUNS, OUTCOMES, JOURNALS):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            recover(self.folder)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise CurriculaValueError(
                f"log: expected a folder that can be written; got {self.folder}: {reason}; name another"
            ) from error

    def drawn(
        self, draws: Sequence[Draw], ask: int, size: int, of_E: Floats, beliefs: Beliefs, weights: Sequence[float]
    ) -> None:
        """Record an ask: its draws (n,), what was believed of them and their weights; `of_E` as `events.drawn`."""
        self._write(events.drawn, ask, size, draws, of_E, beliefs, weights, self._pool)

    def told(
        self, outcomes: Sequence[GroupOutcome], verdicts: Sequence[Verdict], device_seconds: float | None = None
    ) -> None:
        """Record a tell, K outcomes and their verdicts, and what devices had spent by then."""
        self._write(events.told, outcomes, verdicts, self._pool, device_seconds)
        self._rows += len(outcomes)
        # While the last journal is still being settled, this one grows on: a tell does not wait, within reason.
        busy = self._working is not None and not self._working.done()
        if self._rows >= _JOURNAL_ROWS * (_PATIENCE if busy else 1):
            self._settle(final=False)

    def cancelled(self, tickets: Sequence[int]) -> None:
        """Record draws that were given up."""
        self._write(events.cancelled, tickets)

    def flush(self) -> None:
        """Bring everything to disk, at a checkpoint; into a part where it is enough for one."""
        if self._rows >= _FLUSH_ROWS:
            self._settle(final=False)
        elif self._journal is not None:
            try:
                self._journal.flush()
            except OSError as error:
                _logger.error("%s: the log could not be flushed (%s)", self.folder, error)
        self._wait()

    def close(self) -> None:
        """Flush, with the draws that are still open; a later event begins another run, which continues this one."""
        if self._run is None:
            return
        state = self.state_dict()
        self._settle(final=True)
        self._wait()
        if self._lock is not None:
            self._lock.release()
        self._run = self._lock = None
        self.load(Reader(state, "log"))

    def state_dict(self) -> dict[str, Any]:
        """Where the log stands, for the checkpoint that a run may be resumed from: JSON values."""
        if self._run is None:
            number = self._continues
            known = {} if number is None else {run.number: run.id for run in read_runs(self.folder).values()}
            return {"run": known.get(number or 0, ""), "moment": self._moment, "open": [list(d) for d in self._open]}
        self.flush()
        paths = part_paths(self.folder, self._run)
        ledger = ledger_of(self._run, read_part(paths[-1], rows=False) if paths else None)
        for path in journal_paths(self.folder, self._run):
            for frame in frames(read_journal(path), path):
                ledger.feed(frame)
        waiting = [list(draw) for draw in ledger.open.values()]
        return {"run": self._run.id, "moment": self._moment, "open": waiting}

    def load(self, state: Reader) -> None:
        """Go on from a saved state: what was logged after it is marked as superseded.

        Raises:
            CheckpointError: State that is damaged.
        """
        moment, name = state.integer("moment"), state.text("run")
        try:
            waiting = read_open(state.raw("open"))
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{state.place}.open: expected draws; got something else") from error
        known = {run.id: run.number for run in read_runs(self.folder).values()}
        # Only now: what is damaged has been refused, and the running log was still open.
        if self._run is not None:
            self.close()
        self._continues = known.get(name)
        self._moment, self._open = moment, waiting
        if name and self._continues is None:
            _logger.warning("%s does not hold the log of the run that is resumed: a new one begins here", self.folder)

    def _write(self, event: Any, *arguments: Any) -> None:
        if self._failed:
            return
        try:
            if self._run is None:
                self._begin()
            if self._journal is None:
                assert self._run is not None
                self._journals += 1
                name = f"{self._run.name}-{self._journals:05d}.journal"
                self._journal = Journal(self.folder / JOURNALS / name)
            self._moment += 1
            self._journal.append(event(self._moment, time.time(), *arguments))
        except OSError as error:
            self._failed = True
            _logger.error("%s: the log cannot be written and ends here (%s); the run goes on", self.folder, error)

    def _begin(self) -> None:
        taken = [path.stem for pattern in ("*.json", "*.lock") for path in (self.folder / RUNS).glob(pattern)]
        number = max((int(name) for name in taken if name.isdecimal()), default=0) + 1
        while self._lock is None:
            try:
                self._lock = Lock.take(self.folder / RUNS / f"{number:04d}.lock", new=True)
            except FileExistsError:
                number += 1
        pool = self._pool
        columns = (pool.block_codes.tolist(), pool.block_levels.tolist(), pool.block_sizes.tolist())
        blocks: list[list[Any]] = [
            [pool.environments[code], level if pool.has_levels else None, size]
            for code, level, size in zip(*columns, strict=True)
        ]
        self._run = Run(
            number,
            new_id(),
            self._seed,
            time.time(),
            pool.fingerprint,
            list(pool.environments),
            blocks,
            self._expiry,
            self._continues,
            self._moment,
            self._open,
        )
        self._journals = 0
        write_run(self.folder, self._run, self._mix)

    def _settle(self, *, final: bool) -> None:
        """Close the journal, and have what is complete moved into parts."""
        if self._run is None:
            return
        if self._journal is not None:
            self._journal.close()
            self._journal, self._rows = None, 0
        self._wait()
        run, folder = self._run, self.folder
        complete = journal_paths(folder, run)
        if not complete and not final:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="curricula-log")
        self._working = self._executor.submit(settle, folder, run, complete, final=final)
        if final:
            self._executor.shutdown(wait=False)
            self._executor = None

    def _wait(self) -> None:
        if self._working is None:
            return
        working, self._working = self._working, None
        if (error := working.exception()) is not None:
            _logger.error(
                "%s: outcomes could not be written as Parquet (%s); they are kept in journals/ and taken in later",
                self.folder,
                error,
            )


def open_log(curriculum: "Curriculum", folder: str | os.PathLike[str]) -> OutcomeLog:
    """Record all that a curriculum draws and is told from here on; close the log when the run is over.

    What runs left behind in this folder that ended without closing their log is recovered first.

    Args:
        curriculum: Its `state_dict` then says where the log stands, and `load_state_dict` goes on from there: rows
            after the saved state are marked as superseded.
        folder: Where to; made where it is not there. Nothing is written before the first draw.

    Raises:
        CurriculaValueError: A folder that cannot be written, or that holds a damaged log.
    """
    config, pool = curriculum.config, curriculum.pool
    expiry, mix = config.curriculum.expiry, resolved(config, pool.environments)
    curriculum.log = OutcomeLog(folder, pool, seed=curriculum.seed, expiry=expiry, mix=mix)
    return curriculum.log
