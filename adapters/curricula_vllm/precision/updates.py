"""What a generator's copy in fewer bits shows of the trainer's updates, where these are small."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from curricula_vllm.precision.model import Row, logits_of, logprobs_of, policy_loss
from curricula_vllm.precision.rounding import survived

COPIES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def lost_updates(model: Any, rows: Sequence[Row], learning_rate: float, steps: int) -> dict[str, Any]:
    """Moves float32 weights by Adam-like steps, |Δ| = learning rate, and looks at copies of them.

    A step goes by the learning rate against the sign of each weight's policy gradient, as Adam's first one does.

    Args:
        model: With its weights in float32; it is changed.
        rows: What was sampled; the loss is on it, and log-probabilities are of it.
        learning_rate: How far a weight moves in a step.
        steps: How many.

    Returns:
        `updates`, the weights that the first step moved; `survived`, for each dtype of a copy the share of them that
        moved in the copy too; `steps`, for each step in nats a token: `moved`, how far the log-probabilities of the
        `master` and of each copy are from their own at the start (mean absolute difference); `apart`, how far each
        copy's change is from the master's.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    start = _logprobs(model, rows)
    starts = {name: _copy_logprobs(model, weights, rows, dtype) for name, dtype in COPIES.items()}
    found: dict[str, Any] = {"updates": 0, "survived": {}, "steps": []}
    for step in range(steps):
        model.zero_grad()
        policy_loss(model, rows, lambda loss: loss.backward())
        moved, shown = 0, dict.fromkeys(COPIES, 0)
        with torch.no_grad():
            for weight in weights:
                if weight.grad is None:
                    continue
                before = weight.clone()
                weight.sub_(learning_rate * weight.grad.sign())
                moved += int((weight != before).sum())
                for name, dtype in COPIES.items():
                    shown[name] += int(survived(before, weight, dtype).sum())
        model.zero_grad()
        if step == 0:
            found["updates"] = moved
            found["survived"] = {name: count / max(moved, 1) for name, count in shown.items()}
        change = _logprobs(model, rows) - start
        moved_by, apart = {"master": _mean(change)}, {}
        for name, dtype in COPIES.items():
            of_copy = _copy_logprobs(model, weights, rows, dtype) - starts[name]
            moved_by[name], apart[name] = _mean(of_copy), _mean(of_copy - change)
        found["steps"].append({"moved": moved_by, "apart": apart})
    return found


@torch.no_grad()
def _logprobs(model: Any, rows: Sequence[Row]) -> torch.Tensor:
    return torch.cat([logprobs_of(logits_of(model, row), row) for row in rows])


def _copy_logprobs(model: Any, weights: Sequence[Any], rows: Sequence[Row], dtype: torch.dtype) -> torch.Tensor:
    # The copy's weights, and arithmetic in float32: what differs is the weights alone.
    with _rounded(weights, dtype):
        return _logprobs(model, rows)


@contextmanager
def _rounded(weights: Sequence[Any], dtype: torch.dtype) -> Iterator[None]:
    kept = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight in weights:
            weight.copy_(weight.to(dtype))
        yield
        for weight, before in zip(weights, kept, strict=True):
            weight.copy_(before)


def _mean(change: torch.Tensor) -> float:
    return float(change.abs().mean())
