"""Which of two recipes has the higher ceiling, which gets to a score first, and where one overtakes the other."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.scaling.crossing import Crossing, crossing, overtaking
from curricula.scaling.draws import check_seed
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.laws import Floats
from curricula.scaling.pairs import Pairs, balance, higher_ceiling
from curricula.scaling.reaching import reach
from curricula.scaling.refits import refit

# Asymptotes within this are the same to the paper: ±.02 is what three of its runs of one recipe differed by.
WITHIN = 0.02
# Of that as two standard deviations.
RUN_SPREAD = 0.01
# Exponents that differ by less are of one curve: fits of the same points in other units do.
ALIKE = 1e-4
# The default target is forecast at so many times the furthest point.
AHEAD = 4.0

Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two fits beside one another; every pair is of the first and the second.

    Attributes:
        winner: by the paper's rule; None where it says nothing.
        by: what the rule went by: asymptote, exponent, or nothing.
        asymptotes: of the fits.
        exponents: of the fits; where the rule went by them, of the refits with `shared` as asymptote.
        shared: the mean asymptote of the refits; NaN where there were none.
        higher: the probability that each recipe has the higher ceiling, given that both have one.
        run_spread: standard deviation of a recipe's ceiling between runs that this takes in.
        bounded: the probability that they have, of each.
        sigmoid: the probability that the law of each is the sigmoid.
        target: a score.
        first: the probability that each gets to the target first; what they sum to below 1, that none ever does.
        reached: the compute at which each gets to it, the median; infinite where that is never.
        crossing: where one overtakes the other.
        reasons: what cannot be said: a name and a sentence each.
        overtook: who overtook the other where both have points, the last time, at which compute, and the probability
            that it was behind before and is ahead after it; None where that is below .9.
    """

    winner: Side | None
    by: Literal["asymptote", "exponent", "nothing"]
    asymptotes: tuple[float, float]
    exponents: tuple[float, float]
    shared: float
    higher: tuple[float, float]
    run_spread: float
    bounded: tuple[float, float]
    sigmoid: tuple[float, float]
    target: float
    first: tuple[float, float]
    reached: tuple[float, float]
    crossing: Crossing
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    overtook: tuple[Side, float, float] | None = None

    def __repr__(self) -> str:
        """The figures that are asked for first."""
        rule = f"{self.winner} by the {self.by}" if self.winner else "neither"
        return (
            f"Comparison(rule: {rule}; higher ceiling {self.higher[0]:.2f} to {self.higher[1]:.2f}; first to "
            f"{self.target:.3g} {self.first[0]:.2f} to {self.first[1]:.2f})"
        )

    def to_dict(self) -> dict[str, Any]:
        """What a program would read, as JSON takes it: numbers that do not exist or are infinite are None."""
        return cast("dict[str, Any]", _plain(asdict(self)))


