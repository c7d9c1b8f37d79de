"""The posterior of a straight line in log compute: what there is to say while no bend is in sight."""

import numpy as np

from curricula.scaling.bands import systematic
from curricula.scaling.curves import Lines
from curricula.scaling.draws import normals, relative, uniforms
from curricula.scaling.noise import CORRELATIONS, Noise
from curricula.scaling.observations import Observations
from curricula.scaling.regression import Prior, regress

# The level in the middle of the points; the slope for each e-fold of compute, of either sign.
PRIOR = Prior((0.5, 0.0), (0.4, 0.1))
DRAWS = 1024


def line_posterior(observed: Observations, noise: Noise, seed: int) -> tuple[Lines, float, float, float]:
    """Draws of equal weight, log evidence, mean scale and correlation of noise, from points above no compute."""
    logs = np.log(observed.compute)
    centre = float(logs.mean())
    solved = [
        regress(observed.score, (logs - centre)[:, None], noise, correlation, noise.scales, PRIOR, crossed=True)
        for correlation, _ in CORRELATIONS
    ]
    log = np.stack([one.evidence[0] + np.log(share) for one, (_, share) in zip(solved, CORRELATIONS, strict=True)])
    log += noise.log_prior
    evidence = float(np.logaddexp.reduce(log.ravel()))
    uniform = uniforms(DRAWS, 3, seed)
    which, size = np.divmod(systematic(relative(log.ravel()), DRAWS, float(uniform[0, 0])), len(noise.scales))
    normal = normals(uniform[:, 1:])
    level, slope = np.empty(DRAWS), np.empty(DRAWS)
    for index, (correlation, _) in enumerate(CORRELATIONS):
        mine = np.flatnonzero(which == index)
        columns = np.repeat((logs - centre)[:, None], len(mine), axis=1)
        drawn = regress(observed.score, columns, noise, correlation, noise.scales[size[mine]], PRIOR, crossed=False)
        level[mine], slope[mine] = drawn.draw(normal[mine])
    weight = np.full(DRAWS, 1 / DRAWS)
    curves = Lines(weight=weight, level=level, slope=slope, centre=np.full(DRAWS, np.exp(centre)))
    correlations = np.array([correlation for correlation, _ in CORRELATIONS])
    return curves, evidence, float(noise.scales[size].mean()), float(correlations[which].mean())
