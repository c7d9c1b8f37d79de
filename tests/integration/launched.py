"""Runs `host.py`, or another script of its kind, in processes of its own, on several ranks under torchrun."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ports import free_port

HOST = Path(__file__).parent / "host.py"
ROOT = Path(__file__).parents[2]


def launch(out: Path, ranks: int, timeout: float = 300, script: Path = HOST, **spec: Any) -> tuple[int, str]:
    spec = {"world_size": ranks, **spec}
    command = [sys.executable]
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks), "--master_port", str(free_port())]
    command += [str(script), str(out), json.dumps(spec)]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=timeout, check=False, cwd=out.parent
    )
    return done.returncode, done.stdout + done.stderr


def result(out: Path, ranks: int, **spec: Any) -> dict[str, Any]:
    code, text = launch(out, ranks, **spec)
    assert code == 0, text[-4000:]
    found = json.loads(out.read_text())
    assert found["world_size"] == ranks
    return found
