"""The recipes in configs/: each is what TRL and the preset accept, and the one for a processor runs."""

from pathlib import Path
from typing import Any

import pytest
from launched_config import train
from needs import needs_vllm

from curricula.config import load_mix
from curricula_trl.arguments import check_arguments_of

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = ["scalerl", "scalerl-small", "scalerl-cpu"]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_accepted(name: str) -> None:
    config = load_mix(CONFIGS / f"{name}.yaml")
    check_arguments_of(config)
    assert config.recipe.preset == "scalerl"
    assert config.recipe.model_dump(exclude={"preset"}) == {
        "ratio": "generator",
        "aggregation": "prompt",
        "normaliser": "batch",
        "zero_variance": "mask",
        "fp32_head": True,
    }
    assert [rule.type for rule in config.curriculum.filters] == ["zero_variance", "pass_rate_cap"]
    assert config.refill.rounds == 0
    assert config.interruption is not None


def test_the_full_one_has_the_paper_s_figures() -> None:
    config = load_mix(CONFIGS / "scalerl.yaml")
    trainer: dict[str, Any] = config.trainer
    world = 8
    rollouts = trainer["per_device_train_batch_size"] * trainer["gradient_accumulation_steps"] * world
    assert rollouts == 48 * trainer["num_generations"] == 768
    assert (trainer["learning_rate"], trainer["adam_epsilon"], trainer["weight_decay"]) == (5e-7, 1e-15, 0.01)
    assert (trainer["warmup_steps"], trainer["lr_scheduler_type"]) == (100, "constant_with_warmup")
    assert trainer["max_completion_length"] == 12288 + 2048
    assert config.interruption is not None
    assert config.interruption.at == (10000, 12000)
    assert config.interruption.answer == 2048
    assert 4 <= trainer["epsilon_high"] <= 8


@pytest.mark.slow
@pytest.mark.parametrize("vllm", [False, True], ids=["transformers", "vllm"])
def test_the_one_for_a_processor_runs(tmp_path: Path, vllm: bool) -> None:
    if vllm:
        needs_vllm()
    figures = train(tmp_path, CONFIGS / "scalerl-cpu.yaml", vllm)
    assert figures["step"] == 4
    assert all(abs(loss) < 100 for loss in figures["loss"])
    assert figures["loss_type"] == "cispo"
    assert figures["head"] == "float32"
    metrics = figures["metrics"]
    assert metrics["draws"] == 2 * 4
    assert any(name.endswith("/interrupted") and value > 0 for name, value in metrics.items())
    if vllm:
        assert metrics["mismatch/stale"] == 0
        assert metrics["mismatch/largest"] < 1e-2
