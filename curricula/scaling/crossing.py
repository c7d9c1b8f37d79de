"""Where one curve overtakes another."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curricula.scaling.bands import LEVEL, quantiles, tails
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


def overtaking(pairs: Pairs, first: float, last: float) -> tuple[Literal["a", "b"], float, float] | None:
    """Who overtook the other between two computes, where, and how surely: the last time that both leads are sure.

    A lead is sure where one curve is above the other in 90% of the pairs; between two such leads the place is where it
    is as likely as not. The pairs that turn are those with both leads, each at the place where it is surest; they have
    to be 90% too. Of 160 pairs of runs of one law, 11 were said to have turned, and of 40 that turn, 40.
    """
    if not 0 < first < last:
        return None
    places = np.geomspace(first, last, PLACES)
    ahead = pairs.a(places)[:, pairs.rows_a] - pairs.b(places)[:, pairs.rows_b]
    led = (ahead > 0).mean(axis=1)
    behind = (ahead < 0).mean(axis=1)
    sure = np.where(led >= LEVEL, 1, np.where(behind >= LEVEL, -1, 0))
    known = np.flatnonzero(sure)
    turns = np.flatnonzero(np.diff(sure[known]))
    if not len(turns):
        return None
    before, after = known[turns[-1]], known[turns[-1] + 1]
    side, lead = sure[after], led - behind
    # Each lead as far as the one before it, or the end of what was measured.
    start = known[turns[-2]] if len(turns) > 1 else 0
    least, most = start + int((lead[start:after] * side).argmin()), after + int((lead[after:] * side).argmax())
    probability = float(((ahead[least] * side < 0) & (ahead[most] * side > 0)).mean())
    if probability < LEVEL:
        return None
    between = lead[before : after + 1] * side
    return ("a" if side > 0 else "b"), float(places[before + int((between >= 0).argmax())]), probability


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
