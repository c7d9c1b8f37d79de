"""Where one curve overtakes another."""

import math
from dataclasses import dataclass

import numpy as np

from curricula.scaling.bands import quantiles, tails
from curricula.scaling.pairs import Pairs

# Crossings are looked for up to so many times the last point: at the end sigmoids are at their ceilings.
FARTHEST = 1e6
PLACES = 192


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the one that is behind at the last point overtakes the other.

    Attributes:
        after: the last point of both; of two known curves, the larger midpoint.
        probability: that they cross at all after it, within a million times that compute.
        a: the probability that the first one overtakes.
        b: that the second one does.
        compute: where, given that one does: the median; NaN where no pair of draws crosses.
        interval: its 90% interval.
    """

    after: float
    probability: float
    a: float
    b: float
    compute: float
    interval: tuple[float, float]


def crossing(pairs: Pairs, last: float) -> Crossing:
    """The first crossing after `last`, over pairs of curves."""
    places = np.geomspace(last, FARTHEST * last, PLACES)
    ahead = pairs.a(places)[:, pairs.rows_a] - pairs.b(places)[:, pairs.rows_b]
    leads = np.sign(ahead[0])
    turned = np.sign(ahead) == -leads
    crosses = turned.any(axis=0) & (leads != 0)
    after = turned.argmax(axis=0)[crosses]
    a = float((crosses & (leads < 0)).mean())
    b = float((crosses & (leads > 0)).mean())
    if not crosses.any():
        return Crossing(last, a + b, a, b, math.nan, (math.nan, math.nan))
    # Straight between two places, in log compute.
    before, beyond = ahead[after - 1, np.flatnonzero(crosses)], ahead[after, np.flatnonzero(crosses)]
    way = after - 1 + before / (before - beyond)
    at = np.exp(np.log(last) + way * np.log(FARTHEST) / (PLACES - 1))
    ends = tails()
    low, middle, high = quantiles(at[None], np.full(len(at), 1 / len(at)), (ends[0], 0.5, ends[1]))[0]
    return Crossing(last, a + b, a, b, float(middle), (float(low), float(high)))
