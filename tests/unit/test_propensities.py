"""Stated inclusion probabilities against counted ones, on a pool whose state is put back before every ask."""

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool
from tests.unit import frozen
from tests.unit.frozen import asks


def experienced(names, config=None, rounds=12, in_flight=0):
    return frozen.experienced(names, {"temperature": 0.5, "probe": 0.2, **(config or {})}, rounds, 4, in_flight)


@pytest.mark.parametrize("in_flight", [0, 5])
def test_propensities_are_the_counted_frequencies_where_all_are_candidates(in_flight):
    curriculum = experienced(["a"] * 20, in_flight=in_flight)
    rounds, hits, stated = 6000, np.zeros(20), np.zeros(20)
    for draws in asks(curriculum, 3, rounds):
        assert len({draw.index for draw in draws}) == 3
        for draw in draws:
            hits[draw.index] += 1
            # A prompt's propensity must not depend on how the coin fell this time.
            assert stated[draw.index] in (0, pytest.approx(draw.propensity))
            stated[draw.index] = draw.propensity
    assert (hits > 0).sum() == 20 - in_flight
    assert stated.sum() == pytest.approx(3)
    assert np.abs(hits / rounds - stated).max() < 4.5 * np.sqrt(0.25 / rounds)
    assert stated.max() / stated[stated > 0].min() > 2


def test_inverse_propensities_are_unbiased_where_candidates_are_a_sample():
    curriculum = experienced(["a"] * 60, {"candidates": 4})
    rounds, sums, squares = 8000, np.zeros(60), np.zeros(60)
    for draws in asks(curriculum, 3, rounds):
        for draw in draws:
            sums[draw.index] += 1 / draw.propensity
            squares[draw.index] += 1 / draw.propensity**2
    mean = sums / rounds
    error = np.sqrt(np.maximum(squares / rounds - mean**2, 1e-9) / rounds)
    assert (np.abs(mean - 1) < 4.5 * error).all()
    assert mean.mean() == pytest.approx(1, abs=0.03)


def test_with_several_environments_propensities_are_given_their_counts():
    curriculum = experienced(["a"] * 15 + ["b"] * 25)
    totals = {}
    for draws in asks(curriculum, 6, 4000):
        counts = {name: sum(draw.environment == name for draw in draws) for name in "ab"}
        for draw in draws:
            place = (draw.environment, counts[draw.environment])
            asked, weight = totals.get(place, (0, 0.0))
            totals[place] = (asked, weight + 1 / draw.propensity)
        for place in counts.items():
            asked, weight = totals.get(place, (0, 0.0))
            totals[place] = (asked + 1, weight)
    for (name, count), (asked, weight) in totals.items():
        if count and asked > 500:
            assert weight / asked == pytest.approx({"a": 15, "b": 25}[name], rel=0.15)


def test_reasons_are_as_likely_as_the_parts_of_the_probability():
    curriculum = experienced(["a"] * 20, {"probe": 0.3}, rounds=0)
    curriculum.tell([GroupOutcome(None, [0, 1, row % 2, 1], index=row) for row in range(20)])
    reasons = [draw.reason for draws in asks(curriculum, 2, 3000) for draw in draws]
    evenly = sum(reason in ("probe", "review") for reason in reasons) / len(reasons)
    assert "explore" not in reasons
    assert evenly == pytest.approx(0.3, abs=0.03)


def test_with_everything_even_the_draws_are_uniform():
    uniform = {"objective": {"type": "uniform"}, "bandit": {"type": "size_proportional", "most_draws": 1.0}}
    curriculum = experienced(["a"] * 30 + ["b"] * 10, uniform)
    hits = np.zeros(40)
    for draws in asks(curriculum, 4, 5000):
        assert sum(draw.environment == "a" for draw in draws) == 3
        for draw in draws:
            hits[draw.index] += 1
            assert draw.propensity == pytest.approx(0.1)
    assert np.abs(hits / 5000 - 0.1).max() < 0.02


def levelled(in_flight=4, config=None):
    """Three environments, windows, visited and unvisited prompts, some in flight: every part of a propensity."""
    names, levels = ["a"] * 16 + ["b"] * 12 + ["c"] * 8, [0, 1, 2, 3] * 9
    mix = {"curriculum": {"expiry": 10**6, **(config or {})}}
    curriculum, rng = Curriculum(PromptPool(names, levels=levels), mix, seed=3), np.random.default_rng(1)
    rates = rng.random(36)
    for _ in range(4):
        draws = curriculum.ask(4, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, (rng.random(4) < rates[draw.index]) * 1.0) for draw in draws])
    curriculum.set_window("a", 1, 3)
    curriculum.ask(in_flight, group_size=4)
    assert 0.2 < curriculum.metrics()["coverage"] < 0.6
    return curriculum


