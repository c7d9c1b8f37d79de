"""`curricula precision` as users start it: two real engines on a tiny model, and what transformers makes of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from needs import needs_vllm
from vllm_host import saved

from curricula import load_mix

needs_vllm()
pytestmark = pytest.mark.slow


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "curricula", "precision", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)


def test_on_a_tiny_model(tmp_path: Path) -> None:
    saved(tmp_path / "model")
    (tmp_path / "prompts.jsonl").write_text("".join(f'{{"prompt": "sum:{n}="}}\n' for n in range(9)))
    few = ("--prompts", "prompts.jsonl", "--count", "6", "--tokens", "12", "--heads", "fp32", "--steps", "2")
    done = run(tmp_path, "./model", *few, "--generator", "bf16,fp32", "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((tmp_path / "out" / "precision.json").read_text())

    rows = {(row["generator"]["dtype"], row["trainer"]["dtype"]): row for row in found["combinations"]}
    assert len(rows) == 6
    same = rows["fp32", "fp32"]
    assert same["largest"] < 1e-4
    assert 6 <= same["tokens"] <= 72
    assert [place["first"] for place in same["positions"]] == [1, 5, 9]
    for pair in [("bf16", "bf16"), ("bf16", "fp32")]:
        assert 1e-4 < rows[pair]["mean"] < 0.1
        assert 0 < rows[pair]["kl"] < 0.1
    assert {row["head"] for pair in found["combinations"] for row in (pair["generator"], pair["trainer"])} == {"fp32"}

    step = found["fp16_step"]
    assert step["overflow"] == ""
    assert step["logits"]
    assert step["gradients"]
    assert step["scale"] >= 1
    assert 6 <= step["tokens"] <= 72
    small = found["small_updates"]
    assert small["survived"]["bf16"] < 0.2
    assert len(small["steps"]) == 2

    assert found["advice"]["best"]["generator"] == {"dtype": "fp32", "head": "fp32"}
    half = found["advice"]["half"]
    assert half["generator"] == {"dtype": "bf16", "head": "fp32"}
    assert "export CURRICULA_FP32_HEAD=1" in half["settings"]
    (tmp_path / "mix.yaml").write_text("\n".join(half["settings"][:2]))
    assert load_mix(tmp_path / "mix.yaml").recipe.fp32_head
    assert all(Path(tmp_path / plot).stat().st_size > 1000 for plot in found["plots"])


def test_a_model_that_vllm_cannot_run_is_one_line(tmp_path: Path) -> None:
    saved(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"no weights")
    done = run(tmp_path, "./model", "--count", "2", "--tokens", "4", "--generator", "fp32", "--trainer", "fp32")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("curricula: precision: vLLM, fp32: ")
    assert "Traceback" not in done.stderr
    assert "vLLM, fp32: failed" in done.stdout
