"""Figures of how far two series of log-probabilities of the same tokens are apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.apart import apart

Floats = NDArray[np.float64]

_FIRST = 4  # tokens of the first bucket


@dataclass(frozen=True, slots=True)
class Bucket:
    """Of the tokens at positions `first` to `last` of their completions, counted from 1; fields as in `Figures`."""

    first: int
    last: int
    tokens: int
    mean: float
    largest: float
    kl: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Of all tokens.

    Attributes:
        tokens: How many.
        mean: Mean absolute difference, nats.
        largest: The largest.
        kl: Estimate of KL(generator || trainer) a token (`curricula.apart`).
        error: Standard error of `kl`, over completions.
        buckets: By position.
        rows: Sum of the estimate's terms in each completion.
        counts: Tokens of each completion.
    """

    tokens: int
    mean: float
    largest: float
    kl: float
    error: float
    buckets: tuple[Bucket, ...]
    rows: tuple[float, ...]
    counts: tuple[int, ...]

    def summary(self) -> dict[str, Any]:
        """As JSON, without the completions."""
        buckets = [{name: getattr(bucket, name) for name in Bucket.__slots__} for bucket in self.buckets]
        named = {name: getattr(self, name) for name in ("tokens", "mean", "largest", "kl", "error")}
        return {**named, "positions": buckets}


def measure(sampled: Sequence[Sequence[float]], trained: Sequence[Sequence[float]]) -> Figures | None:
    """Compares the generator's log-probabilities with the trainer's, of two completions at least.

    Of one there is no standard error, and nothing could be ranked by it.

    Returns:
        None where some are not finite, as after an overflow.
    """
    pairs = [
        apart(np.array(other, np.float64), np.array(own, np.float64))
        for other, own in zip(sampled, trained, strict=True)
    ]
    whole = np.concatenate([np.zeros(0), *(differences for differences, _, _ in pairs)])
    if whole.size == 0 or not all(known.all() for _, _, known in pairs):
        return None
    position = np.concatenate([np.arange(1, len(known) + 1) for _, _, known in pairs])
    kl = np.concatenate([terms for _, terms, _ in pairs])
    counts = np.array([len(known) for _, _, known in pairs])
    rows = np.array([float(terms.sum()) for _, terms, _ in pairs])
    buckets = [
        Bucket(first, last, int(inside.sum()), *_of(whole[inside], kl[inside]))
        for first, last in edges(int(counts.max()))
        if (inside := (position >= first) & (position <= last)).any()
    ]
    mean, largest, divergence = _of(whole, kl)
    error = _ratio_error(rows, counts)
    return Figures(
        int(whole.size), mean, largest, divergence, error, tuple(buckets), tuple(rows.tolist()), tuple(counts.tolist())
    )


def edges(longest: int) -> list[tuple[int, int]]:
    """First and last position of each bucket: they double.

    >>> edges(20)
    [(1, 4), (5, 8), (9, 16), (17, 20)]
    """
    found, first, last = [], 1, _FIRST
    while first <= longest:
        found.append((first, min(last, longest)))
        first, last = last + 1, 2 * last
    return found


def difference_error(one: Figures, other: Figures, paired: bool) -> float:
    """Standard error of the difference of two KLs; `paired` where both are of the same completions."""
    if paired:
        return _ratio_error(np.subtract(one.rows, other.rows), np.array(one.counts))
    return float(np.hypot(one.error, other.error))


def _of(difference: Floats, kl: Floats) -> tuple[float, float, float]:
    return float(difference.mean()), float(difference.max()), float(kl.mean())


def _ratio_error(sums: Floats, counts: NDArray[np.int64]) -> float:
    # Of a ratio of sums over completions, whose tokens are not independent (Cochran, Sampling Techniques, eq. 6.9).
    n, total = len(sums), counts.sum()
    left = sums - sums.sum() / total * counts
    return float(np.sqrt(n / (n - 1) * (left**2).sum()) / total)
