import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.beliefs.arcsine_kalman import ArcsineKalman
from curricula.errors import CheckpointError, ConfigError
from curricula.stateful import Reader
from curricula.windows import Windows

NAMES = ["a", "b"] * 6
LEVELS = [0, 0, 1, 1, 2, 2] * 2
RIGHT = np.pi / 2


def fresh(levels=None, drift=0.01, noise=0.02):
    return ArcsineKalman(PromptPool(NAMES, levels=levels), drift, noise)


def tell(beliefs, *visits):
    rows, passed, tried = (np.array(column) for column in zip(*visits, strict=True))
    beliefs.update(rows, passed.astype(float), tried.astype(float))


def by_hand(visits, row, drift, noise):
    mean, variance = np.pi / 4, np.pi**2 / 48
    for at, m, g in visits:
        if at != row:
            continue
        z, r = np.arcsin(np.sqrt((m + 3 / 8) / (g + 3 / 4))), 1 / (4 * g + 2)
        if m in (0, g):
            z, r = (0.0 if m == 0 else RIGHT), 1 / (2 * g)
        # Bayes by precision, not by gain.
        precise = 1 / variance + 1 / r
        mean, variance = (mean / variance + z / r) / precise, 1 / precise
        mean, variance = mean + drift * np.sin(2 * mean), variance + noise
    return mean, variance


visits = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=40)
visits = visits.map(lambda rows: [(row, min(m, g), g) for row, m, g in rows])


@given(visits, st.booleans())
def test_the_filter_is_the_one_by_hand_and_sums_follow(told, levelled):
    beliefs = fresh(LEVELS if levelled else None)
    tell(beliefs, *told)
    mean, variance = beliefs.posterior(np.arange(12))
    expected = np.array([by_hand(told, row, 0.01, 0.02) for row in range(12)])
    np.testing.assert_allclose(mean, expected[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, expected[:, 1], rtol=1e-5)
    assert beliefs.visited == len({row for row, _, _ in told}) == beliefs.seen(np.arange(12)).sum()
    rates, _ = beliefs.moments(np.arange(12))
    whole = beliefs.pool_means(Windows(beliefs.pool).blocks_E2)
    np.testing.assert_allclose(whole, [rates[0::2].mean(), rates[1::2].mean()], atol=1e-9)


@pytest.mark.parametrize("group_size", [2, 8, 64])
def test_what_is_in_closed_form_is_the_integral(group_size):
    beliefs = fresh()
    tell(beliefs, (0, 0, 8), (2, 3, 8), (4, 8, 8), (4, 8, 8), (6, 1, 2))
    rows = np.arange(12)
    mean, variance = beliefs.posterior(rows)
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    psi = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    weights = weights / weights.sum()
    p = np.sin(psi) ** 2
    rates, spread = beliefs.moments(rows)
    np.testing.assert_allclose(rates, p @ weights, atol=1e-9)
    np.testing.assert_allclose(spread, np.sqrt((p**2) @ weights - (p @ weights) ** 2), atol=1e-7)
    batch = beliefs.assess(rows, group_size, "batch")
    np.testing.assert_array_equal(batch.means, rates)
    np.testing.assert_allclose(batch.signals, (group_size - 1) * (p * (1 - p)) @ weights, rtol=1e-9)
    alike = np.exp(-group_size * psi**2) + np.exp(-group_size * (RIGHT - psi) ** 2)
    group = beliefs.assess(rows, group_size, "group").signals
    np.testing.assert_allclose(group, np.maximum(1 - alike @ weights, 0), atol=1e-7)


def test_the_gaussian_form_of_a_mixed_group_is_close_to_the_chance_itself():
    beliefs = fresh(noise=1e-6)
    for passed in range(9):
        tell(beliefs, *[(0, passed, 8)] * 200)
        (mean,), _ = beliefs.posterior(np.array([0]))
        p = np.sin(mean) ** 2
        (signal,) = beliefs.assess(np.array([0]), 8, "group").signals
        assert signal == pytest.approx(1 - p**8 - (1 - p) ** 8, abs=0.05)


def test_fractions_count_and_progress_stays_within_bounds():
    beliefs = fresh(drift=0.5)
    tell(beliefs, (0, 2.5, 8), (2, 0.1 + 0.2 + 0.7, 1.0))
    (half, full), _ = beliefs.moments(np.array([0, 2]))
    assert 0.2 < half < full
    tell(beliefs, *[(2, 8, 8)] * 50)
    assert float(beliefs.shift[2]) <= np.float32(RIGHT / 2)


def test_state_goes_on_exactly_and_damage_is_refused():
    first, second = fresh(LEVELS), fresh(LEVELS)
    tell(first, (0, 0, 8), (3, 5, 8))
    second.load(Reader(first.state_dict(), "state"))
    for beliefs in (first, second):
        tell(beliefs, (3, 1, 8), (5, 8, 8))
    np.testing.assert_equal(second.state_dict(), first.state_dict())
    assert second.visited == first.visited == 3
    for key, value in (("shift", 2.0), ("variance", 0.0), ("variance", np.nan), ("means", -1.0)):
        damaged = first.state_dict()
        damaged[key][0] = value
        with pytest.raises(CheckpointError, match=key):
            fresh(LEVELS).load(Reader(damaged, "state"))


def test_cleared_beliefs_are_fresh():
    beliefs = fresh()
    tell(beliefs, (0, 0, 8))
    beliefs.clear()
    np.testing.assert_equal(beliefs.state_dict(), fresh().state_dict())


def test_a_mix_names_its_belief():
    pool = PromptPool(NAMES)
    for belief in ("arcsine_kalman", {"type": "arcsine_kalman", "noise": 0.01}):
        curriculum = Curriculum(pool, {"curriculum": {"belief": belief}}, seed=1)
        draws = curriculum.ask(4, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, [1, 1, 1, 1]) for draw in draws])
        told = curriculum.beliefs([draw.index for draw in draws])
        assert (told.mean > 0.8).all()
    other = Curriculum(pool, {"curriculum": {"belief": {"drift": 0.5}}}, seed=1)
    assert other.config.curriculum.belief.type == "hierarchical"
    with pytest.raises(ConfigError, match=r"curriculum.belief.decay.*"):
        Curriculum(pool, {"curriculum": {"belief": {"type": "arcsine_kalman", "decay": 0.5}}})
    with pytest.raises(ConfigError, match="did you mean arcsine_kalman"):
        Curriculum(pool, {"curriculum": {"belief": "arcsine_kalmann"}})


