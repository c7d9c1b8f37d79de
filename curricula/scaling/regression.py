"""Two coefficients with a normal prior, in closed form for every column and scale of noise at once."""

from dataclasses import dataclass

import numpy as np

from curricula.scaling.draws import normal_cdf, truncated
from curricula.scaling.laws import Floats
from curricula.scaling.noise import Noise

# A case is never given up: what is faint by a normal's tail may be all there is.
FAINT = 1e-9


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

    def draw_inside(self, uniform: Floats) -> tuple[Floats, Floats, Floats]:
        """The same from uniforms, with 0 ≤ first ≤ 1 and 0 ≤ second ≤ 1 − first; and the log of what was cut to."""
        a, b, d = self.precision
        first, log_mass = truncated(uniform[:, 0], self.first, np.sqrt(d / (a * d - b * b)), 0.0, 1.0)
        second, more = truncated(
            uniform[:, 1], self.second - b / d * (first - self.first), 1 / np.sqrt(d), 0.0, 1 - first
        )
        return first, second, log_mass + more

    def log_inside(self) -> Floats:
        """About the log of the probability of second ≥ 0 and first + second ≤ 1: where draws are worth their while."""
        a, b, d = self.precision
        determinant = a * d - b * b
        rises = normal_cdf(self.second / np.sqrt(a / determinant))
        below = normal_cdf((1 - self.first - self.second) / np.sqrt(np.maximum(a + d - 2 * b, 1e-300) / determinant))
        return np.log(np.maximum(rises * below, FAINT))


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
