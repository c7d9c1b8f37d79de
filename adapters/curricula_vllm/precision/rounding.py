"""Which updates a copy in fewer bits does not show."""

from collections.abc import Iterable

import torch

MOST_LOST = 0.5
"""Of the updates that a copy does not show, above which it is said."""

SAMPLE = 2**16
"""Weights that an estimate looks at."""


def survived(before: torch.Tensor, after: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Where two versions of weights differ once rounded to a dtype."""
    return before.to(dtype) != after.to(dtype)


@torch.no_grad()
def surviving_share(
    parameters: Iterable[torch.Tensor], learning_rate: float, dtype: torch.dtype, sample: int = SAMPLE
) -> float | None:
    """Estimates the share of updates of the size of a learning rate that show in a copy.

    An Adam-like step moves each weight by about the learning rate; half of them up and half down is assumed. It looks
    at evenly spaced weights of every parameter.

    Args:
        parameters: Those that are trained.
        learning_rate: Size of an update.
        dtype: Of the copy.
        sample: How many weights to look at, about.

    Returns:
        None where there are no weights here, as in a rank of a sharded model.
    """
    held = [value.to_local() if hasattr(value, "to_local") else value for value in parameters]  # type: ignore[operator]
    total = sum(value.numel() for value in held)
    if total == 0:
        return None
    stride = max(1, total // sample)
    shown = 0.0
    for value in held:
        if value.numel():
            some = value.detach().reshape(-1)[::stride].float()
            moved = [survived(some, some + sign * learning_rate, dtype) for sign in (1, -1)]
            shown += value.numel() * float(torch.cat(moved).double().mean())
    return shown / total
