"""How far a split may leave the even one: as far as what it gains over that is clear."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from curricula.allocation.gains import Gains
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.laws import Floats

# Reasons of a fit by which nothing is told of what more compute brings.
BLIND = frozenset({"flat", "falling", "too_short"})
# A gain over the even split below this, in units of a score of mean weight, is none.
LEAST = 0.002


def blind(fits: Mapping[str, ScalingFit]) -> npt.NDArray[np.bool_]:
    """Which environments' curves do not tell a rise, (E,)."""
    return np.array([not BLIND.isdisjoint(given.reasons) for given in fits.values()])


def evened(shares: Floats, equal: Floats, low: Floats, which: npt.NDArray[np.bool_]) -> Floats:
    """Shares (E,) of which those that are told nothing of give up the same part of what they may.

    >>> both = np.array([True, True, False])
    >>> evened(np.array([0.3, 0.1, 0.6]), np.full(3, 1 / 3), np.zeros(3), both).round(3).tolist()
    [0.2, 0.2, 0.6]
    """
    room = float((equal - low)[which].sum())
    if room <= 0:
        return shares
    part = float((shares - low)[which].sum()) / room
    return np.where(which, low + part * (equal - low), shares)


def trust(ahead: Floats, least: float) -> float:
    """How far to go to a split, of what it gains over the even one on the same curves (n,): 0 to 1.

    Not at all where the mean is below half of its standard deviation over curves, or of `least`, whichever is more; all
    the way where it is above the whole of it; in between in proportion, so that plans do not jump.

    >>> trust(np.array([0.1, 0.1]), 0.01), trust(np.array([0.2, -0.1]), 0.01), trust(np.array([0.001]), 0.01)
    (1.0, 0.0, 0.0)
    """
    mean, unit = float(ahead.mean()), max(float(ahead.std()), least)
    if mean <= 0:
        return 0.0
    return float(np.clip(2 * mean / unit - 1, 0, 1)) if unit > 0 else 1.0


def ahead_of(gains: Sequence[Gains], x: Floats, other: Floats, rng: np.random.Generator) -> Floats:
    """What split x (E,) gains over another on each of n draws of all curves, weighted: (n,)."""
    rows = [
        gain.weight * np.subtract(*gain.draws(np.array([one, two])))
        for gain, one, two in zip(gains, x, other, strict=True)
    ]
    size = max(len(row) for row in rows)
    # Environments are independent of one another.
    return rng.permuted(np.stack([np.resize(row, size) for row in rows]), axis=1).sum(axis=0)
