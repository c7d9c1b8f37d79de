"""What a curve cannot tell, by name, each with one sentence."""

import numpy as np

from curricula.scaling.bands import quantiles, tails
from curricula.scaling.bayes import Average
from curricula.scaling.curves import Exponentials, Sigmoids
from curricula.scaling.observations import Observations

LEAST_POINTS, LEAST_SPAN = 5, 2.0
SURE = 0.95
WIDE = 0.5
BENT = 0.7
BEFORE = 0.2
RELATED = 0.6


def reasons_of(observed: Observations, found: Average) -> dict[str, str]:
    """Names and sentences; empty where the points say all that a fit claims."""
    said = too_short(observed)
    seen = np.unique(observed.positive)
    if len(seen) < 2:
        return said
    span = float(seen[-1] / seen[0])
    slope, error = found.slope
    if found.rises < 1 - SURE:
        said["falling"] = "scores fall with compute: no law here does, so a forecast only spans falling on and staying"
    elif found.rises < SURE:
        said["flat"] = f"no rise is told from noise: {slope:+.3g} ± {error:.2g} for each e-fold of compute"
    elif found.leaves:
        said["leaves_law"] = (
            f"the last third goes {'up' if found.leaves > 0 else 'down'} from the law ({found.leaves:+.2g} for each "
            "e-fold of compute): something changed, and a forecast spans going on so and staying"
        )
    if found.correlation > RELATED:
        said["related"] = f"neighbours' deviations hang together ({found.correlation:.2f}): the law may be another"
    if observed.r0 is not None and observed.score.mean() < observed.r0 - max(2 * found.noise, 0.01):
        said["below_r0"] = f"scores lie below the r0 of {observed.r0:g} that was given: the law rises from there"
    moved = abs(slope) * float(np.log(span))
    if found.noise > 0.5 * moved and "flat" not in said:
        said["noisy"] = f"a point's noise of {found.noise:.2g} is more than half of the {moved:.2g} that scores moved"
    ceiling, start = _interval(found, "asymptote"), _interval(found, "r0")
    if ceiling is None or found.bounded < BENT or ceiling[1] - ceiling[0] > WIDE * max(1 - observed.score.max(), 0.05):
        said["no_bend"] = _no_bend(found, ceiling)
    elif found.sigmoid < 1 - BENT:
        said["other_law"] = (
            f"a curve that bends otherwise fits better (probability of the sigmoid {found.sigmoid:.2f}): "
            "forecasts heed it, the parameters are the sigmoid's"
        )
    elif found.rivals:
        laws = " and ".join(
            f"one that {'slows down faster' if law is Exponentials else 'starts later'} tends to {ceiling:.3g}"
            for law, ceiling in found.rivals
        )
        said["law_untold"] = (
            f"other laws fit about as well as the sigmoid, and {laws}, which the ceiling's band leaves out: it holds "
            "as far as the sigmoid does"
        )
    if start is not None and start[1] - start[0] > max(BEFORE, 8 * found.noise):
        said["saturated"] = "most of the rise may lie before the first point: r0, midpoint and exponent are the prior's"
    return said


def too_short(observed: Observations) -> dict[str, str]:
    """That there are too few points for a law of any kind; empty where there are not."""
    seen = np.unique(observed.positive)
    span = float(seen[-1] / seen[0]) if len(seen) else 1.0
    if len(seen) >= LEAST_POINTS and span >= LEAST_SPAN:
        return {}
    places = "1 place" if len(seen) == 1 else f"{len(seen)} places"
    return {
        "too_short": f"{places} over a factor of {span:.3g} in compute: {LEAST_POINTS} over a factor of "
        f"{LEAST_SPAN:g} or more say something of a law"
    }


def _interval(found: Average, name: str) -> tuple[float, float] | None:
    curves = found.curves.families[0]
    if type(curves) is not Sigmoids:
        return None
    low, high = quantiles(getattr(curves, name)[None], curves.weight, tails())[0]
    return float(low), float(high)


def _no_bend(found: Average, ceiling: tuple[float, float] | None) -> str:
    if ceiling is None or found.bounded < BENT:
        return f"a bend is not told from a straight line in log compute (probability {found.bounded:.2f}): no ceiling"
    return (
        f"the ceiling may be anywhere in [{ceiling[0]:.2f}, {ceiling[1]:.2f}]: the curve bends (probability "
        f"{found.bounded:.2f}), but the points do not tell where to"
    )
