"""Tokens clipped away in runs with tokens that no policy chose: these are no part of what is counted."""

from pathlib import Path

import numpy as np
import pytest
from clipping_host import play


@pytest.mark.parametrize("loss", [{"loss_type": "grpo", "epsilon": 0.05}, {"loss_type": "dapo", "epsilon": 0.05}])
def test_what_was_put_in_is_not_counted(tmp_path: Path, loss: dict[str, object]) -> None:
    sizes = {"steps_per_generation": 4, "gradient_accumulation_steps": 2, "max_steps": 6, "logging_steps": 6}
    section = {"at": [3, 5], "answer": 4, "closing": None, "sentence": "=1=1"}
    arguments = {**sizes, **loss, "max_completion_length": 16}
    found = play(tmp_path, {"config": {"interruption": section}, "arguments": arguments})
    (entry,) = found["log"]
    clipped = np.array([flag for _, flag in found["tokens"]])
    assert found["put_in"] > 50
    assert clipped.any()
    assert entry["curriculum/clipping/clipped"] == pytest.approx(clipped.mean(), abs=1e-12)
