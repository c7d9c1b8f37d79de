"""The sigmoid with its asymptote given, by least squares: what the paper compares two recipes' exponents by."""

from importlib import import_module
from typing import Any

import numpy as np

from curricula.scaling.laws import Floats, rise
from curricula.scaling.observations import Observations

# Least points that tell midpoint, exponent and R0.
LEAST = 3
STARTS = 12
EXPONENTS = (0.1, 10.0)
DECADES = 2.0


def refit(observed: Observations, asymptote: float) -> tuple[float, float, float]:
    """Midpoint, exponent and R0 of the sigmoid nearest to the points that tends to `asymptote`.

    Points are weighed by their standard errors where those are known. R0 is in [0, asymptote], or as it was given; the
    exponent is in [.1, 10], and the midpoint within two decades of the points.

    Args:
        observed: 3 places or more; with fewer, all are NaN.
        asymptote: in (0, 1].

    >>> from curricula.scaling.laws import sigmoid
    >>> from curricula.scaling.observations import observe
    >>> compute = np.linspace(500, 8000, 30)
    >>> found = refit(observe(compute, sigmoid(compute, 0.61, 1.92, 2542, 0.2)), 0.61)
    >>> [round(value, 3) for value in found]
    [2542.0, 1.92, 0.2]
    """
    if len(np.unique(observed.compute)) < LEAST:
        return np.nan, np.nan, np.nan
    weight = np.ones(len(observed)) if observed.noise is None else np.median(observed.noise) / observed.noise
    log = np.log(observed.positive)
    low = np.array([log.min() - DECADES * np.log(10), np.log(EXPONENTS[0])])
    high = np.array([log.max() + DECADES * np.log(10), np.log(EXPONENTS[1])])

    def start(share: Floats) -> Floats:
        """R0 by least squares, for shares (n,) or (n, k) of the gain that are made."""
        left = 1 - share
        if observed.r0 is not None:
            return np.full(left.shape[1:], min(observed.r0, asymptote))
        target = (observed.score - (asymptote * share).T).T * left
        squares = (weight**2) @ left**2
        return np.clip((weight**2) @ target / np.maximum(squares, 1e-12), 0, asymptote)

    def misses(parameters: Floats) -> Floats:
        share = rise(observed.compute, np.exp(parameters[0]), np.exp(parameters[1]))
        r0 = start(share)
        return weight * (r0 + (asymptote - r0) * share - observed.score)

    inner = np.arange(1, STARTS + 1) / (STARTS + 1)
    candidates: Floats = low + (high - low) * np.stack(np.meshgrid(inner, inner), axis=-1).reshape(-1, 2)
    share = rise(observed.compute[:, None], np.exp(candidates[:, 0]), np.exp(candidates[:, 1]))
    r0 = start(share)
    off = weight[:, None] * (r0 + (asymptote - r0) * share - observed.score[:, None])
    nearest = candidates[(off**2).sum(axis=0).argmin()]
    # Imported here: it takes longer than all the rest.
    optimize: Any = import_module("scipy.optimize")
    best: Floats = optimize.least_squares(misses, nearest, bounds=(low, high)).x
    share = rise(observed.compute, np.exp(best[0]), np.exp(best[1]))
    return float(np.exp(best[0])), float(np.exp(best[1])), float(start(share))
