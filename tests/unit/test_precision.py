"""`curricula precision` without an engine: sides, figures, the rule, the table and the picture, on numbers by hand."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from curricula import CurriculaValueError
from curricula.cli import main
from curricula.cli.precision import report
from curricula.cli.precision.measure import Measured
from curricula.cli.precision.plot import draw
from curricula_vllm.precision.figures import Figures, difference_error, measure
from curricula_vllm.precision.plan import Plan, Side
from curricula_vllm.precision.processes import Processes
from curricula_vllm.precision.rule import Combination, advise, overflow, settings

BF16, FP16, FP32 = Side("bf16", "bf16"), Side("fp16", "fp16"), Side("fp32", "fp32")
BF16_HEAD = Side("bf16", "fp32")
FINE = {"logits": True, "gradients": True, "scale": 65536.0, "tokens": 12}
PLAN = Plan("models/mine", ["1 + 1 ="], True, 8, 0, 1e-6, 2)


def figures(kl: float, error: float = 0.0) -> Figures:
    """Two completions of one token whose mean KL and its standard error are given."""
    return Figures(2, 0.1, 0.2, kl, error, (), (kl + error, kl - error), (1, 1))


def row(generator: Side, trainer: Side, kl: float, error: float = 0.0) -> Combination:
    return Combination(generator, trainer, figures(kl, error))


def test_figures_by_hand() -> None:
    found = measure([[-1.0, -2.0], [-0.5, -1.0, -1.0, -1.0, -1.0]], [[-0.9, -2.0], [-0.5, -1.0, -1.0, -1.0, -1.3]])
    assert found is not None
    up, down = math.exp(0.1) - 1 - 0.1, math.exp(-0.3) - 1 + 0.3
    assert (found.tokens, found.counts) == (7, (2, 5))
    assert found.mean == pytest.approx(0.4 / 7)
    assert found.largest == pytest.approx(0.3)
    assert found.kl == pytest.approx((up + down) / 7)
    left = np.array([up, down]) - found.kl * np.array([2, 5])
    assert found.error == pytest.approx(math.sqrt(2 * (left**2).sum()) / 7)
    assert [(b.first, b.last, b.tokens) for b in found.buckets] == [(1, 4, 6), (5, 5, 1)]
    assert found.buckets[0].largest == pytest.approx(0.1)
    assert found.buckets[1].kl == pytest.approx(down)
    assert "rows" not in json.dumps(found.summary())


def test_one_prompt_is_too_few_for_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["precision", "some/model", "--count", "1"])
    assert stopped.value.code == 2
    assert "--count" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        measure([[-1.0] * 9], [[-1.1] * 9])


def test_figures_of_an_overflow() -> None:
    assert measure([[-1.0]], [[math.nan]]) is None
    assert measure([[-math.inf]], [[-1.0]]) is None
    assert measure([[]], [[]]) is None


def test_the_error_of_a_difference() -> None:
    one, other = figures(0.3, 0.1), figures(0.2, 0.1)
    assert difference_error(one, other, paired=False) == pytest.approx(math.hypot(0.1, 0.1))
    assert difference_error(one, other, paired=True) == pytest.approx(0.0)


def test_the_smallest_kl_is_advised() -> None:
    rows = [row(BF16, BF16, 0.3), row(FP16, FP16, 0.1), row(FP32, FP32, 0.2)]
    assert advise(rows, fp16=True) is rows[1]
    assert advise(rows, fp16=False) is rows[2]
    assert advise(rows, fp16=False, half=True) is rows[0]
    assert advise([Combination(BF16, BF16, None, "no kernel")], fp16=True) is None
    assert advise(rows[1:2], fp16=False) is None


@pytest.mark.parametrize(("error", "chosen"), [(0.01, FP32), (0.2, BF16)])
def test_a_tie_goes_to_the_cheaper(error: float, chosen: Side) -> None:
    rows = [row(FP32, FP32, 0.1, error), row(BF16, BF16, 0.25, error)]
    best = advise(rows, fp16=True)
    assert best is not None
    assert best.generator == chosen


def test_what_is_cheaper() -> None:
    error = 1.0
    ladder = [
        row(BF16, BF16, 0.9, error),
        row(FP16, BF16, 0.8, error),
        row(BF16_HEAD, BF16, 0.7, error),
        row(BF16, FP32, 0.6, error),
        row(FP32, BF16, 0.5, -error),  # of the same completions as the next, and apart in both
        row(FP32, FP32, 0.4, error),
    ]
    for start in range(len(ladder)):
        assert advise(ladder[start:], fp16=True) is ladder[start]


def test_overflow() -> None:
    assert overflow(FINE) == ""
    assert "logits and gradients" in overflow({**FINE, "logits": False, "gradients": False})
    assert overflow({**FINE, "gradients": False}).startswith("gradients of a step in fp16")
    assert "no kernel" in overflow({"error": "no kernel"})
    assert overflow(None)


def test_settings() -> None:
    lines = settings(row(Side("fp16", "fp32"), BF16_HEAD, 0.1), "m")
    assert lines[0] == "trainer: {bf16: true, fp16: false}"
    assert lines[1] == "recipe: {fp32_head: true}  # beside its preset"
    assert lines[2] == "export CURRICULA_FP32_HEAD=1"
    assert lines[3].endswith("serve m --dtype float16")
    whole = settings(row(FP32, FP32, 0.1), "m")
    assert whole[:3] == [
        "trainer: {bf16: false, fp16: false}",
        "recipe: {fp32_head: false}  # beside its preset",
        "export CURRICULA_FP32_HEAD=0",
    ]


def found(**changes: Any) -> Measured:
    some = measure([[-1.0] * 20, [-2.0] * 9], [[-1.01] * 20, [-2.01] * 9])
    rows = [
        Combination(BF16, BF16, some),
        Combination(BF16, BF16_HEAD, some),
        Combination(FP32, FP32, measure([[-1.0] * 20] * 2, [[-1.0] * 20] * 2)),
        Combination(FP16, FP16, None, "vLLM: no kernel"),
        Combination(FP16, FP32, None, "vLLM: no kernel"),
    ]
    updates = {
        "updates": 1000,
        "survived": {"bf16": 0.017, "fp16": 0.6},
        "steps": [{"moved": {"master": 0.153, "bf16": 0.004, "fp16": 0.1}, "apart": {"bf16": 0.15, "fp16": 0.05}}],
    }
    return Measured(rows, changes.get("step", FINE), changes.get("updates", updates))


def shown(measured: Measured) -> str:
    console = Console(width=140)
    with console.capture() as capture:
        console.print(report.table(measured))
        console.print("\n".join(report.words(measured, PLAN)), soft_wrap=True, markup=False)
    return capture.get()


def test_what_is_said() -> None:
    said = shown(found())
    assert said.count("cannot: [1]") == 2
    assert "[1] vLLM: no kernel" in said
    assert "1.70% in bf16, 60.00% in fp16" in said
    assert "the trainer has moved by 0.15 nats a token, a copy in bf16 by 0.004, 0.15 off from that" in said
    assert "Warning: 98.3% of the updates vanish in bf16" in said
    assert "Advice: generator in fp32, trainer in fp32" in said
    assert "With neither side in fp32" in said
    assert "the loss scaled by 65536" in said
    assert "overflowed: not to be used" in shown(found(step={**FINE, "logits": False}))
    assert "Small updates: not measured: out of time" in shown(found(updates={"error": "out of time"}))
    large = {**found().updates, "survived": {"bf16": 0.9, "fp16": 1.0}}
    assert "Warning" not in shown(found(updates=large))


def test_figures_for_a_program() -> None:
    read = json.loads(json.dumps(report.summary(found(), PLAN), allow_nan=False))
    assert read["combinations"][3] == {
        "generator": {"dtype": "fp16", "head": "fp16"},
        "trainer": {"dtype": "fp16", "head": "fp16"},
        "why": "vLLM: no kernel",
    }
    assert read["advice"]["best"]["generator"]["dtype"] == "fp32"
    assert read["fp16_step"]["overflow"] == ""
    assert read["small_updates"]["learning_rate"] == 1e-6


def test_the_picture(tmp_path: Path) -> None:
    for measured in (found(), Measured(found().rows[:1], None, {"error": "out of time"})):
        for picture in draw(measured, "models/mine", tmp_path):
            assert picture.stat().st_size > 1000


def test_a_process_that_takes_too_long_or_dies_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Processes(PLAN, tmp_path, 0.05).run("tokens", "slow")
    assert slow["error"].startswith("not done after 0.05 s; give it longer by --limit")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    dead = Processes(PLAN, tmp_path, 30).run("tokens", "dead")
    assert dead["error"].startswith("ended with 1 (nothing said of an error); what it said: ")
    assert os.path.exists(dead["error"].rpartition(": ")[2])


def test_a_model_that_is_none(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), ["a"], False, 8, 0, 1e-6, 1)
    with pytest.raises(CurriculaValueError, match="MODEL: expected a model that transformers can load; got") as caught:
        Processes(plan, tmp_path, 120).run("tokens", "none")
    assert "\n" not in str(caught.value)


def test_without_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from curricula import versions

    installed = versions._installed
    monkeypatch.setattr(versions, "_installed", lambda host: None if host == "vllm" else installed(host))
    with pytest.raises(SystemExit) as stopped:
        main(["precision", "some/model", "--out", str(tmp_path / "out")])
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    remedy = 'pip install -e ".[vllm]" in a clone of curricula, or on a CPU its `make vllm`'
    assert line == f"curricula: vllm is not installed: {remedy}"


def test_help_loads_no_host() -> None:
    code = "import sys; from curricula.cli.app import app; print([n for n in ('torch', 'vllm') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
