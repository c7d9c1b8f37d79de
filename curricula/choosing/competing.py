"""Who has the best candidates: which environment, and in each the visited prompts or the others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.candidates import Candidates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Won(NamedTuple):
    """What environments win in a competition of all candidates.

    Attributes:
        shares: Shape (E,), of sum 1, of the draws.
        explored: Shape (E,), the part of that which prompts never visited won.
    """

    shares: Floats
    explored: Floats


def among_best(values: Floats, kinds: Ints, count: int, most: int) -> Floats:
    """How many of the `count` largest values (M,) are of each kind (M,), of `most` kinds; ties count in parts.

    Candidates of which nothing is known are all worth the same, so ties are common, and are nobody's.

    >>> among_best(np.array([3.0, 1.0, 1.0, 1.0, 0.5]), np.array([0, 0, 1, 1, 2]), 2, 3)
    array([1.33333333, 0.66666667, 0.        ])
    """
    if count >= values.size:
        return np.bincount(kinds, minlength=most).astype(np.float64)
    worst = values.size - count
    threshold = np.partition(values, worst)[worst]
    above, ties = values > threshold, values == threshold
    tied = np.bincount(kinds[ties], minlength=most)
    return np.bincount(kinds[above], minlength=most) + (count - int(above.sum())) * (tied / tied.sum())


def compete(
    candidates: Candidates, scores: Floats, worth_E: Floats, count: int, explore_E: Floats, shares_E: Floats
) -> Won:
    """Have all candidates compete for `count` draws by score (M,) times worth of their environment (E,).

    Where prompts never visited win less than the part of the draws that is to be explored, they compete for that
    among themselves, and the visited ones for the rest.

    Args:
        candidates: M of them, at least one.
        scores: What each is worth; not positive where it is held back.
        worth_E: What a unit of score is worth in each environment.
        count: Draws.
        explore_E: Part of each environment's draws that is to be explored at least.
        shares_E: Shares of the draws of late, of sum 1: how much that comes to in all.
    """
    sizes_E2 = candidates.sizes_E2
    most = sizes_E2.size
    kinds = np.repeat(np.arange(most), sizes_E2.reshape(-1))
    values = np.where(scores > 0.0, scores * np.repeat(worth_E, sizes_E2.sum(axis=1)), 0.0)
    won_R = among_best(values, kinds, count, most)
    fresh = kinds % 2 == 1
    wanted = float(explore_E @ shares_E) * count
    if won_R[1::2].sum() < wanted and fresh.any() and not fresh.all():
        known_R = among_best(values[~fresh], kinds[~fresh], count, most)
        new_R = among_best(values[fresh], kinds[fresh], max(1, round(wanted)), most)
        won_R = known_R / known_R.sum() * (count - wanted) + new_R / new_R.sum() * wanted
    won_E2 = won_R.reshape(-1, 2)
    total_E = won_E2.sum(axis=1)
    part_E = np.where(total_E > 0.0, won_E2[:, 1] / np.maximum(total_E, 1e-12), explore_E)
    return Won(total_E / total_E.sum(), np.where(candidates.unseen_E > 0.0, part_E, 0.0))


def unseen_among_best(scores: Floats, sizes_E2: Ints, counts_E: Ints) -> Floats:
    """How many of the `count` best candidates of each environment were never visited, shape (E,); ties in parts."""
    result = np.zeros(len(counts_E))
    ends = sizes_E2.sum(axis=1).cumsum()
    for code in np.flatnonzero((sizes_E2[:, 1] > 0) & (counts_E > 0)).tolist():
        kinds = np.repeat(np.arange(2), sizes_E2[code])
        own = scores[ends[code] - kinds.size : ends[code]]
        result[code] = among_best(own, kinds, int(counts_E[code]), 2)[1]
    return result
