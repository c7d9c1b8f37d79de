"""Cases of tests/INPUTS.md: recipes compared, and budgets split, in Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curricula.allocation import allocate
from curricula.scaling import ScalingFit, compare, fit

KNOWN = {"young": ScalingFit.of_parameters(0.7, 2.5, 1000, 0.1), "old": ScalingFit.of_parameters(0.6, 1.5, 100, 0.2)}


def split(**given: Any) -> Callable[[Path], None]:
    return lambda _: allocate(**{"fits": KNOWN, "budget": 100.0, **given}) and None


def against(other: Any = KNOWN["old"], **given: Any) -> Callable[[Path], None]:
    return lambda _: compare(KNOWN["young"], other, **given) and None


def line(_: Path) -> None:
    straight = fit(np.linspace(1, 9, 9), np.linspace(0.1, 0.4, 9), method="log_linear")
    assert "no_ceiling" in compare(KNOWN["young"], straight).reasons


def nothing(_: Path) -> None:
    assert allocate(KNOWN, 0).shares == {"young": 0.5, "old": 0.5}


def saturated(_: Path) -> None:
    assert allocate(KNOWN, 10, spent=dict.fromkeys(KNOWN, 1e12)).shares == {"young": 0.5, "old": 0.5}


def solved(_: Path) -> None:
    done = {name: fit(np.linspace(1, 9, 9), np.ones(9), seed=seed) for seed, name in enumerate(KNOWN)}
    assert allocate(done, 10).shares == {"young": 0.5, "old": 0.5}


def alone(_: Path) -> None:
    assert allocate({"young": KNOWN["young"]}, 10, weights={"young": 0}).shares == {"young": 1.0}


def units(_: Path) -> None:
    compute, rng = np.linspace(100, 3000, 20), np.random.default_rng(0)
    score = 0.2 + 0.4 / (1 + (700 / compute) ** 1.7) + rng.normal(0, 0.01, 20)
    assert compare(fit(compute, score), fit(3.7 * compute, score)).winner is None


CASES = {
    "compare-text": against(target="x"),
    "compare-units": units,
    "allocate-list": split(fits=[KNOWN["old"]]),
    "allocate-weights": split(weights=[1, 2]),
    "allocate-text": split(costs={"old": "2"}),
    "allocate-none": split(weights={"old": None}),
    "allocate-floor-none": split(floor=None),
    "allocate-floor-rounded": split(floor=0.500001),
    "allocate-budget-text": split(budget="x"),
    "allocate-budget-digits": split(budget=10**400),
    "allocate-budget-least": split(budget=5e-324),
    "allocate-budget-most": split(budget=1e308),
    "allocate-seed": split(seed=-1),
    "compare-line": line,
    "compare-no-fit": against({"asymptote": 0.6}),
    "compare-target": against(target=60),
    "compare-spread": against(run_spread=2),
    "allocate-nothing": nothing,
    "allocate-saturated": saturated,
    "allocate-solved": solved,
    "allocate-alone": alone,
    "allocate-no-fits": split(fits={}),
    "allocate-no-fit": split(fits={"young": 0.7}),
    "allocate-budget": split(budget=-1),
    "allocate-nan": split(spent={"old": float("nan")}),
    "allocate-name": split(weights={"middle": 1}),
    "allocate-cost": split(costs={"old": -2}),
    "allocate-floor": split(floor=0.6),
    "allocate-cap": split(cap=0.4),
    "allocate-floor-above-cap": split(floor={"old": 0.5}, cap={"old": 0.3}),
    "allocate-method": split(method="best"),
}
