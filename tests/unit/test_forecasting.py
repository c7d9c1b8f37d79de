"""What an ask would do, foretold, against what asks do; and foretelling changes nothing."""

import numpy as np
import pytest

from curricula.choosing.forecasting import spread
from tests.unit import frozen
from tests.unit.frozen import asks


def played(names, config, rounds, in_flight=0):
    return frozen.experienced(names, {"temperature": 0.4, "probe": 0.2, **config}, rounds, 6, in_flight)


def foretold(curriculum, count, samples):
    """Mean of the forecasts of all rows, as of the next ask."""
    learner, rng = curriculum._learner, np.random.default_rng(9)
    learner.beliefs.clock += 1
    rows = np.arange(len(curriculum.pool))
    found = [
        curriculum._planner.chances(rows, curriculum._situation(count, 4, curriculum._compute_shares(rng)), rng)
        for _ in range(samples)
    ]
    learner.beliefs.clock -= 1
    return np.mean(found, axis=0)


def counted(curriculum, count, rounds):
    hits = np.zeros(len(curriculum.pool))
    for draws in asks(curriculum, count, rounds):
        for draw in draws:
            hits[draw.index] += draw.reason != "repeat"
    return hits / rounds


@pytest.mark.parametrize("bandit", ["competition", "equal"])
def test_where_all_are_candidates_forecasts_are_the_frequencies(bandit):
    names = ["a"] * 12 + ["b"] * 9 + ["c"] * 6
    curriculum = played(names, {"bandit": bandit}, 3, in_flight=4)
    expected, rounds = foretold(curriculum, 5, 2), 5000
    found = counted(curriculum, 5, rounds)
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-4) / rounds)
    assert (np.abs(found - expected) < 4.5 * error).all()
    assert expected.sum() == pytest.approx(5, abs=1e-6)
    assert (expected[list(curriculum.in_flight().values())] == 0).all()


def test_where_candidates_are_a_sample_forecasts_are_the_frequencies_of_like_prompts():
    curriculum = played(["a"] * 90 + ["b"] * 60, {"candidates": 4, "bandit": "equal"}, 14)
    expected, rounds = foretold(curriculum, 5, 150), 4000
    found = counted(curriculum, 5, rounds)
    assert expected.sum() == pytest.approx(5, rel=0.04)
    assert np.corrcoef(found, expected)[0, 1] > 0.97
    order = expected.argsort()
    for part in np.array_split(order, 5):
        assert found[part].mean() == pytest.approx(expected[part].mean(), rel=0.12, abs=0.002)


def test_an_environment_that_cannot_take_its_draws_gives_them_to_others():
    curriculum = played(["a"] * 2 + ["b"] * 40, {"bandit": "equal"}, 4)
    expected = foretold(curriculum, 8, 40)
    assert expected.sum() == pytest.approx(8, rel=0.02)
    assert expected[:2].sum() == pytest.approx(2)
    assert np.abs(counted(curriculum, 8, 3000) - expected).max() < 0.045
    assert spread(np.array([4.0, 4.0]), np.array([1, 2]), np.array([0.5, 0.5])).tolist() == [1.0, 2.0]


def test_forecasts_change_nothing():
    one, other = (played(["a"] * 40 + ["b"] * 40, {}, 5, in_flight=3) for _ in range(2))
    before = repr(one.state_dict())
    foretold(one, 7, 3)
    rng = np.random.default_rng(0)
    one._planner.plan(one._situation(7, 4, one._compute_shares(rng)), rng)
    assert repr(one.state_dict()) == before
    assert one.ask(9, group_size=4) == other.ask(9, group_size=4)
    assert one.metrics() == other.metrics()
