"""Two coefficients with a normal prior, in closed form for every column and scale of noise at once."""

from dataclasses import dataclass

import numpy as np

from curricula.scaling.laws import Floats
from curricula.scaling.noise import Noise


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal prior of the coefficients of the constant and of the column."""

    centre: tuple[float, float]
    width: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Solution:
    """Normal posterior of both coefficients for each case, and the log evidence."""

    first: Floats
    second: Floats
    precision: tuple[Floats, Floats, Floats]
    evidence: Floats

    def draw(self, normals: Floats) -> tuple[Floats, Floats]:
        """One pair of coefficients for each case, from standard normals (cases, 2)."""
        a, b, d = self.precision
        first = self.first + normals[:, 0] * np.sqrt(d / (a * d - b * b))
        return first, self.second - b / d * (first - self.first) + normals[:, 1] / np.sqrt(d)


def regress(
    score: Floats, columns: Floats, noise: Noise, correlation: float, scales: Floats, prior: Prior, *, crossed: bool
) -> Solution:
    """Regress `score` (n,) on a constant and each column of `columns` (n, g).

    With `crossed`, every column is solved at every scale and the results are (g, k); without, column i has scale i.
    """
    one = noise.whiten(np.ones(len(score)), correlation)
    white = noise.whiten(score, correlation)
    column = noise.whiten(columns, correlation)
    parts = [one @ one, one @ column, np.einsum("ng,ng->g", column, column), one @ white, white @ column, white @ white]
    if crossed:
        parts = [np.asarray(part)[..., None] for part in parts]
    oo, os, ss, oy, sy, yy = parts
    w = 1 / scales**2
    (centre0, centre1), (precision0, precision1) = prior.centre, 1 / np.square(prior.width)
    a, b, d = oo * w + precision0, os * w, ss * w + precision1
    u, v = oy * w + precision0 * centre0, sy * w + precision1 * centre1
    determinant = a * d - b * b
    first, second = (d * u - b * v) / determinant, (a * v - b * u) / determinant
    rest = yy * w + precision0 * centre0**2 + precision1 * centre1**2 - u * first - v * second
    evidence = (
        -0.5 * (rest + np.log(determinant) - np.log(precision0 * precision1))
        - len(score) * (np.log(scales) + 0.5 * np.log(2 * np.pi))
        - noise.log_determinant(correlation)
    )
    return Solution(first, second, (a, b, d), evidence)
