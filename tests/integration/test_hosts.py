"""Ways of using TRL that have to go on working: adapters, tools, environments, reward models, evaluation."""

import string
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from host import arguments, dataset, model, reward, shape, tokenizer, trainer
from peft import LoraConfig
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast, Qwen2ForSequenceClassification
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

from curricula_trl import CurriculumSampler

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'


def test_lora(tmp_path: Path) -> None:
    host = trainer(tmp_path, trainer={"peft_config": LoraConfig(r=2, target_modules=["q_proj", "v_proj"])})
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 8
    frozen = [name for name, value in host.model.named_parameters() if not value.requires_grad]
    assert any("lora" in name for name, _ in host.model.named_parameters())
    assert frozen


def test_reward_model(tmp_path: Path) -> None:
    judge = Qwen2ForSequenceClassification(shape(num_labels=1))
    host = trainer(tmp_path, reward_funcs=judge, trainer={"reward_processing_classes": tokenizer()})
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 8
    # A judge's scores are no rates: what is reported is a mean reward, and no success.
    assert sampler.curriculum.success_mode == "informative"
    assert not [name for name in sampler.metrics() if "success" in name]


def test_gmpo(tmp_path: Path) -> None:
    host = GMPOTrainer(
        model=model(),
        args=GMPOConfig(**arguments(tmp_path)),
        reward_funcs=reward,
        train_dataset=dataset(),
        processing_class=tokenizer(),
    )
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 8


def test_evaluation_and_saving_during_training(tmp_path: Path) -> None:
    host = trainer(
        tmp_path,
        eval_dataset=dataset({"easy": 4}),
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=4,
        save_strategy="steps",
        save_steps=1,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_reward",
    )
    sampler = CurriculumSampler().attach(host)
    host.train()
    assert sampler.metrics()["told"] == 8
    assert sum("eval_reward" in entry for entry in host.state.log_history) == 4
    assert len(list(tmp_path.glob("checkpoint-*/curricula/state.json"))) == 2


def chat_tokenizer() -> PreTrainedTokenizerFast:
    """Characters, Qwen's markers, and one token that is a whole tool call."""
    made = tokenizer(string.printable, eos="<|im_end|>", further=["<|im_start|>", CALL])
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.add_tokens([AddedToken(CALL, special=False)])
    made.chat_template = files("trl").joinpath("chat_templates/qwen3.jinja").read_text(encoding="utf-8")
    return made


def chat_trainer(
    tmp_path: Path, data: Dataset, rewards: Any, settings: dict[str, Any] | None = None, **keywords: Any
) -> GRPOTrainer:
    words = chat_tokenizer()
    config = GRPOConfig(
        **arguments(
            tmp_path,
            max_steps=2,
            max_tool_calling_iterations=1,
            **{"max_completion_length": 200, **(settings or {})},
            # A random model would not call a tool: this makes the call likely, and leaves the rest to chance.
            generation_kwargs={"sequence_bias": [[[4], 4.0], [[1], 3.0]]},
        )
    )
    return GRPOTrainer(
        model=model(vocab_size=len(words), max_position_embeddings=8192),
        args=config,
        reward_funcs=rewards,
        train_dataset=data,
        processing_class=words,
        **keywords,
    )


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: One number.
        b: The other.

    Returns:
        Their sum.
    """
    return a + b


def used(completions: Any, **_: Any) -> list[float]:
    return [float(any(message["role"] == "tool" for message in completion)) for completion in completions]


@pytest.mark.parametrize("masked", [False, True])
def test_tools(tmp_path: Path, masked: bool) -> None:
    rows = [{"prompt": [{"role": "user", "content": f"{number}+1"}]} for number in range(12)]
    # Short enough that some rollouts are cut off after their tool's answer; masking those blanks the mask of tools.
    short = {"max_completion_length": 60, "mask_truncated_completions": masked}
    host = chat_trainer(tmp_path, Dataset.from_list(rows), used, short, tools=[add])
    sampler = CurriculumSampler().attach(host)
    told: list[Any] = []
    tell = sampler.curriculum.tell
    sampler.curriculum.tell = lambda outcomes: told.extend(outcomes) or tell(outcomes)
    host.train()
    assert len(told) == 4
    rewards = torch.tensor([list(outcome.rewards) for outcome in told])
    assert 0 < rewards.mean() < 1, "expected some rollouts to call the tool and some not to"
    tokens = torch.tensor([list(outcome.tokens) for outcome in told])
    # TRL's own figure leaves out what the tool answered.
    means = [entry["completions/mean_length"] for entry in host.state.log_history if "loss" in entry]
    torch.testing.assert_close(tokens.view(2, -1).mean(1).tolist(), means)
    cut_off = torch.tensor([list(outcome.truncated) for outcome in told], dtype=torch.bool)
    assert (cut_off & (rewards > 0)).any(), "expected rollouts that call the tool and are cut off"


class Counter:
    """An environment: `reset` gets the row, `bump` is its tool."""

    label = "up"
    resets: list[dict[str, Any]] = []  # noqa: RUF012  shared by all instances: the test reads it

    def reset(self, **row: Any) -> str:
        type(self).resets.append(row)
        return f" start {row['start']}"

    def add(self, a: int, b: int) -> str:
        """Adds.

        Args:
            a: One number.
            b: The other.

        Returns:
            The sum, in words.
        """
        return f"{self.label} {a + b}"


class Down(Counter):
    label = "down"
    resets: list[dict[str, Any]] = []  # noqa: RUF012


@pytest.mark.parametrize("several", [False, True])
def test_environment_factory(tmp_path: Path, several: bool) -> None:
    Counter.resets.clear()
    Down.resets.clear()
    rows = [
        {
            "prompt": [{"role": "user", "content": str(number)}],
            "environment": "down" if number % 2 else "up",
            "start": number,
        }
        for number in range(12)
    ]
    factory = {"up": Counter, "down": Down} if several else Counter
    host = chat_trainer(tmp_path, Dataset.from_list(rows), used, environment_factory=factory)
    sampler = CurriculumSampler().attach(host)
    host.train()
    metrics = sampler.metrics()
    assert metrics["told"] == 4
    groups = {name: metrics[f"{name}/kept"] + metrics[f"{name}/zero_variance"] for name in ("up", "down")}
    assert sum(groups.values()) == 4
    if several:
        assert all("environment" not in row for row in Counter.resets)
        assert {row["start"] % 2 for row in Counter.resets} <= {0}
        assert {row["start"] % 2 for row in Down.resets} <= {1}
        assert len(Counter.resets) == 4 * groups["up"]
    else:
        assert len(Counter.resets) == 16
        assert all(set(row) == {"prompt", "environment", "start"} for row in Counter.resets)
