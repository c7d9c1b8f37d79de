import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula.choosing.sampling import (
    PADDING,
    allocate,
    draw_weights,
    inclusion_probabilities,
    sample_range,
    systematic,
)
from curricula.choosing.strata import settle

weights_and_count = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40).flatmap(
    lambda weights: st.tuples(st.just(np.array(weights)), st.integers(1, len(weights)))
)


def weigh(scores, count, temperature):
    return draw_weights(scores[None], np.array([count]), temperature)[0]


def chances(weights, count, probe):
    return inclusion_probabilities(weights[None], np.array([count]), np.array([weights.size]), probe)[0]


def draw(chance, count, rng):
    return systematic(chance, np.array([chance.size]), np.array([count]), rng)


some_scores = st.lists(st.sampled_from([0.0, 1e-9, 0.1, 0.4, 0.5, 3.0]), min_size=1, max_size=9)


@given(st.lists(some_scores, min_size=1, max_size=5), st.data())
def test_rows_of_different_sizes_do_not_touch_one_another(rows, data):
    counts = [data.draw(st.integers(1, len(row))) for row in rows]
    padded = np.full((len(rows), max(map(len, rows))), PADDING)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    sizes = np.array([len(row) for row in rows])
    together = inclusion_probabilities(draw_weights(padded, np.array(counts), 0.1), np.array(counts), sizes, 0.05)
    for place, (row, count) in enumerate(zip(rows, counts, strict=True)):
        np.testing.assert_allclose(
            together[place, : len(row)], chances(weigh(np.array(row), count, 0.1), count, 0.05), rtol=1e-9
        )
        assert (together[place, len(row) :] == 0).all()
    flat = np.concatenate([together[place, :size] for place, size in enumerate(sizes)])
    places = systematic(flat, sizes, np.array(counts), np.random.default_rng(0))
    assert np.bincount(np.repeat(np.arange(len(rows)), sizes)[places], minlength=len(rows)).tolist() == counts
    assert len(set(places.tolist())) == sum(counts)
    assert (flat[places] > 0).all()


@given(weights_and_count, st.floats(0.01, 1.0))
@settings(max_examples=300)
def test_inclusion_probabilities_solve_their_equation(case, probe):
    weights, count = case
    chance = chances(weights, count, probe)
    assert chance.sum() == pytest.approx(count)
    assert (chance > 0).all()
    assert (chance <= 1 + 1e-12).all()
    if count == weights.size:
        return
    # min(1, c w) for one c, found here by bisection.
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * weights).sum() < count else (low, middle)
    expected = (1 - probe) * np.minimum(1, high * weights) + probe * count / weights.size
    np.testing.assert_allclose(chance, expected, rtol=1e-6, atol=1e-9)


@given(weights_and_count, st.integers(0, 2**32 - 1))
def test_systematic_draws_are_of_fixed_size_and_distinct(case, seed):
    weights, count = case
    places = draw(chances(weights, count, 0.05), count, np.random.default_rng(seed))
    assert len(places) == len(set(places.tolist())) == count
    assert places.min() >= 0
    assert places.max() < weights.size


def test_systematic_draws_include_each_place_with_its_probability():
    chance = chances(np.array([0.01, 0.2, 0.9, 0.5, 0.5, 0.02, 1.0]), 3, 0.1)
    rng, hits, rounds = np.random.default_rng(0), np.zeros(7), 20_000
    for _ in range(rounds):
        hits[draw(chance, 3, rng)] += 1
    assert np.abs(hits / rounds - chance).max() < 4 * np.sqrt(0.25 / rounds)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda shares: sum(shares) > 0.01),
    st.integers(1, 300),
    st.integers(0, 2**32 - 1),
)
def test_allocation_is_within_one_of_its_expectation(shares, count, seed):
    normal = np.array(shares) / np.sum(shares)
    parts = allocate(normal, count, np.random.default_rng(seed))
    assert parts.sum() == count
    assert (np.abs(parts - count * normal) < 1 + 1e-9).all()


def test_allocation_has_the_right_mean():
    shares, rng = np.array([0.62, 0.05, 0.33]), np.random.default_rng(1)
    mean = np.mean([allocate(shares, 7, rng) for _ in range(20_000)], axis=0)
    np.testing.assert_allclose(mean, 7 * shares, atol=0.02)


@given(st.sets(st.integers(5, 30)), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_a_sample_of_a_range_leaves_out_what_is_taken(taken, count, seed):
    count = min(count, 26 - len(taken))
    sample = sample_range(5, 31, sorted(taken), count, np.random.default_rng(seed)).tolist()
    assert len(sample) == len(set(sample)) == count
    assert all(5 <= position < 31 and position not in taken for position in sample)


def test_a_sample_of_a_range_is_simple_random():
    rng, counts = np.random.default_rng(2), {}
    for _ in range(30_000):
        pair = tuple(sample_range(10, 16, [11, 14], 2, rng).tolist())
        counts[pair] = counts.get(pair, 0) + 1
    assert set(counts) == set(itertools.permutations([10, 12, 13, 15], 2))
    assert max(abs(count / 30_000 - 1 / 12) for count in counts.values()) < 0.008


def test_weights_follow_ratios_of_scores_whatever_their_unit():
    scores = np.array([0.0, 1.0, 2.0, 4.0])
    weights = weigh(scores, 1, 0.5)
    np.testing.assert_allclose(weights[1:], [1 / 17, 1 / 5, 1 / 2])
    np.testing.assert_allclose(weigh(scores * 1e-12, 1, 0.5), weights)
    assert 0 < weights[0] < 1e-8


def test_scores_that_are_all_nothing_still_give_a_draw():
    assert (weigh(np.zeros(4), 2, 0.1) > 0).all()
    assert weigh(np.array([0.0, 0.0, 1.0]), 2, 0.1).argmax() == 2


def test_a_deficit_goes_where_prompts_are_left():
    rng = np.random.default_rng(0)
    shares = np.array([0.8, 0.2, 0.0])
    np.testing.assert_array_equal(settle(np.array([8, 2, 0]), np.array([3, 4, 0]), shares, rng), [3, 4, 0])
    np.testing.assert_array_equal(settle(np.array([8, 2, 0]), np.array([3, 4, 99]), shares, rng).sum(), 10)
    np.testing.assert_array_equal(settle(np.array([8, 2, 0]), np.array([3, 99, 0]), shares, rng), [3, 7, 0])
