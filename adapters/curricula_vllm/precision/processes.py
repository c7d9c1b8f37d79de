"""One process after another, each with a limit of time, and none left behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from curricula.errors import CurriculaRuntimeError, CurriculaValueError
from curricula_vllm.plugin import FP32_HEAD
from curricula_vllm.precision.plan import Plan

Found = dict[str, Any]


class Processes:
    """Runs jobs of a plan.

    Args:
        plan: What every one of them reads.
        folder: For what they read, write and print.
        limit: Seconds that one may take.
    """

    def __init__(self, plan: Plan, folder: Path, limit: float) -> None:
        self.folder, self._limit = folder, limit
        self._plan = folder / "plan.json"
        self._plan.write_text(json.dumps(plan.as_json()), encoding="utf-8")

    def run(self, job: str, name: str, fp32_head: bool = False, **found: Any) -> Found:
        """Runs a job in a process of its own.

        Args:
            job: One of `JOBS`.
            name: Of its files.
            fp32_head: Whether a vLLM in it computes its head in 32 bits.
            found: What it needs of what others found.

        Returns:
            What it found, or `error`: one line.

        Raises:
            CurriculaValueError: What the user gave is wrong.
        """
        out, given, log = (self.folder / f"{name}.{end}" for end in ("json", "in.json", "log"))
        given.write_text(json.dumps(found), encoding="utf-8")
        out.unlink(missing_ok=True)
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "curricula_vllm.precision", job, *map(str, (self._plan, given, out))],
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, FP32_HEAD: str(int(fp32_head))},
                start_new_session=True,  # vLLM may have further processes, which end with it
            )
        try:
            with _ended_with_us():
                process.wait(self._limit)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {self._limit:g} s; give it longer by --limit; what it said: {log}"}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _read(out, process.returncode, log)


def _read(out: Path, code: int, log: Path) -> Found:
    if not out.is_file():
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        said = [line.strip() for line in lines if "Error" in line] or ["nothing said of an error"]
        return {"error": f"ended with {code} ({said[-1][-200:]}); what it said: {log}"}
    found: Found = json.loads(out.read_text(encoding="utf-8"))
    if found.get("input"):
        raise CurriculaValueError(found["error"])
    return found


@contextmanager
def _ended_with_us() -> Iterator[None]:
    """A request to terminate is left like an interrupt, so that the process is ended too."""
    try:
        before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def first_error(found: Mapping[str, Found]) -> CurriculaRuntimeError:
    """Of jobs that have all failed, what the first one said."""
    name, result = next(iter(found.items()))
    return CurriculaRuntimeError(f"precision: {name}: {result['error']}")
