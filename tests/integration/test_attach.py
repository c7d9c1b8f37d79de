"""The drop-in in real TRL trainers: which prompts are generated for, and that nothing else changes."""

import io
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from host import ENVIRONMENTS, Trace, dataset, model, reward, trainer, weights_digest
from trl import GRPOTrainer, RLOOTrainer

from curricula_trl import CurriculumGRPOTrainer, CurriculumSampler, detach


class Own(GRPOTrainer):
    """A user's subclass with an override of its own."""

    seen = 0

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        self.seen += 1
        return super().training_step(*args, **kwargs)


@pytest.mark.parametrize("cls", [GRPOTrainer, RLOOTrainer, Own])
def test_every_group_is_drawn_by_the_curriculum(tmp_path: Path, cls: type) -> None:
    host = trainer(tmp_path, cls)
    name = type(host).__name__
    sampler = CurriculumSampler().attach(host)
    assert type(host).__name__ == name
    assert isinstance(host, cls)
    trace = Trace(host)
    asked: list[list[int]] = []
    inner = sampler.curriculum.ask

    def note(*arguments: Any, **keywords: Any) -> Any:
        draws = inner(*arguments, **keywords)
        asked.append([draw.index for draw in draws])
        return draws

    sampler.curriculum.ask = note
    host.train()
    prompts = host.train_dataset["prompt"]
    expected = [[prompts[index] for index in indices for _ in range(4)] for indices in asked]
    assert [round_["prompts"] for round_ in trace.rounds] == expected
    assert len(trace.rounds) == 4
    if cls is Own:
        assert host.seen == 4


@pytest.mark.parametrize(
    "settings",
    [
        {"gradient_accumulation_steps": 2},
        {"gradient_accumulation_steps": 4, "steps_per_generation": 2},
        {"steps_per_generation": 3},
        {"num_iterations": 2},
        {"steps_per_generation": 2, "num_iterations": 3},
        {"dataloader_num_workers": 2},
        {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 6, "num_generations": 3},
    ],
    ids=str,
)
def test_no_draw_lags_behind_the_outcomes(tmp_path: Path, settings: dict[str, Any]) -> None:
    host = trainer(tmp_path, **settings)
    sampler = CurriculumSampler().attach(host)
    open_tickets: set[int] = set()
    log: list[int] = []
    ask, tell = sampler.curriculum.ask, sampler.curriculum.tell

    def count_ask(*args: Any, **keywords: Any) -> Any:
        log.append(len(open_tickets))
        draws = ask(*args, **keywords)
        open_tickets.update(draw.ticket for draw in draws)
        return draws

    def count_tell(outcomes: Any) -> Any:
        open_tickets.difference_update(outcome.ticket for outcome in outcomes)
        return tell(outcomes)

    sampler.curriculum.ask, sampler.curriculum.tell = count_ask, count_tell
    host.train()
    assert log
    assert not any(log), "a draw was made while outcomes of an earlier one were missing"
    assert host.state.global_step == 4


def test_rows_reach_the_rewards_untouched(tmp_path: Path) -> None:
    rows = [
        {
            "prompt": [{"role": "user", "content": f"{number}+1="}],
            "environment": "chat" if number % 2 else "plain",
            "meta": {"tags": ["a", str(number)], "weight": number / 4},
            "none": None,
        }
        for number in range(12)
    ]
    data = Dataset.from_list(rows)
    seen: list[tuple[Any, ...]] = []

    def check(prompts: Any, completions: Any, environment: Any, meta: Any, none: Any, **_: Any) -> list[float]:
        seen.extend(zip(prompts, environment, meta, none, strict=True))
        for prompt, extra in zip(prompts, meta, strict=True):
            prompt.append("edited")
            extra["tags"].append("edited")
        return [float(len(completion[0]["content"]) % 2) for completion in completions]

    host = trainer(tmp_path, train_dataset=data, reward_funcs=check)
    host.processing_class.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    CurriculumSampler().attach(host)
    host.train()
    known = {row["prompt"][0]["content"]: row for row in rows}
    assert len(seen) == 32
    for prompt, environment, meta, none in seen:
        row = known[prompt[0]["content"]]
        assert prompt[:1] == row["prompt"]
        assert (environment, none) == (row["environment"], None)
        assert meta["weight"] == row["meta"]["weight"]
        assert [tag for tag in meta["tags"] if tag != "edited"] == row["meta"]["tags"]
        assert prompt.count("edited") == meta["tags"].count("edited") == 1, "rollouts share one row"
    assert data[0]["prompt"] == rows[0]["prompt"]


