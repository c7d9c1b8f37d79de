"""Limits of single rows, for each way that TRL generates; the engine and the server are stood in for."""

from types import SimpleNamespace
from typing import Any

import pytest

from curricula_trl.interruption.bounded import generate_bounded

ONE = SimpleNamespace(world_size=1, rank=0, collect=lambda value: [value], from_main=lambda produce: produce())


class Parameters:
    """As vLLM's `SamplingParams`, as far as it is used."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update({"max_tokens": 99, "min_tokens": 0, "seed": None, **values})

    def clone(self) -> "Parameters":
        return Parameters(**self.__dict__)


class Engine:
    def __init__(self) -> None:
        self.asked: list[tuple[list[int], Parameters]] = []
        self.slept = 0

    def generate(self, prompts: Any, sampling_params: Any, use_tqdm: bool) -> list[list[int]]:
        assert use_tqdm is False
        self.asked += zip((prompt["prompt_token_ids"] for prompt in prompts), sampling_params, strict=True)
        return [list(range(parameters.max_tokens)) for parameters in sampling_params]

    def sleep(self) -> None:
        self.slept += 1


def colocate(size: int = 1, **sampling: Any) -> tuple[Any, Any]:
    """A trainer with an engine, and TRL's generation by it: the prompts of all who share it, and one's own answers."""
    engine = Engine()
    generation = SimpleNamespace(llm=engine, tensor_parallel_size=size, others=[])
    trainer = SimpleNamespace(use_vllm=True, vllm_mode="colocate", vllm_generation=generation)

    def generate(prompts: list[list[int]]) -> tuple[Any, Any]:
        parts = [*generation.others, prompts]  # this rank is the last of those that share the engine
        assert len({len(part) for part in parts}) == 1
        inputs = [{"prompt_token_ids": ids} for part in parts for ids in part]
        done = generation.llm.generate(inputs, sampling_params=Parameters(**sampling), use_tqdm=False)
        generation.llm.sleep()
        ids = done[-len(prompts) :]
        return ids, [[-0.5] * len(row) for row in ids]

    return trainer, generate


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("least", "used"), [(None, None), (3, 3), (9, 5)])
def test_transformers_generates_to_the_largest_limit_and_the_settings_come_back(
    fails: bool, least: int | None, used: int | None
) -> None:
    config = SimpleNamespace(max_new_tokens=50, min_new_tokens=least)
    trainer = SimpleNamespace(use_vllm=False, generation_config=config)
    seen: list[Any] = []

    def generate(prompts: list[list[int]]) -> tuple[Any, Any]:
        seen.append((config.max_new_tokens, config.min_new_tokens))
        if fails:
            raise OSError("planted")
        return [list(range(config.max_new_tokens)) for _ in prompts], None

    if fails:
        with pytest.raises(OSError, match="planted"):
            generate_bounded(trainer, ONE, generate, [[7], [8]], [2, 5], 0)
    else:
        ids, logps = generate_bounded(trainer, ONE, generate, [[7], [8]], [2, 5], 0)
        assert (ids, logps) == ([[0, 1], [0, 1, 2, 3, 4]], None)
    assert seen == [(5, used)]
    assert (config.max_new_tokens, config.min_new_tokens) == (50, least)


def test_an_engine_gets_each_rows_own_limit_and_all_else_is_the_trainers() -> None:
    trainer, generate = colocate(temperature=0.7, min_tokens=3)
    engine = trainer.vllm_generation.llm
    ids, logps = generate_bounded(trainer, ONE, generate, [[7], [8, 9]], [2, 5], 0)
    assert [len(row) for row in ids] == [2, 5]
    assert logps == [[-0.5] * 2, [-0.5] * 5]
    assert [prompt for prompt, _ in engine.asked] == [[7], [8, 9]]
    assert [(p.max_tokens, p.min_tokens, p.temperature, p.seed) for _, p in engine.asked] == [
        (2, 2, 0.7, None),
        (5, 3, 0.7, None),
    ]
    assert engine.slept == 1
    assert trainer.vllm_generation.llm is engine


def test_one_seed_for_all_makes_no_copies() -> None:
    def seeds(part: int, rank: int) -> list[int]:
        trainer, generate = colocate(seed=5)
        ranks = SimpleNamespace(**{**vars(ONE), "rank": rank})
        engine = trainer.vllm_generation.llm
        generate_bounded(trainer, ranks, generate, [[7]] * 4, [2] * 4, part)
        return [parameters.seed for _, parameters in engine.asked]

    found = [seed for part in (0, 1) for rank in (0, 1) for seed in seeds(part, rank)]
    assert len(set(found)) == 16
    assert seeds(1, 1) == found[12:]


def test_ranks_that_share_an_engine_give_it_equally_many_rows() -> None:
    trainer, generate = colocate(size=2, seed=5)
    engine = trainer.vllm_generation.llm
    # Of four ranks, two share this engine; the other one has three rows.
    trainer.vllm_generation.others = [[[1], [2], [3]]]
    budgets = [[9], [9, 9], [4, 5, 6]]
    ranks = SimpleNamespace(world_size=4, rank=3, collect=lambda value: [*budgets, value])
    ids, logps = generate_bounded(trainer, ranks, generate, [[7]], [2], 0)
    assert [prompt for prompt, _ in engine.asked] == [[1], [2], [3], [7], [7], [7]]
    assert [parameters.max_tokens for _, parameters in engine.asked] == [4, 5, 6, 2, 1, 1]
    assert (ids, logps) == ([[0, 1]], [[-0.5, -0.5]])
