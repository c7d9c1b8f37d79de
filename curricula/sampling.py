"""Draws of a fixed size whose inclusion probabilities are known exactly."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

_LEAST_WEIGHT = 1e-9


def draw_weights(scores: Floats, count: int, temperature: float) -> Floats:
    """Soft top-`count`: the sigmoid of log score above the log of the count-th best, over the temperature.

    Logarithms make the rule free of the unit of the scores: signal per token of a maths prompt and of a
    one-line sum differ by orders of magnitude.

    Args:
        scores: Shape (M,), not negative.
        count: Draws to make, 1 to M.
        temperature: Relative width of the threshold: at 0.05, a score 5% below another has 2.8 times lower odds.

    Returns:
        Shape (M,), in (0, 1].

    >>> draw_weights(np.array([1.0, 2.0, 4.0]), 1, 1.0)
    array([0.2       , 0.33333333, 0.5       ])
    """
    threshold = float(np.partition(scores, scores.size - count)[scores.size - count])
    if threshold <= 0.0:
        return np.where(scores > 0.0, 1.0, _LEAST_WEIGHT)
    # sigmoid(log(s/t)/temperature) = 1 / (1 + (t/s)^(1/temperature)); the floor keeps the power finite.
    ratio = threshold / np.maximum(scores, threshold * 1e-30)
    exponent = np.minimum(np.log(ratio) / temperature, 20.0)
    return 1.0 / (1.0 + np.exp(exponent))


def inclusion_probabilities(weights: Floats, count: int, probe: float) -> Floats:
    """Inclusion probabilities that sum to `count`: (1 - probe) min(1, c w) + probe count / M.

    Args:
        weights: Shape (M,), positive.
        count: Draws to make, 1 to M.
        probe: Fraction of the draws that is spread evenly, in (0, 1].

    Returns:
        Shape (M,), in (0, 1].

    >>> inclusion_probabilities(np.array([1.0, 1.0, 8.0]), 2, 0.1)
    array([0.51666667, 0.51666667, 0.96666667])
    """
    size = weights.size
    if count >= size:
        return np.ones(size)
    ranked = -np.sort(-weights)
    # With the t heaviest capped at 1, the rest share count - t in proportion: c = (count - t) / their sum.
    rest = np.cumsum(ranked[::-1])[::-1][:count]
    scale = (count - np.arange(count)) / rest
    # The least t will do; t = count - 1 always does, as the rest includes the weight itself.
    first = int(np.argmax(scale * ranked[:count] <= 1.0 + 1e-12))
    shares = np.minimum(1.0, scale[first] * weights)
    return (1.0 - probe) * shares + probe * count / size


def systematic(probabilities: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw exactly `count` places so that place j is included with probability j.

    The places must be in random order already (candidates are), or neighbours would never be drawn together.

    Args:
        probabilities: Shape (M,), in [0, 1], of sum `count`.
        count: Draws to make.
        rng: The only source of randomness; one number is drawn.

    Returns:
        Shape (count,), distinct places in ascending order.
    """
    edges = np.cumsum(probabilities)
    edges *= count / edges[-1]
    places = np.searchsorted(edges, np.arange(count) + rng.random(), side="right")
    return np.minimum(places, probabilities.size - 1)


def allocate(shares: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Split `count` draws over shares so that each part is within one of its expectation.

    Args:
        shares: Shape (E,), of sum 1.
        count: Draws to split.
        rng: One number is drawn.

    Returns:
        Shape (E,), of sum `count`, with E[n_e] = count * share and |n_e - count * share| < 1.
    """
    edges = np.cumsum(shares)
    edges *= count / edges[-1]
    marks = np.floor(edges + rng.random()).astype(np.int64)
    marks[-1] = count
    return np.diff(marks, prepend=0)


def sample_range(start: int, stop: int, taken: list[int], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Simple random sample without replacement from a range of positions, in random order.

    Args:
        start: First position.
        stop: One past the last.
        taken: Positions to leave out: sorted, distinct, within the range.
        count: How many; at most stop - start - len(taken).
        rng: Source of randomness. Time and memory go with `count` and `taken`, not with the range.

    Returns:
        Shape (count,), positions.

    >>> sorted(int(x) for x in sample_range(10, 15, [11, 12], 3, np.random.default_rng(0)))
    [10, 13, 14]
    """
    ranks = rng.choice(stop - start - len(taken), count, replace=False)
    if taken:
        # The r-th position that is free lies after as many taken ones as have at most r free ones before them.
        gaps = np.array(taken) - start - np.arange(len(taken))
        ranks = ranks + np.searchsorted(gaps, ranks, side="right")
    return ranks + start
