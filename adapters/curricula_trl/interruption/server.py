"""Requests to a vLLM server, one for each rollout.

TRL's own request is for n copies of a prompt under one limit. Here prompts of one group have different prefixes, and
each row a limit of its own.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_AT_ONCE = 64


def request(
    generation: Any, prompts: Sequence[Sequence[int]], budgets: Sequence[int], seeds: Sequence[int | None]
) -> tuple[list[list[int]], list[list[float | None]] | None]:
    """Token ids for each prompt, and their log-probabilities.

    Args:
        generation: TRL's `VLLMGeneration`, of the rank that speaks to the server.
        prompts: Token ids.
        budgets: Most tokens for each.
        seeds: For each; None leaves it to the server.
    """
    client = generation.vllm_client
    shared: dict[str, Any] = {
        "model": client.model,
        "n": 1,
        "repetition_penalty": generation.repetition_penalty,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_k": generation.top_k,
        "min_p": 0.0 if generation.min_p is None else generation.min_p,
        "logprobs": generation.logprobs,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }
    if generation.structured_outputs_regex is not None:
        shared["structured_outputs"] = {"regex": generation.structured_outputs_regex}
    shared |= generation.generation_kwargs

    def send(row: int) -> tuple[list[int], list[float | None] | None]:
        own: dict[str, Any] = {"prompt": list(prompts[row]), "max_tokens": budgets[row]}
        if seeds[row] is not None:
            own["seed"] = seeds[row]
        (choice,) = client._post(f"{client.base_url}/v1/completions", json={**shared, **own})["choices"]
        scores = choice["logprobs"]
        return choice["token_ids"], None if scores is None else scores["token_logprobs"]

    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(prompts))) as executor:
        answers = list(executor.map(send, range(len(prompts))))
    ids = [tokens for tokens, _ in answers]
    scored = [scores for _, scores in answers if scores is not None]
    return ids, scored if len(scored) == len(ids) else None
