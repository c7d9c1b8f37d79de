"""Everything at once: recipe, interruption, refill and rollouts without a reward, stopped anywhere and resumed."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from host import Trace, weights_digest
from interruption_host import MIX, trainer
from recipes_host import unscored

from curricula_trl import CurriculumSampler, recipe

SETTINGS: list[dict[str, Any]] = [
    {"steps_per_generation": 2},
    {"steps_per_generation": 2, "num_iterations": 2},
    {"steps_per_generation": 4, "gradient_accumulation_steps": 2},
]


def run(folder: Path, refill: str, resume: str | None = None, **settings: Any) -> tuple[list[Any], str, dict[str, Any]]:
    arguments = {**recipe("scalerl"), "max_steps": 6, "save_strategy": "steps", "save_steps": 1, **settings}
    host = trainer(folder, reward_funcs=unscored, **arguments)
    mix = {**MIX, "recipe": "scalerl", "refill": {"rounds": 2, "batch": refill}}
    sampler = CurriculumSampler(mix).attach(host)
    trace = Trace(host)
    host.train(resume_from_checkpoint=resume)
    losses = [entry["loss"] for entry in host.state.log_history if "loss" in entry]
    assert all(abs(loss) < 1e3 for loss in losses)
    spent = {name: value for name, value in sampler.metrics().items() if name not in ("wall_time", "gpu_hours")}
    return trace.rounds, weights_digest(host), spent


@pytest.mark.parametrize("refill", ["constant", "variable"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_resume_at_every_step_is_exact(tmp_path: Path, settings: dict[str, Any], refill: str) -> None:
    rounds, weights, metrics = run(tmp_path / "whole", refill, **settings)
    assert metrics["refill_rounds"] > 0
    assert sum(value for name, value in metrics.items() if name.endswith("/interrupted")) > 0
    checkpoints = sorted((tmp_path / "whole").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    for checkpoint in checkpoints[:-1]:
        folder = tmp_path / f"from-{checkpoint.name}"
        folder.mkdir()
        shutil.copytree(checkpoint, folder / checkpoint.name)
        rest, again, told = run(folder, refill, str(folder / checkpoint.name), **settings)
        # As text: a reward of NaN is not equal to itself.
        assert repr(rest) == repr(rounds[len(rounds) - len(rest) :]), checkpoint.name
        assert again == weights, checkpoint.name
        assert told == metrics
