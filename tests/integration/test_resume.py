"""Stop anywhere and resume: prompts, rewards and weights are those of the unbroken run, bit for bit."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from host import Trace, dataset, trainer, weights_digest
from trl import GRPOTrainer

from curricula import CurriculaError
from curricula_trl import CurriculumSampler

SETTINGS = [
    {},
    {"gradient_accumulation_steps": 2},
    {"steps_per_generation": 3},
    {"steps_per_generation": 2, "num_iterations": 2},
    {"gradient_accumulation_steps": 4, "steps_per_generation": 2},
    {"steps_per_generation": 2, "dataloader_num_workers": 1},
    {"max_steps": -1, "num_train_epochs": 2, "train_dataset": dataset({"easy": 4, "frontier": 5})},
]


def run(folder: Path, resume: str | None = None, **settings: Any) -> tuple[list[dict[str, Any]], str, dict[str, float]]:
    config = settings.pop("config", None)
    host = trainer(folder, **{"max_steps": 6, "save_strategy": "steps", "save_steps": 1, **settings})
    sampler = CurriculumSampler(config).attach(host)
    trace = Trace(host)
    host.train(resume_from_checkpoint=resume)
    spent = {name: value for name, value in sampler.metrics().items() if name not in ("wall_time", "gpu_hours")}
    return trace.rounds, weights_digest(host), spent


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_resume_at_every_step_is_exact(tmp_path: Path, settings: dict[str, Any]) -> None:
    rounds, weights, metrics = run(tmp_path / "whole", **settings)
    checkpoints = sorted((tmp_path / "whole").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    assert len(checkpoints) >= 4
    for checkpoint in checkpoints[:-1]:
        folder = tmp_path / f"from-{checkpoint.name}"
        folder.mkdir()
        shutil.copytree(checkpoint, folder / checkpoint.name)
        rest, again, told = run(folder, str(folder / checkpoint.name), **settings)
        assert rest == rounds[len(rounds) - len(rest) :], f"{checkpoint.name}: other prompts or rewards"
        assert again == weights, f"{checkpoint.name}: other weights"
        assert told == metrics


def test_counts_between_two_logs_go_on(tmp_path: Path) -> None:
    settings = {"logging_steps": 3, "config": {"monitor": {"clipping": True}}, "epsilon": 1e-3, "num_iterations": 2}
    _, _, metrics = run(tmp_path / "whole", **settings)
    assert metrics["clipping/clipped"] > 0
    for step in (2, 4, 5):
        folder = tmp_path / f"from-{step}"
        shutil.copytree(tmp_path / "whole" / f"checkpoint-{step}", folder / f"checkpoint-{step}")
        _, _, told = run(folder, str(folder / f"checkpoint-{step}"), **settings)
        assert told == metrics, step


class Apart(GRPOTrainer):
    """One whose generator gives log-probabilities that are further from the trainer's after the first update."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        offset = 0.3 if self.state.global_step else 0.02
        output["sampling_per_token_logps"] = output["old_per_token_logps"] - offset
        output["sampling_per_token_logps"][0, 0] = torch.nan
        return output


def test_what_trainer_and_generator_differed_by_goes_on(tmp_path: Path) -> None:
    settings = {"cls": Apart, "steps_per_generation": 2}
    _, _, metrics = run(tmp_path / "whole", **settings)
    assert metrics["mismatch/stale"] == 2
    assert metrics["mismatch/left_out"] == 3
    for step in (2, 3, 5):
        folder = tmp_path / f"from-{step}"
        shutil.copytree(tmp_path / "whole" / f"checkpoint-{step}", folder / f"checkpoint-{step}")
        _, _, told = run(folder, str(folder / f"checkpoint-{step}"), **settings)
        kinds = [
            {name: value for name, value in found.items() if name.startswith("mismatch/")} for found in (told, metrics)
        ]
        assert kinds[0] == kinds[1], step


