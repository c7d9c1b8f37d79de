"""Bands: quantiles of curves that have weights, and even draws of them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from curricula.scaling.laws import Floats

LEVEL = 0.9
"""Of every band, where nothing else is asked for."""


def tails(level: float = LEVEL) -> tuple[float, float]:
    """The two ends of an equal-tailed band.

    >>> [round(end, 3) for end in tails(0.9)]
    [0.05, 0.95]
    """
    return (1 - level) / 2, (1 + level) / 2


def quantiles(values: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Weighted quantiles of each row of `values` (m, n): (m, levels)."""
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    bounds = np.cumsum(weight[order], axis=1)
    bounds -= weight[order] / 2
    found = np.empty((len(values), len(levels)))
    for row, (bound, line) in enumerate(zip(bounds, ordered, strict=True)):
        found[row] = np.interp(levels, bound, line)
    return found


def systematic(weight: Floats, n: int, offset: float) -> npt.NDArray[np.int64]:
    """`n` places, each as often as its weight says to within one, (n,) in increasing order.

    >>> systematic(np.array([1.0, 2.0, 1.0]), 8, 0.5).tolist()
    [0, 0, 1, 1, 1, 1, 2, 2]
    """
    bounds = np.cumsum(weight)
    return np.searchsorted(bounds / bounds[-1], (np.arange(n) + offset) / n).astype(np.int64)
