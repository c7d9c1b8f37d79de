"""Stated inclusion probabilities against counted ones, on a pool whose state is put back before every ask."""

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool


def experienced(names, config=None, rounds=12, in_flight=0):
    """A curriculum that has seen some outcomes, so that scores differ."""
    selection = {"temperature": 0.5, "probe": 0.2, "expiry": 10**6, **(config or {})}
    curriculum = Curriculum(PromptPool(names), {"curriculum": selection}, seed=5)
    rng = np.random.default_rng(0)
    rates = rng.random(len(names))
    for _ in range(rounds):
        draws = curriculum.ask(4, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, (rng.random(4) < rates[draw.index]) * 1.0) for draw in draws])
    if in_flight:
        curriculum.ask(in_flight, group_size=4)
    return curriculum


def asks(curriculum, count, rounds):
    for _ in range(rounds):
        draws = curriculum.ask(count, group_size=4)
        yield draws
        for draw in draws:
            curriculum._tickets.close([draw.ticket])


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
