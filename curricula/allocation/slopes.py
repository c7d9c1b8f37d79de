"""The steepest that a curve is between two places: what the bound of an allocation rests on."""

from functools import singledispatch

import numpy as np

from curricula.scaling.curves import Curves, Family, Lines, PowerLaws, Sigmoids
from curricula.scaling.laws import Floats, distance

# So far before the midpoint, in units of z, a curve is as it is at no compute.
NEAR = 600.0


def steepest(curves: Curves, places: Floats) -> Floats:
    """The largest slope of each curve (n,) in each cell between neighbours of `places` (m + 1,): (m, n).

    >>> from curricula.scaling import ScalingFit
    >>> known = ScalingFit.of_parameters(1.0, 1.0, 100.0)
    >>> steepest(known.curves, np.array([100.0, 200.0])).round(6).tolist()
    [[0.0025]]
    """
    low, high = places[:-1, None], places[1:, None]
    return np.concatenate([_steepest(family, low, high) for family in curves.families], axis=1)


@singledispatch
def _steepest(family: Family, low: Floats, high: Floats) -> Floats:
    raise NotImplementedError(type(family).__name__)


@_steepest.register
def _(family: Sigmoids, low: Floats, high: Floats) -> Floats:
    """dR/dC = (A - R0) B s'(z) / C, s the share at z = B log(C / C_mid), has one peak."""
    exponent = family.exponent
    peak = family.midpoint * np.exp(family.steepest(exponent) / exponent)

    def slope(compute: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = exponent * family.slope(distance(compute, family.midpoint, exponent)) / compute
            # At no compute it is what it is a little above: without bound where the exponent is below 1.
            start = exponent * family.slope(np.full_like(exponent, -NEAR)) * np.exp(NEAR / exponent) / family.midpoint
        return np.where(compute > 0, found, start)

    gain = family.asymptote - family.r0
    with np.errstate(invalid="ignore"):
        # Of a falling curve the least steep place is at an end.
        rising = gain * slope(np.clip(peak, low, high))
        falling = gain * np.minimum(slope(low), slope(high))
    return np.where(gain > 0, rising, np.where(gain < 0, falling, 0.0))


@_steepest.register
def _(family: Lines, low: Floats, high: Floats) -> Floats:
    """Slope / C where the line is not cut at 0 or 1; a line that falls is least steep at its right end."""
    slope = family.slope
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        zero = family.centre * np.exp(-family.level / np.where(slope == 0, np.inf, slope))
        one = family.centre * np.exp((1 - family.level) / np.where(slope == 0, np.inf, slope))
        left = np.maximum(low, zero)
        rising = np.where(left < np.minimum(high, one), slope / left, 0.0)
        falling = np.where((low < one) | (high > zero), 0.0, slope / high)
    return np.where(slope > 0, rising, np.where(slope < 0, falling, 0.0))


@_steepest.register
def _(family: PowerLaws, low: Floats, high: Floats) -> Floats:
    """B D / C^(B + 1) where the curve is above 0."""
    asymptote, exponent, scale = family.asymptote, family.exponent, family.scale
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        zero = (scale / np.maximum(asymptote, 1e-300)) ** (1 / exponent)
        left = np.maximum(low, zero)
        found = exponent * scale * left ** -(exponent + 1)
    return np.where((scale > 0) & (left < high), found, 0.0)
