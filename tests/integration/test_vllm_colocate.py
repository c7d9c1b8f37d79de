"""vLLM's engine in the trainer's process, on a CPU: TRL's colocate mode as a user has it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needs import needs_vllm
from vllm_host import saved

needs_vllm()
pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("vllm_host.py")
ROOT = Path(__file__).parents[2]


def run(folder: Path, ranks: int = 1, environment: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    """Trains in a process of its own."""
    saved(folder / "model", options.get("dtype", "float32"), options.pop("tied", False))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters"), str(SCRIPT.parent)])
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
    spec = json.dumps({"folder": str(folder), "world_size": ranks, **options})
    done = subprocess.run(
        [sys.executable, *launcher, str(SCRIPT), str(folder / "out.json"), spec],
        env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "out.json").read_text(encoding="utf-8"))


def test_the_generators_have_the_trainers_weights_on_two_ranks(tmp_path: Path) -> None:
    seen = run(tmp_path, ranks=2)
    assert seen["used"] == [True, True]
    assert seen["draws"] == 3 * 4
    assert len(seen["steps"]) == 3
    assert max(seen["steps"]) < 1e-4
    # The last step's weights are sent when the next one generates.
    assert seen["before"] > 1e-2
    assert seen["after"] < 1e-4
    for (length, finish), limit in zip(seen["completions"], [3, 8, 8, 1], strict=True):
        assert 1 <= length <= limit
        assert finish == "stop" or (finish == "length" and length == limit)
    assert seen["again"], "a seed repeats its rows"
    assert seen["twins"], "two rows of one prompt are two samples"


def test_what_a_stop_string_ends_is_not_cut_off(tmp_path: Path) -> None:
    seen = run(tmp_path, stop=list("0123456789abcdefg"))
    cut_off = [length for length, cut in seen["told"] if cut]
    assert cut_off == [8] * len(cut_off)
    # TRL takes every one without an end for truncated.
    clipped = sum(seen["clipped"]) / len(seen["clipped"])
    assert clipped > 0.5
    assert len(cut_off) / len(seen["told"]) < clipped - 0.3


def test_a_tied_head_is_never_older_than_the_weights_and_adapters_are_merged(tmp_path: Path) -> None:
    seen = run(tmp_path, tied=True, lora=True)
    assert max(seen["steps"]) < 1e-4
    assert seen["before"] > 1e-2
    assert seen["after"] < 1e-4


def test_the_head_is_fp32_where_the_environment_asks_for_it(tmp_path: Path) -> None:
    seen = run(tmp_path, dtype="bfloat16", tied=True, enlarge=True, environment={"CURRICULA_FP32_HEAD": "1"})
    assert seen["after"] < 0.1
    assert seen["head"] == "torch.float32"
    assert seen["off grid in bf16"] < 1e-2
    assert seen["off grid"] > 0.1
