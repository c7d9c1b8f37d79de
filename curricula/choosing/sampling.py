"""Draws of a fixed size whose inclusion probabilities are known exactly."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST_WEIGHT = 1e-9

_SMALL = 4096  # numbers that cost no more than the calls that work on them

PADDING = -1.0
"""Score of a place that holds no candidate: environments with fewer candidates than others are padded with it.

Scores between it and 0 are those of candidates that are held back: the negative of their rate, see `even_parts`.
"""


def draw_weights(scores_EM: Floats, counts_E: Ints, temperature: float) -> Floats:
    """Soft top-`count` of each row: the sigmoid of log score above the log of the count-th best, over the temperature.

    Logarithms make the rule free of the unit of the scores: signal per token of a maths prompt and of a
    one-line sum differ by orders of magnitude.

    Args:
        scores_EM: Shape (E, M), not negative; `PADDING` where there is no candidate.
        counts_E: Shape (E,), draws to make in each row, 1 to its candidates.
        temperature: Relative width of the threshold: at 0.05, a score 5% below another has 2.8 times lower odds.

    Returns:
        Shape (E, M), in (0, 1], and 0 where there is no candidate.

    >>> draw_weights(np.array([[1.0, 2.0, 4.0]]), np.array([1]), 1.0)
    array([[0.2       , 0.33333333, 0.5       ]])
    """
    rows, width = len(scores_EM), scores_EM.shape[1]
    ranked = scores_EM.copy()
    ranked.sort(axis=1)
    threshold = ranked[np.arange(rows), width - counts_E][:, None]
    # sigmoid(log(s/t)/temperature) = 1 / (1 + (t/s)^(1/temperature)); the floors keep the power finite.
    ratio = threshold / np.maximum(scores_EM, np.maximum(threshold * 1e-30, 1e-300))
    np.log(np.maximum(ratio, 1e-300, out=ratio), out=ratio)
    ratio /= temperature
    weights = 1.0 / (1.0 + np.exp(np.minimum(ratio, 20.0, out=ratio), out=ratio))
    if not (threshold > 0.0).all():
        flat = np.where(scores_EM > 0.0, 1.0, _LEAST_WEIGHT)
        weights = np.where(threshold > 0.0, weights, flat)
    weights[scores_EM <= PADDING] = 0.0
    return weights


def even_parts(scores_EM: Floats, counts_E: Ints, sizes_E: Ints, probe: float) -> Floats | None:
    """What each candidate has of the draws that are spread by chance, where 1 is an even part; None where all have it.

    One that is held back at a rate r (its score is -r) has min(1, r / probe), so that with `probe` of the draws spread
    by chance it is drawn at r of an even rate. What is left goes evenly to the others, and back to those held back
    where no other can take more.

    Args:
        scores_EM: Shape (E, M); `PADDING` where there is no candidate.
        counts_E: Shape (E,), draws to make in each row.
        sizes_E: Shape (E,), candidates in each row.
        probe: Fraction of the draws that is spread by chance, in (0, 1].

    Returns:
        Shape (E, M), of sum `size` in each row, and 0 where there is no candidate.

    >>> even_parts(np.array([[-0.02, 1.0, 3.0, -0.02]]), np.array([1]), np.array([4]), 0.05)
    array([[0.4, 1.6, 1.6, 0.4]])
    """
    held = (scores_EM < 0.0) & (scores_EM > PADDING)
    if not held.any():
        return None
    free = scores_EM >= 0.0
    parts = np.where(held, np.minimum(-scores_EM / probe, 1.0), 0.0)
    left = sizes_E - parts.sum(axis=1)
    others = np.maximum(free.sum(axis=1), 1)
    # No candidate can be drawn more than once.
    each = np.minimum(left / others, sizes_E / counts_E)
    parts[free] = np.broadcast_to(each[:, None], parts.shape)[free]
    taken = np.where(free, parts, 0.0).sum(axis=1)
    back = np.where(held, parts, 0.0).sum(axis=1)
    scale = np.where(back > 0.0, (sizes_E - taken) / np.maximum(back, 1e-300), 1.0)
    parts = np.where(held, parts * scale[:, None], parts)
    crowded = (parts.max(axis=1) * counts_E > sizes_E * (1.0 + 1e-9))[:, None]
    return np.where(crowded, (scores_EM > PADDING) * 1.0, parts)


def inclusion_probabilities(
    weights_EM: Floats, counts_E: Ints, sizes_E: Ints, probe: float, even_EM: Floats | None = None
) -> Floats:
    """Inclusion probabilities that sum to `count` in each row: (1 - probe) min(1, c w) + probe count e / size.

    Args:
        weights_EM: Shape (E, M), positive, and 0 where there is no candidate.
        counts_E: Shape (E,), draws to make in each row, 1 to its size.
        sizes_E: Shape (E,), candidates in each row.
        probe: Fraction of the draws that is spread evenly, in (0, 1].
        even_EM: Shape (E, M), e above, each candidate's part of those; None where all have 1.

    Returns:
        Shape (E, M), in (0, 1], and 0 where there is no candidate.

    >>> inclusion_probabilities(np.array([[1.0, 1.0, 8.0]]), np.array([2]), np.array([3]), 0.1)
    array([[0.51666667, 0.51666667, 0.96666667]])
    """
    most = int(counts_E.max())
    ranked = weights_EM.copy()
    ranked.sort(axis=1)
    # With the t heaviest capped at 1, the rest share count - t in proportion: c = (count - t) / their sum.
    rest = ranked.cumsum(axis=1)[:, ::-1][:, :most]
    heaviest = ranked[:, ::-1][:, :most]
    left = counts_E[:, None] - np.arange(most)
    # The least t will do; t = count - 1 always does, as the rest includes the weight itself.
    fits = left * heaviest <= rest * (1.0 + 1e-12)
    rows = np.arange(len(counts_E))
    first = np.minimum(fits.argmax(axis=1), counts_E - 1)
    scale = (left[rows, first] / rest[rows, first])[:, None]
    chance = np.minimum(scale * weights_EM, 1.0)
    chance *= 1.0 - probe
    even = (probe * counts_E / sizes_E)[:, None]
    chance += even if even_EM is None else even * even_EM
    chance[(counts_E >= sizes_E)[:, None] & (weights_EM > 0.0)] = 1.0
    chance[weights_EM <= 0.0] = 0.0
    return chance


def systematic(probabilities: Floats, sizes_R: Ints, counts_R: Ints, rng: np.random.Generator) -> Ints:
    """Draw exactly `count` places in each row, so that place j is included with probability j.

    The places must be in random order already (candidates are), or neighbours would never be drawn together.

    Args:
        probabilities: Shape (sum of sizes,), in [0, 1]: rows laid end to end, each of sum `count`.
        sizes_R: Shape (R,), places in each row, at least 1.
        counts_R: Shape (R,), draws to make in each row, at least 1.
        rng: The only source of randomness; one number is drawn for each row.

    Returns:
        Shape (sum of counts,), places in the flat array: row by row, distinct, ascending.
    """
    ends = sizes_R.cumsum()
    starts = ends - sizes_R
    edges = probabilities.cumsum()
    # Row r takes up the numbers from `before` to `before + count`.
    before = counts_R.cumsum() - counts_R
    low = np.concatenate([[0.0], edges[ends[:-1] - 1]])
    scale = counts_R / (edges[ends - 1] - low)
    edges = (edges - np.repeat(low, sizes_R)) * np.repeat(scale, sizes_R) + np.repeat(before, sizes_R)
    row = np.repeat(np.arange(sizes_R.size), counts_R)
    marks = np.arange(row.size) + rng.random(sizes_R.size)[row]
    places = np.minimum(edges.searchsorted(marks, side="right"), ends[row] - 1)
    places = np.maximum(places, starts[row])
    # A mark that rounding puts past the last edge belongs to the last place of its row that can be drawn.
    for wrong in np.flatnonzero(probabilities[places] <= 0.0).tolist():
        start = int(starts[row[wrong]])
        places[wrong] = start + int(np.flatnonzero(probabilities[start : places[wrong] + 1] > 0.0)[-1])
    return places


def allocate(shares: Floats, count: int, rng: np.random.Generator) -> Ints:
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


def sample_range(start: int, stop: int, taken: Sequence[int] | Ints, count: int, rng: np.random.Generator) -> Ints:
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
    if len(taken):
        # The r-th position that is free lies after as many taken ones as have at most r free ones before them.
        gaps = np.asarray(taken) - start - np.arange(len(taken))
        ranks = ranks + np.searchsorted(gaps, ranks, side="right")
    return ranks + start


def alike(sizes_E: Ints) -> list[Ints]:
    """Rows to be worked on together: each part's sizes are within a factor of two, so padding at most doubles work.

    Returns:
        Places in `sizes_E`, part by part, ascending within a part.

    >>> [part.tolist() for part in alike(np.array([64, 6400, 100, 64]))]
    [[0, 2, 3], [1]]
    """
    smallest, largest = int(sizes_E.min()), int(sizes_E.max())
    if largest <= 2 * smallest or largest * sizes_E.size <= _SMALL:
        return [np.arange(sizes_E.size)]
    octave = np.log2(sizes_E).astype(np.int64)
    return [np.flatnonzero(octave == value) for value in np.unique(octave)]
