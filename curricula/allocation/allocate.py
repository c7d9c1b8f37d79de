"""`allocate`: from fits to the split of a budget."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from curricula.allocation.caution import LEAST, ahead_of, blind, evened, trust
from curricula.allocation.gains import Gains, hull
from curricula.allocation.inputs import Limits, amount, limits, named
from curricula.allocation.result import Allocation, Band
from curricula.allocation.solving import Problem
from curricula.errors import CurriculaValueError
from curricula.scaling.bands import tails
from curricula.scaling.draws import check_seed
from curricula.scaling.fitted import ScalingFit
from curricula.scaling.laws import Floats

Method = Literal["expected", "thompson"]

# Curves of each environment's posterior that gains are means over.
DRAWS = 256
PLACES = 256


def allocate(
    fits: Mapping[str, ScalingFit],
    budget: float,
    *,
    spent: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    floor: float | Mapping[str, float] = 0.0,
    cap: float | Mapping[str, float] = 1.0,
    method: Method = "expected",
    seed: int = 0,
) -> Allocation:
    """Split a budget of compute among environments so that their scores rise most, by their fits.

    Maximises Σ w_e E[R_e(spent_e + x_e / cost_e) − R_e(spent_e)] over splits x of the budget, with R_e a curve of
    environment e's fit. Under `expected` the mean is over draws of the posterior; under `thompson` it is one draw for
    each, for use as the run goes: what is uncertain is tried now and then. How it is solved, and what the bound is:
    `solving.Problem`.

    The even split is left only for what is clear. A curve that is flat, falling or too short tells no gain: its
    environment gets no more than its even part, and such environments give up the same part of it. Of the way from the
    even split to the best one, all is gone where its mean gain over the even split is above that gain's standard
    deviation over draws of all curves, and above .002 (in units of a score, at the mean weight); nothing below half of
    that; in between in proportion (`trust`). So identical, solved and dead environments share evenly, and known curves
    are followed to the last bit.

    Args:
        fits: of each environment, by name.
        budget: compute to split, 0 or more, in a unit common to all.
        spent: compute of each environment so far, in the unit of its fit; where left out, its last point, and 0 of a
            curve that is known by its parameters.
        costs: compute of the budget for a unit of an environment's; 1 where left out.
        weights: of the gains; 1 where left out.
        floor: least share of the budget, of every environment or by name.
        cap: most share of it, likewise.
        method: expected or thompson.
        seed: of the draws.

    Raises:
        CurriculaValueError: names that have no fit, numbers that cannot be, floors or caps that no split meets.

    >>> young, old = ScalingFit.of_parameters(0.6, 2.0, 1000), ScalingFit.of_parameters(0.6, 2.0, 100)
    >>> plan = allocate({"young": young, "old": old}, 1000, spent={"young": 200, "old": 200})
    >>> round(plan.shares["young"], 2), round(plan.total.mean, 3), round(plan.equal, 3)
    (0.87, 0.367, 0.282)
    """
    if not isinstance(fits, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CurriculaValueError(f"allocate: expected fits as a mapping from names; got {type(fits).__name__}")
    if not fits:
        raise CurriculaValueError("allocate: expected fits of one environment or more; got none")
    for name, given in fits.items():
        if not isinstance(given, ScalingFit):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CurriculaValueError(
                f"allocate: expected fits as curricula.scaling.fit returns them; got {type(given).__name__} for "
                f"{name!r}"
            )
    if method not in get_args(Method):
        raise CurriculaValueError(f"allocate: expected method as one of {', '.join(get_args(Method))}; got {method!r}")
    budget = amount("a budget", budget)
    check_seed("allocate", seed)
    names = list(fits)
    before = named("spent", spent, {name: given.last for name, given in fits.items()})
    prices = named("costs", costs, dict.fromkeys(names, 1.0), positive=True)
    worth = named("weights", weights, dict.fromkeys(names, 1.0))
    bounds = limits(names, floor, cap)
    rng = np.random.default_rng([seed, 13])
    posterior = [
        given.sample(DRAWS, seed=seed) if given.curves.weight.size > 1 else given.curves for given in fits.values()
    ]
    gains = [Gains(*row) for row in zip(posterior, before, prices, worth, strict=True)]
    maximised = gains
    if method == "thompson":
        drawn = [given.curves.sample(1, rng) for given in fits.values()]
        maximised = [Gains(*row) for row in zip(drawn, before, prices, worth, strict=True)]
    equal = bounds.nearest(np.ones(len(names)))
    wish = before * prices if weights is None else worth
    wish = wish if wish.sum() > 0 else np.ones(len(names))
    proportional = bounds.nearest(wish)
    shares, bound, gap, way = equal, 0.0, 0.0, 0.0
    if budget > 0:
        dark = blind(fits)
        within = Limits(bounds.low, np.where(dark, equal, bounds.high))
        problem = Problem(maximised, budget, budget * within.low, budget * within.high)
        x = problem.solve([budget * equal, budget * within.nearest(wish)])
        best = evened(x / x.sum(), equal, bounds.low, dark)
        least = 0.0 if all(given.known for given in fits.values()) else LEAST * float(worth.mean())
        way = trust(ahead_of(maximised, budget * best, budget * equal, rng), least)
        shares = best if way == 1 else equal + way * (best - equal)
        whole = Problem(maximised, budget, budget * bounds.low, budget * bounds.high)
        bound, made = whole.bound(), whole.value(budget * shares)
        # Below what rounding makes of scores there is nothing to miss.
        scale = max(abs(bound), abs(made))
        gap = min(max(bound - made, 0.0) / scale, 1.0) if scale > 1e-9 else 0.0
    rises = [gain.draws(np.array([budget * share]))[0] for gain, share in zip(gains, shares, strict=True)]
    per_draw = np.stack([np.resize(rise, DRAWS) for rise in rises])
    # Environments are independent of one another.
    together = worth @ rng.permuted(per_draw, axis=1)
    return Allocation(
        budget=float(budget),
        method=method,
        shares=_by(names, shares),
        compute=_by(names, budget * shares),
        spent=_by(names, before),
        gains={name: _band(row) for name, row in zip(names, per_draw, strict=True)},
        total=_band(together),
        equal=_value(gains, budget * equal),
        proportional=_value(gains, budget * proportional),
        bound=float(bound),
        gap=float(gap),
        trust=way,
        marginal=_by(names, np.array([_marginal(*row, budget) for row in zip(gains, budget * shares, strict=True)])),
        reasons={name: dict(given.reasons) for name, given in fits.items() if given.reasons},
    )


def _by(names: list[str], values: Floats) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _band(values: Floats) -> Band:
    low, high = np.quantile(values, tails())
    return Band(float(values.mean()), float(low), float(high))


def _value(gains: list[Gains], x: Floats) -> float:
    return float(sum(float(gain(np.array([part]))[0]) for gain, part in zip(gains, x, strict=True)))


def _marginal(gain: Gains, x: float, budget: float) -> float:
    """Slope of the concave envelope of the gain over [0, 2 budget], just above x."""
    if budget <= 0:
        return 0.0
    grid = np.linspace(0, 2 * budget, PLACES + 1)
    # A place beside x but for rounding would be a cell without a slope.
    places = np.sort(np.append(grid[np.abs(grid - x) > 1e-6 * budget], x))
    top = hull(places, gain(places))
    at = int(np.searchsorted(places, x))
    return float((top[at + 1] - top[at]) / (places[at + 1] - places[at]))
