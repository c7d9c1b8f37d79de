"""`curricula replay` and `curricula train --warm-start`, as a user calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool, open_log

ROOT = Path(__file__).parents[2]


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    command = [sys.executable, "-m", "curricula", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def write(folder: Path, asks: int) -> None:
    # The default mix is sharp: a log of it says little about other choices.
    mix = {"curriculum": {"temperature": 0.3, "probe": 0.2}}
    made, rng = Curriculum(PromptPool(["sums"] * 60 + ["maths"] * 60), mix, seed=1), np.random.default_rng(2)
    log = open_log(made, folder)
    for _ in range(asks):
        draws = made.ask(8, group_size=4)
        made.tell([GroupOutcome(d.ticket, rng.integers(0, 2, 4) * (d.index % 3 > 0) * 1.0) for d in draws])
    log.close()


@pytest.mark.slow
def test_replay_prints_a_table_and_json(tmp_path: Path) -> None:
    write(tmp_path / "log", 200)
    (tmp_path / "other.yaml").write_text("curriculum: {temperature: 1.0}", encoding="utf-8")
    done = call("replay", tmp_path / "log", "--with", tmp_path / "other.yaml")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("200 asks, 1,600 groups told")
    assert [line.split()[0] for line in lines[1:]] == ["environment", "maths", "sums", "all", "weights:"]
    again = call("replay", tmp_path / "log", "--with", tmp_path / "other.yaml", "--json")
    found = json.loads(again.stdout)
    assert found["asks"] == 200
    assert set(found["environments"]) == {"maths", "sums"}
    assert found["whole"]["other"]["informative"] < found["whole"]["logged"]["informative"]
    # It reads, and leaves no trace.
    assert {path.name for path in tmp_path.iterdir()} == {"log", "other.yaml"}


@pytest.mark.slow
def test_replay_refuses_an_estimate_from_too_little(tmp_path: Path) -> None:
    write(tmp_path / "log", 5)
    (tmp_path / "other.yaml").write_text("curriculum: {objective: {type: uniform}}", encoding="utf-8")
    done = call("replay", tmp_path / "log", "--with", tmp_path / "other.yaml")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("curricula: replay: expected an effective sample size of 100 or more for an estimate; got ")
    assert "maths" in done.stdout
    as_json = call("replay", tmp_path / "log", "--with", tmp_path / "other.yaml", "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["whole"]["other"]["informative"] is None


@pytest.mark.slow
def test_a_trained_runs_log_starts_another_run_warm(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "integration"))
    from host import model, tokenizer

    model().save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    mix = """
environments: {sums: {source: {type: reasoning_gym, name: chain_sum, size: 24}}}
log: log-of-NAME
model: MODEL
trainer: {output_dir: OUT, max_steps: 3, per_device_train_batch_size: 8, num_generations: 4, max_completion_length: 4,
  use_cpu: true, bf16: false, gradient_checkpointing: false, report_to: [], save_strategy: "no"}
"""
    for name in ("first", "second"):
        text = mix.replace("NAME", name).replace("MODEL", str(tmp_path / "model")).replace("OUT", str(tmp_path / name))
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    done = call("train", tmp_path / "first.yaml")
    assert done.returncode == 0, done.stderr[-2000:]
    log = tmp_path / "log-of-first"
    assert list((log / "outcomes").glob("*.parquet"))
    done = call("train", tmp_path / "second.yaml", "--warm-start", log)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"curricula: warm start from {log}: " in done.stdout
    assert "prompts were taken over, 0 of prompts that are not here were passed over" in done.stdout
    wrong = call("train", tmp_path / "second.yaml", "--warm-start", log, "--resume")
    assert wrong.returncode == 2
    assert "expected --warm-start or a checkpoint to resume from; got both" in wrong.stderr
