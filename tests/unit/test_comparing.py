"""Two recipes beside one another."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from curricula.errors import CurriculaValueError
from curricula.scaling import ScalingFit, compare, fit
from curricula.scaling.crossing import FARTHEST
from curricula.scaling.laws import sigmoid
from curricula.scaling.observations import observe
from curricula.scaling.refits import refit

COMPUTE = np.linspace(500, 6000, 30)


def measured(asymptote: float, exponent: float, midpoint: float, seed: int, noise: float = 0.01) -> ScalingFit:
    truth = sigmoid(COMPUTE, asymptote, exponent, midpoint, 0.2)
    return fit(COMPUTE, truth + noise * np.random.default_rng(seed).normal(size=len(COMPUTE)))


@pytest.fixture(scope="module")
def two() -> tuple[ScalingFit, ScalingFit]:
    return measured(0.6, 2.0, 1500, seed=0), measured(0.68, 1.6, 3000, seed=1)


def test_the_same_fit_twice_is_even(two):
    found = compare(two[0], two[0])
    assert found.winner is None
    assert found.higher == (0.5, 0.5)
    assert found.first[0] == found.first[1]
    assert found.crossing.a == found.crossing.b


@pytest.mark.parametrize("seed", range(4))
def test_swapped_it_says_the_same(two, seed):
    there, back = compare(*two, seed=seed), compare(*two[::-1], seed=seed)
    bare = [compare(*order, seed=seed, run_spread=0.0).higher for order in (two, two[::-1])]
    assert bare[0] == bare[1][::-1]
    assert there.higher == back.higher[::-1]
    assert sum(there.higher) == 1.0
    assert there.first == back.first[::-1]
    assert there.reached == back.reached[::-1]
    assert (there.crossing.a, there.crossing.b) == (back.crossing.b, back.crossing.a)
    assert there.crossing.interval == pytest.approx(back.crossing.interval)
    assert {there.winner, back.winner} == {"a", "b"}


def test_of_known_curves_everything_is_known():
    fast, high = ScalingFit.of_parameters(0.6, 2.0, 1500, 0.2), ScalingFit.of_parameters(0.68, 1.6, 3000, 0.2)
    found = compare(fast, high, target=0.5)
    assert found.higher == (0.0, 1.0)
    assert found.first == (1.0, 0.0)
    assert found.reached == pytest.approx((1500 * 3**0.5, 3000 * (0.3 / 0.18) ** (1 / 1.6)))
    crossing = found.crossing
    assert (crossing.probability, crossing.a, crossing.b) == (1.0, 0.0, 1.0)
    assert fast.predict(crossing.compute)[0] == pytest.approx(high.predict(crossing.compute)[0], abs=1e-3)
    assert crossing.interval == pytest.approx((crossing.compute, crossing.compute))


def test_a_known_curve_has_no_last_point(two):
    known = ScalingFit.of_parameters(0.7, 2.0, 90_000, 0.2)
    assert (known.known, known.last, two[0].known, two[0].last) == (True, 0.0, False, 6000.0)
    found = compare(two[0], known)
    assert found.crossing.after == 6000.0
    assert not found.reasons
    assert compare(known, ScalingFit.of_parameters(0.6, 2.0, 10, 0.2)).reasons == {}


def test_runs_of_one_recipe_differ(two):
    these, default, wide = (compare(*two, run_spread=spread).higher[1] for spread in (0.0, 0.01, 0.1))
    assert compare(*two).higher[1] == default
    assert compare(*two).run_spread == 0.01
    assert 0.5 < wide < default < these

    def chance(a: ScalingFit, b: ScalingFit, spread: float) -> float:
        return (1 + math.erf((a.asymptote - b.asymptote) / spread / 2**0.5)) / 2

    points = observe([750.0, 1500.0], [0.3, 0.4])
    a, b = (
        replace(ScalingFit.of_parameters(top, 2.0, 1500, 0.2), method="grid", observed=points) for top in (0.62, 0.6)
    )
    assert compare(a, b, run_spread=0.0).higher == (1.0, 0.0)
    assert compare(a, b, run_spread=0.02).higher[0] == pytest.approx(chance(a, b, 0.02 * 2**0.5), abs=1e-9)
    # One that is known is no run.
    known = ScalingFit.of_parameters(0.6, 2.0, 1500, 0.2)
    assert compare(a, known, run_spread=0.02).higher[0] == pytest.approx(chance(a, known, 0.02), abs=1e-9)


@pytest.mark.parametrize("spread", [-0.01, 1.5, float("nan"), True])
def test_a_spread_that_is_none_is_refused(two, spread):
    with pytest.raises(CurriculaValueError, match="expected a run_spread from 0 to 1; got"):
        compare(*two, run_spread=spread)


def test_a_target_that_none_gets_to_is_won_by_nobody():
    found = compare(ScalingFit.of_parameters(0.6, 2.0, 1500), ScalingFit.of_parameters(0.7, 2.0, 1500), target=0.9)
    assert found.first == (0.0, 0.0)
    assert found.to_dict()["reached"] == [None, None]


def test_curves_that_never_cross_say_so():
    found = compare(ScalingFit.of_parameters(0.6, 2.0, 1500), ScalingFit.of_parameters(0.7, 2.0, 1500))
    assert found.crossing.probability == 0.0
    assert np.isnan(found.crossing.compute)
    assert found.to_dict()["crossing"]["interval"] == [None, None]


def test_the_default_target_is_forecast_of_both(two):
    found = compare(*two)
    assert found.target == pytest.approx(min(float(one.predict(4 * 6000)[0]) for one in two))
    assert sum(found.first) <= 1.0


def test_paper_rule_goes_by_the_asymptote_beyond_two_hundredths():
    found = compare(ScalingFit.of_parameters(0.60, 3.0, 1500), ScalingFit.of_parameters(0.63, 1.0, 1500))
    assert (found.winner, found.by) == ("b", "asymptote")
    assert np.isnan(found.shared)


def test_paper_rule_goes_by_the_exponent_within_them():
    slow = fit(COMPUTE, sigmoid(COMPUTE, 0.61, 1.2, 2000, 0.2), method="grid")
    fast = fit(COMPUTE, sigmoid(COMPUTE, 0.60, 2.2, 2000, 0.2), method="grid")
    assert abs(slow.asymptote - fast.asymptote) <= 0.02 + 1e-9
    found = compare(slow, fast)
    assert (found.winner, found.by) == ("b", "exponent")
    assert found.shared == pytest.approx((slow.asymptote + fast.asymptote) / 2)
    assert found.exponents[1] == pytest.approx(refit(fast.observed, found.shared)[1])
    # Steps of the paper's grid: .02 apart is within.
    within = compare(ScalingFit.of_parameters(0.605, 1.2, 2000), ScalingFit.of_parameters(0.625, 2.2, 2000))
    assert (within.winner, within.by) == ("b", "exponent")


def test_a_refit_holds_what_is_given():
    truth = sigmoid(COMPUTE, 0.61, 1.92, 2542, 0.2)
    seen = observe(COMPUTE, truth, r0=0.2, noise=np.linspace(0.01, 0.02, 30))
    assert refit(seen, 0.61) == pytest.approx((2542, 1.92, 0.2), rel=1e-3)
    lower = refit(seen, 0.55)
    assert lower[2] == 0.2
    assert lower[1] > 1.92
    # A weight says which points count: with the last ones alone, they are met.
    late = replace(seen, noise=np.where(COMPUTE > 3000, 1e-4, 1.0), r0=None)
    middle, steep, start = refit(late, 0.58)
    assert np.abs(sigmoid(COMPUTE, 0.58, steep, middle, start) - truth)[COMPUTE > 3000].max() < 0.01
    assert np.isnan(refit(observe([1, 2], [0.1, 0.2]), 0.5)).all()


def test_a_line_has_no_ceiling(two):
    line = fit(COMPUTE, sigmoid(COMPUTE, 0.6, 2, 1500, 0.2), method="log_linear")
    found = compare(two[0], line)
    assert found.winner is None
    assert found.by == "nothing"
    assert np.isnan(found.higher).all()
    assert "no_ceiling" in found.reasons
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["higher"] == [None, None]


@pytest.mark.parametrize(
    "score",
    [0.5 - COMPUTE / 30_000, np.full(30, 0.4), sigmoid(COMPUTE, 0.9, 2, 9000, 0.1)],
    ids=["falls", "flat", "young"],
)
def test_whatever_curves_do_there_are_probabilities(two, score):
    noise = 0.01 * np.random.default_rng(3).normal(size=30)
    odd = fit(COMPUTE, score + noise)
    for found in (compare(two[0], odd), compare(odd, two[1], target=1.0), compare(odd, odd)):
        assert all(0 <= chance <= 1 for chance in (*found.first, found.crossing.a, found.crossing.b))
        assert sum(found.first) <= 1 + 1e-12
        if found.crossing.probability:
            low, high = found.crossing.interval
            assert 6000 <= low <= found.crossing.compute <= high <= 6000 * FARTHEST
        json.dumps(found.to_dict(), allow_nan=False)


def test_a_falling_curve_is_where_it_started():
    falls = fit(COMPUTE, 0.5 - COMPUTE / 30_000, method="log_linear")
    assert compare(falls, falls, target=0.45).reached == (0.0, 0.0)
    assert compare(falls, falls, target=0.9).reached == (np.inf, np.inf)


def test_axes_that_do_not_meet_are_named():
    found = compare(fit([1, 2, 3], [0.1, 0.2, 0.3]), fit([1000, 2000], [0.1, 0.2]))
    assert "same unit" in found.reasons["apart"]


def test_power_laws_have_ceilings_of_their_own():
    power = fit(COMPUTE, sigmoid(COMPUTE, 0.6, 2, 1500, 0.2), method="power_law")
    found = compare(power, ScalingFit.of_parameters(0.6, 2.0, 1500, 0.2), target=0.5)
    assert sum(found.higher) == 1.0
    assert 0 < found.reached[0] < np.inf


@pytest.mark.parametrize("target", [0.0, -0.1, 60, float("nan"), float("inf")])
def test_a_target_that_is_no_rate_is_refused(two, target):
    with pytest.raises(CurriculaValueError, match="expected a target above 0 and up to 1; got"):
        compare(*two, target=target)


def test_what_is_no_fit_is_refused(two):
    with pytest.raises(CurriculaValueError, match=r"expected two fits, as .* returns them; got dict"):
        compare(two[0], {})
