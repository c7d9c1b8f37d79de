"""What comparing trainer and generator after each weight update costs, as a share of the step it is part of."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from launched import launch
from needs import needs_vllm
from vllm_host import saved


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["colocate", "server"])
def test_the_comparison_is_below_one_percent_of_a_step(tmp_path: Path, mode: str) -> None:
    needs_vllm()
    saved(tmp_path / "model")
    out, script = tmp_path / "out.json", Path(__file__).with_name("mismatch_cost.py")
    with ExitStack() as stack:
        # A head is read once a step, in half a millisecond: as much as a few tokens of the tiny model take.
        given: dict[str, Any] = {"tokens": 32}
        if mode == "server":
            from curricula_vllm.server import Server

            options = ("--dtype", "float32", "--max-model-len", "64")
            given["url"] = stack.enter_context(Server(tmp_path / "model", *options)).url
        code, text = launch(out, 1, script=script, folder=str(tmp_path), **given)
    assert code == 0, text[-4000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    compare, step = found["compare"], found["step"]
    print(f"\n{1e3 * compare:.2f} ms to compare in {1e3 * step:.0f} ms a step: {compare / step:.2%}")
    assert compare < 0.01 * (step - compare)
