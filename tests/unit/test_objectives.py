from fractions import Fraction

import numpy as np
import pytest

from curricula.objectives import batch_signal, expected_signal, group_signal


def rising(base, count):
    product = Fraction(1)
    for step in range(count):
        product *= base + step
    return product


def exact_group(alpha, beta, size):
    """The beta-binomial, in exact fractions."""
    alpha, beta = Fraction(alpha), Fraction(beta)
    return float(1 - (rising(alpha, size) + rising(beta, size)) / rising(alpha + beta, size))


@pytest.mark.parametrize("alpha", [1e-9, 0.02, 1.0, 2.5, 40.0, 1e6])
@pytest.mark.parametrize("beta", [1e-9, 0.3, 1.0, 17.25, 1e5])
@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_group_signal_is_the_beta_binomial(alpha, beta, size):
    expected = exact_group(alpha, beta, size)
    assert group_signal(np.array([alpha]), np.array([beta]), size)[0] == pytest.approx(expected, rel=1e-11, abs=0)


def test_both_signals_are_the_means_over_the_posterior():
    rng = np.random.default_rng(0)
    rate = rng.beta(1.4, 3.2, 400_000)
    alpha, beta = np.array([1.4]), np.array([3.2])
    assert group_signal(alpha, beta, 6)[0] == pytest.approx((1 - rate**6 - (1 - rate) ** 6).mean(), abs=2e-3)
    assert batch_signal(alpha, beta, 6)[0] == pytest.approx((5 * rate * (1 - rate)).mean(), abs=2e-3)


def test_the_batch_signal_is_the_expected_squared_advantage():
    rng = np.random.default_rng(1)
    rewards = (rng.random((200_000, 5)) < 0.3) * 1.0
    squares = ((rewards - rewards.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).mean()
    certain = np.array([0.3]) * 1e9, np.array([0.7]) * 1e9
    assert batch_signal(*certain, 5)[0] == pytest.approx(squares, abs=5e-3)


def test_the_normaliser_chooses_the_signal():
    alpha, beta = np.array([2.0]), np.array([3.0])
    assert expected_signal(alpha, beta, 4, "batch") == batch_signal(alpha, beta, 4)
    assert expected_signal(alpha, beta, 4, "group") == group_signal(alpha, beta, 4)
