import numpy as np
import pytest

from curricula.errors import CurriculaValueError
from curricula.simulation import (
    WORLDS,
    CurriculumRule,
    Curve,
    EnvironmentLaw,
    InformedFilter,
    Law,
    Oracle,
    Prerequisite,
    Regression,
    Uniform,
    World,
    gain,
    named_law,
    random_law,
    simulate,
)

ONE = Law((EnvironmentLaw("one", 400, ((0.6, -1.0, 1.0), (0.4, 2.0, 0.5)), unlearnable=0.2, rate=0.4),))
TWO = Law(
    (EnvironmentLaw("a", 200, rate=0.5), EnvironmentLaw("b", 100, ((1.0, 1.0, 1.0),), rate=0.2)),
    transfer=0.25,
    forgetting=0.1,
    prerequisites=(Prerequisite(1, 0, threshold=0.5, slope=2.0),),
)


def test_held_out_success_is_that_of_many_prompts_of_the_law():
    law = Law((EnvironmentLaw("one", 400_000, ONE.environments[0].difficulty, unlearnable=0.2),), prompt_drift=0.5)
    world = World(law, 3)
    world.ability_E[:] = 0.7
    assert world.held_out()[0] == pytest.approx(world.pass_rates().mean(), abs=2e-3)
    rate = world.pass_rates()
    assert law.expect("signal", world.ability_E)[0] == pytest.approx((rate * (1 - rate)).mean(), abs=1e-3)
    for _ in range(4):  # drift of prompts is part of the law
        world.train(np.arange(2), np.ones((2, 4)))
    assert world.held_out()[0] == pytest.approx(world.pass_rates().mean(), abs=2e-3)


def test_the_feature_is_correlated_as_stated():
    world = World(Law((EnvironmentLaw("one", 100_000, ONE.environments[0].difficulty, correlation=0.6),)), 1)
    assert np.corrcoef(world.feature_N, world.difficulty_N)[0, 1] == pytest.approx(0.6, abs=0.01)
    assert world.feature_N.std() == pytest.approx(1.0, abs=0.01)


def test_ability_grows_by_the_equation():
    world = World(TWO, 0)
    world.ability_E[:] = [1.0, 0.2]
    rows = np.array([0, 1, 200, 201])
    successes = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=np.float64)
    world.train(rows, successes, groups=8)
    signal = np.array([0.25, 0.1875 + 0.25]) / 8
    factor = np.array([1.0, 1 / (1 + np.exp(-2 * 0.5))])
    gained = np.array([0.5, 0.2]) * factor * (signal + 0.25 * signal[::-1])
    lost = 0.1 * np.array([1.0, 0.2]) * np.exp([-1.0, -2.0])
    np.testing.assert_allclose(world.ability_E, np.array([1.0, 0.2]) + gained - lost)


def test_worth_is_the_slope_of_held_out_success():
    ability = np.array([0.5, 0.3])
    law = Law(TWO.environments, transfer=0.25, prerequisites=TWO.prerequisites)
    for code in range(2):
        grown = law.grow(ability, 1e-5 * np.eye(2)[code], np.zeros(2))
        slope = law.base_E @ (law.expect("success", grown) - law.expect("success", ability)) / 1e-5
        assert law.worth(ability)[code] == pytest.approx(slope, rel=1e-3)


def test_memorisation_regression_and_unlearnable_prompts():
    law = Law(ONE.environments, regressions=(Regression(0, 2, 1.5),), memorisation=1.0)
    world = World(law, 0)
    before = world.pass_rates()
    assert ((before == 0.0) == world.unlearnable_N).all()
    learnable = np.flatnonzero(~world.unlearnable_N)[:2]
    world.train(learnable, np.array([[1.0, 0.0], [1.0, 1.0]]), groups=1000)
    rate = world.pass_rates(learnable)
    logit = np.log(rate / (1 - rate)) + world.difficulty_N[learnable]
    np.testing.assert_allclose(logit - world.ability_E[0], [0.5, 0.0], atol=1e-9)  # the second had no variance
    high = world.ability_E[0]
    world.train(learnable, np.ones((2, 2)))
    assert world.ability_E[0] == pytest.approx(high - 1.5)


def test_one_seed_gives_one_world_and_one_run():
    drifting = Law(ONE.environments, drift=0.1, prompt_drift=0.1)

    def run(seed: int, choose: int) -> Curve:
        world = World(drifting, seed)
        return simulate(world, Uniform(world, np.random.default_rng(choose)), 10, 8, 4, seed)

    first, again, other = run(1, 1), run(1, 1), run(2, 1)
    np.testing.assert_array_equal(first.success_TE, again.success_TE)
    assert not np.array_equal(first.success_TE, other.success_TE)
    # Drift does not depend on what is trained on.
    a, b = World(drifting, 5), World(drifting, 5)
    a.train(np.arange(4), np.ones((4, 2)))
    b.train(np.arange(4, 8), np.zeros((4, 2)))
    np.testing.assert_array_equal(a.ability_E, b.ability_E)
    np.testing.assert_array_equal(a.difficulty_N, b.difficulty_N)


