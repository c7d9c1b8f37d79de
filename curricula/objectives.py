"""What a group of rollouts is worth: the signal that its prompt's pass rate lets one expect, per token it costs."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Normaliser = Literal["batch", "group"]


def batch_signal(alpha: Floats, beta: Floats, group_size: int) -> Floats:
    """Expected squared advantage of a group before a common scale: (G - 1) E[p (1 - p)].

    Args:
        alpha: Shape (M,), first parameter of the posterior Beta(alpha, beta) of each pass rate.
        beta: Shape (M,), the second.
        group_size: G, rollouts per group.

    Returns:
        Shape (M,). Source: the batch-level normaliser of ScaleRL (arXiv 2510.13786).

    >>> batch_signal(np.array([1.0]), np.array([1.0]), 7)
    array([1.])
    """
    total = alpha + beta
    return (group_size - 1) * alpha * beta / (total * (total + 1))


def group_signal(alpha: Floats, beta: Floats, group_size: int) -> Floats:
    """Probability that a group is mixed: E[1 - p^G - (1 - p)^G] under Beta(alpha, beta).

    The beta-binomial closed form, summed over the rollout at which the first disagreement comes:
    sum over g = 1..G-1 of (x_g beta + y_g alpha) / (alpha + beta + g), with x_g = E[p^g] and y_g = E[(1-p)^g].
    All terms are positive, so nothing cancels for parameters of any size.

    Args:
        alpha: Shape (M,).
        beta: Shape (M,).
        group_size: G, rollouts per group.

    Returns:
        Shape (M,), in [0, 1). Source: the group-level normaliser of GRPO (arXiv 2402.03300).

    >>> group_signal(np.array([1.0]), np.array([1.0]), 2).round(6)
    array([0.333333])
    """
    total = alpha + beta
    passed, failed = alpha / total, beta / total
    mixed = np.zeros_like(total)
    for rollout in range(1, group_size):
        seen = total + rollout
        mixed += (passed * beta + failed * alpha) / seen
        passed = passed * (alpha + rollout) / seen
        failed = failed * (beta + rollout) / seen
    return mixed


def signal_of_rates(rate: Floats, group_size: int, normaliser: Normaliser) -> Floats:
    """Signal of a group whose pass rate is known, elementwise.

    (G - 1) p (1 - p) under a batch-level normaliser, 1 - p^G - (1 - p)^G under a group-level one.

    >>> signal_of_rates(np.array([0.5]), 5, "batch")
    array([1.])
    """
    if normaliser == "batch":
        return (group_size - 1) * rate * (1.0 - rate)
    return 1.0 - rate**group_size - (1.0 - rate) ** group_size


def expected_signal(alpha: Floats, beta: Floats, group_size: int, normaliser: Normaliser) -> Floats:
    """Signal of a group under the trainer's normaliser of advantages, shape (M,)."""
    signal = batch_signal if normaliser == "batch" else group_signal
    return signal(alpha, beta, group_size)
