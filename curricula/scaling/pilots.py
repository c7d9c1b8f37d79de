"""How long a pilot has to be: pilots of a known curve are simulated, fitted, and their bands measured."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.scaling.bands import LEVEL, quantiles, tails
from curricula.scaling.fit import fit
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.laws import Floats
from curricula.scaling.observations import check_unit, evaluation_noise

SURE = 0.8
LEAST_POINTS, LENGTHS = 6, 24
# Where no longest length is given: so many times the midpoint, past which a sigmoid hardly rises.
PAST = 20.0
MOST_POINTS = 5000


@dataclass(frozen=True, slots=True)
class Pilot:
    """Simulated pilots of one length.

    Attributes:
        length: compute of the last evaluation.
        points: evaluations.
        half_width: median over pilots of half the band's width.
        narrow: part of the pilots whose band is as narrow as wanted.
        coverage: part of the pilots whose band holds the truth.
        rmse: root mean squared error of the forecast.
        error: median absolute error of the forecast.
        left: part of the pilots whose last third left the law as `fit` saw it, which here is chance: the curve obeys
            it. Their forecasts span going on so for ever, so a few of them make most of an RMSE.
    """

    length: float
    points: int
    half_width: float
    narrow: float
    coverage: float
    rmse: float
    error: float
    left: float

    def overstated(self, simulations: int) -> bool:
        """Whether bands hold the truth less often than they say, by more than so few pilots make of chance.

        >>> Pilot(100, 9, 0.02, 0.8, 0.75, 0.01, 0.01, 0.0).overstated(40)
        True
        >>> Pilot(100, 9, 0.02, 0.8, 0.875, 0.01, 0.01, 0.0).overstated(40)
        False
        """
        return self.coverage < LEVEL - 2 * math.sqrt(LEVEL * (1 - LEVEL) / simulations)


@dataclass(frozen=True, slots=True)
class Design:
    """What `design` found.

    Attributes:
        shortest: the shortest length whose pilots are narrow often enough; None where no length looked at is.
        pilots: the lengths looked at, ascending.
        width: the half-width wanted.
        horizon: the compute forecast at; None for the ceiling.
        simulations: pilots of each length.
        truth: draws of the truth, (simulations,).
    """

    shortest: float | None
    pilots: tuple[Pilot, ...]
    width: float
    horizon: float | None
    simulations: int
    truth: Floats

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        rows = [{name: getattr(pilot, name) for name in Pilot.__slots__} for pilot in self.pilots]
        return {
            "shortest": self.shortest,
            "width": self.width,
            "level": LEVEL,
            "sure": SURE,
            "horizon": self.horizon,
            "simulations": self.simulations,
            "pilots": rows,
        }


def design(
    curve: ScalingFit,
    *,
    spacing: float,
    noise: float | None = None,
    prompts: int | None = None,
    samples: int = 1,
    horizon: float | None = None,
    width: float = 0.02,
    longest: float | None = None,
    simulations: int = 40,
    seed: int = 0,
    on_pilot: Callable[[float], object] = lambda _: None,
) -> Design:
    """Find how long a pilot must be for a band of a wanted width.

    Pilots of growing length are simulated from the curve and fitted by `fit`; the shortest length at which the 90% band
    is narrow enough in 80% of them is found by bisection over a geometric grid of lengths. Where the curve is a fit to
    points, each pilot has a truth of its own out of its posterior, and begins with those points: so it says how much
    further a run must go.

    Args:
        curve: `ScalingFit.of_parameters` for a guess, or a fit to the points so far.
        spacing: compute between two evaluations.
        noise: standard error of an evaluation; where neither it nor `prompts` is given, the fit's.
        prompts: of an evaluation, instead of `noise`.
        samples: rollouts of each prompt.
        horizon: the compute to forecast at; the ceiling where it is left out. A ceiling's band takes in the straight
            line, which ends at 1, for as long as it is not ruled out.
        width: half of the band's width that is wanted.
        longest: the longest length looked at; by default the horizon, or 20 times the midpoint.
        simulations: pilots of each length.
        seed: of the simulations.
        on_pilot: called with the length of each pilot once it was fitted.

    Raises:
        CurriculaValueError: an argument that cannot be.

    >>> guess = ScalingFit.of_parameters(0.6, 2.0, 1000, r0=0.2)
    >>> found = design(guess, spacing=100, noise=0.01, horizon=4000, width=0.05, simulations=8)
    >>> found.shortest is not None and 600 <= found.shortest < 4000
    True
    """
    _check(spacing, noise, prompts, samples, horizon, width, longest, simulations)
    pilots = _Pilots(curve, spacing, noise, prompts, samples, horizon, width, simulations, seed)
    grid = _grid(curve, spacing, horizon, longest)
    seen: dict[float, Pilot] = {}

    def narrow(place: int) -> bool:
        length = grid[place]
        if length not in seen:
            seen[length] = pilots.of(length, on_pilot)
        return seen[length].narrow >= SURE

    low, high = 0, len(grid) - 1
    if narrow(high):
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if narrow(middle) else (middle + 1, high)
        shortest = grid[high]
    else:
        shortest = None
        for place in np.unique(np.linspace(0, high, 4).astype(int)).tolist():
            narrow(place)
    rows = tuple(seen[length] for length in sorted(seen))
    return Design(shortest, rows, width, horizon, simulations, pilots.truth)


def lengths_at_most() -> int:
    """How many lengths a bisection looks at, at the most."""
    return math.ceil(math.log2(LENGTHS)) + 2


class _Pilots:
    """Simulated pilots: the longer ones go on where the shorter end, truth and noise alike."""

    def __init__(
        self,
        curve: ScalingFit,
        spacing: float,
        noise: float | None,
        prompts: int | None,
        samples: int,
        horizon: float | None,
        width: float,
        simulations: int,
        seed: int,
    ) -> None:
        self._curve, self._spacing, self._horizon, self._width, self._seed = curve, spacing, horizon, width, seed
        self._prompts, self._samples = prompts, samples
        self._known = curve.method == "known"
        self._noise = noise
        if noise is None and prompts is None and (self._known or not curve.noise > 0):
            raise CurriculaValueError("design: expected noise, or prompts of an evaluation; got neither")
        self._truths = curve.sample(simulations, seed=seed)
        self._count = len(self._truths.weight)
        self.truth = self._truths.ceiling if horizon is None else self._truths([horizon])[0]
        self._start = 0.0 if self._known else float(curve.observed.compute.max())

    def of(self, length: float, on_pilot: Callable[[float], object] = lambda _: None) -> Pilot:
        """Simulate and fit pilots of one length."""
        count = round((length - self._start) / self._spacing)
        compute: Floats = self._start + self._spacing * np.arange(1, count + 1, dtype=np.float64)
        scores = self._truths(compute)
        rows: list[tuple[float, float, float, float]] = []
        for number in range(self._count):
            rows.append(self._bands(compute, scores[:, number], number))
            on_pilot(length)
        mean, low, high, left = np.array(rows).T
        off: Floats = np.abs(np.asarray(mean - self.truth, dtype=np.float64))
        half: Floats = (high - low) / 2
        points = len(compute) + (0 if self._known else len(self._curve.observed))
        return Pilot(
            length=length,
            points=points,
            half_width=float(np.median(half)),
            narrow=float((half <= self._width).mean()),
            coverage=float(((low <= self.truth + 1e-9) & (self.truth <= high + 1e-9)).mean()),
            rmse=float(np.sqrt((off**2).mean())),
            error=float(np.median(off)),
            left=float(left.mean()),
        )

    def _bands(self, compute: Floats, score: Floats, number: int) -> tuple[float, float, float, float]:
        """Mean, low and high of what is forecast, and 1 where the last third left the law."""
        sizes, told = self._sizes(score)
        measured = score + sizes * np.random.default_rng([self._seed, number]).standard_normal(len(score))
        observed = self._curve.observed
        if not self._known:
            told = None if observed.noise is None or told is None else self._rows(observed.noise, told, 0.0)
            compute = self._rows(observed.compute, compute, 0.0)
            measured = self._rows(observed.score, measured, math.nan)
        # Rates: an evaluation never leaves [0, 1].
        r0 = None if self._known else observed.r0
        made = fit(compute, np.clip(measured, 0, 1), noise=told, r0=r0, skip=None, seed=number)
        left = float("leaves_law" in made.reasons)
        if self._horizon is not None:
            mean, low, high = made.predict(self._horizon)
            return float(mean), float(low), float(high), left
        curves = made.curves
        ends = quantiles(curves.ceiling[None], curves.weight, tails())[0]
        return float(curves.weight @ curves.ceiling), float(ends[0]), float(ends[1]), left

    def _rows(self, so_far: Floats, further: Floats, fill: float) -> Floats:
        """Points so far and further ones (seeds, n): the seed that has come furthest goes on; filled up behind."""
        observed = self._curve.observed
        longest = observed.series[np.argmax(observed.compute)]
        parts = [
            np.concatenate([so_far[observed.series == one], further if one == longest else further[:0]])
            for one in np.unique(observed.series)
        ]
        rows = np.full((len(parts), max(map(len, parts))), fill)
        for row, part in zip(rows, parts, strict=True):
            row[: len(part)] = part
        return rows

    def _sizes(self, score: Floats) -> tuple[Floats, Floats | None]:
        """Standard deviations of evaluations, and what the fit is told of them."""
        if self._prompts is not None:
            sizes = evaluation_noise(score, self._prompts, self._samples)
            return sizes, sizes
        if self._noise is not None:
            sizes = np.full(len(score), self._noise)
            return sizes, sizes
        known = self._curve.observed.noise
        sizes = np.full(len(score), self._curve.noise)
        return sizes, None if known is None else np.full(len(score), float(np.median(known)))


def _grid(curve: ScalingFit, spacing: float, horizon: float | None, longest: float | None) -> list[float]:
    start = 0.0 if curve.method == "known" else float(curve.observed.compute.max())
    end = longest or horizon
    if end is None:
        if not math.isfinite(curve.midpoint):
            raise CurriculaValueError("design: expected a longest length for a fit without a midpoint; got none")
        end = max(PAST * curve.midpoint, 4 * start)
    least = LEAST_POINTS if curve.method == "known" else 1
    most = math.floor((end - start) / spacing + 1e-9)
    if most < least:
        raise CurriculaValueError(
            f"design: expected a longest length of {start + least * spacing:g} or more, {least} evaluations "
            f"{spacing:g} apart{f' past {start:g}' if start else ''}; got {end:g}; evaluate more often"
        )
    if most > MOST_POINTS:
        count = f"{most:,}" if most < 1e12 else f"{most:.3g}"
        raise CurriculaValueError(
            f"design: expected at most {MOST_POINTS:,} evaluations up to {end:g}; got {count}; raise the "
            f"spacing (it is {spacing:g}) or give a shorter longest length"
        )
    counts = np.unique(np.rint(np.geomspace(least, most, LENGTHS)).astype(int))
    return [start + spacing * int(count) for count in counts]


def _check(
    spacing: float,
    noise: float | None,
    prompts: int | None,
    samples: int,
    horizon: float | None,
    width: float,
    longest: float | None,
    simulations: int,
) -> None:
    given = {"spacing": spacing, "noise": noise, "horizon": horizon, "width": width, "longest": longest}
    for name, value in given.items():
        if value is not None and not 0 < value < math.inf:
            raise CurriculaValueError(f"design: expected {name} as a finite number above 0; got {value:g}")
        if name in ("spacing", "horizon", "longest") and value is not None:
            check_unit("design", name, value)
    if noise is not None and noise > 1:
        raise CurriculaValueError(f"design: expected noise as a standard error of rates, up to 1; got {noise:g}")
    if width >= 0.5:
        raise CurriculaValueError(f"design: expected width as half of a band of scores, below .5; got {width:g}")
    if noise is not None and prompts is not None:
        raise CurriculaValueError("design: expected either noise or prompts; got both; leave out one")
    if min(simulations, samples, 1 if prompts is None else prompts) < 1:
        raise CurriculaValueError("design: expected 1 or more simulations, prompts and samples")