def test_removed_columns_stay_removed(tmp_path: Path) -> None:
    keys: set[str] = set()

    def look(completions: Any, **columns: Any) -> list[float]:
        keys.update(columns)
        return [float(len(text) % 2) for text in completions]

    host = trainer(tmp_path, reward_funcs=look, remove_unused_columns=True)
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert not {"environment", "answer"} & keys
    assert set(sampler.curriculum.pool.environments) == set(ENVIRONMENTS)


def test_evaluation_is_untouched(tmp_path: Path) -> None:
    evaluated: dict[str, list[str]] = {"plain": [], "curriculum": []}
    for name in evaluated:
        seen = evaluated[name]

        def note(prompts: Any, completions: Any, environment: Any, seen: Any = seen, **_: Any) -> list[float]:
            # Held-out prompts go by other numbers than those that are trained on.
            seen.extend(prompt for prompt in prompts if prompt.startswith("held"))
            return reward(completions, environment)

        host = trainer(
            tmp_path / name,
            reward_funcs=note,
            eval_dataset=dataset({"held out": 8}),
            eval_strategy="steps",
            eval_steps=2,
            per_device_eval_batch_size=8,
        )
        if name == "curriculum":
            sampler = CurriculumSampler().attach(host)
        host.train()
        metrics = host.evaluate()
        assert "eval_reward" in metrics
        assert not any(key.startswith("eval_curriculum") for key in metrics)
    assert len(evaluated["plain"]) == 8 * 4 * 3
    assert evaluated["plain"] == evaluated["curriculum"]
    assert sampler.metrics()["told"] == 8


def test_detached_trainer_is_trl_again(tmp_path: Path) -> None:
    digests = []
    for attach in (False, True):
        host = trainer(tmp_path / str(attach))
        before = type(host)
        if attach:
            sampler = CurriculumSampler().attach(host)
            with pytest.raises(RuntimeError, match="detach"):
                CurriculumSampler().attach(host)
            detach(host)
            assert type(host) is before
            sampler.attach(host)
            sampler.detach()
            assert type(host) is before
            assert not [name for name in vars(host) if "curricula" in name]
        host.train()
        digests.append(weights_digest(host))
    assert digests[0] == digests[1]


def test_class_takes_a_mix(tmp_path: Path) -> None:
    mix = tmp_path / "mix.yaml"
    mix.write_text("curriculum: {probe: 0.2}\n", encoding="utf-8")
    host = trainer(tmp_path, CurriculumGRPOTrainer, trainer={"curriculum": mix})
    assert host.curriculum_sampler.config.curriculum.probe == 0.2
    host.train()
    assert host.curriculum_sampler.metrics()["told"] == 8
    host.curriculum_sampler.detach()
    host.train()
    assert host.curriculum_sampler.metrics()["told"] == 8


def test_second_train_goes_on_learning(tmp_path: Path) -> None:
    host = trainer(tmp_path)
    sampler = CurriculumSampler().attach(host)
    host.train()
    host.train()
    assert sampler.metrics()["told"] == 16
    assert host.state.global_step == 4


def test_epochs_mean_what_they_mean_in_trl(tmp_path: Path) -> None:
    steps = []
    for attach in (False, True):
        host = trainer(
            tmp_path / str(attach), max_steps=-1, num_train_epochs=3, train_dataset=dataset({"easy": 5, "hard": 4})
        )
        if attach:
            CurriculumSampler().attach(host)
        host.train()
        steps.append((host.state.global_step, host.state.epoch))
    assert steps[0] == steps[1]


async def slow(completions: list[str], **_: Any) -> list[float | None]:
    return [None if text.startswith("1") else float(len(text) % 2) for text in completions]


def test_async_weighted_and_missing_rewards(tmp_path: Path) -> None:
    def never(completions: list[str], **_: Any) -> list[None]:
        return [None] * len(completions)

    told: list[Any] = []
    host = trainer(tmp_path, reward_funcs=[reward, slow, never], reward_weights=[0.25, 0.75, 3.0])
    sampler = CurriculumSampler().attach(host)
    tell = sampler.curriculum.tell
    sampler.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    host.train()
    assert len(told) == 8
    for outcome in told:
        assert all(0 <= value <= 1 for value in outcome.rewards)
        assert (outcome.tokens >= 1).all()


def test_unscorable_is_not_zero(tmp_path: Path) -> None:
    def nothing(completions: list[str], environment: list[str], **_: Any) -> list[float | None]:
        return [None if name == "never" else 1.0 for name in environment]

    host = trainer(tmp_path, reward_funcs=nothing)
    sampler = CurriculumSampler({"environments": {"never": {"share": {"floor": 0.9}}}}).attach(host)
    host.train()
    metrics = sampler.metrics()
    assert metrics["never/unscorable"] > 0
    assert "never/success_drawn" not in metrics or math.isnan(metrics["never/success_drawn"])


