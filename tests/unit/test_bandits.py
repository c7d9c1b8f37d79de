import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula import ConfigError
from curricula.bandits import DiscountedThompson, FixedShares, bounded_shares, resolve_bounds
from curricula.config import as_config


def bandit_of(counts, discount=0.99):
    bandit = DiscountedThompson(len(counts), discount, sharpness=np.inf)
    bandit.counts_E2 = np.array(counts, dtype=float)
    return bandit


def test_shares_are_probabilities_of_being_the_best_per_token():
    counts, costs = [[3, 5], [6, 9], [0, 0]], np.array([10.0, 10.0, 30.0])
    rng = np.random.default_rng(0)
    theta = [rng.beta(yes + 1, no + 1, 200_000) / cost for (no, yes), cost in zip(counts, costs, strict=True)]
    expected = np.bincount(np.argmax(theta, axis=0), minlength=3) / 200_000
    bandit, generator = bandit_of(counts), np.random.default_rng(1)
    mean = np.mean([bandit.shares(costs, generator) for _ in range(400)], axis=0)
    np.testing.assert_allclose(mean, expected, atol=0.01)


def test_a_batch_counts_as_one_by_one():
    together, apart = DiscountedThompson(3, 0.9), DiscountedThompson(3, 0.9)
    codes, rewards = np.array([0, 2, 0, 1, 0]), np.array([1.0, 0.0, 0.25, 1.0, 0.5])
    together.update(codes, rewards, np.ones(5))
    for code, reward in zip(codes, rewards, strict=True):
        apart.update(np.array([code]), np.array([reward]), np.ones(1))
    np.testing.assert_allclose(together.counts_E2, apart.counts_E2)


def test_counts_do_not_wind_up_over_an_outage():
    bandit = DiscountedThompson(2, 0.99, sharpness=np.inf)
    bandit.update(np.zeros(5000, dtype=int), np.ones(5000), np.ones(5000))
    assert bandit.counts_E2.sum() == pytest.approx(100, rel=0.01)
    # The other environment comes back and is better: a share that had wound up would take thousands of groups.
    rng, shares = np.random.default_rng(0), []
    for _ in range(400):
        share = bounded_shares(bandit.shares(np.ones(2), rng), np.full(2, 0.05), np.ones(2))
        shares.append(share[1])
        code = int(rng.random() < share[1])
        bandit.update(np.array([code]), np.array([rng.random() < (0.1, 0.9)[code]]) * 1.0, share[[code]])
    assert np.mean(shares[-100:]) > 0.9


def test_a_switch_is_followed():
    bandit, rng = DiscountedThompson(3, 0.99, sharpness=np.inf), np.random.default_rng(3)
    rates = np.array([[0.8, 0.3, 0.1], [0.1, 0.3, 0.8]])
    share = np.zeros(3)
    for step in range(1200):
        share = bounded_shares(bandit.shares(np.ones(3), rng), np.full(3, 0.05), np.ones(3))
        code = rng.choice(3, p=share)
        bandit.update(np.array([code]), np.array([rng.random() < rates[step // 600][code]]) * 1.0, share[[code]])
        if step == 599:
            assert share[0] > 0.8
    assert share[2] > 0.8


vectors = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*(st.lists(st.floats(0, 1), min_size=n, max_size=n) for _ in range(3)))
)


@given(vectors)
@settings(max_examples=300)
def test_bounded_shares_meet_their_bounds_and_keep_proportions(case):
    shares, floors, caps = (np.array(column) for column in case)
    shares, floors = shares + 1e-3, floors / max(1.0, sum(case[1]) * 1.01)
    caps = np.maximum(caps, floors)
    if caps.sum() < 1.0:
        caps = np.minimum(1.0, caps + 1.0)
    bounded = bounded_shares(shares, floors, caps)
    assert bounded.sum() == pytest.approx(1)
    assert (bounded >= floors - 1e-9).all()
    assert (bounded <= caps + 1e-9).all()
    inside = (bounded > floors + 1e-7) & (bounded < caps - 1e-7)
    ratios = bounded[inside] / shares[inside]
    if ratios.size:
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
        # A share at its floor would be lower without it, one at its cap higher.
        at_floor = (bounded <= floors + 1e-7) & (bounded < caps - 1e-7)
        assert (bounded[at_floor] >= ratios[0] * shares[at_floor] * (1 - 1e-4)).all()
        at_cap = (bounded >= caps - 1e-7) & (bounded > floors + 1e-7)
        assert (bounded[at_cap] <= ratios[0] * shares[at_cap] * (1 + 1e-4)).all()


def test_fixed_shares_are_the_weights():
    np.testing.assert_allclose(
        FixedShares(np.array([1.0, 3.0])).shares(np.ones(2), np.random.default_rng()), [0.25, 0.75]
    )


def test_default_floors_apply_only_where_shares_are_learned():
    names = ["a", "b", "c"]
    floors, caps = resolve_bounds(as_config(None), names)
    assert floors.tolist() == [0.02] * 3
    assert caps.tolist() == [1.0] * 3
    mix = {"curriculum": {"bandit": {"type": "size_proportional"}}, "environments": {"b": {"share": {"floor": 0.2}}}}
    assert resolve_bounds(as_config(mix), names)[0].tolist() == [0.0, 0.2, 0.0]
    with pytest.raises(ConfigError):
        resolve_bounds(as_config({"environments": {"d": {}}}), names)
