"""What comparing trainer and generator after each weight update costs, as a share of the step it is part of."""

import json
from pathlib import Path

import pytest
from launched import launch
from vllm_host import needs_vllm, saved


@pytest.mark.slow
def test_the_comparison_is_below_one_percent_of_a_step(tmp_path: Path) -> None:
    needs_vllm()
    saved(tmp_path / "model")
    out = tmp_path / "out.json"
    code, text = launch(out, 1, script=Path(__file__).with_name("mismatch_cost.py"), folder=str(tmp_path))
    assert code == 0, text[-4000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    compare, step = found["compare"], found["step"]
    print(f"\n{1e3 * compare:.2f} ms to compare in {1e3 * step:.0f} ms a step: {compare / step:.2%}")
    assert compare < 0.01 * (step - compare)
