"""A budget split among environments."""

import json
from itertools import pairwise

import numpy as np
import pytest

from curricula.allocation import Allocation, allocate
from curricula.allocation.caution import trust
from curricula.allocation.gains import Gains, hull
from curricula.allocation.slopes import steepest
from curricula.errors import CurriculaValueError
from curricula.scaling import ScalingFit, fit
from curricula.scaling.curves import Curves, Exponentials, Gompertz, Lines, PowerLaws, Sigmoids
from curricula.scaling.laws import Floats, sigmoid

CELLS = {2: 4000, 3: 300, 4: 90}
KNOWN = {"young": ScalingFit.of_parameters(0.7, 2.5, 1000, 0.1), "old": ScalingFit.of_parameters(0.6, 1.5, 100, 0.2)}


def problem(number: int) -> tuple[dict[str, ScalingFit], float, dict[str, dict[str, float]]]:
    """Known curves, a budget, and what was spent, what it costs and what it is worth, over wide ranges."""
    rng = np.random.default_rng([5, number])

    def wide(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    names = [f"e{code}" for code in range(2 + number % 3)]
    fits = {
        name: ScalingFit.of_parameters(rng.uniform(0.3, 1), wide(0.5, 4), wide(1, 1000), rng.uniform(0, 0.3))
        for name in names
    }
    given = {
        "spent": {name: float(rng.choice([0.0, wide(0.1, 500)])) for name in names},
        "costs": {name: wide(0.3, 3) for name in names},
        "weights": {name: wide(0.2, 5) for name in names},
    }
    return fits, wide(3, 5000), given


def value(fits: dict[str, ScalingFit], given: dict[str, dict[str, float]], name: str, compute: Floats) -> Floats:
    """Weighted gain of an environment, from the forecasts themselves."""
    before = given["spent"][name]
    after, start = (fits[name].predict(at)[0] for at in (before + compute / given["costs"][name], np.array(before)))
    return given["weights"][name] * (after - start)


def enumerated(fits: dict[str, ScalingFit], budget: float, given: dict[str, dict[str, float]]) -> float:
    """The best of all splits on a fine grid."""
    cells = CELLS[len(fits)]
    tables = [value(fits, given, name, np.linspace(0, budget, cells + 1)) for name in fits]
    places = np.indices((cells + 1,) * (len(fits) - 1)).reshape(len(fits) - 1, -1)
    last = cells - places.sum(axis=0)
    places, last = places[:, last >= 0], last[last >= 0]
    return float((sum(table[row] for table, row in zip(tables, [*places, last], strict=True))).max())


def test_near_the_best_of_all_splits_and_never_behind_simple_ones():
    behind, simple, gaps = [], [], []
    for number in range(200):
        fits, budget, given = problem(number)
        best = enumerated(fits, budget, given)
        plan = allocate(fits, budget, **given)
        reached = sum(float(value(fits, given, name, np.array(x))) for name, x in plan.compute.items())
        assert reached == pytest.approx(plan.total.mean, rel=1e-9)
        assert sum(plan.compute.values()) == pytest.approx(budget, rel=1e-9)
        assert plan.bound >= best * (1 - 1e-9)
        behind.append((best - reached) / best)
        splits = [
            dict.fromkeys(fits, 1.0),
            given["weights"],
            given["costs"],
            {k: 1e-9 + v for k, v in given["spent"].items()},
        ]
        for split in splits:
            parts = {name: budget * part / sum(split.values()) for name, part in split.items()}
            gained = sum(float(value(fits, given, name, np.array(x))) for name, x in parts.items())
            simple.append((gained - reached) / best)
        assert reached >= max(plan.equal, plan.proportional)
        gaps.append(plan.gap)
    assert max(behind) < 0.001
    assert max(simple) <= 0
    # With two environments the best split can lie well below any concave envelope.
    assert np.median(gaps) < 0.001


def test_the_bound_holds_for_uncertain_fits_and_little_is_missed():
    rng = np.random.default_rng(0)
    compute, fits = np.linspace(100, 4000, 20), {}
    for code in range(12):
        truth = sigmoid(compute, rng.uniform(0.4, 0.9), rng.uniform(0.8, 3), np.exp(rng.uniform(6, 9)), 0.1)
        fits[f"e{code}"] = fit(compute, truth + 0.01 * rng.normal(size=20), skip=None)
    dark = [name for name, given in fits.items() if "flat" in given.reasons]
    plan = allocate(fits, 20_000)
    assert plan.trust == 1
    assert all(plan.shares[name] <= 1 / 12 for name in dark)
    assert plan.total.mean <= plan.bound
    # Of those that tell a rise.
    fits = {name: given for name, given in fits.items() if name not in dark}
    plan = allocate(fits, 20_000)
    assert max(plan.equal, plan.proportional) <= plan.total.mean <= plan.bound
    assert plan.gap < 0.01
    for seed in range(20):
        shares = rng.dirichlet(np.full(len(fits), 0.3))
        at = {name: Gains(given.sample(256), 4000.0, 1.0, 1.0) for name, given in fits.items()}
        gained = sum(float(gain(np.array([20_000 * part]))[0]) for gain, part in zip(at.values(), shares, strict=True))
        assert gained <= plan.bound, seed


def test_young_environments_are_not_starved():
    # The slope at the start is nothing for the young one; what it gains over the budget is most.
    plan = allocate(KNOWN, 3000, spent={"young": 1.0, "old": 200.0})
    assert plan.shares["young"] > 0.5
    assert plan.total.mean > 1.5 * plan.gains["old"].mean


def test_the_split_does_not_depend_on_the_order_nor_on_the_unit():
    plan = allocate(KNOWN, 500, spent={"young": 300.0, "old": 50.0})
    other = allocate(dict(reversed(KNOWN.items())), 500, spent={"young": 300.0, "old": 50.0})
    assert other.shares == pytest.approx(plan.shares, abs=1e-4)
    units = {
        name: ScalingFit.of_parameters(f.asymptote, f.exponent, f.midpoint * 1e9, f.r0) for name, f in KNOWN.items()
    }
    scaled = allocate(units, 500e9, spent={"young": 300e9, "old": 50e9})
    assert scaled.shares == pytest.approx(plan.shares, abs=1e-4)


def test_dearer_and_weightier():
    same = {"a": KNOWN["old"], "b": KNOWN["old"]}
    assert allocate(same, 200).shares == {"a": 0.5, "b": 0.5}
    heavy = allocate(same, 200, weights={"a": 3.0})
    assert heavy.shares["a"] > 0.6
    assert allocate(same, 200, weights={"a": 0.0}).shares == pytest.approx({"a": 0.0, "b": 1.0})
    dear = allocate(same, 200, costs={"a": 2.0})
    # A unit costs twice as much: it is bought less of, by less than half of the compute.
    assert dear.compute["a"] / 2 < dear.compute["b"]


def test_floors_and_caps_hold():
    plan = allocate(KNOWN, 3000, spent={"young": 1.0, "old": 1e6}, floor=0.2)
    assert plan.shares == pytest.approx({"young": 0.8, "old": 0.2})
    plan = allocate(KNOWN, 3000, spent={"young": 1.0, "old": 1e6}, floor={"old": 0.1}, cap={"young": 0.6})
    assert plan.shares == pytest.approx({"young": 0.6, "old": 0.4})
    assert allocate(KNOWN, 3000, floor=0.5).shares == pytest.approx({"young": 0.5, "old": 0.5})
    assert plan.proportional <= plan.total.mean


def test_where_nothing_is_gained_the_split_is_even():
    done = {name: ScalingFit.of_parameters(0.6, 2.0, 1.0, 0.2) for name in "abc"}
    plan = allocate(done, 100, spent=dict.fromkeys("abc", 1e9))
    assert plan.shares == pytest.approx(dict.fromkeys("abc", 1 / 3))
    assert plan.gap == 0
    flat = {name: ScalingFit.of_parameters(0.4, 2.0, 10.0, 0.4) for name in "ab"}
    plan = allocate(flat, 100)
    assert plan.shares == {"a": 0.5, "b": 0.5}
    assert (plan.total.mean, plan.bound, plan.gap) == (0, 0, 0)


SEEN = np.linspace(100, 4000, 20)


def seeds(score: Floats, noise: float, names: str = "abc") -> dict[str, ScalingFit]:
    """Fits of the same truth, with noise of their own."""
    draws = {name: np.random.default_rng(ord(name)).normal(size=20) for name in names}
    return {name: fit(SEEN, np.clip(score + noise * draw, 0, 1), seed=ord(name)) for name, draw in draws.items()}


@pytest.mark.parametrize(
    ("score", "noise"),
    [(np.ones(20), 0.0), (np.zeros(20), 0.0), (np.full(20, 0.3), 0.01), (0.8 - SEEN / 10_000, 0.01)],
    ids=["solved", "dead", "flat", "falling"],
)
def test_where_curves_tell_nothing_apart_the_split_is_even(score, noise):
    fits = seeds(score, noise)
    for seed in range(4):
        plan = allocate(fits, 12_000, seed=seed)
        assert plan.shares == pytest.approx(dict.fromkeys("abc", 1 / 3), abs=1e-9), seed
        assert plan.total.mean == pytest.approx(plan.equal)
    # Limits hold before that.
    assert allocate(fits, 12_000, floor={"a": 0.5}).shares == pytest.approx({"a": 0.5, "b": 0.25, "c": 0.25}, abs=1e-6)


def test_of_curves_that_are_the_same_but_for_noise_none_takes_all():
    fits = seeds(sigmoid(SEEN, 0.6, 1.5, 2000, 0.1), 0.01)
    plans = [list(allocate(fits, 12_000, seed=seed).shares.values()) for seed in range(6)]
    assert 0.2 < np.min(plans) <= np.max(plans) < 0.55
    assert np.ptp(plans, axis=0).max() < 0.1


def test_where_a_gain_is_clear_those_without_one_give_up_the_same():
    done, rising = seeds(np.full(20, 0.9), 0.005, "xyz"), seeds(sigmoid(SEEN, 0.8, 2, 3500, 0.1), 0.005, "r")
    assert all("flat" in given.reasons for given in done.values())
    plan = allocate(done | rising, 12_000)
    assert plan.trust == 1
    assert plan.shares["r"] > 0.6
    assert np.ptp([plan.shares[name] for name in "xyz"]) < 1e-9
    # A curve of which little is known is tried with no more than its even part, whatever it might gain.
    short = {"short": fit([1000.0, 1500, 2000], [0.1, 0.15, 0.2])} | seeds(np.full(20, 0.9), 0.005, "xyz")
    assert max(allocate(short, 12_000).shares.values()) == pytest.approx(0.25)


def test_trust_is_the_gain_in_its_own_deviations():
    ahead = np.array([0.0, 0.2])
    assert [trust(ahead + shift, 0.0) for shift in (-0.2, -0.1, -0.05, -0.025, 0.0, 1.0)] == pytest.approx(
        [0, 0, 0, 0.5, 1, 1]
    )
    assert [trust(np.array([gain]), 0.002) for gain in (-1, 0.0, 0.001, 0.0015, 0.002)] == pytest.approx(
        [0, 0, 0, 0.5, 1]
    )
    assert trust(np.array([1e-12]), 0.0) == 1


def test_what_was_spent_and_what_it_costs():
    # A known curve has no last point: nothing was spent on it.
    assert allocate(KNOWN, 100).spent == {"young": 0.0, "old": 0.0}
    fits = seeds(sigmoid(SEEN, 0.6, 1.5, 2000, 0.1), 0.01, "ab")
    assert allocate(fits, 100).spent == {"a": 4000.0, "b": 4000.0}

    def at(a: float) -> float:
        """What is gained where the first gets so much."""
        draws = [
            Gains(given.sample(256), spent, cost, 1.0)(np.array([budget]))[0]
            for given, spent, cost, budget in zip(
                fits.values(), (1000, 3000), (3.0, 1.0), (600 * a, 600 * (1 - a)), strict=True
            )
        ]
        return float(sum(draws))

    given = {"spent": {"a": 1000.0, "b": 3000.0}, "costs": {"a": 3.0}}
    assert allocate(fits, 600, **given).proportional == pytest.approx(at(0.5))
    assert allocate(fits, 600, **given, weights={"a": 1.0, "b": 1.0}).proportional == pytest.approx(at(0.5))
    given = {"spent": {"a": 1000.0, "b": 3000.0}}
    by_weight, by_spent = (allocate(fits, 600, **given, **more) for more in ({"weights": {"a": 1.0}}, {}))
    assert by_weight.proportional == pytest.approx(by_weight.equal)
    assert by_spent.proportional != pytest.approx(by_spent.equal, rel=1e-3)


def test_no_budget_and_one_environment():
    plan = allocate(KNOWN, 0)
    assert plan.shares == {"young": 0.5, "old": 0.5}
    assert (plan.total, plan.bound) == ((0, 0, 0), 0)
    plan = allocate({"young": KNOWN["young"]}, 100)
    assert plan.shares == {"young": 1.0}
    assert plan.total.mean == plan.equal


def test_falling_curves_lose_least():
    compute = np.linspace(100, 1000, 20)
    falls = fit(compute, 0.5 - compute / 5000)
    plan = allocate({"falls": falls, "old": KNOWN["old"]}, 500)
    assert plan.shares["old"] > 0.95
    plan = allocate({"falls": falls}, 500)
    assert plan.total.mean < 0
    assert plan.total.mean <= plan.bound + 1e-9
    assert plan.gap < 0.2
    # Half of it in the one that falls: that is a gap, though no split gains anything.
    two = {"falls": falls, "flat": ScalingFit.of_parameters(0.5, 2.0, 10.0, 0.5)}
    assert allocate(two, 500, floor=0.5).gap == pytest.approx(0, abs=0.2)
    assert 0 < allocate(two, 500, cap=0.5, floor={"falls": 0.2}).gap <= 1


def test_thompson_tries_what_is_uncertain():
    rng = np.random.default_rng(2)
    compute = np.linspace(100, 700, 12)
    fits = {
        name: fit(compute, sigmoid(compute, 0.7, 2, 1500, 0.1) + 0.02 * rng.normal(size=12)) for name in ("a", "b", "c")
    }
    plans = [allocate(fits, 2000, method="thompson", seed=seed) for seed in range(12)]
    shares = np.array([list(plan.shares.values()) for plan in plans])
    assert (shares.max(axis=0) - shares.min(axis=0) > 0.3).all()
    assert all(plan.gap < 0.05 for plan in plans)
    best = allocate(fits, 2000)
    # Of other draws of the same posterior, by other seeds.
    assert all(plan.total.mean <= best.total.mean * 1.05 for plan in plans)
    assert plans[3] == allocate(fits, 2000, method="thompson", seed=3)


def test_what_it_says():
    plan = allocate(KNOWN, 500, spent={"young": 300.0, "old": 50.0})
    said = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert said["total"] == list(plan.total)
    assert set(said) == set(Allocation.__dataclass_fields__)
    # At the best split a unit more is worth the same everywhere, and no less than over the rest of the envelope.
    assert plan.marginal["young"] == pytest.approx(plan.marginal["old"], rel=0.1)
    short = {"short": fit([1, 2, 3], [0.1, 0.2, 0.3])} | KNOWN
    assert "too_short" in allocate(short, 10).reasons["short"]
    assert set(allocate(short, 10).reasons) == {"short"}


@pytest.mark.parametrize(
    "curves",
    [
        *(
            law(
                *np.array(
                    [
                        [0.2] * 5,
                        [0.9, 0.3, 0.5, 0.2, 0.8],
                        [0.4, 1, 3, 2, 1.4],
                        [3, 30, 9, 20, 1],
                        [0, 0.1, 0.5, 0.4, 0],
                    ]
                )
            )
            for law in (Sigmoids, Exponentials, Gompertz)
        ),
        Lines(*np.array([[0.2] * 5, [0.5, 0.1, 0.9, 0.5, -0.2], [0.2, 0.1, 0.3, -0.2, 0.1], [5.0] * 5])),
        PowerLaws(*np.array([[0.5] * 2, [0.9, 0.4], [0.5, 1.5], [1, 8.0]])),
    ],
    ids=["sigmoids", "exponentials", "gompertz", "lines", "power_laws"],
)
def test_no_curve_is_steeper_than_it_is_said_to_be(curves):
    places = np.geomspace(0.01, 200, 40)
    said = steepest(Curves([curves], [1.0]), places)
    for row, (low, high) in zip(said, pairwise(places), strict=True):
        fine = np.linspace(low, high, 400)
        slopes = np.diff(curves.at(fine), axis=0) / np.diff(fine)[:, None]
        assert (slopes.max(axis=0) <= row * (1 + 1e-6) + 1e-9).all()
    # And not much less steep, or the bound says nothing.
    mean = np.diff(curves.at(places), axis=0) / np.diff(places)[:, None]
    assert np.median(said - mean) < 0.05


def test_gains_lie_below_what_they_are_said_to():
    many = ScalingFit.of_parameters(0.8, 3.0, 50).curves
    gain = Gains(many, 0.0, 1.0, 2.0)
    places = np.linspace(0, 400, 60)
    fine = np.linspace(0, 400, 5000)
    assert (np.interp(fine, places, gain.above(places)) >= gain(fine) - 1e-12).all()
    top = hull(places, gain(places))
    assert (np.diff(top, 2) <= 1e-12).all()
    assert (top >= gain(places) - 1e-12).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fits": {}}, "expected fits of one environment or more; got none"),
        ({"fits": {"a": 3}}, "expected fits as .* returns them; got int for 'a'"),
        ({"budget": -1}, "expected a budget of 0 or more, finite; got -1"),
        ({"budget": float("nan")}, "expected a budget of 0 or more, finite; got nan"),
        ({"method": "best"}, "expected method as one of expected, thompson; got 'best'"),
        ({"spent": {"middle": 1}}, r"expected spent of environments with a fit \(young, old\); got 'middle'"),
        ({"spent": {"old": float("inf")}}, "expected spent of 0 or more, finite; got inf for 'old'"),
        ({"costs": {"old": 0}}, "expected costs above 0, finite; got 0 for 'old'"),
        ({"costs": {"old": -2}}, "expected costs above 0, finite; got -2 for 'old'"),
        ({"weights": {"old": float("nan")}}, "expected weights of 0 or more, finite; got nan for 'old'"),
        ({"floor": 0.6}, "expected floors that sum to 1 or less; got 1.2 over 2 environments; lower them"),
        ({"cap": 0.4}, "expected caps that sum to 1 or more; got 0.8 over 2 environments; raise them"),
        (
            {"floor": {"old": 0.5}, "cap": {"old": 0.3}},
            "expected floors up to the caps; got floor 0.5 and cap 0.3 for 'old'",
        ),
        ({"floor": {"odd": 0.5}}, "expected floor of environments with a fit"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(CurriculaValueError, match="allocate: " + said) as error:
        allocate(**{"fits": KNOWN, "budget": 100, **given})
    assert "\n" not in str(error.value)
