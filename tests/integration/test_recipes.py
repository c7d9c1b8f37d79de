"""Presets by golden values; what contradicts one, or what a part is not defined for, in one line."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from host import dataset, reward, trainer
from trl import GRPOConfig, RLOOTrainer

from curricula import (
    ConfigError,
    CurriculaValueError,
    Curriculum,
    CurriculumConfig,
    GroupOutcome,
    PromptPool,
    load_mix,
)
from curricula.config import RecipeConfig, SelectionConfig, as_config
from curricula_trl import CurriculumSampler, recipe
from curricula_trl.arguments import check_arguments_of as check
from curricula_trl.bounds import check_bounds
from curricula_trl.recipes import Finish
from curricula_trl.rounds import compared

GOLDEN = {
    "grpo": {
        "loss_type": "grpo",
        "importance_sampling_level": "token",
        "epsilon": 0.2,
        "epsilon_high": 0.2,
        "scale_rewards": "group",
    },
    "dapo": {
        "loss_type": "dapo",
        "importance_sampling_level": "token",
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "scale_rewards": "group",
        "beta": 0.0,
    },
    "gspo": {
        "loss_type": "grpo",
        "importance_sampling_level": "sequence",
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
        "scale_rewards": "group",
    },
    "cispo": {
        "loss_type": "cispo",
        "importance_sampling_level": "token",
        "epsilon_high": 5.0,
        "scale_rewards": "group",
        "beta": 0.0,
    },
    "scalerl": {
        "loss_type": "cispo",
        "importance_sampling_level": "token",
        "epsilon_high": 5.0,
        "scale_rewards": "none",
        "beta": 0.0,
    },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_presets_are_these(name: str, tmp_path: Path) -> None:
    found = recipe(name)
    assert found == GOLDEN[name]
    found["loss_type"] = "another"
    assert recipe(name) == GOLDEN[name], "a fresh dict each time"
    built = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, **recipe(name))
    assert {key: getattr(built, key) for key in GOLDEN[name]} == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_presets_run_as_they_are(name: str, tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=2, **recipe(name))
    CurriculumSampler({"recipe": {"preset": name, "fp32_head": False}}).attach(host)
    host.train()
    losses = [entry["loss"] for entry in host.state.log_history if "loss" in entry]
    assert len(losses) == 2
    assert all(abs(loss) < 100 for loss in losses)


def test_no_such_recipe() -> None:
    with pytest.raises(CurriculaValueError, match=r"expected one of scalerl, .*; got 'cipso'; did you mean cispo\?"):
        recipe("cipso")


@pytest.mark.parametrize(
    ("preset", "given", "said"),
    [
        ("cispo", {"loss_type": "dapo"}, r"trainer\.loss_type.*: expected cispo, of recipe cispo; got dapo"),
        ("cispo", {"epsilon_high": 0.28}, r"trainer\.epsilon_high.*: expected 5 \(4 to 8\), of recipe cispo; got 0.28"),
        ("scalerl", {"epsilon_high": -5.0}, r"epsilon_high.*: expected 5 \(4 to 8\), of recipe scalerl; got -5"),
        ("scalerl", {"scale_rewards": True}, r"scale_rewards.*: expected none, of recipe scalerl; got group"),
        ("dapo", {"beta": 0.04}, r"trainer\.beta.*: expected 0.0, of recipe dapo; got 0.04"),
        ("gspo", {"importance_sampling_level": "token"}, r"level.*: expected sequence, of recipe gspo; got token"),
    ],
)
def test_contradictions_in_a_mix(tmp_path: Path, preset: str, given: dict[str, Any], said: str) -> None:
    file = tmp_path / "mix.yaml"
    lines = "".join(f"  {key}: {str(value).lower()}\n" for key, value in given.items())
    file.write_text(f"recipe: {preset}\nmodel: org/name\ntrainer:\n{lines}", encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        check(load_mix(file))
    assert "\n" not in str(caught.value)
    assert "line 4" in str(caught.value)


CUT = r"expected an epsilon_high of 1 or more for loss_type cispo.* got {}, .* set epsilon_high: 5, or .* recipe: cispo"


@pytest.mark.parametrize("given", [{}, {"epsilon_high": 0.28}, {"epsilon": 0.5}])
@pytest.mark.parametrize("recipe", [None, {"normaliser": "batch"}])
def test_cispo_that_would_cut_every_ratio_is_refused(tmp_path: Path, given: dict[str, Any], recipe: Any) -> None:
    mix = {} if recipe is None else {"recipe": recipe}
    arguments = {"loss_type": "cispo", "scale_rewards": "none", **given}
    said = CUT.format(next(iter(given.values()), 0.2))
    with pytest.raises(ConfigError, match=said) as caught:
        check(as_config({**mix, "trainer": arguments}))
    assert f"trainer.{'epsilon_high' if 'epsilon_high' in given else 'loss_type'}" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(CurriculaValueError, match=f"^attach: {said}") as caught:
        CurriculumSampler(mix).attach(trainer(tmp_path, **arguments))
    assert "\n" not in str(caught.value)
    for enough in ({"epsilon_high": 1.0}, {"epsilon": 5.0}):
        check(as_config({**mix, "trainer": {"loss_type": "cispo", "scale_rewards": "none", **enough}}))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("delta", 1.0, "a finite number above 1"),
        ("max_tool_calling_iterations", -1, "a finite number of 0 or more"),
        ("max_steps", 0, "1 or more, or -1 for a run by num_train_epochs"),
        ("max_steps", -2, "1 or more, or -1 for a run by num_train_epochs"),
        ("epsilon", -0.2, "a finite number above 0"),
        ("epsilon_high", 0, "a finite number above 0"),
        ("delta", float("nan"), "a finite number above 1"),
        ("epsilon", float("inf"), "a finite number above 0"),
        ("temperature", 0, "a finite number above 0"),
        ("beta", -1, "a finite number of 0 or more"),
        ("num_generations", 0, "a finite number of 2 or more"),
        ("num_iterations", 0, "a finite number of 1 or more"),
        ("steps_per_generation", 0, "a finite number of 1 or more"),
        ("learning_rate", -1e-6, "a finite number of 0 or more"),
        ("top_entropy_quantile", 3, "a part of one, above 0"),
        ("loss_type", "foo", "one of grpo, .*vespo"),
        ("max_grad_norm", float("nan"), "a finite number of 0 or more"),
        ("entropy_coef", float("nan"), "a finite number"),
        ("logging_steps", float("inf"), "a finite number"),
        ("off_policy_mask_threshold", float("nan"), "a finite number of 0 or more"),
        ("vespo_lambda_pos", float("nan"), "a finite number above 0"),
        ("sapo_temperature_pos", 0.0, "a finite number above 0"),
        ("repetition_penalty", -1.0, "a finite number above 0"),
        ("vllm_importance_sampling_clip_max", -1.0, "a finite number above 0"),
        ("num_train_epochs", -1.0, "a finite number above 0"),
        ("weight_decay", -1.0, "a finite number of 0 or more"),
        ("adam_epsilon", -1e-8, "a finite number of 0 or more"),
        ("warmup_steps", -3, "a finite number of 0 or more"),
        ("vllm_server_timeout", -5.0, "a finite number of 0 or more"),
        ("vllm_max_model_length", 0, "a finite number of 1 or more"),
        ("vllm_tensor_parallel_size", 0, "a finite number of 1 or more"),
        ("generation_batch_size", 0, "a finite number of 1 or more"),
        ("num_generations_eval", 0, "a finite number of 1 or more"),
        ("adam_beta2", 1.0, "a number from 0 to below 1"),
        ("min_p", 2.0, "a number from 0 to 1"),
        ("ref_model_mixup_alpha", 7.0, "a number from 0 to 1"),
        ("top_k", -5, "a finite number of -1 or more"),
        ("vllm_server_port", 99999, "a port, from 1 to 65535"),
        ("seed", -1, "a whole number from 0 to 4294967295"),
        ("importance_sampling_level", "tokens", "one of token, sequence"),
        ("scale_rewards", "batches", "one of group, batch, none"),
        ("vllm_mode", "colocated", "one of server, colocate"),
        ("vllm_model_impl", "hf", "one of auto, vllm, .*"),
        ("vllm_importance_sampling_mode", "foo", "one of token_truncate, .*"),
        ("multi_objective_aggregation", "foo", "one of sum_then_normalize, normalize_then_sum"),
    ],
)
def test_numbers_that_no_trainer_can_use(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=rf"trainer\.{name}: expected {expected}; got {value}; "):
        check(as_config({"model": "org/name", "trainer": {name: value}}))


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"generation_kwargs": {"top_p": float("nan")}}, r"trainer\.generation_kwargs\.top_p"),
        ({"reward_weights": [1.0, float("inf")]}, r"trainer\.reward_weights\[1\]"),
        ({"lr_scheduler_kwargs": {"num_cycles": float("-inf")}}, r"trainer\.lr_scheduler_kwargs\.num_cycles"),
    ],
)
def test_numbers_within_values_are_finite_too(given: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError, match=rf"{place}: expected a finite number; got -?(nan|inf); change it"):
        check(as_config({"model": "org/name", "trainer": given}))


def test_bounds_of_an_adaptive_coefficient_are_in_order() -> None:
    given = {"use_adaptive_entropy": True, "entropy_coef_min": 2.0}
    with pytest.raises(ConfigError, match=r"trainer\.entropy_coef_min: expected .* up to .*; got 2 and 1; change one"):
        check(as_config({"trainer": given}))
    check(as_config({"trainer": {**given, "entropy_coef_max": 2.0}}))
    check(as_config({"trainer": {**given, "use_adaptive_entropy": False}}))


def test_what_trl_itself_takes_is_taken() -> None:
    fields = dataclasses.fields(GRPOConfig)
    given = {one.name: one.default for one in fields if one.init and one.default is not dataclasses.MISSING}
    words = {"top_k": -1, "vllm_server_timeout": 0.0, "max_grad_norm": 0.0, "scale_rewards": False, "seed": 2**32 - 1}
    check_bounds(as_config({"model": "org/name", "trainer": {key: value for key, value in given.items() if value}}))
    check_bounds(as_config({"model": "org/name", "trainer": words}))


def test_infinite_rewards_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def sometimes(completions: list[str], **columns: Any) -> list[float]:
        right = reward(completions, **columns)
        return [float("inf") if number == 1 else one for number, one in enumerate(right)]

    data = dataset({"frontier": 40})
    host = trainer(tmp_path, max_steps=2, reward_funcs=sometimes, train_dataset=data, **recipe("scalerl"))
    sampler = CurriculumSampler({"recipe": {"preset": "scalerl", "fp32_head": False}}).attach(host)
    seen: list[float] = []
    generate = type(host)._generate_and_score_completions

    class Watched(type(host)):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            output = generate(self, inputs)
            seen.extend(output["advantages"].tolist())
            return output

    Watched.__name__ = type(host).__name__
    host.__class__ = Watched
    host.train()
    assert all(abs(one) < 10 for one in seen)
    assert any(one != 0.0 for one in seen)
    assert seen[1] == 0.0
    assert len([record for record in caplog.records if "rewards were infinite" in record.getMessage()]) == 1
    assert sampler.metrics()["told"] == 4


@pytest.mark.parametrize(
    ("preset", "given"),
    [
        ("cispo", {"epsilon_high": 8}),
        ("scalerl", {"scale_rewards": False}),
        ("dapo", {"epsilon_high": 0.26}),
        ("gspo", {"epsilon_high": 5e-3, "beta": 0.04}),
    ],
)
def test_what_a_preset_leaves_open(preset: str, given: dict[str, Any]) -> None:
    check(as_config({"recipe": preset, "model": "org/name", "trainer": given}))


@pytest.mark.parametrize(
    ("config", "arguments", "said"),
    [
        ("cispo", {}, r"recipe cispo has loss_type cispo, the trainer was built with dapo; build it with GRPOConfig\("),
        ("dapo", {"loss_type": "dapo"}, r"recipe dapo has epsilon_high 0.28 \(0.26 to 0.28\), .* built with 0.2;"),
        ({"aggregation": "prompt"}, {"loss_type": "grpo"}, r"expected loss_type cispo or dapo .*; got grpo;"),
        ({"aggregation": "prompt"}, {"beta": 0.1}, r"expected no beta with aggregation prompt"),
        ({"aggregation": "prompt"}, {"entropy_coef": 0.1}, r"expected no entropy bonus with aggregation prompt"),
        ({"normaliser": "batch"}, {}, r"for normaliser batch.*; got \"group\" and"),
        (
            {"normaliser": "batch"},
            {"scale_rewards": "none", "multi_objective_aggregation": "normalize_then_sum"},
            r"for normaliser batch.*; got \"none\" and \"normalize_then_sum\"",
        ),
        ({"zero_variance": "mask"}, {"loss_type": "grpo", "beta": 0.1}, r"a beta of 0 for zero_variance mask .*grpo"),
    ],
)
def test_trainers_that_a_recipe_is_not_for(tmp_path: Path, config: Any, arguments: dict[str, Any], said: str) -> None:
    beta = arguments.pop("beta", 0.0)
    host = trainer(tmp_path, **arguments)
    host.beta = beta  # a penalty needs a reference model, which a model made in memory has no path for
    with pytest.raises(CurriculaValueError, match=said) as caught:
        CurriculumSampler({"recipe": config}).attach(host)
    assert "\n" not in str(caught.value)
    # `curricula train` says so before it loads anything.
    if isinstance(config, dict):
        mix = {"recipe": config, "model": "org/name", "trainer": {**arguments, "beta": beta}}
        with pytest.raises(ConfigError, match=said):
            check(as_config(mix))


def test_rloo_has_no_recipe(tmp_path: Path) -> None:
    host = trainer(tmp_path, RLOOTrainer)
    with pytest.raises(CurriculaValueError, match="a recipe is of GRPOTrainer's losses; got RLOOTrainer"):
        CurriculumSampler({"recipe": {"zero_variance": "mask"}}).attach(host)


def test_scalerl_reviews_what_is_nearly_always_passed() -> None:
    assert [rule.type for rule in as_config({"recipe": "scalerl"}).curriculum.filters] == [
        "zero_variance",
        "pass_rate_cap",
    ]
    chosen = as_config({"recipe": "scalerl", "curriculum": {"filters": []}})
    assert chosen.curriculum.filters == ()
    made = CurriculumConfig(recipe=RecipeConfig(preset="scalerl"), curriculum=SelectionConfig(probe=0.1))
    assert [rule.type for rule in made.curriculum.filters] == ["zero_variance", "pass_rate_cap"]
    assert made.curriculum.probe == 0.1


def test_rounding_is_no_variance(tmp_path: Path) -> None:
    def tenths(completions: list[str], environment: list[str], **_: Any) -> list[float]:
        right = reward(completions, environment)
        return [one if name == "frontier" else 0.1 for one, name in zip(right, environment, strict=True)]

    host = trainer(tmp_path, max_steps=3, reward_funcs=tenths, per_device_train_batch_size=32, **recipe("scalerl"))
    CurriculumSampler({"recipe": {"preset": "scalerl", "fp32_head": False}, "curriculum": {"filters": []}}).attach(host)
    generate = type(host)._generate_and_score_completions
    kept: list[bool] = []

    class Watched(type(host)):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            output = generate(self, inputs)
            texts = self.processing_class.batch_decode(output["prompt_ids"], skip_special_tokens=True)
            for text, mask in zip(texts, output["tool_mask"], strict=True):
                kept.append(bool(mask.any()))
                assert not kept[-1] or text.replace(" ", "").startswith("frontier")
            return output

    Watched.__name__ = type(host).__name__
    host.__class__ = Watched
    host.train()
    assert any(kept)


def test_masked_groups_are_in_neither_loss_nor_count(tmp_path: Path) -> None:
    host = trainer(tmp_path, max_steps=3, loss_type="dapo")
    CurriculumSampler({"recipe": {"zero_variance": "mask"}}).attach(host)
    seen: list[tuple[float, int, int]] = []

    class Watched(type(host)):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            output = super()._generate_and_score_completions(inputs)
            mask = output["completion_mask"] * output["tool_mask"]
            moved = (output["advantages"] != 0).view(-1, 4).any(dim=1).repeat_interleave(4)
            assert not mask[~moved].any()
            assert (output["completion_mask"].sum(dim=1) > 0).all(), "attention is untouched"
            seen.append((float(output["num_items_in_batch"]), int(mask.sum()), int((~moved).sum())))
            return output

    Watched.__name__ = type(host).__name__
    host.__class__ = Watched
    host.train()
    assert all(count == total for count, total, _ in seen)
    assert sum(dropped for *_, dropped in seen) > 0


class Alone:
    """Ranks, of which there is one."""

    world_size, rank, is_main = 1, 0, True

    def gather(self, column: torch.Tensor) -> torch.Tensor:
        return column


def finished(recipe: dict[str, Any], rewards: torch.Tensor, size: int, **columns: torch.Tensor) -> dict[str, Any]:
    """What a recipe makes of a batch of three tokens a rollout whose advantages TRL has centred in 32 bits."""
    advantages = rewards - rewards.view(-1, size).nanmean(dim=1).repeat_interleave(size)
    mask = torch.ones(len(rewards), 3, dtype=torch.long)
    output = {"advantages": advantages.nan_to_num(), "completion_mask": mask, **columns}
    output["num_items_in_batch"] = mask.sum().float()
    made = Finish(as_config({"recipe": recipe}).recipe, Alone())  # type: ignore[arg-type]
    made.mark(output, rewards.double().numpy(), size)
    return made.complete(SimpleNamespace(num_generations=size, loss_type="dapo"), output)


@pytest.mark.parametrize("zero_variance", ["keep", "mask"])
@pytest.mark.parametrize("size", [4, 6, 7, 12])
def test_flat_groups_are_no_part_of_the_deviation(zero_variance: str, size: int) -> None:
    # Six times .1 have a mean that is not .1: what is left of it is rounding.
    mixed = torch.tensor([0.0, 1.0] * size)[: 2 * size] if size % 2 else torch.tensor([0.0, 1.0] * (size // 2))
    flat = torch.tensor([0.1, 0.7, 0.3]).repeat_interleave(size)
    found = finished({"normaliser": "batch", "zero_variance": zero_variance}, torch.cat([mixed, flat]), size)
    live, dead = found["advantages"][: len(mixed)], found["advantages"][len(mixed) :]
    assert live.square().mean().sqrt() == pytest.approx(1.0, abs=1e-6)
    assert not dead.any()


def test_rollouts_without_a_token_in_the_loss_are_no_part_of_the_deviation() -> None:
    # The last rollout of the group is masked, by a tool or as truncated; its advantage of 9 trains on nothing.
    rewards = torch.tensor([0.0, 2.0, 1.0, 13.0])
    tools = torch.ones(4, 3, dtype=torch.long)
    tools[3] = 0
    found = finished({"normaliser": "batch"}, rewards, 4, tool_mask=tools)
    assert found["advantages"][:3].square().mean() == pytest.approx(1.0)


@pytest.mark.parametrize(("scale", "apart"), [(4e5, 0.25), (1.0, 2e-6), (1.0, 0.0), (1e-9, 1e-7), (0.0, 0.0)])
def test_a_group_without_variance_is_so_by_the_curriculum_s_own_rule(scale: float, apart: float) -> None:
    rewards = np.array([scale, scale + apart] * 4)
    output = {"advantages": torch.tensor([-1.0, 1.0] * 4), "completion_mask": torch.ones(8, 3, dtype=torch.long)}
    for mix in ({}, {"filters": [{"type": "zero_variance", "tolerance": 0.5}]}):
        config = as_config({"recipe": {"zero_variance": "mask"}, "curriculum": mix})
        made = Finish(config.recipe, Alone(), config.curriculum.tolerance)  # type: ignore[arg-type]
        marked = {**output, "advantages": output["advantages"].clone()}
        made.mark(marked, rewards, 8)
        curriculum = Curriculum(PromptPool(["a"] * 9), config)
        (draw,) = curriculum.ask(1, group_size=8)
        (verdict,) = curriculum.tell([GroupOutcome(draw.ticket, rewards)])
        assert bool(marked["advantages"].any()) == verdict.keep == (apart > config.curriculum.tolerance)


def test_functions_normalised_by_themselves_are_compared_by_themselves() -> None:
    # Sums are alike, and what TRL makes of each function is not.
    columns = np.array([[0.0, 1.0], [1.0, 0.5]] * 2)
    host = SimpleNamespace(reward_weights=torch.tensor([1.0, 2.0]), multi_objective_aggregation="normalize_then_sum")
    config = as_config({"recipe": {"zero_variance": "mask"}}).recipe
    for kind, kept in (("normalize_then_sum", True), ("sum_then_normalize", False)):
        host.multi_objective_aggregation = kind
        output = {"advantages": torch.tensor([0.7, -0.7] * 2), "completion_mask": torch.ones(4, 3)}
        Finish(config, Alone()).mark(output, compared(host, columns), 4)  # type: ignore[arg-type]
        assert bool(output["advantages"].any()) == kept


def test_a_batch_without_any_group_to_train_on_moves_nothing(tmp_path: Path) -> None:
    def never(completions: list[str], **_: Any) -> list[float]:
        return [0.0] * len(completions)

    host = trainer(tmp_path, max_steps=2, reward_funcs=never, **recipe("scalerl"))
    before = {name: value.clone() for name, value in host.model.state_dict().items()}
    CurriculumSampler({"recipe": {"preset": "scalerl", "fp32_head": False}}).attach(host)
    host.train()
    assert all(bool((before[name] == value).all()) for name, value in host.model.state_dict().items())


def test_against_the_generator_no_other_correction_stays() -> None:
    old = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]])
    sampled = torch.tensor([[-1.1, torch.nan], [-2.9, 0.0]])
    output = {
        "old_per_token_logps": old,
        "sampling_per_token_logps": sampled,
        "importance_sampling_ratio": torch.full((2, 1), 0.7),
    }
    config = as_config({"recipe": {"ratio": "generator"}}).recipe
    found = Finish(config, Alone()).complete(None, output)  # type: ignore[arg-type]
    assert torch.equal(found["old_per_token_logps"], torch.tensor([[-1.1, -2.0], [-2.9, 0.0]]))
    assert torch.equal(found["importance_sampling_ratio"], torch.ones(2, 1))
    # Without a generator of its own, the trainer's log-probabilities are the generator's.
    assert Finish(config, Alone()).complete(None, {"old_per_token_logps": old}) == {"old_per_token_logps": old}  # type: ignore[arg-type]
