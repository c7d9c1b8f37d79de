"""What a run spends, counted once and over resumes, in the trainer's log and in that of outcomes: TRL's trainer."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from host import trainer

from curricula.log.curve import AXES, read_curve
from curricula_trl import CurriculumSampler
from curricula_trl.devices import count_devices
from curricula_trl.ranks import Ranks

COUNTS = AXES[:3]


class Spent:
    """Counts what a trainer generates and trains on, from the dict that it trains on."""

    def __init__(self, host: Any) -> None:
        self.rollouts = self.generated = self.trained = 0
        spent = self

        class Counted(type(host)):  # type: ignore[misc]
            def _generate_and_score_completions(self, inputs: Any) -> Any:
                output = super()._generate_and_score_completions(inputs)
                if self.model.training:
                    tokens = output["completion_mask"].sum(dim=1)
                    trained = output["advantages"] != 0
                    spent.rollouts += len(tokens)
                    spent.generated += int(tokens.sum())
                    spent.trained += int(tokens[trained].sum())
                return output

        Counted.__name__ = type(host).__name__
        host.__class__ = Counted


def run(folder: Path, resume: Path | None = None, mix: dict[str, Any] | None = None, **settings: Any) -> Any:
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2, **settings}
    host = trainer(folder, **settings)
    CurriculumSampler({"log": str(folder / "log"), **(mix or {})}).attach(host)
    spent = Spent(host)
    began = time.monotonic()
    host.train(resume_from_checkpoint=None if resume is None else str(resume))
    return host, spent, time.monotonic() - began


def logged(host: Any) -> list[dict[str, float]]:
    return [entry for entry in host.state.log_history if "loss" in entry]


def figures(host: Any) -> dict[str, float]:
    return {name: logged(host)[-1][f"curriculum/{name}"] for name in (*AXES, "wall_time")}


@pytest.mark.parametrize(
    "settings", [{}, {"steps_per_generation": 2, "num_iterations": 2}, {"gradient_accumulation_steps": 2}], ids=str
)
def test_counts_are_what_was_generated_and_trained_on(tmp_path: Path, settings: dict[str, Any]) -> None:
    host, spent, seconds = run(tmp_path, **settings)
    found = figures(host)
    assert [found[name] for name in COUNTS] == [spent.rollouts, spent.generated, spent.trained]
    assert 0 < found["trained_tokens"] < found["generated_tokens"]
    assert 0 < found["wall_time"] <= seconds
    assert found["gpu_hours"] == pytest.approx(found["wall_time"] / 3600)
    for name in (*AXES, "wall_time"):
        steps = [entry[f"curriculum/{name}"] for entry in logged(host)]
        assert steps == sorted(steps)
    curve = read_curve(tmp_path / "log")
    whole = [row for row, name in enumerate(curve["environment"]) if name == "all"]
    for name in AXES:
        assert 0 < curve[name][whole[-1]] <= found[name] * (1 + 1e-9)


def test_a_resume_goes_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    whole, _, _ = run(tmp_path)
    shutil.rmtree(tmp_path / "checkpoint-6")
    before = next(entry for entry in logged(whole) if entry["step"] == 4)
    resumed, spent, seconds = run(tmp_path, tmp_path / "checkpoint-4")
    assert 0 < spent.rollouts < figures(whole)["rollouts"]
    for name in COUNTS:
        assert figures(resumed)[name] == figures(whole)[name], name
    gained = figures(resumed)["wall_time"] - before["curriculum/wall_time"]
    # Saving the checkpoint is part of it; the time between the two runs, and what was redone, is not.
    assert 0 < gained < seconds + 5
    curve = read_curve(tmp_path / "log")
    assert set(curve["run"]) == {1}
    assert max(curve["rollouts"]) <= figures(whole)["rollouts"]
    assert max(curve["gpu_hours"]) <= figures(resumed)["gpu_hours"]


def test_refill_is_spent_too(tmp_path: Path) -> None:
    host, spent, _ = run(tmp_path, mix={"refill": {"rounds": 2, "on_exhaustion": "pad"}})
    found = figures(host)
    groups = sum(entry for name, entry in logged(host)[-1].items() if name.endswith(("/kept", "/zero_variance")))
    assert found["rollouts"] >= 4 * groups > spent.rollouts
    assert found["generated_tokens"] > spent.generated


def test_time_between_two_trainings_is_not_counted(tmp_path: Path) -> None:
    host, _, seconds = run(tmp_path, max_steps=2)
    time.sleep(1.5)
    assert host._curricula_sampler.metrics()["wall_time"] <= seconds


def test_devices_are_ranks_and_a_servers_workers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Server:
        def __init__(self, workers: int | None) -> None:
            self.workers = workers

        def get_world_size(self) -> int:
            if self.workers is None:
                raise RuntimeError("Request failed: 404")
            return self.workers

    class Generation:
        def __init__(self, workers: int | None) -> None:
            self.vllm_client = Server(workers)

    host = trainer(tmp_path)
    ranks = Ranks(host.accelerator)
    assert count_devices(host, ranks, None) == 1
    host.vllm_generation = Generation(4)
    assert count_devices(host, ranks, None) == 5
    assert count_devices(host, ranks, 16) == 16
    host.vllm_generation = Generation(None)
    assert count_devices(host, ranks, None) == 1
    assert "gpu_hours counts the trainer's 1 alone; set monitor.devices to those of both" in caplog.text


def test_the_mix_says_how_many_devices_there_are(tmp_path: Path) -> None:
    host, _, _ = run(tmp_path, mix={"monitor": {"devices": 8}}, max_steps=2)
    found = figures(host)
    assert found["gpu_hours"] == pytest.approx(8 * found["wall_time"] / 3600)
