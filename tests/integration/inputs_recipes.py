"""Cases of tests/INPUTS.md: recipes."""

from functools import partial
from pathlib import Path
from typing import Any

from host import trainer
from inputs_mix import load
from trl import GRPOTrainer, RLOOTrainer

from curricula_trl import CurriculumSampler
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


def contradicted(folder: Path) -> None:
    check(load(folder, "recipe: cispo\ntrainer: {epsilon_high: 0.2}\nmodel: org/name"))


CASES = {
    "recipe-name": named,
    "recipe-part": part,
    "recipe-unknown": partial(load, text="recipe: cipso"),
    "recipe-contradicted": contradicted,
    "recipe-built-otherwise": partial(attach, config="cispo"),
    "recipe-prompts-of-rows": partial(attach, config={"aggregation": "prompt"}, loss_type="grpo"),
    "recipe-scaled": partial(attach, config={"normaliser": "batch"}),
    "recipe-rloo": partial(attach, config={"zero_variance": "mask"}, cls=RLOOTrainer),
}
