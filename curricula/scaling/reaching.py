"""When a curve gets to a score."""

from functools import singledispatch

import numpy as np

from curricula.scaling.curves import Curves, Family, Lines, PowerLaws, Sigmoids
from curricula.scaling.laws import Floats


def reach(curves: Curves, score: float, start: float) -> Floats:
    """The compute at which each curve (n,) gets to `score`: 0 where it begins above it, infinity where it never does.

    A line that falls is above the score at no compute, whatever it says there: it is there if it is at `start`.

    >>> from curricula.scaling.fitted import ScalingFit
    >>> known = ScalingFit.of_parameters(0.6, 2.0, 1000, r0=0.2)
    >>> reach(known.curves, 0.4, 1.0).round(6).tolist(), reach(known.curves, 0.7, 1.0).tolist()
    ([1000.0], [inf])
    """
    return np.concatenate([_reach(family, score, start) for family in curves.families])


@singledispatch
def _reach(family: Family, score: float, start: float) -> Floats:
    raise NotImplementedError(type(family).__name__)


@_reach.register
def _(family: Sigmoids, score: float, start: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        made = (score - family.r0) / (family.asymptote - family.r0)
        at = family.midpoint * np.exp(family.inverse(made) / family.exponent)
    return np.where(family.r0 >= score, 0.0, np.where(family.asymptote > score, at, np.inf))


@_reach.register
def _(family: Lines, score: float, start: float) -> Floats:
    rises = family.slope > 0
    with np.errstate(over="ignore"):
        at = family.centre * np.exp((score - family.level) / np.where(rises, family.slope, 1.0))
    there = family.at(np.array([start]))[0] >= score
    return np.where(rises, at, np.where(there, 0.0, np.inf))


@_reach.register
def _(family: PowerLaws, score: float, start: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at = (family.scale / (family.asymptote - score)) ** (1 / family.exponent)
    return np.where(family.asymptote > score, at, np.inf)