def test_rollouts_have_the_stated_rates_and_costs():
    world = World(ONE, 0)
    rows = np.repeat(np.arange(4), 4000)
    successes, tokens = world.rollouts(rows, 4, np.random.default_rng(0))
    np.testing.assert_allclose(successes.reshape(4, -1).mean(1), world.pass_rates(np.arange(4)), atol=0.02)
    np.testing.assert_allclose(tokens.reshape(4, -1).mean(1), world.cost_N[:4], rtol=0.02)


def test_the_informed_filter_is_exact_when_ability_is_known():
    """Against the posterior on a fine grid, written out for one prompt."""
    world = World(ONE, 2)
    rule = InformedFilter(world)
    environment = ONE.environments[0]
    rng = np.random.default_rng(0)
    ability, grid = 0.0, np.linspace(-8, 8, 8001)
    prior = sum(w * np.exp(-0.5 * ((grid - m) / s) ** 2) / s for w, m, s in environment.difficulty)
    r, x = environment.correlation, world.feature_N[7]
    prior = prior * np.exp(-0.5 * (x - r * (grid - environment.centre) / environment.scale) ** 2 / (1 - r * r))
    prior = 0.8 * prior / prior.sum()
    hopeless = 0.2
    for passed in (0, 0, 2, 5):
        rows = np.array([7, 11, 20])
        successes = (rng.random((3, 8)) < 0.5).astype(np.float64)
        successes[0] = np.arange(8) < passed
        p = 1 / (1 + np.exp(grid - ability))
        prior = prior * p**passed * (1 - p) ** (8 - passed)
        hopeless *= passed == 0
        norm = prior.sum() + hopeless
        prior, hopeless = prior / norm, hopeless / norm
        rule.observe(rows, successes, np.full((3, 8), 100.0))
        rate = successes.mean(1)
        ability += 0.4 * (rate * (1 - rate)).mean()
        p = 1 / (1 + np.exp(grid - ability))
        assert rule.ability_E[0] == pytest.approx(ability)
        assert rule.hopeless_N[7] == pytest.approx(hopeless, abs=1e-3)
        assert rule.signal()[7] == pytest.approx((prior * p * (1 - p)).sum(), abs=1e-3)


def test_the_informed_filter_follows_drift_and_falls():
    law = Law(
        (EnvironmentLaw("one", 1000, ((1.0, 0.0, 1.0),), rate=0.05),),
        drift=0.05,
        regressions=(Regression(0, 20, 2.0),),
    )
    errors: list[float] = []
    for seed in range(4):
        world = World(law, seed)
        rule = InformedFilter(world)
        simulate(world, rule, 40, 32, 8, seed)
        errors.append(float(rule.ability_E[0] - world.ability_E[0]))
    assert np.abs(errors).max() < 0.4


def test_references_need_less_than_uniform():
    world = World(named_law("skewed"), 0)
    uniform = simulate(world, Uniform(world, np.random.default_rng(0)), 60)
    gains = {}
    for name, kind in (("oracle", Oracle), ("informed", InformedFilter)):
        world = World(named_law("skewed"), 0)
        gains[name] = gain(simulate(world, kind(world), 120, target=uniform.final), uniform)
    assert gains["oracle"] > gains["informed"] > 1.5
    assert gain(uniform, uniform) == 1.0


def test_reach_interpolates_and_gain_is_bounded():
    success = np.array([[0.2], [0.4], [0.3], [0.8]])
    spent = np.array([0.0, 10.0, 20.0, 30.0])
    curve = Curve(np.ones(1), spent, 5 * spent, success, success, success[1:], success[1:], 1)
    assert curve.reach(0.3) == pytest.approx(5.0)
    assert curve.rollouts_to(0.6) == pytest.approx(26.0)
    assert curve.reach(0.6, "tokens") == pytest.approx(130.0)
    assert curve.reach(0.9) == float("inf")
    flat = Curve(np.ones(1), spent, spent, np.full((4, 1), 0.2), success, success[1:], success[1:], 1)
    assert gain(flat, curve) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(12))
def test_random_worlds_run(seed: int):
    law = random_law(np.random.default_rng(seed))
    assert law == random_law(np.random.default_rng(seed))
    world = World(law, seed)
    curve = simulate(world, CurriculumRule(world.pool(), 4, seed=seed), 3, 8, 4, seed)
    assert np.isfinite(curve.success_TE).all()
    assert curve.rollouts_T[-1] == 3 * 8 * 4


@pytest.mark.parametrize("name", list(WORLDS))
def test_named_worlds_are_in_the_sizes_they_claim(name: str):
    world = World(named_law(name), 0)
    assert 2000 <= len(world) <= 6000
    assert 0.02 < world.held_out() @ world.law.base_E < 0.9
    pool = world.pool()
    assert pool.sizes == {environment.name: environment.prompts for environment in world.law.environments}


def test_what_cannot_be_is_refused():
    with pytest.raises(CurriculaValueError, match="expected a world of skewed"):
        named_law("flat")
    with pytest.raises(CurriculaValueError, match="weights that sum to 1"):
        EnvironmentLaw("one", difficulty=((0.5, 0.0, 1.0),))
    world = World(ONE, 0)
    with pytest.raises(CurriculaValueError, match="groups <= 400"):
        simulate(world, Oracle(world), 1, groups=401)
