"""Both laws under one roof: the sigmoid and the straight line, each as probable as the points make it."""

from dataclasses import dataclass

import numpy as np

from curricula.scaling.curves import Curves, Family, Lines
from curricula.scaling.laws import Floats
from curricula.scaling.lines import line_posterior
from curricula.scaling.noise import Noise
from curricula.scaling.observations import Observations
from curricula.scaling.regression import regress
from curricula.scaling.sigmoids import PROPOSAL, SigmoidPosterior

# Probability of the sigmoid before the points are seen.
SIGMOID = 0.85
# A curve that falls obeys neither law: that it falls on and that it stays are taken as equally probable.
STAYS = 0.5


@dataclass(frozen=True, slots=True)
class Average:
    """The model average.

    Attributes:
        curves: draws of both laws.
        sigmoid: the posterior probability of the sigmoid.
        noise: posterior mean of one point's standard deviation, in units of the score.
        correlation: posterior mean of the correlation of neighbours.
        rises: posterior probability that the straight line rises.
        slope: its slope for each e-fold of compute, mean and standard deviation.
    """

    curves: Curves
    sigmoid: float
    noise: float
    correlation: float
    rises: float
    slope: tuple[float, float]


def average(observed: Observations, seed: int) -> Average:
    """Posterior of both laws."""
    noise = Noise.of(observed)
    above = observed.take(observed.compute > 0)
    lines, line_evidence, line_scale = line_posterior(above, Noise.of(above), seed + 1)
    drawn = SigmoidPosterior(observed, noise).draw(seed)
    rises = float((lines.slope > 0).mean())
    slope = (float(lines.slope.mean()), float(lines.slope.std()))
    families: list[Family] = [lines]
    shares, probability, scale, correlation = [1.0], 0.0, line_scale, 0.0
    if drawn is not None:
        odds = drawn.evidence - _start_evidence(observed) - line_evidence + np.log(SIGMOID / (1 - SIGMOID))
        probability = float(1 / (1 + np.exp(-np.clip(odds, -50, 50))))
        families.insert(0, drawn.curves)
        shares = [probability, 1 - probability]
        weight = drawn.curves.weight
        scale = probability * float(weight @ drawn.scale) + (1 - probability) * line_scale
        correlation = float(weight @ drawn.correlation)
    if rises < 0.05:
        families.append(_levels(above, lines))
        shares = [*(share * (1 - STAYS) for share in shares), STAYS]
    return Average(
        Curves(families, shares), probability, scale * float(np.median(noise.unit)), correlation, rises, slope
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
