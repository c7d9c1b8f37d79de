"""How probable it is that an ask would draw given prompts: of a planner as it stands, without drawing anything."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.sampling import sample_range

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Scores = Callable[[Ints], Floats]
Chances = Callable[[Floats, Ints, Ints], Floats]

_SAMPLES = 8


def inclusion(
    positions: Ints,
    span: tuple[int, int],
    taken: Ints,
    expected: float,
    per_draw: int,
    scores: Scores,
    chances: Chances,
    rng: np.random.Generator,
) -> Floats:
    """Marginal probability that an ask draws each of the given positions of one environment.

    A planner draws candidates at random, then among them by score. Where all eligible prompts are candidates the
    answer is exact; else it is the mean over random sets of candidates, each prompt put into the set in its turn, times
    the probability of being a candidate. An expected number of draws that is not whole is a mixture of the two next to
    it, as systematic allocation makes it.

    Args:
        positions: Shape (R,), the positions asked about; those outside the span, or taken, have probability 0.
        span: First eligible position, and one past the last.
        taken: Positions in flight within the span: ascending, distinct.
        expected: Draws that the environment is expected to get.
        per_draw: Candidates for each draw.
        scores: What positions (M,) are worth, shape (M,).
        chances: Probabilities among candidates, from scores (E, M), draws (E,) and sizes (E,).
        rng: Source of randomness.

    Returns:
        Shape (R,), in [0, 1].
    """
    start, stop = span
    probability = np.zeros(positions.size)
    eligible = (positions >= start) & (positions < stop) & ~np.isin(positions, taken)
    free = stop - start - taken.size
    asked = np.unique(positions[eligible])
    if not asked.size:
        return probability
    found = np.zeros(asked.size)
    low = int(np.floor(expected))
    for count, share in ((low, 1.0 - (expected - low)), (low + 1, expected - low)):
        if count == 0 or share <= 0.0:
            continue
        if count >= free:
            found += share
        elif count * per_draw >= free:
            everyone = np.setdiff1d(np.arange(start, stop), taken, assume_unique=True)
            among = _among(chances, scores(everyone)[None], count)[0]
            found += share * among[everyone.searchsorted(asked)]
        else:
            size = count * per_draw
            own = scores(asked)
            for _ in range(_SAMPLES):
                others = sample_range(start, stop, taken, size, rng)
                found += share * size / free / _SAMPLES * _forced(asked, own, others, scores(others), count, chances)
    probability[eligible] = found[asked.searchsorted(positions[eligible])]
    return np.minimum(probability, 1.0)


def _forced(
    asked: Ints, scores_R: Floats, others: Ints, scores_M: Floats, count: int, chances: Chances
) -> NDArray[np.float64]:
    """Probability of each asked position among the others with itself in the place of one of them, shape (R,)."""
    sets = np.repeat(scores_M[None], asked.size, axis=0)
    # One that is among the others already stands where it stands; else the first, as random as any, makes room.
    same = cast("NDArray[np.bool_]", asked[:, None] == others[None, :])
    place = np.where(same.any(axis=1), same.argmax(axis=1), 0)
    rows = np.arange(asked.size)
    sets[rows, place] = scores_R
    return _among(chances, sets, count)[rows, place].astype(np.float64)


def _among(chances: Chances, scores_EM: Floats, count: int) -> Floats:
    rows, size = len(scores_EM), scores_EM.shape[1]
    return chances(scores_EM, np.full(rows, count, dtype=np.int64), np.full(rows, size, dtype=np.int64))
