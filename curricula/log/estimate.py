"""Estimates under another policy, from draws whose probabilities under both are known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST = 100.0
"""Effective sample size below which there is no estimate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What other draws would have brought.

    Attributes:
        draws: Draws that it rests on.
        effective: Effective sample size, (sum w)^2 / sum w^2.
        mean_weight: Mean of the weights: near 1 where the two policies have the same support.
        largest: The largest weight's part of their sum.
        informative: Fraction of informative groups; None where the effective sample size is below 100, as are the rest.
        informative_error: Its standard error.
        success: Mean success, or mean reward where rewards are not rates.
        success_error: Its standard error.
        tokens: Tokens for each informative group; None too where none is known.
    """

    draws: int
    effective: float
    mean_weight: float
    largest: float
    informative: float | None = None
    informative_error: float | None = None
    success: float | None = None
    success_error: float | None = None
    tokens: float | None = None


def estimate(weights: Floats, informative: Floats, success: Floats, tokens: Floats) -> Estimate:
    """Self-normalised importance sampling; no weight is clipped.

    Args:
        weights: Shape (K,), probability under the other policy over that of the one that drew.
        informative: Shape (K,), 1 where a group's results differ, else 0.
        success: Shape (K,), mean result.
        tokens: Shape (K,), of a group; NaN where they are not known.

    References:
        Owen, Monte Carlo theory, methods and examples, chapter 9: the ratio estimator and its delta-method error.

    >>> estimate(np.ones(400), np.arange(400) % 4 / 3 // 1, np.full(400, 0.5), np.full(400, 10.0)).tokens
    40.0
    """
    total = float(weights.sum())
    if total <= 0.0:
        return Estimate(len(weights), 0.0, 0.0, 0.0)
    effective = total * total / float((weights * weights).sum())
    head = (len(weights), effective, total / len(weights), float(weights.max()) / total)
    if effective < LEAST:
        return Estimate(*head)
    rate, rate_error = _mean(weights, informative)
    level, level_error = _mean(weights, success)
    known = ~np.isnan(tokens)
    found = float((weights * informative)[known].sum())
    spent = float((weights[known] * tokens[known]).sum())
    return Estimate(*head, rate, rate_error, level, level_error, spent / found if found > 0.0 and spent > 0.0 else None)


def _mean(weights: Floats, values: Floats) -> tuple[float, float]:
    total = weights.sum()
    mean = float((weights * values).sum() / total)
    return mean, float(np.sqrt(((weights * (values - mean)) ** 2).sum()) / total)
