"""The demo's parts: a pool that shares no prompt with the held-out one, and a model with a useful profile."""

import random

import numpy as np
import pytest
import torch

from curricula_trl.demo.model import build_model, build_tokenizer, complete, warm_up
from curricula_trl.demo.recorder import ExactMatch, held_out_accuracy
from curricula_trl.demo.task import MIX, answer_of, build_pools, prompt_of


def _global_states() -> tuple[object, ...]:
    legacy = np.random.get_state()  # noqa: NPY002  the global generator is what must not move
    return random.getstate(), legacy[1].tobytes(), torch.get_rng_state().numpy().tobytes()


def test_pools_share_no_prompt_and_follow_the_seed() -> None:
    train, held_out = build_pools(seed=0)
    assert len(set(train["prompt"]) | set(held_out["prompt"])) == len(train) + len(held_out)
    sizes = {environment.name: environment.size for environment in MIX}
    assert {name: train["environment"].count(name) for name in sizes} == sizes
    assert sizes == {"easy": 2400, "frontier": 150, "hard": 400, "unlearnable": 900}
    again, _ = build_pools(seed=0)
    other, _ = build_pools(seed=1)
    assert train["prompt"] == again["prompt"]
    assert train["prompt"] != other["prompt"]


def test_only_the_unlearnable_environment_has_wrong_answers() -> None:
    train, _ = build_pools(seed=3)
    for row in train:
        right = row["answer"] == answer_of(row["prompt"].strip("_="))
        assert right == (row["environment"] != "unlearnable")


def test_the_reward_counts_groups_whose_rewards_differ() -> None:
    reward = ExactMatch()
    answers = ["1"] * 24
    completions = ["1"] * 8 + ["1", *["2"] * 7] + ["3"] * 8
    rewards = reward(completions=completions, answer=answers, environment=["a"] * 8 + ["b"] * 16)
    assert rewards == [1.0] * 9 + [0.0] * 15
    assert reward.rounds == [
        {"drawn": {"a": 1, "b": 2}, "informative": {"a": 0, "b": 1}, "solved": {"a": 8, "b": 1}},
    ]


def test_building_and_sampling_leave_global_generators_alone() -> None:
    before = _global_states()
    tokenizer, model = build_tokenizer(), build_model(0)
    warm_up(model, tokenizer, seed=0, steps=2)
    first = complete(model, tokenizer, [prompt_of("123")] * 4, sample_seed=5)
    assert first == complete(model, tokenizer, [prompt_of("123")] * 4, sample_seed=5)
    assert _global_states() == before
    assert model.training
    again = build_model(0)
    warm_up(again, tokenizer, seed=0, steps=2)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.slow
def test_a_warm_model_has_mastered_half_known_and_hopeless_environments() -> None:
    tokenizer, model = build_tokenizer(), build_model(4)
    warm_up(model, tokenizer, seed=4)
    _, held_out = build_pools(seed=4)
    accuracy = held_out_accuracy(model, tokenizer, held_out)
    assert accuracy["easy"] > 0.85
    assert 0.1 < accuracy["frontier"] < 0.75
    assert accuracy["hard"] < 0.3
    assert accuracy["unlearnable"] == 0
