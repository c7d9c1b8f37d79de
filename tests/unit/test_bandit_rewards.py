"""What bandits are rewarded for: slopes against plain least squares, and what learning progress makes of them."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from curricula.bandits import Informative, LearningProgress, MeanAdvantage
from curricula.bandits.rewards.trend import Trends
from curricula.scored import Scored
from curricula.stateful import Reader


def scored(codes, results_KG, weights=None, kept=None, drawn=None):
    results, count = np.asarray(results_KG, dtype=float), len(codes)
    live = ~np.isnan(results)
    members = live.sum(axis=1)
    passed = np.where(live, results, 0.0).sum(axis=1)
    value = passed / np.maximum(members, 1)
    low, high = np.where(live, results, np.inf).min(axis=1), np.where(live, results, -np.inf).max(axis=1)
    mixed = high > low
    return Scored(
        rows_K=np.arange(count),
        codes_K=np.asarray(codes),
        drawn_K=np.ones(count, dtype=bool) if drawn is None else drawn,
        first_K=np.ones(count, dtype=bool),
        results_KG=results,
        members_K=members,
        passed_K=passed,
        value_K=value,
        corrected_K=value,
        weight_K=np.ones(count) if weights is None else weights,
        share_K=np.full(count, 0.5),
        mixed_K=mixed,
        kept_K=mixed if kept is None else kept,
        tokens_K=np.zeros(count),
        counted_K=np.zeros(count),
    )


def told(rng, count, arms=3):
    return rng.integers(arms, size=count), rng.random(count), rng.uniform(0.2, 5.0, count), rng.random(count) < 0.6


def least_squares(codes, values, weights, trained, arm, memory):
    """Slope and error from the whole history at once."""
    mine = np.flatnonzero(codes == arm)
    steps = np.cumsum(trained[mine]) - trained[mine]
    x, y = steps - trained[mine].sum(), values[mine]
    u = weights[mine] * (1 - 1 / memory) ** np.arange(len(mine) - 1, -1, -1)
    design = np.stack([np.ones(len(mine)), x], axis=1)
    inverse = np.linalg.inv(design.T @ (u[:, None] * design))
    fit = inverse @ design.T @ (u * y)
    residual = y - design @ fit
    groups = u.sum() ** 2 / (u**2).sum()
    variance = (u * residual**2).sum() / u.sum() * groups / (groups - 2)
    covariance = variance * inverse @ design.T @ ((u**2)[:, None] * design) @ inverse
    return fit[1], np.sqrt(covariance[1, 1])


def test_slopes_and_errors_are_those_of_weighted_least_squares():
    rng, trends = np.random.default_rng(0), Trends(3, memory=80.0)
    codes, values, weights, trained = told(rng, 600)
    values = values + 0.001 * np.arange(600)
    for part in range(0, 600, 37):
        cut = slice(part, part + 37)
        trends.observe(codes[cut], values[cut], weights[cut], trained[cut])
    slopes, errors = trends.slopes()
    for arm in range(3):
        slope, error = least_squares(codes, values, weights, trained, arm, 80.0)
        assert slopes[arm] == pytest.approx(slope)
        assert errors[arm] == pytest.approx(error)


def test_a_batch_teaches_as_its_groups_one_by_one():
    rng, together, apart = np.random.default_rng(1), Trends(3, 50.0), Trends(3, 50.0)
    codes, values, weights, trained = told(rng, 200)
    together.observe(codes, values, weights, trained)
    for k in range(200):
        apart.observe(codes[[k]], values[[k]], weights[[k]], trained[[k]])
    np.testing.assert_allclose(together.sums_EF, apart.sums_EF, rtol=1e-9, atol=1e-9)


def test_standard_errors_are_honest():
    rng, misses, zs = np.random.default_rng(2), 0, []
    for _ in range(300):
        trends = Trends(1, 300.0)
        steps = np.arange(400.0)
        y = (rng.random(400) < 0.2 + 0.001 * steps) * 1.0
        trends.observe(np.zeros(400, dtype=int), y, rng.uniform(0.5, 2.0, 400), np.ones(400, dtype=bool))
        slope, error = trends.slopes()
        zs.append(float((slope[0] - 0.001) / error[0]))
        misses += abs(zs[-1]) > 1.96
    assert 0.02 < misses / 300 < 0.09
    assert np.std(zs) == pytest.approx(1.0, abs=0.12)


def test_where_nothing_can_be_known_nothing_is():
    trends = Trends(4, 100.0)
    codes = np.repeat([0, 1, 2], [50, 50, 5])
    values = np.where(codes == 0, 0.0, np.random.default_rng(0).random(105))
    trends.observe(codes, values, np.ones(105), codes != 1)  # 0 does not vary, 1 was never trained on, 2 is young
    slopes, errors = trends.slopes()
    assert slopes.tolist() == [0.0] * 4
    assert np.isinf(errors).all()


def test_without_slopes_the_worth_is_the_base_mix():
    base = np.array([0.5, 0.3, 0.2])
    worth = LearningProgress(base).worth()
    np.testing.assert_allclose(worth / worth.sum(), base)


def lessons(reward, rates, groups, rng, batch=30):
    """Groups of 8 of environments whose success goes straight from one rate to another."""
    for start in range(0, groups, batch):
        codes = np.arange(batch) % len(rates)
        p = np.array([low + (high - low) * start / groups for low, high in rates])[codes]
        reward.observe(scored(codes, (rng.random((batch, 8)) < p[:, None]) * 1.0), rated=True)
    return reward.worth()


def test_the_environment_that_learns_is_worth_most():
    rng = np.random.default_rng(3)
    worth = lessons(LearningProgress(np.full(3, 1 / 3)), [(0.5, 0.5), (0.2, 0.6), (0.8, 0.75)], 3000, rng)
    assert worth[1] > 4 * worth[0]
    assert worth[1] > 4 * worth[2]


def test_what_is_worth_nothing_yet_comes_back_when_it_learns():
    rng, reward = np.random.default_rng(4), LearningProgress(np.full(2, 0.5), memory=300.0)
    before = lessons(reward, [(0.2, 0.8), (0.02, 0.02)], 2000, rng)
    after = lessons(reward, [(0.8, 0.8), (0.02, 0.6)], 1500, rng)
    assert before[0] > 2 * before[1]
    assert after[1] > 2 * after[0]


def test_noise_alone_changes_little():
    rng, ratios = np.random.default_rng(5), []
    for _ in range(20):
        worth = lessons(LearningProgress(np.full(2, 0.5)), [(0.5, 0.5), (0.5, 0.5)], 300, rng)
        ratios.append(np.log(worth[0] / worth[1]))
    assert np.median(np.abs(ratios)) < 0.6
    assert np.abs(ratios).max() < 2.0


def test_rewards_that_are_no_rates_are_said_once_and_valued_by_informative_groups(caplog):
    reward = LearningProgress(np.array([0.5, 0.5]))
    groups = scored([0, 1], [[3.0, 9.0], [4.0, 4.0]])
    with caplog.at_level(logging.INFO, "curricula"):
        np.testing.assert_array_equal(reward.observe(groups, rated=False), [1.0, 0.0])
        reward.observe(groups, rated=False)
    assert [record.getMessage()[:27] for record in caplog.records] == ["learning progress is measur"]
    assert not reward.trends.sums_EF.any()


def test_outcomes_from_elsewhere_are_no_progress_of_this_run():
    reward = LearningProgress(np.array([1.0]))
    reward.observe(scored([0, 0], [[0, 1], [1, 1]], drawn=np.zeros(2, dtype=bool)), rated=True)
    assert not reward.trends.sums_EF.any()


def test_learning_progress_goes_on_where_it_was():
    rng, reward = np.random.default_rng(6), LearningProgress(np.full(3, 1 / 3))
    lessons(reward, [(0.1, 0.3)] * 3, 300, rng)
    other = LearningProgress(np.full(3, 1 / 3))
    other.load(Reader(reward.state_dict(), "state"))
    np.testing.assert_array_equal(other.worth(), reward.worth())
    other.clear()
    np.testing.assert_allclose(other.worth(), other.worth()[0])


def test_mean_advantages_are_those_of_grpo():
    results = [[0, 0, 0, 1], [1, 1, 1, 1], [0.1, 0.5, 0.9, np.nan], [1e90, -1e90, 3, 4]]
    got = MeanAdvantage(1).observe(scored([0] * 4, results), rated=True)
    expected = []
    for row in results:
        live = np.array([value for value in row if not np.isnan(value)])
        std = live.std()
        expected.append(np.abs(live - live.mean()).mean() / std if std > 0 else 0.0)
    np.testing.assert_allclose(got, expected)
    assert got[0] == pytest.approx(2 * np.sqrt(0.25 * 0.75))


def test_informative_groups_count_one():
    groups = scored([0, 1, 0], [[0, 1], [1, 1], [0.2, 0.3]])
    np.testing.assert_array_equal(Informative(2).observe(groups, rated=True), [1.0, 0.0, 1.0])


def test_a_ceiling_is_read_off_first_visits():
    kept = np.full(30, True)
    rewards = [LearningProgress(np.full(2, 0.5)) for _ in range(2)]
    for seed, reward in enumerate(rewards):
        firsts, others = np.random.default_rng(0), np.random.default_rng(seed + 1)
        for step in range(50):
            first = np.arange(30) % 5 < 2
            rates = np.where(first, 0.3, [0.1, 0.02 * step][seed])
            uniform = np.where(first[:, None], firsts.random((30, 8)), others.random((30, 8)))
            groups = scored(np.arange(30) % 2, (uniform < rates[:, None]) * 1.0, kept=kept)
            reward.observe(replace(groups, mixed_K=kept, first_K=first), rated=True)
    np.testing.assert_array_equal(rewards[0].ceiling(), rewards[1].ceiling())
    assert (rewards[0].worth() != rewards[1].worth()).all()


def test_learning_by_heart_lowers_a_ceiling_and_learning_does_not():
    """Revisited prompts rise in both; new ones rise in the second environment only."""
    rng, reward, kept = np.random.default_rng(0), LearningProgress(np.full(2, 0.5)), np.ones(60, dtype=bool)
    for step in range(100):
        codes, first = np.arange(60) % 2, np.arange(60) % 4 < 2
        rates = np.where(first & (codes == 0), 0.3, 0.3 + 0.005 * step)
        results = (rng.random((60, 8)) < rates[:, None]) * 1.0
        reward.observe(replace(scored(codes, results, kept=kept), mixed_K=kept, first_K=first), rated=True)
    low, high = reward.ceiling()
    assert low < 0.7 < high, (low, high)
    # The slopes of all groups cannot tell.
    worth = reward.worth()
    assert worth[0] > 0.5 * worth[1]


def looked_flat(first):
    """Two environments told 4,000 groups each; the second rises at once, the first not at all."""
    rng, reward, kept = (
        np.random.default_rng(1),
        LearningProgress(np.full(2, 0.5), memory=200.0),
        np.ones(40, dtype=bool),
    )
    told_flat(reward, rng, kept, 200, np.ones(40, dtype=bool))
    before = reward.ceiling()
    told_flat(reward, rng, kept, 60, first)
    return before, reward.ceiling()


def told_flat(reward, rng, kept, tells, first):
    codes = np.arange(40) % 2
    for step in range(tells):
        rates = np.where(codes == 0, 0.5, 0.1 + 0.8 * step / tells)
        results = (rng.random((40, 8)) < rates[:, None]) * 1.0
        reward.observe(replace(scored(codes, results, kept=kept), mixed_K=kept, first_K=first), rated=True)


def test_a_ceiling_that_no_first_visit_renews_is_back_at_one():
    """1,200 groups without one: more than memory * ln(n / 10), with n = 2 * memory."""
    before, after = looked_flat(np.zeros(40, dtype=bool))
    assert before[0] < 0.7
    assert 200 * np.log(400 / 10) < 60 * 20
    np.testing.assert_array_equal(after, 1.0)


def test_a_ceiling_that_first_visits_renew_stays():
    before, after = looked_flat(np.arange(40) % 4 < 2)
    assert max(before[0], after[0]) < 0.7


def test_groups_of_no_weight_widen_the_error_and_leave_the_slope():
    rng, trends = np.random.default_rng(0), Trends(1, 100.0)
    codes, yes = np.zeros(300, dtype=int), np.ones(300, dtype=bool)
    trends.observe(codes, 0.001 * np.arange(300) + rng.normal(0, 0.1, 300), yes * 1.0, yes)
    (slope,), (error,) = trends.slopes()
    trends.observe(codes[:50], np.zeros(50), np.zeros(50), yes[:50])
    (later,), (wider,) = trends.slopes()
    assert later == pytest.approx(slope)
    # All but the correction n / (n - 2) for few groups is the factor itself.
    assert wider == pytest.approx(error * 0.99**-25.0, rel=0.02)
    trends.observe(codes, np.zeros(300), np.zeros(300), ~yes)
    assert np.isinf(trends.slopes()[1]).all()
    apart, together = Trends(3, 50.0), Trends(3, 50.0)
    codes, values, weights, trained = told(rng, 200)
    weights[rng.random(200) < 0.5] = 0.0
    together.observe(codes, values, weights, trained)
    for k in range(200):
        apart.observe(codes[[k]], values[[k]], weights[[k]], trained[[k]])
    np.testing.assert_allclose(together.sums_EF, apart.sums_EF, rtol=1e-9, atol=1e-9)