def compare(
    fit_a: ScalingFit,
    fit_b: ScalingFit,
    *,
    target: float | None = None,
    run_spread: float = RUN_SPREAD,
    seed: int = 0,
) -> Comparison:
    """Compare two recipes by their fits, over the same axis of compute.

    The paper's rule (ScaleRL, 2510.13786): the larger asymptote wins; where they are within .02, both are refitted by
    least squares with the mean asymptote, and the larger exponent wins. It takes no account of what is not known. The
    probabilities do: they are over pairs of curves, one of each fit's posterior, drawn independently. A straight
    line goes on to 1, which is no ceiling: the probability of the higher one is given that both curves bend, and
    `bounded` says how much that is to suppose.

    Two runs of one recipe differ by more than their points tell, and it is recipes that the higher ceiling is said of:
    each run's ceiling is taken to lie about its recipe's with the standard deviation `run_spread`. What the rule says,
    who is first and where they cross are of these very runs. A curve that is known by its parameters is no run, and has
    no points: its midpoint stands for its last one, where the other has none either. How reliable the probabilities
    are: tests/benchmarks/scaling_pairs.py.

    Args:
        fit_a: of the one recipe, as `fit` returns it.
        fit_b: of the other.
        target: a score in (0, 1]; by default the highest that both are forecast to reach at four times the furthest
            point, the lower of the two means there.
        run_spread: standard deviation of a recipe's ceiling between its runs, in units of the score. The default is the
            paper's ±.02 of three runs as two of them; 0 asks about these very runs; of fits of n seeds each, give
            1/√n of it.
        seed: of the draws.

    Raises:
        CurriculaValueError: something else than two fits, one of points at one compute, a target that is no rate, or
            a spread below 0 or above 1.

    >>> fast = ScalingFit.of_parameters(0.60, 2.0, 1500, r0=0.2)
    >>> high = ScalingFit.of_parameters(0.68, 1.6, 3000, r0=0.2)
    >>> found = compare(fast, high, target=0.5)
    >>> found.winner, found.higher, found.first
    ('b', (0.0, 1.0), (1.0, 0.0))
    """
    for given in (fit_a, fit_b):
        if not isinstance(given, ScalingFit):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CurriculaValueError(
                f"compare: expected two fits, as curricula.scaling.fit returns them; got {type(given).__name__}"
            )
        if given.blank:
            raise CurriculaValueError(
                f"compare: expected points at two computes or more of each; got {len(given.observed)} at "
                f"{given.last:.4g} alone; measure it further on"
            )
    ends = [float(given.observed.compute.max()) for given in (fit_a, fit_b)]
    measured = [given.last for given in (fit_a, fit_b) if not given.known]
    last = max(measured or ends)
    check_seed("compare", seed)
    if not 0 <= _rate(run_spread) <= 1:
        raise CurriculaValueError(f"compare: expected a run_spread from 0 to 1; got {run_spread!r:.60}")
    if target is None:
        target = float(min(given.predict(AHEAD * last)[0] for given in (fit_a, fit_b)))
    elif not 0 < _rate(target) <= 1:
        raise CurriculaValueError(f"compare: expected a target above 0 and up to 1; got {target!r:.60}")
    asymptotes = fit_a.asymptote, fit_b.asymptote
    winner, by, exponents, shared = _rule(fit_a, fit_b)
    pairs = Pairs.of(fit_a, fit_b, seed)
    times = [
        reach(curves, target, float(given.observed.positive.min()))
        for given, curves in ((fit_a, pairs.a), (fit_b, pairs.b))
    ]
    time_a, time_b = times[0][pairs.rows_a], times[1][pairs.rows_b]
    lead, ever = balance(time_b, time_a), float((np.minimum(time_a, time_b) < np.inf).mean())
    higher = higher_ceiling(fit_a, fit_b, seed, run_spread)
    reasons: dict[str, str] = {}
    if math.isnan(higher[0]):
        reasons["no_ceiling"] = "a fit without a ceiling (a straight line) is neither higher nor lower"
    starts = [float(given.observed.positive.min()) for given in (fit_a, fit_b)]
    if len(measured) == 2 and max(starts) > min(ends):
        reasons["apart"] = (
            f"the points of one end at {min(ends):.4g}, before the other's begin at {max(starts):.4g}: "
            "is compute in the same unit?"
        )
    return Comparison(
        winner=winner,
        by=by,
        asymptotes=asymptotes,
        exponents=exponents,
        shared=shared,
        higher=higher,
        run_spread=float(run_spread),
        bounded=(fit_a.bounded, fit_b.bounded),
        sigmoid=(fit_a.sigmoid, fit_b.sigmoid),
        target=target,
        first=((ever + lead) / 2, (ever - lead) / 2),
        reached=(_median(times[0]), _median(times[1])),
        crossing=crossing(pairs, last),
        reasons=reasons,
        overtook=overtaking(pairs, max(starts), min(ends)) if len(measured) == 2 else None,
    )


def _rule(
    fit_a: ScalingFit, fit_b: ScalingFit
) -> tuple[Side | None, Literal["asymptote", "exponent", "nothing"], tuple[float, float], float]:
    """Winner, what it won by, exponents, and the asymptote that was shared."""
    a, b = fit_a.asymptote, fit_b.asymptote
    exponents = fit_a.exponent, fit_b.exponent
    if math.isnan(a) or math.isnan(b):
        return None, "nothing", exponents, math.nan
    # The asymptotes of a grid are steps apart that floats do not hold.
    if abs(a - b) > WITHIN + 1e-9:
        return ("a" if a > b else "b"), "asymptote", exponents, math.nan
    shared = (a + b) / 2
    found = [refit(given.observed, shared)[1] for given in (fit_a, fit_b)]
    # A curve that is known by its parameters has no points to refit.
    exponents = tuple(old if math.isnan(new) else new for old, new in zip(exponents, found, strict=True))
    first, second = cast("tuple[float, float]", exponents)
    winner = None if math.isclose(first, second, rel_tol=ALIKE) else "a" if first > second else "b"
    return winner, "exponent", (first, second), shared


def _rate(value: Any) -> float:
    """NaN of what is no number."""
    try:
        return math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _median(times: Floats) -> float:
    ordered = np.sort(times)
    return float(ordered[len(ordered) // 2])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in cast("tuple[Any, ...]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
