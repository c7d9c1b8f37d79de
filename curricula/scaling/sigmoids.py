"""The posterior of ScaleRL's sigmoid: a grid over midpoint and exponent that closes in, then importance sampling.

Given midpoint and exponent the law is linear in R0 and A − R0, so both are integrated in closed form under a normal
prior, at every size and correlation of the noise. Draws from that are weighed to the prior that is meant (below).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curricula.scaling.bands import systematic
from curricula.scaling.curves import Sigmoids
from curricula.scaling.draws import log_sum, relative, truncated, uniforms
from curricula.scaling.laws import Floats
from curricula.scaling.noise import CORRELATIONS, Noise
from curricula.scaling.observations import Observations
from curricula.scaling.regression import Prior, regress

# log B ~ Normal(log 1.5, .45); log C_mid flat a decade either side of what was seen, decaying as C_mid^−.4 beyond it.
EXPONENT = (np.log(1.5), 0.45)
WIDEST = 3.0
DECADE = np.log(10)
DECAY = 0.4
# A ~ Beta(3, 2) with probability .85, else Beta(2, 1), which lets environments be solved; R0 flat on [0, A]: together
# a density of .85 · 12 A (1 − A) + .15 · 2. Ceilings near 0 are the rare ones.
SHORT, SOLVED = 0.85 * 12, 0.15 * 2
PROPOSAL = Prior((0.35, 0.35), (0.5, 0.5))
FIXED = 1e-5
CELLS = (40, 20)
ROUGH = (20, 10)
NEGLIGIBLE = 12.0
ROUNDS = 4
DRAWS = 4096


@dataclass(frozen=True, slots=True)
class _Grid:
    """Log posterior of cells (correlation, midpoint × exponent, scale), up to one constant."""

    midpoints: Floats
    exponents: Floats
    steps: tuple[float, float]
    log: Floats

    @property
    def total(self) -> float:
        return log_sum(self.log) + float(np.log(self.steps[0] * self.steps[1]))


@dataclass(frozen=True, slots=True)
class SigmoidDraws:
    """Curves (n), the log evidence of the law, and the noise that goes with each curve, (n,)."""

    curves: Sigmoids
    evidence: float
    scale: Floats
    correlation: Floats


class SigmoidPosterior:
    """What points say of the sigmoid behind them.

    Args:
        observed: The points.
        noise: Their noise.
        law: The sigmoid, or one that derives from it.
    """

    def __init__(self, observed: Observations, noise: Noise, law: type[Sigmoids] = Sigmoids) -> None:
        self._observed, self._noise, self._law = observed, noise, law
        seen = np.log(observed.positive)
        self._end = float(seen.max())
        self._box = (
            (float(seen.min()) - DECADE, self._end + DECADE),
            (EXPONENT[0] - WIDEST * EXPONENT[1], EXPONENT[0] + WIDEST * EXPONENT[1]),
        )
        self._prior = PROPOSAL
        if observed.r0 is not None:
            self._prior = Prior((observed.r0, PROPOSAL.centre[1]), (FIXED, PROPOSAL.width[1]))

    def evidence(self) -> float:
        """Log evidence under the normal prior: to compare points left out."""
        return self._close_in().total

    def rough_evidence(self) -> float:
        """The same from one coarse grid, for a twentieth of the time: too low where there is little noise."""
        return self._grid(self._box, ROUGH).total

    def draw(self, seed: int) -> SigmoidDraws | None:
        """Weighted draws; None where no rising curve is near the points."""
        grid = self._close_in()
        uniform = uniforms(DRAWS, 5, seed)
        picked = systematic(relative(grid.log.ravel()), DRAWS, float(uniform[0, 0]))
        which, rest = np.divmod(picked, grid.log[0].size)
        cell, size = np.divmod(rest, len(self._noise.scales))
        midpoint = grid.midpoints[cell] + (uniform[:, 1] - 0.5) * grid.steps[0]
        exponent = grid.exponents[cell] + (uniform[:, 2] - 0.5) * grid.steps[1]
        scale = self._noise.scales[size]
        r0, gain, log_weight = np.empty(DRAWS), np.empty(DRAWS), np.empty(DRAWS)
        for index, (correlation, probability) in enumerate(CORRELATIONS):
            mine = np.flatnonzero(which == index)
            if not len(mine):
                continue
            columns = self._shares(midpoint[mine], exponent[mine])
            solved = regress(
                self._observed.score, columns, self._noise, correlation, scale[mine], self._prior, crossed=False
            )
            if self._observed.r0 is None:
                r0[mine], gain[mine], mass = solved.draw_inside(uniform[mine, 3:])
            else:
                # A start that is known is not moved, so only the gain is cut.
                r0[mine] = self._observed.r0
                room = max(1 - self._observed.r0, 0.0)
                gain[mine], mass = truncated(
                    uniform[mine, 4], solved.second, 1 / np.sqrt(solved.precision[2]), 0.0, room
                )
            log_weight[mine] = solved.evidence + mass + np.log(probability) + self._noise.log_prior[size[mine]]
        log_weight += self._log_prior(midpoint, exponent) - grid.log.ravel()[picked] + self._correction(r0, gain)
        alive = np.isfinite(log_weight)
        if not alive.any():
            return None
        evidence = grid.total + log_sum(log_weight[alive]) - float(np.log(DRAWS))
        weight = np.exp(log_weight[alive] - log_weight[alive].max())
        curves = self._law(
            weight=weight / weight.sum(),
            asymptote=(r0 + gain)[alive],
            exponent=np.exp(exponent[alive]),
            midpoint=np.exp(midpoint[alive]),
            r0=r0[alive],
        )
        correlation = np.array([rho for rho, _ in CORRELATIONS])[which[alive]]
        return SigmoidDraws(curves, evidence, scale[alive], correlation)

    def _close_in(self) -> _Grid:
        """Grids of ever smaller boxes around the cells that matter."""
        box = self._box
        grid = self._grid(box)
        for _ in range(ROUNDS - 1):
            cells = grid.log.max(axis=(0, 2)).reshape(CELLS)
            matters = cells > cells.max() - NEGLIGIBLE
            smaller = tuple(
                _around(np.flatnonzero(matters.any(axis=1 - axis)), box[axis], CELLS[axis]) for axis in (0, 1)
            )
            if np.prod(np.diff(smaller)) > 0.7 * np.prod(np.diff(box)):
                break
            box = smaller
            grid = self._grid(box)
        return grid

    def _grid(self, box: tuple[tuple[float, float], ...], cells: tuple[int, int] = CELLS) -> _Grid:
        edges = [np.linspace(low, high, count + 1) for (low, high), count in zip(box, cells, strict=True)]
        middles = [(axis[1:] + axis[:-1]) / 2 for axis in edges]
        midpoints, exponents = (axis.ravel() for axis in np.meshgrid(*middles, indexing="ij"))
        columns = self._shares(midpoints, exponents)
        parts: list[Floats] = []
        for correlation, probability in CORRELATIONS:
            solved = regress(
                self._observed.score, columns, self._noise, correlation, self._noise.scales, self._prior, crossed=True
            )
            parts.append(solved.evidence + solved.log_inside() + np.log(probability))
        log = np.stack(parts)
        log += self._log_prior(midpoints, exponents)[:, None] + self._noise.log_prior
        return _Grid(midpoints, exponents, (edges[0][1] - edges[0][0], edges[1][1] - edges[1][0]), log)

    def _shares(self, midpoint: Floats, exponent: Floats) -> Floats:
        """Shares of the gain at every point (n) for each pair of logs (g): (n, g)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._observed.compute)[:, None]
        return self._law.share(np.exp(exponent) * (logs - midpoint))

    def _log_prior(self, midpoint: Floats, exponent: Floats) -> Floats:
        """Of log C_mid and log B; minus infinity outside of the box."""
        (low, high), (least, most) = self._box
        decayed = (1 - np.exp(-DECAY * DECADE)) / DECAY
        log = -np.log(self._end - low + decayed) - DECAY * np.maximum(midpoint - self._end, 0)
        log = log - 0.5 * ((exponent - EXPONENT[0]) / EXPONENT[1]) ** 2 - np.log(EXPONENT[1] * np.sqrt(2 * np.pi))
        inside = (midpoint >= low) & (midpoint <= high) & (exponent >= least) & (exponent <= most)
        return np.where(inside, log, -np.inf)

    def _correction(self, r0: Floats, gain: Floats) -> Floats:
        """The prior that is meant over the normal one that was used, in logs."""
        asymptote = r0 + gain
        log = np.log(SHORT * np.maximum(asymptote * (1 - asymptote), 0) + SOLVED) - _log_normal(gain, self._prior, 1)
        inside = (gain >= 0) & (asymptote <= 1)
        if self._observed.r0 is None:
            log = log - _log_normal(r0, self._prior, 0)
            inside &= r0 >= 0
        else:
            known = float(np.clip(self._observed.r0, 0, 0.99))
            log = log - np.log(SHORT * (1 / 6 - known**2 / 2 + known**3 / 3) + SOLVED * (1 - known))
        return np.where(inside, log, -np.inf)


def _log_normal(values: Floats, prior: Prior, index: int) -> Floats:
    deviation = (values - prior.centre[index]) / prior.width[index]
    return -0.5 * deviation**2 - np.log(prior.width[index] * np.sqrt(2 * np.pi))


def _around(cells: npt.NDArray[np.intp], side: tuple[float, float], count: int) -> tuple[float, float]:
    """The side of a box cut to the cells named and one more at each end."""
    step = (side[1] - side[0]) / count
    return side[0] + max(cells[0] - 1, 0) * step, side[0] + min(cells[-1] + 2, count) * step