def test_a_resumed_run_with_another_belief_starts_it_afresh(caplog):
    pool = PromptPool(NAMES)
    saved = Curriculum(pool, {"curriculum": {"belief": "arcsine_kalman"}}, seed=1)
    draws = saved.ask(4, group_size=4)
    saved.tell([GroupOutcome(draw.ticket, [1, 1, 1, 1]) for draw in draws])
    resumed = Curriculum(pool, seed=2)
    with caplog.at_level("WARNING", logger="curricula"):
        resumed.load_state_dict(saved.state_dict())
    assert "beliefs were arcsine_kalman in the saved run and are hierarchical now: they start afresh" in caplog.text
    fresh = Curriculum(pool).beliefs(np.arange(12))
    np.testing.assert_array_equal(resumed.beliefs(np.arange(12)).mean, fresh.mean)
    assert resumed.metrics()["coverage"] == 0.0
    # And it goes on: prompts that were visited are so no more, neither for the beliefs nor for the candidates.
    assert {draw.reason for draw in resumed.ask(8, group_size=4)} == {"explore"}
    same = Curriculum(pool, {"curriculum": {"belief": "arcsine_kalman"}}, seed=3)
    same.load_state_dict(saved.state_dict())
    np.testing.assert_array_equal(same.beliefs(np.arange(12)).mean, saved.beliefs(np.arange(12)).mean)


@pytest.mark.parametrize("before", ["hierarchical", "decayed_beta", "arcsine_kalman"])
@pytest.mark.parametrize("after", ["hierarchical", "decayed_beta", "arcsine_kalman"])
def test_any_belief_may_follow_any_other(before, after):
    pool = PromptPool(NAMES * 10, texts=[f"prompt {row}" for row in range(10 * len(NAMES))])
    saved = Curriculum(pool, {"curriculum": {"belief": before}}, seed=1)
    for _ in range(4):
        saved.tell([GroupOutcome(draw.ticket, [1, 0, 1, 1]) for draw in saved.ask(8, group_size=4)])
    waiting = saved.ask(4, group_size=4)
    resumed = Curriculum(pool, {"curriculum": {"belief": after}}, seed=2)
    resumed.load_state_dict(saved.state_dict())
    assert (resumed.metrics()["coverage"] == saved.metrics()["coverage"]) == (before == after)
    resumed.tell([GroupOutcome(draw.ticket, [1, 0, 1, 1]) for draw in waiting])
    for _ in range(3):
        draws = resumed.ask(8, group_size=4)
        assert len({draw.index for draw in draws}) == 8
        resumed.tell([GroupOutcome(draw.ticket, [1, 0, 1, 1]) for draw in draws])
    again = Curriculum(pool, resumed.config)
    again.load_state_dict(resumed.state_dict())
