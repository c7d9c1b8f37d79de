"""Trainer and generator: what is measured, and that a generator left behind by an update is noticed."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
import pytest
import torch
from launched import launch
from needs import needs_vllm
from vllm_host import saved

from curricula import CheckpointError
from curricula_trl.mismatch import LEAST, Mismatch, Sides, measured, sides_of
from curricula_trl.ranks import Ranks


class Alone:
    """One rank."""

    world_size, is_main = 1, True

    def gather(self, column: torch.Tensor) -> torch.Tensor:
        return column

    def from_main(self, produce: Any) -> Any:
        return produce()

    def together(self, subject: str, action: Any) -> Any:
        return action()


BOTH = {dtype: Sides(dtype, "", dtype, dtype) for dtype in ("float32", "bfloat16")}


def alone(dtype: str = "bfloat16", **given: Any) -> Mismatch:
    return Mismatch(Alone(), given.pop("sides", BOTH[dtype]), **given)  # type: ignore[arg-type]


def head(stale: bool | None, unread: str = "") -> Any:
    return SimpleNamespace(is_stale=lambda: stale, unread=unread)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def batch(offset: float, unknown: float | None = None) -> dict[str, torch.Tensor]:
    trained = torch.tensor([[-1.0, -2.0, -3.0], [-0.5, -0.5, -9.0]])
    sampled = trained - offset
    if unknown is not None:
        sampled[0, 1] = unknown
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    sampled[1, 2] = 0.0  # padding
    return {"completion_mask": mask, "old_per_token_logps": trained, "sampling_per_token_logps": sampled}


def test_figures_by_hand() -> None:
    found = measured(batch(0.1, torch.nan), Alone())  # type: ignore[arg-type]
    assert found is not None
    assert (found.tokens, found.left_out) == (4, 1)
    assert found.mean == pytest.approx(0.1, rel=1e-5)
    assert found.largest == pytest.approx(0.1, rel=1e-5)
    assert found.kl == pytest.approx(math.exp(0.1) - 1 - 0.1, rel=1e-3)
    assert measured({"completion_mask": torch.ones(1, 1)}, Alone()) is None  # type: ignore[arg-type]


def test_forced_tokens_are_no_part_of_it() -> None:
    given = batch(0.1, torch.nan)
    given["sampling_per_token_logps"][0, 2] = 50.0
    given["tool_mask"] = torch.tensor([[1, 1, 0], [1, 1, 1]])
    found = measured(given, Alone())  # type: ignore[arg-type]
    assert found is not None
    assert found.tokens == 3
    assert found.largest == pytest.approx(0.1, rel=1e-5)


def test_a_token_without_a_number_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    watching = alone()
    given = batch(0.001, -9999.0)
    given["sampling_per_token_logps"][0, 0] = -torch.inf
    for _ in range(2):
        watching.watch(given)
    metrics = watching.metrics()
    assert math.isfinite(metrics["mismatch/kl"])
    assert metrics["mismatch/largest"] == pytest.approx(0.001, rel=1e-3)
    assert metrics["mismatch/left_out"] == 4
    (line,) = warnings(caplog)
    assert line.startswith("trainer and generator: 2 of 5 tokens have no finite log-probability on one side")


@pytest.mark.parametrize(
    ("dtype", "first", "later", "stale"),
    [
        ("bfloat16", 1e-6, 0.02, 0),
        ("bfloat16", 1e-6, 0.05, 1),
        ("bfloat16", 0.03, 0.1, 0),
        ("bfloat16", 0.03, 0.13, 1),
        ("float32", 3e-7, 1e-5, 0),
        ("float32", 3e-7, 2e-4, 1),
        ("float32", 3e-4, 1e-3, 0),
        ("float32", 3e-4, 2e-3, 1),
    ],
)
def test_what_is_too_large_by_dtype(
    dtype: str, first: float, later: float, stale: int, caplog: pytest.LogCaptureFixture
) -> None:
    watching = alone(dtype)
    assert watching.metrics() == {}
    watching.watch(batch(first))
    watching.watch(batch(later))
    assert watching.metrics()["mismatch/stale"] == stale
    assert watching.metrics()["mismatch/mean"] == pytest.approx(later, rel=0.1)  # of numbers near 1, in 32 bits
    said = warnings(caplog)
    assert len(said) == stale
    if stale:
        assert f"at most, as arithmetic explains ({measured(batch(first), Alone()).mean:.2g} in the first" in said[0]
        assert "after a weight update: the generator holds other weights" in said[0]
        assert "stale head" not in said[0]


def test_the_coarser_side_counts_and_an_unknown_one_may_be_coarse() -> None:
    assert Sides("float32", "", "float32", "float32").least == 1e-4
    assert Sides("float32", "", "float32", "bfloat16").least == 0.03
    assert Sides("float32", "", "float32", "").least == 0.03
    # Above what bfloat16's healthy runs are in its three further bits, below what it is itself allowed.
    assert 1.8e-2 / 2**3 < Sides("float16", "", "float32", "float16").least == 5e-3 < LEAST["bfloat16"]


class Second(Alone):
    """The second of two ranks, which does not ask the generator."""

    world_size, is_main = 2, False

    def from_main(self, produce: Any) -> Any:
        return ["float32", "float32", "float32", "float32"]


def test_all_ranks_judge_by_what_the_first_was_told() -> None:
    watching = Mismatch(Second(), Sides("float32", "", "float32"))  # type: ignore[arg-type]
    for offset in (1e-6, 1e-3):
        watching.watch(batch(offset))
    assert watching.state()["counts"]["update"] == 1


def test_a_resumed_run_goes_on_as_it_would_have() -> None:
    before = alone()
    assert before.state()["first"] == []
    for offset in (0.02, 0.19, 0.19):
        before.watch(batch(offset, torch.nan))
    after = alone()
    after.load(json.loads(json.dumps(before.state())))
    assert after.metrics() == before.metrics()
    assert after.metrics()["mismatch/stale"] == 2
    assert after.metrics()["mismatch/left_out"] == 3
    after.watch(batch(0.19))
    assert after.metrics()["mismatch/stale"] == 3
    after.load(None)
    assert after.state() == alone().state()
    saved = before.state()
    for wrong in ([1.0], "x", {}, {**saved, "first": [1.0]}, {**saved, "left_out": -1}, {**saved, "counts": {"a": 1}}):
        with pytest.raises(CheckpointError, match="mismatch: expected its saved account"):
            after.load(wrong)


def test_a_resumed_run_reports_as_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    before = alone()
    before.watch(batch(1e-6))
    caplog.clear()
    after = alone(sides=Sides("float32", "bfloat16"), heads=head(None, "the server does not show its head"))
    after.load(json.loads(json.dumps(before.state())))
    for _ in range(2):
        after.watch(batch(1e-3))
    (line,) = warnings(caplog)
    assert line.startswith("trainer and generator differ by 0.001 nats a token")
    assert "the server does not show its head; a stale head is seen by its log-probabilities alone" in line
    assert "FP32 on one side only" in line
    assert after.state()["first"] == before.state()["first"], "what later ones are held against stays"


def test_a_batch_without_a_number_is_no_agreement(caplog: pytest.LogCaptureFixture) -> None:
    watching, nothing = alone(), batch(0.0)
    nothing["sampling_per_token_logps"][:] = torch.nan
    watching.watch(nothing)
    assert watching.metrics() == {"mismatch/left_out": 5.0}
    watching.watch(batch(0.01))
    assert watching.metrics()["mismatch/mean"] == pytest.approx(0.01, rel=0.1)
    watching.watch(nothing)
    assert watching.metrics() == {"mismatch/left_out": 10.0}
    assert watching.state()["last"] == []
    assert watching.state()["first"][3] == 5
    assert len(warnings(caplog)) == 1
    caplog.clear()
    caplog.set_level("INFO", "curricula")
    alone(sides=Sides("float32", "bfloat16")).watch(nothing)
    assert "are not compared yet, as no token has one on both sides" in caplog.messages[-1]
    assert "FP32 on one side only" in caplog.messages[-1], "it may never have any"


def test_what_is_large_at_once_is_no_update_s_doing(caplog: pytest.LogCaptureFixture) -> None:
    large = alone()
    for _ in range(2):
        large.watch(batch(0.6))
    assert large.metrics()["mismatch/stale"] == 2
    for line in warnings(caplog):
        assert "at most; got 0.6 nats a token" in line
        assert "as much in the first batch, before any update: does vLLM load the model that is trained" in line
        assert "after a weight update" not in line
    assert len(warnings(caplog)) == 2


def test_a_head_that_reads_stale_is_said_as_that(caplog: pytest.LogCaptureFixture) -> None:
    read = alone(heads=head(True))
    read.watch(batch(1e-6))
    assert read.metrics()["mismatch/stale"] == 1
    (line,) = warnings(caplog)
    assert "the generator's head holds other weights than it was sent at the last update, on rank 0 of 1;" in line
    assert "expected" not in line
    unread = alone(heads=head(None))
    unread.watch(batch(1e-6))
    assert unread.metrics()["mismatch/stale"] == 0


def test_without_the_trainer_s_log_probabilities_the_head_is_read_still(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "curricula")
    off = alone(heads=head(True), sides=Sides("float32", "bfloat16", "bfloat16", "bfloat16"))
    for _ in range(3):
        off.watch({"completion_mask": torch.ones(1, 2)})
    assert off.metrics() == {"mismatch/stale": 3.0}
    first, *others = [record.getMessage() for record in caplog.records]
    assert first.startswith("trainer and generator: log-probabilities are not compared, as TRL computes the trainer's")
    assert "FP32 on one side only" in first
    assert len(others) == 2
    assert all("a stale head" in line for line in others)
    caplog.clear()
    alone(uses_vllm=False).watch({"completion_mask": torch.ones(1, 2)})
    assert not caplog.records, "transformers generates"


def test_a_head_that_is_not_seen_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "curricula")
    watching = alone(heads=head(None, "it sleeps"))
    for _ in range(2):
        watching.watch(batch(1e-6))
    (line,) = caplog.messages
    assert line.endswith("on 5 tokens; it sleeps; a stale head is seen by its log-probabilities alone")
    caplog.clear()
    alone().watch(batch(1e-6))
    assert "TRL's generator has no sync_weights or _iter_named_params to look at; a stale head" in caplog.messages[0]


def test_a_head_that_is_not_seen_from_some_update_on_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    heads = head(False)
    watching = alone(heads=heads)
    watching.watch(batch(1e-6))
    assert not warnings(caplog)
    heads.unread, heads.is_stale = "it was not sent", lambda: None
    for _ in range(3):
        watching.watch(batch(1e-6))
    (line,) = warnings(caplog)
    assert line == (
        "trainer and generator: it was not sent; a stale head is seen by its log-probabilities alone (said once)"
    )


def test_fp32_on_one_side_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    alone(sides=Sides("float32", "bfloat16")).watch(batch(0.02))
    (line,) = warnings(caplog)
    assert "differ by 0.02 nats a token" in line
    assert "the trainer's head is in float32, the generator's in bfloat16" in line


@pytest.mark.parametrize("shown", [{}, {"head_dtype": "model"}])
def test_a_server_s_head_that_is_not_shown_is_not_guessed(
    tmp_path: Path, shown: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    needs_vllm()
    trainer = host.trainer(tmp_path, cast_lm_head_to_fp32=True)
    info = {"model_config": {"dtype": "torch.bfloat16", "hf_overrides": shown}}
    trainer.use_vllm = True
    trainer.vllm_generation = SimpleNamespace(mode="server", vllm_client=SimpleNamespace(get_server_info=lambda: info))
    sides = sides_of(trainer, Ranks(trainer.accelerator))
    assert sides == Sides("float32", "bfloat16" if shown else "", "float32", "bfloat16")
    alone(sides=sides).watch(batch(0.01))
    assert len(warnings(caplog)) == len(shown)


CASES: dict[str, dict[str, Any]] = {
    "healthy": {"dtype": "float32"},
    "healthy, small steps": {"dtype": "float32", "learning_rate": 1e-6},
    "healthy, many large steps, tied": {"dtype": "float32", "tied": True, "steps": 40},
    "healthy, many large steps, bf16": {"dtype": "bfloat16", "steps": 40},
    "stale head": {"dtype": "float32", "fault": "head"},
    "stale tied head": {"dtype": "bfloat16", "tied": True, "fault": "packed copy"},
    "stale tied head, small steps": {"dtype": "bfloat16", "tied": True, "fault": "packed copy", "learning_rate": 3e-4},
    "stale tied head of Gemma 2": {"dtype": "bfloat16", "family": "gemma2", "fault": "head", "learning_rate": 1e-3},
    "stale head, small steps": {"dtype": "float32", "fault": "head", "learning_rate": 1e-6},
    "stale head that cannot be read": {"dtype": "float32", "fault": "head", "learning_rate": 1e-5, "blind": True},
    "stale head, nothing compared": {
        "dtype": "float32",
        "fault": "head",
        "arguments": {"vllm_importance_sampling_correction": False},
    },
    "one side": {"dtype": "bfloat16", "config": {"recipe": {"fp32_head": True}}},
}


def run(folder: Path, ranks: int = 1, **options: Any) -> dict[str, Any]:
    saved(folder / "model", options["dtype"], options.pop("tied", False), options.pop("family", "qwen2"))
    out = folder / "out.json"
    script = Path(__file__).with_name("mismatch_host.py")
    code, text = launch(out, ranks, script=script, folder=str(folder), **options)
    assert code == 0, text[-4000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["said"], "the first batch is reported"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_in_a_run(tmp_path: Path, case: str) -> None:
    needs_vllm()
    found = run(tmp_path, **CASES[case])
    stale, (first, *said) = found["metrics"]["mismatch/stale"], found["said"]
    if "fault" in CASES[case]:
        assert stale == 3, found
        reason = "the generator holds other weights" if "blind" in CASES[case] else "on rank 0 of 1"
        assert len(said) == 2
        assert all(reason in line for line in said)
    else:
        assert stale == 0, found
        assert not said
    assert ("FP32 on one side only" in first) == (case == "one side")
    assert ("are not compared" in first) == ("arguments" in CASES[case])
    if case == "healthy":
        assert found["metrics"]["mismatch/largest"] < 1e-3


@pytest.mark.slow
def test_a_stale_head_on_the_second_of_two_ranks(tmp_path: Path) -> None:
    needs_vllm()
    found = run(tmp_path, 2, dtype="float32", fault="head", learning_rate=1e-6)
    assert found["metrics"]["mismatch/stale"] == 3, found
    assert all("on rank 1 of 2" in line for line in found["said"][1:])
    # A mean over tokens, not one of the ranks' means.
    assert any(one[1] != other[1] for one, other in found["by_rank"])
    for mean, rows in zip(found["means"], found["by_rank"], strict=True):
        total, count = (sum(column) for column in zip(*rows, strict=True))
        assert mean == pytest.approx(total / count, rel=1e-9)
