"""Pairs of curves, one of each fit, drawn independently of one another."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erf  # pyright: ignore[reportMissingTypeStubs]

from curricula.scaling.curves import Curves, Lines
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.laws import Floats

CURVES = 1024
# Partners of each curve. With the negative ones as well, the pairs of (b, a) are those of (a, b).
SHIFTS = (-301, -89, -17, -3, 3, 17, 89, 301)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Curves of two fits, and which are taken together.

    Attributes:
        a, b: n curves each, of equal weight.
        rows_a, rows_b: (pairs,), places of the two curves of a pair.
    """

    a: Curves
    b: Curves
    rows_a: npt.NDArray[np.int64]
    rows_b: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fit_a: ScalingFit, fit_b: ScalingFit, seed: int) -> "Pairs":
        """Each of the curves with several of the other fit's, in an order by chance."""
        order = np.random.default_rng([seed, 7]).permutation(CURVES)
        rows = [(order, np.roll(order, shift)) for shift in SHIFTS]
        a, b = fit_a.sample(CURVES, seed=seed), fit_b.sample(CURVES, seed=seed)
        return cls(a, b, np.concatenate([row for row, _ in rows]), np.concatenate([row for _, row in rows]))


def balance(a: Floats, b: Floats) -> float:
    """P(a > b) − P(a < b) over pairs; of (b, a) it is exactly the negative.

    Rounded to 40 bits, so that 1/2 + balance/2 of both ways sum to 1 exactly.
    """
    more, less = np.count_nonzero(a > b), np.count_nonzero(a < b)
    return round((more - less) / np.broadcast(a, b).size * 2**40) / 2**40


def leads(a: Floats, b: Floats, spread: float) -> float:
    """`balance` where a normal deviation of standard deviation `spread` (above 0) is added to what is between them.

    >>> round(leads(np.array([0.62]), np.array([0.60]), 0.02), 6)
    0.682689
    """
    # Whole numbers sum to the same in any order.
    parts = np.rint(2**40 * erf((a - b) / (spread * math.sqrt(2)))).astype(np.int64)
    return round(int(parts.sum()) / parts.size) / 2**40


def higher_ceiling(fit_a: ScalingFit, fit_b: ScalingFit, seed: int, run_spread: float = 0.0) -> tuple[float, float]:
    """The probability that each tends to more, over all pairs of curves that have a ceiling; NaN without any.

    Args:
        fit_a: of a run.
        fit_b: of another.
        seed: of the draws.
        run_spread: standard deviation of the ceilings of one recipe's runs; a curve that is known is no run.
    """
    ceilings: list[Floats] = []
    for given in (fit_a, fit_b):
        parts = zip(given.curves.families, given.curves.shares, strict=True)
        bent = [(family, share) for family, share in parts if not isinstance(family, Lines) and share > 0]
        if not bent:
            return math.nan, math.nan
        curves = Curves([family for family, _ in bent], [share for _, share in bent])
        ceilings.append(curves.sample(CURVES, np.random.default_rng([seed, 11])).ceiling)
    spread = run_spread * math.sqrt((not fit_a.known) + (not fit_b.known))
    a, b = ceilings[0][:, None], ceilings[1]
    lead = leads(a, b, spread) if spread > 0 else balance(a, b)
    return (1 + lead) / 2, (1 - lead) / 2
