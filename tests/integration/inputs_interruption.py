"""Cases of tests/INPUTS.md: forced length interruption."""

from functools import partial
from pathlib import Path
from typing import Any

import host
from datasets import Dataset
from host import dataset, tokenizer
from inputs_cli import SUMS, call
from inputs_mix import load
from interruption_host import LETTERS, MIX, Record, trainer
from trl import GRPOTrainer, RLOOTrainer

from curricula.config import resolved
from curricula_trl import CurriculumGRPOTrainer, CurriculumSampler

HUNDRED = "interruption: {at: [80, 90], answer: 9}"


def attach(folder: Path, ours: Any = None, settings: dict[str, Any] | None = None, **section: Any) -> CurriculumSampler:
    mix = {**MIX, "interruption": {**MIX["interruption"], **section}}
    return CurriculumSampler(mix).attach(trainer(folder, **(settings or {})) if ours is None else ours)


def trained(folder: Path) -> None:
    ours = trainer(folder, max_steps=1)
    CurriculumSampler(MIX).attach(ours)
    record = Record(ours)
    ours.train()
    assert any(row["interrupted"] for row in record.rounds[0])


def as_a_class(folder: Path) -> None:
    plain = trainer(folder, max_steps=1)
    ours = CurriculumGRPOTrainer(
        plain.model, plain.reward_funcs, plain.args, dataset(), processing_class=tokenizer(LETTERS), curriculum=MIX
    )
    record = Record(ours)
    ours.train()
    assert any(row["interrupted"] for row in record.rounds[0])


def plain_text(folder: Path) -> None:
    mix = load(folder, "interruption: {at: [3, 4], answer: 2, closing: null}")
    section, written = mix.interruption, resolved(mix)
    assert section is not None
    assert section.closing is None
    assert "  closing: null\n" in written
    assert load(folder, written) == mix
    assert section.sentence == "\nTime is up. The final answer is: "


def no_end(folder: Path) -> None:
    ours = trainer(folder, max_steps=1)

    class Ours(type(ours)):  # type: ignore[misc]
        def _generate(self, prompts: Any) -> Any:
            texts = [[5, 1]] * len(prompts)
            return texts, texts, None, ["2"] * len(prompts), None, {}, None, []

    ours.__class__ = Ours
    attach(folder, ours)
    ours.train()


def other_turn(folder: Path) -> None:
    ours = trainer(folder)

    class Ours(type(ours)):  # type: ignore[misc]
        def _generate_single_turn(self, prompts: Any) -> Any:
            return prompts, None

    ours.__class__ = Ours
    attach(folder, ours)


def rloo(folder: Path) -> None:
    attach(folder, host.trainer(folder, RLOOTrainer))


def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: One.
        b: Other.
    """
    return a + b


def with_option(folder: Path, name: str) -> None:
    ours = trainer(folder)
    setattr(ours, name, {"rollout_func": lambda *_: None, "tools": [add], "environment_factories": {None: dict}}[name])
    attach(folder, ours)


def batching(folder: Path) -> None:
    ours = trainer(folder)
    ours.args.use_transformers_continuous_batching = True
    attach(folder, ours)


def images(folder: Path) -> None:
    ours: GRPOTrainer = trainer(folder)
    ours.train_dataset = Dataset.from_list([{"prompt": "1=", "image": "a.png", "environment": "a"}] * 16)
    attach(folder, ours)


def no_tokens(folder: Path) -> None:
    ours = trainer(folder)
    inner = ours.processing_class
    ours.processing_class = _Silent(inner)
    attach(folder, ours, closing="", sentence="\t")


class _Silent:
    """A tokenizer that has no tokens for white space."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, text: Any, **options: Any) -> Any:
        return {"input_ids": []} if text == "\t" else self._inner(text, **options)


class _Drops(_Silent):
    """A tokenizer that drops full stops."""

    def __call__(self, text: Any, **options: Any) -> Any:
        return self._inner(text.replace(".", "") or "b", **options)


def no_tag(folder: Path) -> None:
    ours = trainer(folder)
    ours.processing_class = _Drops(ours.processing_class)
    attach(folder, ours)


def context(folder: Path) -> None:
    ours = trainer(folder)
    ours.use_vllm, ours.args.vllm_max_model_length = True, 29
    attach(folder, ours)


def train_cli(folder: Path, text: str) -> None:
    path = folder / "mix.yaml"
    path.write_text(f"{SUMS}model: some/model\n{text}\n", encoding="utf-8")
    call("train", str(path))


CASES = {
    "interruption-trained": trained,
    "interruption-class": as_a_class,
    "interruption-plain": plain_text,
    "interruption-no-limits": partial(load, text="interruption: {answer: 3}"),
    "interruption-reversed": partial(load, text="interruption: {at: [9, 3], answer: 3}"),
    "interruption-no-answer": partial(load, text="interruption: {at: [3, 9], answer: 0}"),
    "interruption-open-sentence": partial(load, text="interruption: {at: [3, 9], answer: 3, sentence: Stop}"),
    "interruption-too-long-mix": partial(train_cli, text=f"trainer: {{max_completion_length: 99}}\n{HUNDRED}"),
    "interruption-context-mix": partial(train_cli, text=f"trainer: {{vllm_max_model_length: 100}}\n{HUNDRED}"),
    "interruption-batching-mix": partial(
        train_cli, text=f"trainer: {{use_transformers_continuous_batching: true}}\n{HUNDRED}"
    ),
    "interruption-form-mix": partial(
        train_cli, text=f"trainer: {{vllm_structured_outputs_regex: '[0-9]+'}}\n{HUNDRED}"
    ),
    "interruption-form-kwargs": partial(
        train_cli,
        text=f"trainer: {{use_vllm: true, generation_kwargs: {{structured_outputs: {{a: 1}}}}}}\n{HUNDRED}",
    ),
    "interruption-too-long": partial(attach, answer=10),
    "interruption-context": context,
    "interruption-no-tokens": no_tokens,
    "interruption-unknown": partial(attach, sentence="Enough."),
    "interruption-end": partial(attach, sentence="now.<eos>"),
    "interruption-no-tag": no_tag,
    "interruption-rloo": rloo,
    "interruption-tools": partial(with_option, name="tools"),
    "interruption-rollout": partial(with_option, name="rollout_func"),
    "interruption-factory": partial(with_option, name="environment_factories"),
    "interruption-batching": batching,
    "interruption-form": partial(attach, settings={"vllm_structured_outputs_regex": "[0-9]+"}),
    "interruption-images": images,
    "interruption-other-turn": other_turn,
    "interruption-own-generation": no_end,
}
