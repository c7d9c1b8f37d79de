"""Presets by golden values; what contradicts one, or what a part is not defined for, in one line."""

from pathlib import Path
from typing import Any

import pytest
import torch
from host import dataset, reward, trainer
from trl import GRPOConfig, RLOOTrainer

from curricula import ConfigError, CurriculaValueError, CurriculumConfig, load_mix
from curricula.config import RecipeConfig, SelectionConfig, as_config
from curricula_trl import CurriculumSampler, recipe
from curricula_trl.arguments import check_arguments_of as check
from curricula_trl.recipes import Finish

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


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epsilon", -0.2, "a finite number above 0"),
        ("epsilon_high", 0, "a finite number above 0"),
        ("delta", float("nan"), "a finite number above 0"),
        ("epsilon", float("inf"), "a finite number above 0"),
        ("temperature", 0, "a finite number above 0"),
        ("beta", -1, "a finite number of 0 or more"),
        ("num_generations", 0, "a finite number of 2 or more"),
        ("num_iterations", 0, "a finite number of 1 or more"),
        ("steps_per_generation", 0, "a finite number of 1 or more"),
        ("learning_rate", -1e-6, "a finite number of 0 or more"),
        ("top_entropy_quantile", 3, "a part of one, above 0"),
        ("loss_type", "foo", "one of grpo, .*vespo"),
    ],
)
def test_numbers_that_no_trainer_can_use(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=rf"trainer\.{name}: expected {expected}; got {value}; "):
        check(as_config({"model": "org/name", "trainer": {name: value}}))


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


def test_a_batch_without_any_group_to_train_on_moves_nothing(tmp_path: Path) -> None:
    def never(completions: list[str], **_: Any) -> list[float]:
        return [0.0] * len(completions)

    host = trainer(tmp_path, max_steps=2, reward_funcs=never, **recipe("scalerl"))
    before = {name: value.clone() for name, value in host.model.state_dict().items()}
    CurriculumSampler({"recipe": {"preset": "scalerl", "fp32_head": False}}).attach(host)
    host.train()
    assert all(bool((before[name] == value).all()) for name, value in host.model.state_dict().items())


def test_against_the_generator_no_other_correction_stays() -> None:
    class Alone:
        world_size, rank = 1, 0

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
