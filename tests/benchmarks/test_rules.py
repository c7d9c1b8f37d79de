"""The rules against their equations, done the slow way."""

import numpy as np
import pytest
from replay import build, groups
from rules import PEERS, ArcusThompson, Clairvoyant, CurriculumRule, Dps, Greso, Mopps, NoPositive, PrimePools

from curricula import PromptPool
from curricula.beliefs import ArcsineKalman

EVERY = (*PEERS, CurriculumRule)


def results(rates):
    return groups(np.asarray(rates, dtype=np.float64))


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_draws_are_distinct_not_excluded_and_repeatable(kind):
    rules = [build(kind, 60, seed=3) for _ in range(2)]
    noise = np.random.default_rng(0)
    for _ in range(12):
        taken = np.zeros(0, dtype=np.int64)
        for _ in range(3):
            first, second = (rule.choose(15, exclude=taken) for rule in rules)
            np.testing.assert_array_equal(first, second)
            assert np.unique(np.append(taken, first)).size == taken.size + 15
            seen = results(noise.integers(0, 9, 15) / 8)
            for rule in rules:
                rule.observe(first, seen)
            taken = np.append(taken, first)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_before_any_evidence_every_prompt_has_the_same_chance(kind):
    counts = np.zeros(12)
    for seed in range(300):
        counts[build(kind, 12, seed).choose(4)] += 1
    # 300 draws at 1/3: a standard deviation of 8.
    assert np.abs(counts - 100).max() < 33


@pytest.mark.parametrize("kind", PEERS, ids=lambda kind: kind.name)
def test_more_than_there_is_is_refused(kind):
    rule = build(kind, 10, 0)
    with pytest.raises(ValueError, match=f"{kind.name}: expected to choose at most 8 prompts; got n = 9"):
        rule.choose(9, exclude=np.array([0, 5]))


def test_dps_is_the_forward_filter_of_one_chain_at_a_time():
    rng = np.random.default_rng(1)
    rule = build(Dps, 5, 0)
    counts = [np.ones((3, 3)) for _ in range(5)]
    before = [np.full(3, 1 / 3) for _ in range(5)]
    predicted = [np.full(3, 1 / 3) for _ in range(5)]
    for _ in range(20):
        rows = rng.choice(5, 2, replace=False)
        passed = rng.choice([0, 3, 8], 2)
        rule.observe(rows, results(passed / 8))
        for row in range(5):
            columns = counts[row] / counts[row].sum(axis=0)
            counts[row] = 0.7 * counts[row] + 0.3
            now = predicted[row]
            if row in rows:
                now = np.zeros(3)
                now[{0: 0, 3: 1, 8: 2}[passed[rows.tolist().index(row)]]] = 1.0
                moved = np.outer(now, before[row]) * columns
                counts[row] = counts[row] + moved / moved.sum()
            before[row] = now
            predicted[row] = counts[row] / counts[row].sum(axis=0) @ now
        np.testing.assert_allclose(rule.predicted, predicted, atol=1e-12)


def test_arcus_is_the_belief_of_the_core():
    rng = np.random.default_rng(2)
    rule = build(ArcusThompson, 6, 0)
    belief = ArcsineKalman(PromptPool(["a"] * 6), rule.drift, rule.noise)
    for _ in range(15):
        rows = rng.choice(6, 3, replace=False)
        passed = rng.integers(0, 9, 3)
        rule.observe(rows, results(passed / 8))
        belief.update(rows, passed.astype(float), np.full(3, 8.0))
    rows = np.arange(6)
    assessed = belief.assess(rows, 8, "group")
    for ours, theirs in zip(rule.forecast(rows), (assessed.means, assessed.signals), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_greso_skips_by_the_length_of_the_streak():
    rule = build(Greso, 400, 0)
    rows = np.arange(400)
    streaks = rows % 4
    rule.streak[:], rule.easy[:] = streaks, rows % 8 < 4
    # One pass: what comes before the pass starts anew.
    drawn = rule.choose(150)
    chances = np.bincount(streaks[drawn], minlength=4) / 100
    assert chances[0] > chances[1] > chances[2] > chances[3]
    rule = build(Greso, 40, 0)
    before = dict(rule.explore)
    rule.observe(rows[:32], results(np.zeros(32)))
    assert (rule.streak[:32] == 1).all()
    assert rule.explore["hard"] == pytest.approx(before["hard"] - 0.01)
    assert rule.explore["easy"] == pytest.approx(before["easy"] + 0.01)


def test_mopps_draws_near_one_half():
    rule = build(Mopps, 30, 0)
    for _ in range(5):
        rule.observe(np.arange(30), results(np.repeat([0.0, 0.5, 1.0], 10)))
    assert (np.sort(rule.choose(10)) == np.arange(10, 20)).all()
    # Five visits: n = 8 (1 - .9^5) / .1, added to the prior.
    assert rule.betas.alpha[10] == pytest.approx(1 + 4 * (1 - 0.9**5) / 0.1)


def test_pools_weigh_by_the_latest_mean_and_removal_is_for_good():
    pools, removal = build(PrimePools, 4, 0), build(NoPositive, 4, 0)
    for rule in (pools, removal):
        rule.observe(np.arange(3), results([0.25, 0.5, 1.0]))
        rule.observe(np.array([2]), results([0.75]))
    np.testing.assert_array_equal(pools.weights, [0.2, 1.0, 1.0, 1.0])
    assert set(removal.choose(3).tolist()) == {0, 1, 3}
    assert set(removal.choose(4).tolist()) == {0, 1, 2, 3}


def test_the_clairvoyant_visits_all_then_the_best():
    rule = build(Clairvoyant, 12, 0)
    worth = np.arange(12.0)
    visited = []
    for _ in range(3):
        rule.reveal(worth)
        rows = rule.choose(4)
        rule.observe(rows, results(np.zeros(4)))
        visited.extend(rows.tolist())
    assert sorted(visited) == list(range(12))
    assert sorted(rule.choose(3).tolist()) == [9, 10, 11]


def test_the_curriculum_may_draw_again_what_is_no_longer_excluded():
    rule = build(CurriculumRule, 8, 0)
    for _ in range(6):
        first = rule.choose(4)
        rule.observe(first, results(np.full(4, 0.5)))
        second = rule.choose(4, exclude=first)
        rule.observe(second, results(np.full(4, 0.5)))
        assert sorted(np.append(first, second).tolist()) == list(range(8))
    assert rule.curriculum.metrics()["told"] == 48
    assert rule.curriculum.metrics()["repeats"] == 0
