"""Pairs of curves, one of each fit, drawn independently of one another."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def higher_ceiling(fit_a: ScalingFit, fit_b: ScalingFit, seed: int) -> tuple[float, float]:
    """The probability that each tends to more, over all pairs of curves that have a ceiling; NaN without any."""
    ceilings: list[Floats] = []
    for given in (fit_a, fit_b):
        parts = zip(given.curves.families, given.curves.shares, strict=True)
        bent = [(family, share) for family, share in parts if not isinstance(family, Lines) and share > 0]
        if not bent:
            return math.nan, math.nan
        curves = Curves([family for family, _ in bent], [share for _, share in bent])
        ceilings.append(curves.sample(CURVES, np.random.default_rng([seed, 11])).ceiling)
    lead = balance(ceilings[0][:, None], ceilings[1])
    return (1 + lead) / 2, (1 - lead) / 2
