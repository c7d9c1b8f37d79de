"""Generation with a limit of its own for each row: TRL's generation of one turn, with a part of it replaced for a call.

What is replaced is no more than the limit of tokens (and, for a server, the request), so weights, temperature, sharded
parameters, sleep and all else stay TRL's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from curricula_trl.ranks import Ranks

Rows = Sequence[Sequence[int]]
Generated = tuple[list[list[int]], list[list[float | None]] | None]
Generate = Callable[[list[list[int]]], tuple[Any, Any]]
"""Token ids and their log-probabilities, or None, for prompts of this rank."""


def generate_bounded(
    trainer: Any, ranks: Ranks, generate: Generate, prompts: Rows, budgets: Sequence[int], part: int
) -> Generated:
    """Generates for each prompt no more tokens than its budget.

    Args:
        trainer: The trainer.
        ranks: Each has to call this, with one prompt at least; it may have another number of them.
        generate: TRL's generation of one turn.
        prompts: Token ids; each is generated for on its own, in order.
        budgets: Most tokens for each, at least 1.
        part: Of the rollouts, 0 or 1: a seed that was given for all of generation serves each part anew.
    """
    rows = [list(ids) for ids in prompts]
    if not trainer.use_vllm:
        with _limited(trainer.generation_config, max(budgets)):
            ids, logps = generate(rows)
    elif trainer.vllm_mode == "server":
        with _replaced(trainer.vllm_generation, "generate", _server(trainer.vllm_generation, ranks, budgets, part)):
            ids, logps = generate(rows)
    else:
        generation = trainer.vllm_generation
        rows, limits = _of_engine(generation, ranks, rows, budgets)
        stream = (part, ranks.rank // generation.tensor_parallel_size)
        with _replaced(generation, "llm", _Bounded(generation.llm, limits, stream)):
            ids, logps = generate(rows)
    count = len(budgets)
    tokens = [list(row[:most]) for row, most in zip(ids[:count], budgets, strict=True)]
    if logps is None:
        return tokens, None
    return tokens, [list(row[:most]) for row, most in zip(logps[:count], budgets, strict=True)]


class _Bounded:
    """vLLM's engine, which takes the limits of its requests from elsewhere."""

    def __init__(self, llm: Any, budgets: Sequence[int], stream: tuple[int, int]) -> None:
        self._llm, self._budgets, self._stream = llm, budgets, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    def generate(self, prompts: Any, sampling_params: Any, **options: Any) -> Any:
        each: list[Any] = []
        for row, most in enumerate(self._budgets):
            parameters = sampling_params.clone()
            parameters.max_tokens = most
            parameters.min_tokens = min(parameters.min_tokens, most)
            if parameters.seed is not None:
                parameters.seed = _seed(parameters.seed, *self._stream, row)
            each.append(parameters)
        return self._llm.generate(prompts, sampling_params=each, **options)


def _of_engine(
    generation: Any, ranks: Ranks, rows: list[list[int]], budgets: Sequence[int]
) -> tuple[list[list[int]], list[int]]:
    """This rank's rows, and the budgets of all rows that its engine will see.

    Ranks that share an engine must give it equally many rows: the last one is repeated for a token that is not used.
    """
    size = generation.tensor_parallel_size
    if size == 1:
        return rows, list(budgets)
    every = ranks.collect(list(budgets))
    sharing = every[ranks.rank // size * size :][:size]
    widest = max(map(len, sharing))
    rows = rows + [rows[-1]] * (widest - len(rows))
    return rows, [most for each in sharing for most in [*each, *[1] * (widest - len(each))]]


def _server(generation: Any, ranks: Ranks, budgets: Sequence[int], part: int) -> Callable[..., Any]:
    """Stands for `VLLMGeneration.generate`, which asks the server for copies of every G-th prompt."""

    def generate(prompts: list[list[int]], images: Any, num_generations: int, profiler: Any = None) -> Any:
        every = ranks.collect([prompts, list(budgets)])
        rows = [ids for asked, _ in every for ids in asked]
        limits = [most for _, each in every for most in each]

        def ask() -> list[tuple[list[int], list[float]]]:
            from curricula_vllm.client import complete, sampling

            parameters = sampling(generation)
            if "seed" in parameters:
                parameters["seed"] = _seed(parameters["seed"], part)
            with profiler or nullcontext():
                done = complete(generation.vllm_client, rows, limits, parameters)
            return [(row.token_ids, row.logprobs) for row in done]

        done = ranks.from_main(ask)
        first = sum(len(asked) for asked, _ in every[: ranks.rank])
        mine = slice(first, first + len(prompts))
        logps = [[[value] for value in values] for _, values in done[mine]]
        return prompts, [ids for ids, _ in done[mine]], logps, None

    return generate


def _seed(seed: int, *stream: int) -> int:
    # A seed given for all requests would make the rollouts of a group copies of one another.
    return int(np.random.SeedSequence([seed % 2**63, *stream]).generate_state(1)[0])


@contextmanager
def _limited(config: Any, most: int) -> Iterator[None]:
    before, least = config.max_new_tokens, config.min_new_tokens
    config.max_new_tokens, config.min_new_tokens = most, None if least is None else min(least, most)
    try:
        yield
    finally:
        config.max_new_tokens, config.min_new_tokens = before, least


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    missing = name not in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