def test_resume_by_epoch(tmp_path: Path) -> None:
    settings = {"max_steps": -1, "num_train_epochs": 3, "save_strategy": "epoch", "steps_per_generation": 2}
    settings["train_dataset"] = dataset({"easy": 5, "frontier": 6})
    rounds, weights, _ = run(tmp_path / "whole", **settings)
    first = sorted((tmp_path / "whole").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))[0]
    rest, again, _ = run(tmp_path / "whole", str(first), **settings)
    assert again == weights
    assert rest == rounds[len(rounds) - len(rest) :]


def test_checkpoint_without_state_starts_afresh_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host = trainer(tmp_path, save_strategy="steps", save_steps=2)
    host.train()
    host = trainer(tmp_path, max_steps=6)
    sampler = CurriculumSampler().attach(host)
    host.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert "starts afresh" in caplog.text
    assert host.state.global_step == 6
    assert sampler.metrics()["told"] == 8


def test_other_batch_settings_generate_again_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, steps_per_generation=3)
    run(tmp_path, str(tmp_path / "checkpoint-4"), steps_per_generation=2)
    assert "generated again" in caplog.text


def test_other_data_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(CurriculaError, match=r"pool|data"):
        run(tmp_path, str(tmp_path / "checkpoint-3"), train_dataset=dataset({"easy": 30}))


def damage_state(folder: Path) -> None:
    file = folder / "curricula" / "state.json"
    file.write_text(file.read_text()[: len(file.read_text()) // 2])


def damage_arrays(folder: Path) -> None:
    file = folder / "curricula" / "arrays.npz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def damage_block(folder: Path) -> None:
    file = folder / "curricula" / "block-0.safetensors"
    file.write_bytes(file.read_bytes()[:40])


def remove_state(folder: Path) -> None:
    (folder / "curricula" / "state.json").unlink()


@pytest.mark.parametrize("damage", [damage_state, damage_arrays, damage_block, remove_state])
def test_damaged_state_is_one_clear_error(tmp_path: Path, damage: Any) -> None:
    run(tmp_path, steps_per_generation=3)
    checkpoint = tmp_path / "checkpoint-4"
    damage(checkpoint)
    with pytest.raises(CurriculaError, match="curricula") as caught:
        run(tmp_path, str(checkpoint), steps_per_generation=3)
    assert "\n" not in str(caught.value)


def test_checkpoints_hold_no_pickle_of_ours(tmp_path: Path) -> None:
    run(tmp_path, steps_per_generation=3)
    files = sorted(path.name for path in (tmp_path / "checkpoint-4" / "curricula").iterdir())
    assert files == ["arrays.npz", "block-0.safetensors", "state.json"]


def test_a_block_of_another_run_or_step_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a", steps_per_generation=3)
    run(tmp_path / "b", steps_per_generation=3, seed=11)
    block = Path("checkpoint-4") / "curricula" / "block-0.safetensors"
    for other in (tmp_path / "b" / block, tmp_path / "a" / "checkpoint-5" / "curricula" / "block-0.safetensors"):
        folder = tmp_path / f"from-{other.parts[-4]}"
        shutil.copytree(tmp_path / "a" / "checkpoint-4", folder / "checkpoint-4")
        shutil.copy(other, folder / block)
        with pytest.raises(CurriculaError, match=r"block-0.safetensors: expected the rollouts"):
            run(folder, str(folder / "checkpoint-4"), steps_per_generation=3)


def test_a_curriculum_of_another_step_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    shutil.rmtree(tmp_path / "checkpoint-4" / "curricula")
    shutil.copytree(tmp_path / "checkpoint-2" / "curricula", tmp_path / "checkpoint-4" / "curricula")
    with pytest.raises(CurriculaError, match="expected the curriculum of step 4; got that of step 2"):
        run(tmp_path, str(tmp_path / "checkpoint-4"))
