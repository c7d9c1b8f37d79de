"""Fits by search over a grid, for comparison: the paper's own procedure, and the power law that it argues against.

Both take the candidate of least squares. For a band, candidates weigh as likely as they are under normal noise of the
residuals' size.
"""

import numpy as np

from curricula.scaling.curves import PowerLaws, Sigmoids
from curricula.scaling.laws import Floats, rise
from curricula.scaling.observations import Observations

# ScaleRL (2510.13786): A in steps of .005, C_mid in GPU-hours; it names no step of C_mid, here 80 in equal ratios.
ASYMPTOTES = np.linspace(0.45, 0.8, 71)
MIDPOINTS = (100.0, 40_000.0)
STEPS = 80
EXPONENTS = np.geomspace(0.3, 6, 60)
POWER_ASYMPTOTES = np.linspace(0, 1, 201)
POWER_EXPONENTS = np.geomspace(0.02, 4, 120)
# Points many decades apart have no larger ratio of gaps.
STEEPEST = 1e100


def paper_grid(observed: Observations, asymptotes: Floats = ASYMPTOTES) -> tuple[Sigmoids, int]:
    """ScaleRL's procedure: every A and C_mid of a grid, B by least squares; and which candidate is best.

    Where R0 is not given it is the mean score at no compute, else it is fitted by least squares as well. The grid of
    C_mid is the paper's, moved by whole decades so that points in another unit lie in it as GPU-hours would.
    """
    middle = np.exp(np.log(observed.positive).mean())
    decade = 10.0 ** round(float(np.log10(middle / np.sqrt(MIDPOINTS[0] * MIDPOINTS[1]))))
    midpoints, exponents = _crossed(np.geomspace(*MIDPOINTS, STEPS) * decade, EXPONENTS)
    share = rise(observed.compute[:, None], midpoints, exponents)
    weight = _weights(observed)
    start = observed.compute == 0
    r0 = observed.r0
    if r0 is None and start.any():
        r0 = float(observed.score[start].mean())
    rest = 1 - share
    score = observed.score * weight
    aa, ar, rr = weight @ share**2, weight @ (share * rest), weight @ rest**2
    ay, ry, yy = score @ share, score @ rest, score @ observed.score
    if r0 is None:
        starts = np.clip((ry[:, None] - asymptotes * ar[:, None]) / np.maximum(rr[:, None], 1e-12), 0, asymptotes)
    else:
        starts = np.full((len(midpoints), len(asymptotes)), r0)
    squares = yy - 2 * asymptotes * ay[:, None] - 2 * starts * ry[:, None]
    squares = squares + asymptotes**2 * aa[:, None] + 2 * asymptotes * starts * ar[:, None] + starts**2 * rr[:, None]
    # B by least squares: of each (A, C_mid) only the best B is a candidate.
    by_cell = squares.reshape(STEPS, len(EXPONENTS), len(asymptotes))
    best = by_cell.argmin(axis=1)
    rows = np.arange(STEPS)[:, None] * len(EXPONENTS) + best
    columns = np.broadcast_to(np.arange(len(asymptotes)), rows.shape)
    least = squares[rows, columns].ravel()
    fitted = 3 if r0 is not None else 4
    curves = Sigmoids(
        weight=_likelihood(least, len(observed), fitted),
        asymptote=asymptotes[columns].ravel(),
        exponent=exponents[rows].ravel(),
        midpoint=midpoints[rows].ravel(),
        r0=starts[rows, columns].ravel(),
    )
    return curves, int(least.argmin())


def power_search(observed: Observations) -> tuple[PowerLaws, int]:
    """A − D / C^B over a grid of A and B, D by least squares and not below 0; and which candidate is best."""
    above = observed.take(observed.compute > 0)
    # In units of the geometric mean, as D has the size of the compute to the power of B.
    unit = float(np.exp(np.log(above.compute).mean()))
    asymptotes, exponents = _crossed(POWER_ASYMPTOTES, POWER_EXPONENTS)
    with np.errstate(over="ignore"):
        fall = np.minimum((above.compute[:, None] / unit) ** -exponents, STEEPEST)
    weight = _weights(above)
    gap = asymptotes - above.score[:, None]
    scale = np.maximum((weight @ (gap * fall)) / (weight @ fall**2), 0)
    squares = weight @ (gap - scale * fall) ** 2
    curves = PowerLaws(
        weight=_likelihood(squares, len(above), 3),
        asymptote=asymptotes,
        exponent=exponents,
        scale=scale * unit**exponents,
    )
    return curves, int(squares.argmin())


def _crossed(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Every pair of both, the second running fastest."""
    return np.repeat(first, len(second)), np.tile(second, len(first))


def _weights(observed: Observations) -> Floats:
    """Of each point: one over its variance where that is known, with mean 1."""
    if observed.noise is None:
        return np.ones(len(observed))
    weight = observed.noise**-2.0
    return weight / weight.mean()


def _likelihood(squares: Floats, points: int, fitted: int) -> Floats:
    free = max(points - fitted, 1)
    variance = max(float(squares.min()) / free, 1e-12)
    weight = np.exp(-0.5 * (squares - squares.min()) / variance)
    return weight / weight.sum()
