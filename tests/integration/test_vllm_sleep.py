"""Sleep mode with interruption: TRL's own generation, with a stand-in for the engine, which needs an accelerator."""

from types import SimpleNamespace
from typing import Any

import pytest
from needs import needs_vllm
from torch import nn

needs_vllm()

from trl.generation.vllm_generation import VLLMGeneration  # noqa: E402

from curricula_trl.interruption.bounded import generate_bounded  # noqa: E402
from curricula_trl.interruption.sleeping import one_waking  # noqa: E402

ONE = SimpleNamespace(world_size=1, rank=0)


class Engine:
    """Does what vLLM's may: it generates only where weights and cache are there."""

    def __init__(self, told: list[str]) -> None:
        self.told, self.awake = told, set()

    def wake_up(self, tags: list[str]) -> None:
        self.told += [f"wake {tag}" for tag in tags]
        self.awake |= set(tags)

    def sleep(self, level: int) -> None:
        assert level == 2
        assert self.awake
        self.told.append("sleep")
        self.awake = set()

    def generate(self, prompts: Any, sampling_params: Any, use_tqdm: bool) -> list[Any]:
        assert self.awake == {"weights", "kv_cache"}
        self.told.append("generate")
        return [
            SimpleNamespace(
                prompt_token_ids=prompt["prompt_token_ids"],
                outputs=[SimpleNamespace(token_ids=[1] * asked.max_tokens, logprobs=None)],
            )
            for prompt, asked in zip(prompts, sampling_params, strict=True)
        ]


class Generation(VLLMGeneration):
    """TRL's, whose weights are only counted."""

    def sync_weights(self) -> None:
        self.llm.wake_up(tags=["weights"])
        self._llm_weights_sleeping = False
        self.told.append("weights sent")


def trainer(sleeps: bool) -> Any:
    generation = Generation.__new__(Generation)
    told: list[str] = []
    given = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0, "logprobs": 0}
    vars(generation).update(
        **given,
        told=told,
        llm=Engine(told),
        mode="colocate",
        enable_sleep_mode=sleeps,
        _llm_weights_sleeping=sleeps,
        max_completion_length=9,
        generation_kwargs={},
        structured_outputs_regex=None,
        tensor_parallel_size=1,
        model=nn.Identity(),
        accelerator=None,
    )
    if not sleeps:
        generation.llm.awake = {"weights", "kv_cache"}
    return SimpleNamespace(use_vllm=True, vllm_mode="colocate", vllm_generation=generation)


def two_parts(made: Any, fails: bool = False) -> None:
    def turn(rows: list[list[int]]) -> tuple[Any, Any]:
        _, ids, logps, _ = made.vllm_generation.generate(rows, None, 1)
        return ids, logps

    with one_waking(made):
        assert generate_bounded(made, ONE, turn, [[7], [8]], [2, 3], 0) == ([[1] * 2, [1] * 3], None)
        if fails:
            raise OSError("planted")
        assert generate_bounded(made, ONE, turn, [[7, 1, 1]], [4], 1) == ([[1] * 4], None)


def test_weights_are_sent_once_for_both_parts() -> None:
    made = trainer(sleeps=True)
    engine = made.vllm_generation.llm
    once = ["wake weights", "weights sent", "wake kv_cache", "generate", "generate", "sleep"]
    for rounds in (1, 2):
        two_parts(made)
        assert made.vllm_generation.told == once * rounds
        assert made.vllm_generation.llm is engine
        assert made.vllm_generation.enable_sleep_mode is True
        assert made.vllm_generation._llm_weights_sleeping is True


def test_an_error_between_the_parts_leaves_it_asleep() -> None:
    made = trainer(sleeps=True)
    with pytest.raises(OSError, match="planted"):
        two_parts(made, fails=True)
    assert made.vllm_generation.told[-2:] == ["generate", "sleep"]
    assert made.vllm_generation.enable_sleep_mode is True


def test_an_engine_that_does_not_sleep_is_left_alone() -> None:
    made = trainer(sleeps=False)
    two_parts(made)
    assert made.vllm_generation.told == ["generate"] * 2
