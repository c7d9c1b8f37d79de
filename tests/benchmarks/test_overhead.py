"""What the curriculum adds to a training step: asking, binding rows, telling, logging; as a share of the step."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from curricula_trl import CurriculumSampler
from curricula_trl.binding import Binding
from curricula_trl.demo.model import NEW_TOKENS, build_model, build_tokenizer
from curricula_trl.demo.task import prompt_of

STEPS, WARM = 60, 10


def reward(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text) % 2) for text in completions]


def pool(size: int) -> Dataset:
    generator = np.random.default_rng(0)
    numbers = ["".join(map(str, digits)) for digits in generator.integers(0, 10, (size, 8))]
    rows = {"prompt": [prompt_of(n) for n in numbers], "environment": [f"e{i % 4}" for i in range(size)]}
    return Dataset.from_dict(rows)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4_000, 100_000])
def test_added_time_is_below_one_percent_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    spent: dict[int, float] = {}
    steps: list[float] = []
    host: Any = None

    def timed(method: Callable[..., Any], sign: int = 1) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*arguments, **keywords)
            finally:
                step = host.state.global_step
                spent[step] = spent.get(step, 0.0) + sign * (time.perf_counter() - start)

        return call

    # Everything in a step but TRL's own generation, within which `capture` is called.
    for name in ("step", "capture", "ask_ahead", "metrics"):
        monkeypatch.setattr(Binding, name, timed(getattr(Binding, name)))
    generate = "_generate_and_score_completions"
    monkeypatch.setattr(GRPOTrainer, generate, timed(getattr(GRPOTrainer, generate), -1))

    class Timed(GRPOTrainer):
        def training_step(self, *arguments: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            result = super().training_step(*arguments, **keywords)
            steps.append(time.perf_counter() - start)
            return result

    host = Timed(
        model=build_model(0),
        args=GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=64,
            num_generations=8,
            max_completion_length=NEW_TOKENS,
            max_steps=STEPS,
            logging_steps=10,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        ),
        reward_funcs=reward,
        train_dataset=pool(size),
        processing_class=build_tokenizer(),
    )
    CurriculumSampler().attach(host)
    host.train()
    added = statistics.median(spent[step] for step in range(WARM, STEPS))
    whole = statistics.median(steps[WARM:])
    rest = whole - added
    print(f"\n{size:,} prompts: {1e3 * added:.2f} ms added to {1e3 * rest:.0f} ms a step: {added / rest:.2%}")
    assert added < 0.01 * rest
