"""Trainer and generator: what is measured, and that a generator left behind by an update is noticed."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from launched import launch
from vllm_host import needs_vllm, saved

from curricula import CheckpointError
from curricula_trl.mismatch import Mismatch, measured


class Alone:
    """One rank."""

    world_size, is_main = 1, True


def batch(offset: float) -> dict[str, torch.Tensor]:
    trained = torch.tensor([[-1.0, -2.0, -3.0], [-0.5, -0.5, -9.0]])
    sampled = trained - offset
    sampled[0, 1] = torch.nan
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    sampled[1, 2] = 0.0  # padding
    return {"completion_mask": mask, "old_per_token_logps": trained, "sampling_per_token_logps": sampled}


def test_figures_by_hand() -> None:
    found = measured(batch(0.1), Alone())  # type: ignore[arg-type]
    assert found is not None
    assert found.tokens == 4
    assert found.mean == pytest.approx(0.1, rel=1e-5)
    assert found.largest == pytest.approx(0.1, rel=1e-5)
    assert found.kl == pytest.approx(math.exp(0.1) - 1 - 0.1, rel=1e-3)
    assert measured({"completion_mask": torch.ones(1, 1)}, Alone()) is None  # type: ignore[arg-type]


def test_forced_tokens_are_no_part_of_it() -> None:
    given = batch(0.1)
    given["sampling_per_token_logps"][0, 2] = 50.0
    given["tool_mask"] = torch.tensor([[1, 1, 0], [1, 1, 1]])
    found = measured(given, Alone())  # type: ignore[arg-type]
    assert found is not None
    assert found.tokens == 3
    assert found.largest == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize(
    ("first", "later", "stale"), [(1e-6, 2e-3, 0), (1e-6, 0.02, 1), (0.03, 0.1, 0), (0.03, 0.13, 1)]
)
def test_what_is_too_large(first: float, later: float, stale: int, caplog: pytest.LogCaptureFixture) -> None:
    watching = Mismatch(Alone(), ("float32", ""))  # type: ignore[arg-type]
    assert watching.metrics() == {}
    watching.watch(batch(first))
    watching.watch(batch(later))
    assert watching.metrics()["mismatch/stale"] == stale
    assert watching.metrics()["mismatch/mean"] == pytest.approx(later, rel=1e-3)
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == stale


def test_a_resumed_run_is_held_against_the_first_batch_of_all() -> None:
    before = Mismatch(Alone(), ("float32", ""))  # type: ignore[arg-type]
    assert before.state() == []
    before.watch(batch(0.02))
    after = Mismatch(Alone(), ("float32", ""))  # type: ignore[arg-type]
    after.load(json.loads(json.dumps(before.state())))
    after.watch(batch(0.15))
    assert after.metrics()["mismatch/stale"] == 1
    after.load(None)
    assert after.state() == []
    for wrong in ([1.0], "x", [1.0, -1.0, 0.0, 2.0]):
        with pytest.raises(CheckpointError, match="mismatch: expected four figures"):
            after.load(wrong)


def test_what_is_large_at_once_and_a_head_that_reads_stale() -> None:
    large = Mismatch(Alone(), ("float32", ""))  # type: ignore[arg-type]
    large.watch(batch(0.6))
    assert large.metrics()["mismatch/stale"] == 1
    read = Mismatch(Alone(), ("float32", ""), lambda: True)  # type: ignore[arg-type]
    read.watch(batch(1e-6))
    assert read.metrics()["mismatch/stale"] == 1


def test_fp32_on_one_side_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    Mismatch(Alone(), ("float32", "bfloat16")).watch(batch(0.02))  # type: ignore[arg-type]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "differ by 0.02 nats a token" in record.getMessage()
    assert "the trainer's head is in float32, the generator's in bfloat16" in record.getMessage()


CASES: dict[str, dict[str, Any]] = {
    "healthy": {"dtype": "float32"},
    "healthy, tied": {"dtype": "bfloat16", "tied": True},
    "healthy, small steps": {"dtype": "float32", "learning_rate": 1e-6},
    "stale head": {"dtype": "float32", "fault": "head"},
    "stale tied head": {"dtype": "bfloat16", "tied": True, "fault": "packed copy"},
    "stale head, small steps": {"dtype": "float32", "fault": "head", "learning_rate": 1e-6},
    "one side": {"dtype": "bfloat16", "config": {"recipe": {"fp32_head": True}}},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_in_a_run(tmp_path: Path, case: str) -> None:
    needs_vllm()
    options = dict(CASES[case])
    saved(tmp_path / "model", options["dtype"], options.pop("tied", False))
    out = tmp_path / "out.json"
    script = Path(__file__).with_name("mismatch_host.py")
    code, text = launch(out, 1, script=script, folder=str(tmp_path), **options)
    assert code == 0, text[-4000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["said"], "the first batch is reported"
    stale = found["metrics"]["mismatch/stale"]
    if "fault" in options:
        assert stale >= 2, found
        assert any("as a stale head does" in line for line in found["said"])
    else:
        assert stale == 0, found
    assert ("FP32 on one side only" in found["said"][0]) == (case == "one side")
    if case == "healthy":
        assert found["metrics"]["mismatch/largest"] < 1e-3
