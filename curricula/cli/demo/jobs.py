"""The demo's processes: a few at a time, their progress shown, none left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from curricula.errors import CurriculaRuntimeError

# One thread: a tiny model loses far more to a second one than it gains. Nothing is fetched from a hub.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One process of the demo: its name, the arguments of `python -m curricula_trl.demo`, and its steps."""

    name: str
    arguments: tuple[str, ...]
    steps: int


class _Processes:
    """The processes that run, so that all can be ended at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def start(self, job: Job, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[str] | None:
        with self._lock, log.open("w", encoding="utf-8") as errors:
            if self._stopped:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", "curricula_trl.demo", *job.arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **_ENVIRONMENT, **environment},
            )
            self._running.add(process)
            return process

    def finish(self, process: subprocess.Popen[str]) -> int:
        code = process.wait()
        with self._lock:
            self._running.discard(process)
        return code

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def run_one(job: Job, logs: Path, environment: Mapping[str, str]) -> None:
    """Runs one job and waits for it.

    Raises:
        CurriculaRuntimeError: It failed; the message has its last line and names its log.
    """
    with _all_ended() as processes:
        _run(job, processes, logs, environment, lambda _: None)


def run_all(jobs: Sequence[Job], logs: Path, environment: Mapping[str, str], console: Console, workers: int) -> None:
    """Runs jobs, so many at a time, in bars on a terminal and in a line per job elsewhere.

    Args:
        jobs: What to run.
        logs: Folder for what the processes print.
        environment: Variables to set for them.
        console: Where progress is shown.
        workers: How many run at a time.

    Raises:
        CurriculaRuntimeError: One failed; the others are ended, and the message names its log.
    """
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    # Left on an error or an interrupt, the inner context ends the processes; only then can the threads that read
    # their output return, for which the pool waits.
    with ThreadPoolExecutor(workers) as pool, bars, _all_ended() as processes:

        def run(job: Job) -> None:
            bar = bars.add_task(job.name, total=job.steps, state="warming up")

            def on_step(step: int) -> None:
                bars.update(bar, completed=step, state="" if step == job.steps else "training")

            _run(job, processes, logs, environment, on_step)
            if not console.is_terminal:
                console.print(f"{job.name}: done", highlight=False)

        for future in as_completed([pool.submit(run, job) for job in jobs]):
            future.result()


@contextlib.contextmanager
def _all_ended() -> Generator[_Processes]:
    """Ends every process when the block is left, also by Ctrl-C or a request to terminate."""
    processes = _Processes()
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield processes
    finally:
        processes.stop()
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


def _run(
    job: Job, processes: _Processes, logs: Path, environment: Mapping[str, str], on_step: Callable[[int], None]
) -> None:
    log = logs / f"{job.name.replace(', ', '-').replace(' ', '-')}.log"
    process = processes.start(job, log, environment)
    if process is None:
        return
    assert process.stdout is not None
    with process.stdout as reported:
        for line in reported:
            on_step(int(json.loads(line)["step"]))
    code = processes.finish(process)
    if code != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1] if lines else f"exit code {code}"
        raise CurriculaRuntimeError(f"demo: {job.name} failed: {last} (its output is in {log})")
