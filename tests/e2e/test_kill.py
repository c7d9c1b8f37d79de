"""kill -9 at any moment, also while a checkpoint is written; a resume from the last whole one loses nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HOST = ROOT / "tests" / "integration" / "host.py"
STEPS = 12
ARGUMENTS = {"max_steps": STEPS, "save_strategy": "steps", "save_steps": 1, "steps_per_generation": 2}


def start(out: Path, spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, str(HOST), str(out), json.dumps(spec)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def whole_checkpoints(folder: Path) -> list[Path]:
    found = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    return sorted(found, key=lambda path: int(path.name.split("-")[1]))


@pytest.mark.slow
@pytest.mark.parametrize("config", [None, {"refill": {"rounds": 2, "on_exhaustion": "pad"}}], ids=["plain", "refill"])
def test_killed_runs_end_as_the_unbroken_one(tmp_path: Path, config: dict[str, Any] | None) -> None:
    common = {"arguments": ARGUMENTS, "config": config}
    whole = start(tmp_path / "whole.json", {"output": str(tmp_path / "whole"), **common})
    _, errors = whole.communicate(timeout=300)
    assert whole.returncode == 0, errors.decode()[-3000:]
    expected = json.loads((tmp_path / "whole.json").read_text())

    generator = random.Random(5)
    output, out, kills = tmp_path / "killed", tmp_path / "killed.json", 0
    while not out.exists():
        resume = whole_checkpoints(output)
        spec = {"output": str(output), **common, "resume": str(resume[-1]) if resume else None}
        process = start(out, spec)
        target = (int(resume[-1].name.split("-")[1]) if resume else 0) + generator.randint(1, 3)
        while process.poll() is None:
            # The folder of a checkpoint appears before its files: the kill falls into the writing of one.
            if kills < 4 and (output / f"checkpoint-{target}").exists():
                time.sleep(generator.random() * 0.05)
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.001)
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()[-3000:]
        for checkpoint in whole_checkpoints(output):
            assert (checkpoint / "curricula" / "state.json").is_file(), "a checkpoint without its curriculum"
    assert kills == 4
    found = json.loads(out.read_text())
    assert found["weights"] == expected["weights"]
    assert found["rounds"] == expected["rounds"][len(expected["rounds"]) - len(found["rounds"]) :]