def test_success_rule_names_a_reward(tmp_path: Path) -> None:
    def length(completions: list[str], **_: Any) -> list[float]:
        return [-0.1 * len(text) for text in completions]

    host = trainer(tmp_path, reward_funcs=[reward, length])
    shares = {name: {"share": {"floor": 0.5}} for name in ("easy", "never")}
    sampler = CurriculumSampler({"success": {"reward": "reward"}, "environments": shares}).attach(host)
    host.train()
    metrics = sampler.metrics()
    assert metrics["easy/success_drawn"] == 1.0
    # All right, all wrong: the length term alone must not make such a group count as informative.
    assert metrics["easy/zero_variance"] + metrics["never/zero_variance"] > 0
    assert metrics["easy/kept"] == 0


def test_dropped_groups_do_not_move_the_policy(tmp_path: Path) -> None:
    def length(completions: list[str], **_: Any) -> list[float]:
        return [-0.1 * len(text) - 0.01 * text.count("a") for text in completions]

    data = dataset({"easy": 8})
    host = trainer(tmp_path, reward_funcs=[reward, length], train_dataset=data)
    before = weights_digest(host)
    CurriculumSampler({"success": {"reward": "reward"}}).attach(host)
    host.train()
    assert weights_digest(host) == before


def test_metrics_reach_the_log_as_values(tmp_path: Path) -> None:
    host = trainer(tmp_path, logging_steps=2)
    CurriculumSampler().attach(host)
    host.train()
    logs = [entry for entry in host.state.log_history if "loss" in entry]
    assert [entry["curriculum/told"] for entry in logs] == [4, 8]
    for name in ENVIRONMENTS:
        assert f"curriculum/{name}/share_drawn" in logs[-1]


def test_resolved_mix_is_printed_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = trainer(tmp_path)
    CurriculumSampler({"environments": {"easy": {"share": {"cap": 0.5}}}}).attach(host)
    host.train()
    printed = capsys.readouterr().out
    assert "80 prompts in 4 environments" in printed
    assert "easy" in printed
    saved = CurriculumSampler.from_yaml(tmp_path / "curricula" / "mix.yaml")
    assert saved.config.environments["easy"].share.cap == 0.5


def test_a_terminal_that_cannot_show_a_name_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", bare)
    host = trainer(tmp_path, train_dataset=dataset({"日本": 8, "easy": 8}))
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 8


def test_masked_rollouts_are_no_members_of_their_group(tmp_path: Path) -> None:
    def varied(completions: list[str], **_: Any) -> list[float]:
        return [float(index % 2) for index, _ in enumerate(completions)]

    host = trainer(tmp_path, reward_funcs=varied, mask_truncated_completions=True, max_completion_length=2)
    sampler = CurriculumSampler().attach(host)
    told: list[Any] = []
    tell = sampler.curriculum.tell
    sampler.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    host.train()
    clipped = [entry["completions/clipped_ratio"] for entry in host.state.log_history if "loss" in entry]
    dead = 1.0 - np.array([outcome.trainable for outcome in told]).reshape(4, -1).mean(axis=1)
    assert max(clipped) > 0.5
    np.testing.assert_allclose(dead, clipped)


@pytest.mark.parametrize("loss", ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"])
def test_every_loss_trains(tmp_path: Path, loss: str) -> None:
    extra = {"importance_sampling_level": "sequence"} if loss == "luspo" else {}
    if loss == "cispo":
        extra["epsilon_high"] = 5.0
    host = trainer(tmp_path, loss_type=loss, max_steps=2, **extra)
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 4


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_every_scale_trains(tmp_path: Path, scale: str) -> None:
    host = trainer(tmp_path, scale_rewards=scale, max_steps=2)
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 4


def test_rloo_keeps_its_penalty_where_rewards_are_all_alike(tmp_path: Path) -> None:
    def alike(completions: list[str], **_: Any) -> list[float]:
        return [1.0] * len(completions)

    source = tmp_path / "model"
    model().save_pretrained(source)
    gradients = []
    for attach in (False, True):
        host = trainer(tmp_path / str(attach), RLOOTrainer, model=str(source), reward_funcs=alike, beta=0.5, bf16=False)
        # Away from the reference, so that there is something to penalise.
        with torch.no_grad():
            host.model.lm_head.weight.mul_(3.0)
        if attach:
            CurriculumSampler().attach(host)
        host.train()
        gradients.append([entry["grad_norm"] for entry in host.state.log_history if "loss" in entry])
    assert min(gradients[0]) > 0
    assert min(gradients[1]) > 0
