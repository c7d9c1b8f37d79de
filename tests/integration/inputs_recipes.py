"""Cases of tests/INPUTS.md: recipes."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

from host import trainer
from inputs_mix import load
from trl import GRPOTrainer, RLOOTrainer

from curricula_trl import CurriculumSampler, recipe
from curricula_trl.arguments import check_arguments_of as check


def attach(folder: Path, config: Any, cls: type = GRPOTrainer, **arguments: Any) -> CurriculumSampler:
    return CurriculumSampler({"recipe": config}).attach(trainer(folder, cls, **arguments))


def named(folder: Path) -> None:
    mix = load(folder, "recipe: scalerl")
    assert mix.recipe.aggregation == "prompt"
    assert [rule.type for rule in mix.curriculum.filters] == ["zero_variance", "pass_rate_cap"]


def part(folder: Path) -> None:
    host = trainer(folder, max_steps=1)
    CurriculumSampler({"recipe": {"zero_variance": "mask"}}).attach(host)
    host.train()


def batching(folder: Path) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("curricula")
    log.addHandler(handler)
    try:
        for size in ({}, {"num_blocks": 64, "max_batch_tokens": 256}):
            arguments = {"use_transformers_continuous_batching": True, "transformers_continuous_batching_config": size}
            host = trainer(folder, max_steps=1, **recipe("scalerl"), **arguments)
            CurriculumSampler({"recipe": "scalerl"}).attach(host)
        host.train()
    finally:
        log.removeHandler(handler)
    (warning,) = [text for text in said if "continuous_batching" in text]
    assert "num_blocks" in warning
    assert host.state.global_step == 1


def contradicted(folder: Path) -> None:
    check(load(folder, "recipe: cispo\ntrainer: {epsilon_high: 0.2}\nmodel: org/name"))


def cut(folder: Path) -> None:
    check(load(folder, "trainer: {loss_type: cispo}\nmodel: org/name"))


def listed(folder: Path) -> None:
    check(load(folder, "recipe: {zero_variance: mask}\ntrainer: {loss_type: [grpo], beta: 0.1}\nmodel: org/name"))


CASES = {
    "recipe-name": named,
    "recipe-part": part,
    "recipe-batching": batching,
    "recipe-unknown": partial(load, text="recipe: cipso"),
    "recipe-contradicted": contradicted,
    "recipe-cut": cut,
    "recipe-cut-built": partial(attach, config={}, loss_type="cispo"),
    "recipe-listed": listed,
    "recipe-built-otherwise": partial(attach, config="cispo"),
    "recipe-prompts-of-rows": partial(attach, config={"aggregation": "prompt"}, loss_type="grpo"),
    "recipe-scaled": partial(attach, config={"normaliser": "batch"}),
    "recipe-rloo": partial(attach, config={"zero_variance": "mask"}, cls=RLOOTrainer),
}
