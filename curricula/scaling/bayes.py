"""The laws under one roof: each as probable as the points make it."""

from dataclasses import dataclass

import numpy as np

from curricula.scaling.bands import quantiles, tails
from curricula.scaling.curves import Curves, Exponentials, Family, Gompertz, Lines, Sigmoids
from curricula.scaling.laws import Floats
from curricula.scaling.leaving import leaving
from curricula.scaling.lines import line_posterior
from curricula.scaling.noise import Noise
from curricula.scaling.observations import Observations
from curricula.scaling.regression import regress
from curricula.scaling.sigmoids import PROPOSAL, SigmoidPosterior

# Probabilities before the points are seen. The laws beside the sigmoid keep a band honest where it is none.
LAWS: tuple[tuple[type[Sigmoids], float], ...] = ((Sigmoids, 0.77), (Exponentials, 0.05), (Gompertz, 0.03))
LINE = 0.15
# A curve that falls, or that leaves its law at the end, obeys none: with these probabilities it goes on as its last
# third does, or stays there.
GOES_ON, STAYS = 0.25, 0.25
# A law whose evidence is more than this part of the best one's is not told from it (Jeffreys: not worth a mention).
ALIKE = 1 / 3


@dataclass(frozen=True, slots=True)
class Average:
    """The model average.

    Attributes:
        curves: draws of all laws, those of the sigmoid first.
        sigmoid: the posterior probability of the sigmoid.
        bounded: the posterior probability of any law that has a ceiling, the sigmoid's among them.
        noise: posterior mean of one point's standard deviation, in units of the score.
        correlation: posterior mean of the correlation of neighbours.
        rises: posterior probability that the straight line rises.
        leaves: how the last third leaves the law, in score for each e-fold of compute; 0 where it does not.
        rivals: laws beside the sigmoid that the points do not tell from the best one, and the ceiling of each, where
            that is outside of the 90% band of all: there it is the probabilities beforehand that decide.
        slope: its slope for each e-fold of compute, mean and standard deviation.
    """

    curves: Curves
    sigmoid: float
    bounded: float
    noise: float
    correlation: float
    rises: float
    leaves: float
    rivals: tuple[tuple[type[Sigmoids], float], ...]
    slope: tuple[float, float]


def average(observed: Observations, seed: int) -> Average:
    """Posterior of all laws."""
    noise = Noise.of(observed)
    above = observed.take(observed.compute > 0)
    lines, line_evidence, line_scale, line_correlation = line_posterior(above, Noise.of(above), seed)
    start = _start_evidence(observed)
    families: list[Family] = []
    log_odds, scales, correlations = [line_evidence + start + np.log(LINE)], [line_scale], [line_correlation]
    evidences: dict[type[Sigmoids], float] = {}
    sigmoid_drawn = False
    for law, probability in LAWS:
        drawn = SigmoidPosterior(observed, noise, law).draw(seed)
        if drawn is None:
            continue
        sigmoid_drawn |= law is Sigmoids
        families.append(drawn.curves)
        evidences[law] = drawn.evidence
        log_odds.append(drawn.evidence + np.log(probability))
        scales.append(float(drawn.curves.weight @ drawn.scale))
        correlations.append(float(drawn.curves.weight @ drawn.correlation))
    share = np.exp(np.array(log_odds) - np.logaddexp.reduce(log_odds))
    families.append(lines)
    shares = [*map(float, share[1:]), float(share[0])]
    sigmoid, bounded = shares[0] if sigmoid_drawn else 0.0, 1 - shares[-1]
    rises = float((lines.slope > 0).mean())
    size, correlation = float(share @ scales) * float(np.median(noise.unit)), float(share @ correlations)
    leaves = leaving(observed, Curves(families, shares), size, correlation)
    if rises < 0.05 or leaves:
        last = above.take(above.compute >= np.quantile(above.compute, 2 / 3))
        ending = line_posterior(last, Noise.of(last), seed)[0]
        families += [ending, _level(ending, last)]
        shares = [*(part * (1 - GOES_ON - STAYS) for part in shares), GOES_ON, STAYS]
    curves = Curves(families, shares)
    return Average(
        curves=curves,
        sigmoid=sigmoid,
        bounded=bounded,
        noise=size,
        correlation=correlation,
        rises=rises,
        leaves=leaves,
        rivals=_rivals(curves, evidences),
        slope=(float(lines.slope.mean()), float(lines.slope.std())),
    )


def _rivals(curves: Curves, evidences: dict[type[Sigmoids], float]) -> tuple[tuple[type[Sigmoids], float], ...]:
    low, high = quantiles(curves.ceiling[None], curves.weight, tails())[0]
    near = max(evidences.values(), default=0.0) + np.log(ALIKE)
    found: list[tuple[type[Sigmoids], float]] = []
    for law, family in zip(evidences, curves.families, strict=False):
        middle = float(quantiles(family.ceiling[None], family.weight, (0.5,))[0, 0])
        if law is not Sigmoids and evidences[law] > near and not low <= middle <= high:
            found.append((law, middle))
    return tuple(found)


def _start_evidence(observed: Observations) -> float:
    """Log evidence of the points at no compute, of which a straight line in log compute has nothing to say."""
    start = observed.take(observed.compute == 0)
    if not len(start):
        return 0.0
    noise = Noise.of(start)
    nothing: Floats = np.zeros((len(start), 1))
    solved = regress(start.score, nothing, noise, 0.0, noise.scales, PROPOSAL, crossed=True)
    return float(np.logaddexp.reduce(solved.evidence[0] + noise.log_prior))


def _level(ending: Lines, last: Observations) -> Lines:
    """Curves that stay where the last points are, as uncertain as a line is there."""
    place = float(np.exp(np.log(last.compute).mean()))
    level = ending.at(np.array([place]))[0]
    return Lines(weight=ending.weight, level=level, slope=np.zeros_like(level), centre=np.full_like(level, place))
