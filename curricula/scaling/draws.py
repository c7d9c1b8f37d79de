"""Quasi-random draws: the same for the same seed, and even, so that few of them make a smooth band."""

import operator
from importlib import import_module
from typing import Any

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.scaling.laws import Floats

_EDGE = 1e-12


def check_seed(where: str, seed: Any) -> None:
    """Raises CurriculaValueError where draws cannot be told by it."""
    try:
        good = not isinstance(seed, bool) and operator.index(seed) >= 0
    except TypeError:
        good = False
    if not good:
        raise CurriculaValueError(f"{where}: expected seed as a whole number of 0 or more; got {str(seed)[:60]}")


def uniforms(n: int, dimensions: int, seed: int) -> Floats:
    """Scrambled Sobol points in [0, 1), (n, dimensions); n is a power of 2."""
    qmc: Any = import_module("scipy.stats.qmc")
    return np.asarray(qmc.Sobol(dimensions, seed=seed).random(n), float)


def normals(uniform: Floats) -> Floats:
    """Standard normals of the same shape."""
    special: Any = import_module("scipy.special")
    return np.asarray(special.ndtri(np.clip(uniform, _EDGE, 1 - _EDGE)), float)


def normal_cdf(values: Floats) -> Floats:
    """Of the standard normal, of the same shape."""
    special: Any = import_module("scipy.special")
    return np.asarray(special.ndtr(values), float)


def truncated(uniform: Floats, mean: Floats, width: Floats, low: float, high: Floats | float) -> tuple[Floats, Floats]:
    """Normals cut to [low, high], from uniforms; and the log of the probability of lying there, −inf where none is."""
    below, above = normal_cdf((low - mean) / width), normal_cdf((high - mean) / width)
    mass = above - below
    drawn = mean + width * normals(below + uniform * np.maximum(mass, 0))
    with np.errstate(divide="ignore"):
        return np.clip(drawn, low, np.maximum(high, low)), np.log(np.maximum(mass, 0))


def relative(log_weight: Floats) -> Floats:
    """Weights in parts of the largest."""
    return np.exp(log_weight - log_weight.max())


def log_sum(log: Floats) -> float:
    """Log of the sum of exponentials of all entries."""
    most = float(log.max())
    return most + float(np.log(np.exp(log - most).sum()))
