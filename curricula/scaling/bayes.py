"""The laws under one roof: each as probable as the points make it."""

from dataclasses import dataclass

import numpy as np

from curricula.scaling.curves import Curves, Exponentials, Family, Gompertz, Lines, Sigmoids
from curricula.scaling.laws import Floats
from curricula.scaling.lines import line_posterior
from curricula.scaling.noise import Noise
from curricula.scaling.observations import Observations
from curricula.scaling.regression import regress
from curricula.scaling.sigmoids import PROPOSAL, SigmoidPosterior

# Probabilities before the points are seen. The laws beside the sigmoid keep a band honest where it is none.
LAWS: tuple[tuple[type[Sigmoids], float], ...] = ((Sigmoids, 0.8), (Exponentials, 0.025), (Gompertz, 0.025))
LINE = 0.15
# A curve that falls obeys no law: that it falls on and that it stays are taken as equally probable.
STAYS = 0.5


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
        slope: its slope for each e-fold of compute, mean and standard deviation.
    """

    curves: Curves
    sigmoid: float
    bounded: float
    noise: float
    correlation: float
    rises: float
    slope: tuple[float, float]


def average(observed: Observations, seed: int) -> Average:
    """Posterior of all laws."""
    noise = Noise.of(observed)
    above = observed.take(observed.compute > 0)
    lines, line_evidence, line_scale, line_correlation = line_posterior(above, Noise.of(above), seed)
    start = _start_evidence(observed)
    families: list[Family] = []
    log_odds, scales, correlations = [line_evidence + start + np.log(LINE)], [line_scale], [line_correlation]
    sigmoid_drawn = False
    for law, probability in LAWS:
        drawn = SigmoidPosterior(observed, noise, law).draw(seed)
        if drawn is None:
            continue
        sigmoid_drawn |= law is Sigmoids
        families.append(drawn.curves)
        log_odds.append(drawn.evidence + np.log(probability))
        scales.append(float(drawn.curves.weight @ drawn.scale))
        correlations.append(float(drawn.curves.weight @ drawn.correlation))
    share = np.exp(np.array(log_odds) - np.logaddexp.reduce(log_odds))
    families.append(lines)
    shares = [*map(float, share[1:]), float(share[0])]
    sigmoid, bounded = shares[0] if sigmoid_drawn else 0.0, 1 - shares[-1]
    rises = float((lines.slope > 0).mean())
    if rises < 0.05:
        families.append(_levels(above, lines))
        shares = [*(part * (1 - STAYS) for part in shares), STAYS]
    return Average(
        curves=Curves(families, shares),
        sigmoid=sigmoid,
        bounded=bounded,
        noise=float(share @ scales) * float(np.median(noise.unit)),
        correlation=float(share @ correlations),
        rises=rises,
        slope=(float(lines.slope.mean()), float(lines.slope.std())),
    )


def _start_evidence(observed: Observations) -> float:
    """Log evidence of the points at no compute, of which a straight line in log compute has nothing to say."""
    start = observed.take(observed.compute == 0)
    if not len(start):
        return 0.0
    noise = Noise.of(start)
    nothing: Floats = np.zeros((len(start), 1))
    solved = regress(start.score, nothing, noise, 0.0, noise.scales, PROPOSAL, crossed=True)
    return float(np.logaddexp.reduce(solved.evidence[0] + noise.log_prior))


def _levels(above: Observations, lines: Lines) -> Lines:
    """Curves that stay where the last third of the points is, as uncertain as the lines are there."""
    last = np.sort(above.compute)[-max(len(above) // 3, 1) :].mean()
    level = lines.at(np.array([last]))[0]
    return Lines(weight=lines.weight, level=level, slope=np.zeros_like(level), centre=np.full_like(level, last))
