"""The outcome log of real runs: on two ranks, and of one that was killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from launched import result

from curricula import read_log

ROOT = Path(__file__).parents[2]
HOST = ROOT / "tests" / "integration" / "host.py"


def rewards(folder: Path) -> list[list[float]]:
    return [row["rewards"] for row in read_log(folder).to_pylist() if row["status"] == "ok"]


@pytest.mark.slow
def test_on_two_ranks_one_of_them_writes(tmp_path: Path) -> None:
    spec = {"output": str(tmp_path / "run"), "config": {"log": str(tmp_path / "log")}}
    found = result(tmp_path / "out.json", 2, arguments={"per_device_train_batch_size": 6, "max_steps": 3}, **spec)
    told = [round_["rewards"][start : start + 4] for round_ in found["rounds"] for start in (0, 4, 8)]
    assert rewards(tmp_path / "log") == told
    assert [path.name for path in (tmp_path / "log" / "runs").glob("*.json")] == ["0001.json"]


@pytest.mark.slow
def test_a_killed_and_resumed_run_reads_as_an_unbroken_one(tmp_path: Path) -> None:
    arguments = {"max_steps": 10, "save_strategy": "steps", "save_steps": 3, "steps_per_generation": 2}

    def start(name: str, resume: Path | None = None) -> subprocess.Popen[bytes]:
        spec: dict[str, Any] = {"output": str(tmp_path / name), "arguments": arguments}
        spec |= {"config": {"log": str(tmp_path / f"{name}-log")}, "resume": None if resume is None else str(resume)}
        path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        command = [sys.executable, str(HOST), str(tmp_path / f"{name}.json"), json.dumps(spec)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert start("whole").wait(timeout=300) == 0
    process = start("killed")
    checkpoint = tmp_path / "killed" / "checkpoint-3" / "trainer_state.json"
    while process.poll() is None and not checkpoint.exists():
        time.sleep(0.002)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run was over before it could be killed"
    assert start("killed", checkpoint.parent).wait(timeout=300) == 0
    assert rewards(tmp_path / "killed-log") == rewards(tmp_path / "whole-log")
    assert {row["run"] for row in read_log(tmp_path / "killed-log").to_pylist()} == {1, 2}
    assert not list((tmp_path / "killed-log" / "journals").iterdir())
