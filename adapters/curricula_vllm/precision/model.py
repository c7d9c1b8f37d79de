"""The trainer's side: log-probabilities by transformers, in a dtype, with a head in that or in 32 bits."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch

from curricula.errors import CurriculaRuntimeError
from curricula_vllm.cpu import has_accelerator
from curricula_vllm.precision.plan import DTYPES
from curricula_vllm.projection import in_fp32


class Row(NamedTuple):
    """A prompt and a completion of it, as token ids."""

    prompt: list[int]
    completion: list[int]


def device() -> torch.device:
    """Where the trainer would be."""
    found = torch.accelerator.current_accelerator() if has_accelerator() else None
    return found or torch.device("cpu")


def load(model: str) -> Any:
    """The model with its weights in float32, as TRL loads it."""
    from transformers import AutoModelForCausalLM

    loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    return loaded.to(device()).eval()


def arithmetic(dtype: str) -> AbstractContextManager[Any]:
    """What TRL computes in with `bf16`, `fp16` or neither."""
    if dtype == "fp32":
        return nullcontext()
    return torch.autocast(device().type, dtype=getattr(torch, DTYPES[dtype]))


@contextmanager
def head_in_fp32(model: Any) -> Iterator[None]:
    """Computes the logits in 32 bits meanwhile."""
    head = model.get_output_embeddings()
    if not isinstance(head, torch.nn.Linear):
        raise CurriculaRuntimeError(
            f"an FP32 head: expected a linear head of logits; got {type(head).__name__}; leave heads in 32 bits out "
            "(--heads)"
        )
    head.forward = in_fp32(head)
    try:
        yield
    finally:
        del head.forward


def logits_of(model: Any, row: Row) -> torch.Tensor:
    """Logits of a completion's tokens, shape (T, V), in the dtype that they were computed in."""
    ids = torch.tensor([row.prompt + row.completion], device=device())
    return model(ids, use_cache=False).logits[0, len(row.prompt) - 1 : -1]


def logprobs_of(logits: torch.Tensor, row: Row) -> torch.Tensor:
    """Log-probabilities of a completion's tokens, shape (T,), in float32."""
    tokens = torch.tensor(row.completion, device=logits.device)[:, None]
    return logits.float().log_softmax(-1).gather(1, tokens)[:, 0]


def policy_loss(model: Any, rows: Sequence[Row], backward: Callable[[torch.Tensor], None]) -> bool:
    """A step's loss on sampled tokens, -A r with r = pi / stop(pi), a mean over tokens, row by row.

    There are no rewards here: advantages are 1 and -1 in turn.

    Args:
        model: The policy.
        rows: What was sampled.
        backward: Called with each row's part of the loss.

    Returns:
        Whether all logits were finite.
    """
    total, finite = sum(len(row.completion) for row in rows), True
    for number, row in enumerate(rows):
        logits = logits_of(model, row)
        finite &= bool(logits.isfinite().all())
        logps = logprobs_of(logits, row)
        backward(-(1 - 2 * (number % 2)) * (logps - logps.detach()).exp().sum() / total)
    return finite


def few(rows: Sequence[Row], tokens: int) -> list[Row]:
    """The first rows, until there are so many tokens; at least one."""
    kept: list[Row] = []
    for row in rows:
        if kept and sum(len(other.completion) for other in kept) + len(row.completion) > tokens:
            break
        kept.append(row)
    return kept
