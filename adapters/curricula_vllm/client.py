"""Completions of rows that differ: each with its own prompt and its own limit, one sample each.

TRL's server mode sends one prompt a group and asks for the group's completions of it; rows of a group whose prefixes
differ must not go that way.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from curricula.errors import CurriculaRuntimeError, CurriculaValueError
from curricula_vllm.watching import CONNECTIONS

# A request waits in the engine, not here: vLLM batches what it has. Its connection is an open file.
_CONCURRENT = CONNECTIONS


@dataclass(frozen=True, slots=True)
class Completion:
    """What was generated for one row.

    Attributes:
        token_ids: The tokens, the one that ended it included.
        logprobs: Of each token, under the distribution it was drawn from (nats).
        finish: "stop" where it ended by itself, "length" at its limit.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish: str


def complete(
    engine: Any,
    prompts: Sequence[Sequence[int]],
    max_tokens: Sequence[int],
    params: Mapping[str, Any] | None = None,
) -> list[Completion]:
    """Generates one completion a row, in the rows' order.

    Args:
        engine: TRL's `VLLMClient`, of a server; or a `vllm.LLM` in this process.
        prompts: Token ids of each row.
        max_tokens: Most tokens of each row, at least 1.
        params: Sampling parameters, by vLLM's names: those of `sampling`, `seed` and others. With a seed s, row i is
            drawn with s + i.

    Raises:
        CurriculaValueError: Limits that do not fit the prompts.
        CurriculaRuntimeError: The server's answer is not what was asked for.
    """
    if len(prompts) != len(max_tokens) or any(limit < 1 for limit in max_tokens) or not all(map(len, prompts)):
        raise CurriculaValueError(
            f"complete: expected tokens and a limit of at least 1 for each row; got {len(prompts)} prompts, the "
            f"shortest of {min(map(len, prompts), default=0)} tokens, and {len(max_tokens)} limits, the lowest "
            f"{min(max_tokens, default=0)}"
        )
    if not prompts:
        return []
    settings = {**(params or {}), "n": 1, "logprobs": 0}
    if hasattr(engine, "llm_engine"):
        return _in_process(engine, prompts, max_tokens, settings)
    return _on_server(engine, prompts, max_tokens, settings)


def sampling(generation: Any) -> dict[str, Any]:
    """The sampling parameters that TRL's `VLLMGeneration` generates with, as `complete` takes them."""
    return {
        "repetition_penalty": generation.repetition_penalty,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_k": generation.top_k,
        "min_p": 0.0 if generation.min_p is None else generation.min_p,
        **{
            name: value
            for name, value in generation.generation_kwargs.items()
            if name not in {"n", "max_tokens", "logprobs"}
        },
    }


def _within(settings: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The settings of a row, whose fewest tokens may not be more than its most."""
    found = {**settings, "max_tokens": limit}
    if found.get("min_tokens"):
        found["min_tokens"] = min(found["min_tokens"], limit)
    return found


def _most() -> int:
    """Requests at a time: half of the files that this process may open is left to others."""
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONCURRENT if files == resource.RLIM_INFINITY else max(1, min(_CONCURRENT, files // 2))


def _in_process(llm: Any, prompts: Any, max_tokens: Sequence[int], settings: dict[str, Any]) -> list[Completion]:
    from vllm import SamplingParams

    seed = settings.pop("seed", None)
    rows = [
        SamplingParams(**_within(settings, limit), seed=None if seed is None else seed + row)
        for row, limit in enumerate(max_tokens)
    ]
    inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    found = []
    for answer in llm.generate(inputs, sampling_params=rows, use_tqdm=False):
        (output,) = answer.outputs
        tokens = list(output.token_ids)
        chosen = [at[token].logprob for at, token in zip(output.logprobs, tokens, strict=True)]
        found.append(Completion(tokens, chosen, output.finish_reason))
    return found


def _on_server(client: Any, prompts: Any, max_tokens: Sequence[int], settings: dict[str, Any]) -> list[Completion]:
    # A request has one limit and one seed: rows that share theirs go together.
    seed = settings.pop("seed", None)
    together: dict[tuple[int, int | None], list[int]] = defaultdict(list)
    for row, limit in enumerate(max_tokens):
        together[limit, None if seed is None else seed + row].append(row)

    def ask(request: tuple[tuple[int, int | None], list[int]]) -> list[tuple[int, Completion]]:
        (limit, own_seed), rows = request
        asked = {
            **_within(settings, limit),
            "model": client.model,
            "prompt": [list(prompts[row]) for row in rows],
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        if own_seed is not None:
            asked["seed"] = own_seed
        choices = client._post(f"{client.base_url}/v1/completions", json=asked)["choices"]
        if len(choices) != len(rows):
            raise CurriculaRuntimeError(
                f"complete: expected {len(rows)} completions from the vLLM server at {client.base_url}; got "
                f"{len(choices)}"
            )
        return [
            (row, Completion(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"]))
            for row, choice in zip(rows, sorted(choices, key=lambda choice: choice["index"]), strict=True)
        ]

    with ThreadPoolExecutor(max_workers=min(_most(), len(together))) as pool:
        found = dict(pair for pairs in pool.map(ask, together.items()) for pair in pairs)
    return [found[row] for row in range(len(prompts))]
