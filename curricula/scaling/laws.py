"""Curves of a score against compute."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def distance(compute: npt.ArrayLike, midpoint: npt.ArrayLike, exponent: npt.ArrayLike) -> Floats:
    """The argument of a law, exponent · log(compute / midpoint): minus infinity at no compute."""
    with np.errstate(divide="ignore"):
        return np.asarray(exponent, float) * (np.log(np.asarray(compute, float)) - np.log(np.asarray(midpoint, float)))


def rise(compute: npt.ArrayLike, midpoint: npt.ArrayLike, exponent: npt.ArrayLike) -> Floats:
    """Share of the gain that is made at `compute`, 1 / (1 + (midpoint / compute)^exponent); 0 at no compute.

    >>> rise([0, 100, 1e9], 100, 1.5).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-distance(compute, midpoint, exponent)))


def sigmoid(
    compute: npt.ArrayLike,
    asymptote: npt.ArrayLike,
    exponent: npt.ArrayLike,
    midpoint: npt.ArrayLike,
    r0: npt.ArrayLike,
) -> Floats:
    """ScaleRL's law (2510.13786): R0 + (A − R0) / (1 + (C_mid / C)^B).

    >>> float(sigmoid(2542, 0.61, 1.92, 2542, 0.2).round(3))
    0.405
    """
    return np.asarray(r0) + (np.asarray(asymptote) - np.asarray(r0)) * rise(compute, midpoint, exponent)


def power_law(
    compute: npt.ArrayLike, asymptote: npt.ArrayLike, exponent: npt.ArrayLike, scale: npt.ArrayLike
) -> Floats:
    """The foil of ScaleRL's appendix: A − D / C^B, without a lower bound."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gap = np.asarray(scale) * np.asarray(compute, float) ** -np.asarray(exponent)
    return np.asarray(asymptote) - np.where(np.asarray(scale) == 0, 0, gap)
