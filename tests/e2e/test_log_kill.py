"""kill -9 at any moment, also while parts are written: every outcome whose tell returned is in the log."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curricula import Curriculum, PromptPool
from curricula.log import open_log, read_log

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
import numpy as np
from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.log import open_log, writer

writer._JOURNAL_ROWS = 64
curriculum = Curriculum(PromptPool(["a"] * 500 + ["b"] * 500), seed=int(sys.argv[2]))
open_log(curriculum, sys.argv[1])
rng = np.random.default_rng(int(sys.argv[2]))
while True:
    draws = curriculum.ask(24, group_size=4)
    told = [GroupOutcome(draw.ticket, rng.integers(0, 2, 4) * 1.0) for draw in draws]
    curriculum.tell(told)
    lines = [f"{o.ticket} {''.join(str(int(r)) for r in o.rewards)}" for o in told]
    sys.stdout.write("\\n".join(lines) + "\\n")
    sys.stdout.flush()
"""


def check(folder: Path, acknowledged: list[dict[int, list[float]]]) -> None:
    for path in (folder / "outcomes").glob("*.parquet"):
        assert pq.read_table(path).num_rows > 0, "a part that is not whole could be seen"
    rows = [row for row in read_log(folder).to_pylist() if row["status"] == "ok"]
    for run, told in enumerate(acknowledged, start=1):
        found = {row["ticket"]: row["rewards"] for row in rows if row["run"] == run}
        assert len(found) == sum(row["run"] == run for row in rows), "an outcome is there twice"
        assert told.items() <= found.items(), f"lost of run {run}: {sorted(told.keys() - found.keys())[:5]}"


@pytest.mark.slow
def test_no_told_outcome_is_lost_to_kill_9(tmp_path: Path) -> None:
    folder, generator = tmp_path / "log", random.Random(11)
    acknowledged: list[dict[int, list[float]]] = []
    for number in range(1, 9):
        command = [sys.executable, "-c", WRITER, str(folder), str(number)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            lines: list[str] = []
            reader = threading.Thread(target=lambda pipe=process.stdout, into=lines: into.extend(pipe), daemon=True)
            reader.start()
            deadline = time.monotonic() + 60
            while not lines and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(generator.random() * 1.5)
            read_log(folder)  # it can be read while it is written
            process.send_signal(signal.SIGKILL)
            process.wait()
            reader.join()
        whole = [line.split() for line in lines if line.endswith("\n")]
        acknowledged.append({int(ticket): [float(digit) for digit in digits] for ticket, digits in whole})
        assert acknowledged[-1], "killed before anything was told"
        check(folder, acknowledged)
    assert sum(map(len, acknowledged)) > 5000
    assert len(list((folder / "runs").glob("*.lock"))) == 1, "runs that were killed are settled by the next"
    # Opening the log is enough to settle it.
    open_log(Curriculum(PromptPool(["a"])), folder).close()
    assert not list((folder / "journals").iterdir())
    check(folder, acknowledged)
