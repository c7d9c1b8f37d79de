"""`shares: {from: scaling}` in a real TRL run: plans are made beside the steps, and a resumed run goes on exactly."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from host import Trace, dataset, trainer, weights_digest

from curricula.bandits import success_curves
from curricula.bandits.plan import Plan
from curricula_trl import CurriculumSampler

MIX = {"curriculum": {"bandit": {"type": "equal"}, "shares": {"from": "scaling", "every": 3}}}


@pytest.fixture(autouse=True)
def points_of_few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run of a few steps has enough of them."""
    monkeypatch.setattr(success_curves, "WIDTH", 2)
    monkeypatch.setattr(success_curves, "_LEAST_EFFECTIVE", 1.0)


def run(folder: Path, resume: str | None = None) -> tuple[list[dict[str, Any]], str, dict[str, float]]:
    settings = {"max_steps": 12, "per_device_train_batch_size": 32, "save_strategy": "steps", "save_steps": 5}
    host = trainer(folder, train_dataset=dataset({"frontier": 60, "hard": 60}), **settings)
    sampler = CurriculumSampler(MIX).attach(host)
    trace = Trace(host)
    host.train(resume_from_checkpoint=resume)
    metrics = {name: value for name, value in sampler.metrics().items() if name not in ("wall_time", "gpu_hours")}
    logged = [entry for entry in host.state.log_history if "curriculum/plan/gain" in entry]
    assert logged
    return trace.rounds, weights_digest(host), metrics


def test_plans_are_made_beside_the_steps_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    make = Plan._make

    def watched(self: Plan, *arguments: Any) -> None:
        threads.append(threading.current_thread().name)
        make(self, *arguments)

    monkeypatch.setattr(Plan, "_make", watched)
    rounds, weights, metrics = run(tmp_path / "whole")
    assert metrics["plan/environments"] == 2
    assert metrics["plan/made"] >= 3
    # The last round has no next one to be asked for.
    assert all(name.startswith("curricula") for name in threads[:-1])
    assert metrics["frontier/plan_share"] + metrics["hard/plan_share"] == pytest.approx(1)
    for step in (5, 10):
        folder = tmp_path / f"from-{step}"
        folder.mkdir()
        shutil.copytree(tmp_path / "whole" / f"checkpoint-{step}", folder / f"checkpoint-{step}")
        rest, again, told = run(folder, str(folder / f"checkpoint-{step}"))
        assert rest == rounds[step:]
        assert again == weights
        assert told == metrics
