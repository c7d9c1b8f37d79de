"""Every preset, and every part that TRL lacks, against the papers' formulas in 64 bits: values and gradients."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from host import model
from launched import launch
from recipes_host import play
from recipes_reference import (
    Group,
    Rollout,
    Tensor,
    cispo_terms,
    informative,
    ratio_terms,
    rollout_mean,
    scalerl,
    sequence_terms,
    token_mean,
)

Loss = Callable[[Sequence[Group]], Tensor]

LOSSES: dict[str, tuple[dict[str, Any], Loss]] = {
    "scalerl": (
        {"preset": "scalerl", "config": {"recipe": {"preset": "scalerl", "fp32_head": False}}},
        scalerl,
    ),
    "cispo": (
        {"preset": "cispo", "config": {"recipe": "cispo"}},
        lambda groups: token_mean(groups, lambda one, a: cispo_terms(one, a, 5.0), masked=False),
    ),
    "cispo, masked": (
        {"preset": "cispo", "config": {"recipe": {"preset": "cispo", "zero_variance": "mask"}}},
        lambda groups: token_mean(groups, lambda one, a: cispo_terms(one, a, 5.0), masked=True),
    ),
    "dapo": (
        {"preset": "dapo", "config": {"recipe": "dapo"}},
        lambda groups: token_mean(groups, ratio_terms(0.2, 0.28), masked=False),
    ),
    "dapo, generator": (
        {"preset": "dapo", "config": {"recipe": {"preset": "dapo", "ratio": "generator"}}},
        lambda groups: token_mean(groups, ratio_terms(0.2, 0.28), masked=False),
    ),
    "gspo, generator": (
        {"preset": "gspo", "config": {"recipe": {"preset": "gspo", "ratio": "generator"}}},
        lambda groups: rollout_mean(groups, sequence_terms(3e-4, 4e-4), masked=False),
    ),
    "gspo, masked": (
        {"preset": "gspo", "config": {"recipe": {"preset": "gspo", "zero_variance": "mask"}}},
        lambda groups: rollout_mean(groups, sequence_terms(3e-4, 4e-4), masked=True),
    ),
    "grpo": (
        {"preset": "grpo", "config": {"recipe": "grpo"}},
        lambda groups: rollout_mean(groups, ratio_terms(0.2, 0.2), masked=False),
    ),
    "grpo, masked, generator": (
        {"preset": "grpo", "config": {"recipe": {"preset": "grpo", "ratio": "generator", "zero_variance": "mask"}}},
        lambda groups: rollout_mean(groups, ratio_terms(0.2, 0.2), masked=True),
    ),
}
# Rows a micro-batch, micro-batches a generation, micro-batches a step; 24 rows in all, six groups of four.
SPLITS = {
    "whole": {"per_device_train_batch_size": 24, "steps_per_generation": 1, "gradient_accumulation_steps": 1},
    "accumulated": {"per_device_train_batch_size": 8, "steps_per_generation": 3, "gradient_accumulation_steps": 3},
    "three steps": {"per_device_train_batch_size": 8, "steps_per_generation": 3, "gradient_accumulation_steps": 1},
    "two steps of two": {
        "per_device_train_batch_size": 6,
        "steps_per_generation": 4,
        "gradient_accumulation_steps": 2,
    },
}


def read(found: dict[str, Any], policy: Any, ratio: str) -> list[list[Rollout]]:
    """The rollouts in their groups, with log-probabilities under `policy` computed one by one, without padding."""
    groups: list[list[Rollout]] = []
    for number, (rollout, reward) in enumerate(zip(found["rollouts"], found["rewards"], strict=True)):
        prompt, completion = rollout["prompt"], rollout["completion"]
        logits = policy(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        now = logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]
        if number % 4 == 0:
            groups.append([])
        before = rollout["sampled" if ratio == "generator" else "old"]
        groups[-1].append(Rollout(now, torch.tensor(before, dtype=torch.float64), float(reward)))
    return groups


def compare(found: dict[str, Any], loss: Loss, ratio: str) -> None:
    """Value, as it was logged of the optimiser's steps, and gradient."""
    policy = model().double()
    groups = read(found, policy, ratio)
    kinds = [informative(group) for group in groups]
    assert sum(kinds) > 1
    assert not all(kinds)
    assert len({len(rollout.now) for group in groups for rollout in group}) > 1
    expected = loss(groups)
    assert np.mean(found["loss"]) == pytest.approx(float(expected.detach()), rel=1e-3, abs=2e-4)
    expected.backward()
    gradients = {name: parameter.grad for name, parameter in policy.named_parameters()}
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    assert largest > 1e-4, "nothing to compare"
    for name, gradient in gradients.items():
        # TRL computes log-probabilities and advantages in 32 bits, whatever the model is in.
        np.testing.assert_allclose(
            np.array(found["gradients"][name]), gradient.numpy(), rtol=1e-3, atol=1e-5 * largest, err_msg=name
        )


def ratio_of(name: str) -> str:
    return "generator" if name == "scalerl" or "generator" in name else "trainer"


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("name", LOSSES, ids=str)
def test_gradient_is_the_paper_s(tmp_path: Path, name: str, split: str) -> None:
    spec, loss = LOSSES[name]
    sizes = SPLITS[split]
    steps = sizes["steps_per_generation"] // sizes["gradient_accumulation_steps"]
    found = play(tmp_path, {**spec, "arguments": {**sizes, "max_steps": steps}})
    assert found["steps"] == steps
    compare(found, loss, ratio_of(name))


@pytest.mark.parametrize("name", ["scalerl", "cispo", "grpo, masked, generator"])
def test_rollouts_without_a_reward_are_no_part_of_it(tmp_path: Path, name: str) -> None:
    spec, loss = LOSSES[name]
    found = play(tmp_path, {**spec, "unscored": True, "arguments": {**SPLITS["accumulated"], "max_steps": 1}})
    assert any(np.isnan(found["rewards"]))
    compare(found, loss, ratio_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scalerl", "dapo, generator", "grpo, masked, generator", "gspo, masked"])
def test_two_ranks_have_the_gradient_of_one_batch(tmp_path: Path, name: str) -> None:
    spec, loss = LOSSES[name]
    # Six rows a rank and micro-batch in groups of four: groups straddle the ranks.
    sizes = {"per_device_train_batch_size": 6, "steps_per_generation": 2, "gradient_accumulation_steps": 2}
    options = {**spec, "output": str(tmp_path), "arguments": {**sizes, "max_steps": 1}}
    out = tmp_path / "out.json"
    code, text = launch(out, 2, script=Path(__file__).with_name("recipes_host.py"), **options)
    assert code == 0, text[-4000:]
    compare(json.loads(out.read_text(encoding="utf-8")), loss, ratio_of(name))