@pytest.mark.parametrize(
    ("config", "rounds"),
    [({"temperature": 0.3, "probe": 0.3}, 3000), pytest.param({}, 10_000, marks=pytest.mark.slow)],
    ids=["mild", "default"],
)
def test_propensities_are_the_counted_frequencies_given_the_counts_of_environments(config, rounds):
    curriculum = levelled(config=config)
    busy = set(curriculum.in_flight().values())
    totals, hits, stated, least = {}, {}, {}, {}
    for draws in asks(curriculum, 5, rounds):
        counts = {name: sum(draw.environment == name for draw in draws) for name in "abc"}
        for place in counts.items():
            totals[place] = totals.get(place, 0) + 1
        drawn = tuple(place for place in counts.items() if place[1])
        assert least.setdefault(drawn, curriculum.metrics()["least_propensity"]) == pytest.approx(
            curriculum.metrics()["least_propensity"]
        )
        for draw in draws:
            place = (draw.index, draw.environment, counts[draw.environment])
            hits[place] = hits.get(place, 0) + 1
            assert stated.setdefault(place, draw.propensity) == pytest.approx(draw.propensity)
    assert not busy & {row for row, *_ in hits}
    assert {row % 4 for row, name, _ in hits if name == "a"} == {1, 2, 3}
    eligible = {"a": 12, "b": 12, "c": 8}
    for row in busy:
        eligible[curriculum.pool.environments[curriculum.pool.codes[row]]] -= row >= 16 or row % 4 > 0
    for place, count in hits.items():
        asked = totals[place[1:]]
        assert abs(count - asked * stated[place]) < 4.5 * np.sqrt(asked * stated[place] * (1 - stated[place])) + 1.5
    whole = set()
    for (name, count), asked in totals.items():
        found = [stated[place] for place in stated if place[1:] == (name, count)]
        # What was never drawn is what can hardly be.
        assert sum(found) <= count + 1e-6
        if asked > 1000 and count:
            assert sum(found) > 0.95 * count
        if count and len(found) == eligible[name]:
            whole.add((name, count))
            assert sum(found) == pytest.approx(count)
    for drawn, value in least.items():
        if whole.issuperset(drawn):
            assert value == pytest.approx(min(stated[place] for place in stated if place[1:] in drawn))
    # Of the sharp default some are hardly ever drawn.
    assert sum(whole.issuperset(drawn) for drawn in least) > 0 or not config


def test_inverse_propensities_are_unbiased_for_visited_and_unvisited_samples_of_several_environments():
    curriculum = experienced(["a"] * 70 + ["b"] * 50, {"candidates": 3, "bandit": "equal"}, rounds=14, in_flight=6)
    free = np.setdiff1d(np.arange(120), list(curriculum.in_flight().values()))
    seen = curriculum._learner.beliefs.seen(np.arange(120))
    assert 10 < seen.sum() < 110
    rounds, sums, squares = 6000, np.zeros(120), np.zeros(120)
    for draws in asks(curriculum, 4, rounds):
        for draw in draws:
            sums[draw.index] += 1 / draw.propensity
            squares[draw.index] += 1 / draw.propensity**2
    mean = sums / rounds
    error = np.sqrt(np.maximum(squares / rounds - mean**2, 1e-9) / rounds)
    assert (sums[np.setdiff1d(np.arange(120), free)] == 0).all()
    assert (np.abs(mean - 1) < 5 * error)[free].all()
    for part in (seen, ~seen):
        assert mean[free][part[free]].mean() == pytest.approx(1, abs=0.04)


def test_probes_are_at_the_stated_rate_and_so_is_what_is_explored():
    """Over 10,000 draws; every prompt was visited at first, then some were not."""
    curriculum = Curriculum(PromptPool(["a"] * 200 + ["b"] * 100), seed=0)
    curriculum.tell([GroupOutcome(None, [0, 1, row % 2, 1, row % 3 == 0, 1], index=row) for row in range(300)])
    draws = [draw for part in asks(curriculum, 50, 200) for draw in part]
    even = sum(draw.reason in ("probe", "review") for draw in draws)
    assert abs(even - 200) < 4 * np.sqrt(10_000 * 0.02 * 0.98)
    assert all(draw.reason != "explore" for draw in draws)
    curriculum = Curriculum(PromptPool(["a"] * 2000), seed=0)
    # One in five of those that were visited is informative: one that was not is worth less than those.
    curriculum.tell(
        [GroupOutcome(None, [0, 1, 1, 0, 1, 0] if row < 200 else [1] * 6, index=row) for row in range(1000)]
    )
    drawn = [draw.reason for part in asks(curriculum, 50, 200) for draw in part]
    config = curriculum.config.curriculum
    explored = drawn.count("explore") / 10_000
    assert explored == pytest.approx(min(config.explore * 0.5, 0.5), abs=0.01)
    known = 1 - explored
    assert sum(reason in ("probe", "review") for reason in drawn) / 10_000 == pytest.approx(0.02 * known, abs=0.005)


def test_neither_kind_is_shut_out():
    """However good one kind looks, and whatever is asked to be explored, the other has its part of the probes."""
    curriculum = Curriculum(PromptPool(["a"] * 100), {"curriculum": {"explore": 0.0, "probe": 0.1}}, seed=0)
    curriculum.tell([GroupOutcome(None, [0, 1, 1, 0] if row < 20 else [1] * 4, index=row) for row in range(50)] * 2)
    drawn = [draw.reason for part in asks(curriculum, 10, 300) for draw in part]
    assert drawn.count("explore") / 3000 == pytest.approx(0.05, abs=0.015)
    curriculum = Curriculum(PromptPool(["a"] * 100), {"curriculum": {"probe": 0.1}}, seed=0)
    curriculum.tell([GroupOutcome(None, [1] * 6, index=row) for row in range(50)])
    curriculum.tell([GroupOutcome(None, [1] * 6, index=row) for row in range(50)])
    drawn = [draw.reason for part in asks(curriculum, 10, 300) for draw in part]
    assert 1 - drawn.count("explore") / 3000 == pytest.approx(0.05, abs=0.015)
