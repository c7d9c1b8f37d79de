"""Each rule over environments against its equations, written out."""

import math
from collections import deque

import numpy as np
import pytest

from curricula.bandits import DiscountedThompson, Exp3S, FixedShares, SlidingWindowUCB
from curricula.choosing.sampling import allocate
from curricula.stateful import Reader
from curricula.testing import check_bandit
from curricula.testing.bandit import play

RULES = {
    "thompson": DiscountedThompson,
    "thompson-proportional": lambda arms: DiscountedThompson(arms, 0.99, sharpness=1.0),
    "thompson-best": lambda arms: DiscountedThompson(arms, 0.99, sharpness=math.inf),
    "exp3s": Exp3S,
    "ucb": SlidingWindowUCB,
}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_passes_the_public_checks(rule):
    check_bandit(RULES[rule])


def test_fixed_shares_pass_the_public_checks():
    check_bandit(lambda arms: FixedShares(np.arange(1.0, arms + 1.0) * 0 + 1.0), learns=False)


@pytest.mark.parametrize("returned", [None, [0.5, 0.5]])
def test_shares_that_are_no_array_fail_the_public_checks(returned):
    class Broken(Exp3S):
        def shares(self, costs, rng):
            return returned

    with pytest.raises(AssertionError, match="shares: expected an array; got"):
        check_bandit(Broken)


def rounds(arms, plays, groups, rng):
    for _ in range(plays):
        yield rng.integers(arms, size=groups), rng.random(groups), rng.uniform(0.01, 0.6, groups)


@pytest.mark.parametrize("groups", [1, 7])
def test_exp3s_is_the_published_rule_in_linear_space(groups):
    arms, gamma, alpha = 4, 0.2, 0.01
    rule, weights = Exp3S(arms, gamma, alpha), [1.0] * arms
    rng = np.random.default_rng(0)
    for codes, rewards, shares in rounds(arms, 40, groups, rng):
        rule.update(codes, rewards, shares)
        total = sum(weights)
        grown = list(weights)
        for code, reward, share in zip(codes, rewards, shares, strict=True):
            grown[code] *= math.exp(gamma * reward / max(share, gamma / arms) / arms)
        added = ((1 + math.e * alpha) ** groups - 1) / arms * total
        weights = [weight + added for weight in grown]
        expected = [(1 - gamma) * weight / sum(weights) + gamma / arms for weight in weights]
        np.testing.assert_allclose(rule.shares(np.ones(arms), rng), expected, rtol=1e-9)


def test_exp3s_estimates_are_unbiased_whatever_the_shares_were():
    rng, arms, rates = np.random.default_rng(1), 3, np.array([0.2, 0.5, 0.8])
    shares = np.array([0.2, 0.5, 0.3])
    gained = np.zeros(arms)
    for _ in range(300):
        rule = Exp3S(arms, exploration=0.05, switching=1e-9)
        codes = rng.choice(arms, 500, p=shares)
        rule.update(codes, rates[codes], shares[codes])
        gained += rule.logits_E / (0.05 / arms) / 500
    np.testing.assert_allclose((gained - gained[2]) / 300, rates - rates[2], atol=0.02)


def test_exp3s_takes_rewards_per_cost():
    rule, costs = Exp3S(2), np.array([2.0, 1.0])
    for _ in range(300):
        rule.update(np.array([0, 1]), np.array([0.8, 0.5]), np.full(2, 0.5))
        shares = rule.shares(costs, np.random.default_rng(0))
    assert shares[1] > 0.7


@pytest.mark.parametrize("costs", [[1.0, 1.0, 1.0], [1.0, 2.0, 0.5]])
def test_ucb_shares_are_those_of_pulls_one_by_one(costs):
    arms, window, xi, costs = 3, 200, 0.4, np.array(costs)
    rule, held = SlidingWindowUCB(arms, window, xi), deque(maxlen=window)
    rng = np.random.default_rng(2)
    for codes, rewards, shares in rounds(arms, 12, 30, rng):
        rewards = rewards * np.array([0.5, 0.6, 0.7])[codes]
        rule.update(codes, rewards, shares)
        held.extend(zip(codes.tolist(), rewards.tolist(), strict=True))
        counts = [sum(code == arm for code, _ in held) for arm in range(arms)]
        means = [sum(r for code, r in held if code == arm) / counts[arm] for arm in range(arms)]
        taken, width = np.zeros(arms), xi * math.log(len(held))
        for _ in range(6400):  # hundredths of a draw
            bounds = [(means[arm] + math.sqrt(width / (counts[arm] + taken[arm]))) / costs[arm] for arm in range(arms)]
            taken[int(np.argmax(bounds))] += 0.01
        np.testing.assert_allclose(rule.shares(costs, rng), taken / 64.0, atol=0.005)


def test_ucb_windows_of_another_length_keep_the_latest_groups():
    rng, wide = np.random.default_rng(3), SlidingWindowUCB(3, 50)
    codes, rewards = rng.integers(3, size=130), rng.random(130)
    wide.update(codes, rewards, np.ones(130))
    for window in (20, 80):
        other, expected = SlidingWindowUCB(3, window), SlidingWindowUCB(3, window)
        other.load(Reader(wide.state_dict(), "state"))
        expected.update(codes[-50:], rewards[-50:], np.ones(50))
        np.testing.assert_allclose(other.sums_E2, expected.sums_E2)


@pytest.mark.parametrize("sharpness", [1.0, 2.0, 5.0])
def test_thompson_shares_are_the_mean_of_powers_of_posterior_samples(sharpness):
    counts, costs = np.array([[3.0, 5.5], [6.0, 9.0], [0.0, 0.25]]), np.array([1.0, 1.0, 3.0])
    rule = DiscountedThompson(3, sharpness=sharpness)
    rule.counts_E2 = counts
    rng = np.random.default_rng(4)
    theta = np.stack([rng.beta(1 + yes, 1 + no, 200_000) for no, yes in counts], axis=1) / costs
    expected = np.mean([row**sharpness / (row**sharpness).sum() for row in theta[:40_000]], axis=0)
    mean = np.mean([rule.shares(costs, rng) for _ in range(600)], axis=0)
    np.testing.assert_allclose(mean, expected, atol=0.01)


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (lambda arms: DiscountedThompson(arms, 0.99999), 1.1),
        (lambda arms: Exp3S(arms, switching=1e-6), 1.1),
        (lambda arms: SlidingWindowUCB(arms, 100_000, 0.05), 0.0),  # first those that were never drawn
    ],
)
def test_twenty_thousand_environments_are_shared_out(rule, most):
    bandit, rng = rule(20_000), np.random.default_rng(5)
    good = np.arange(20_000) < 200
    for _ in range(40):
        codes = rng.integers(20_000, size=2000)
        bandit.update(codes, good[codes] * 1.0, np.full(2000, 1 / 20_000))
    shares = bandit.shares(np.ones(20_000), rng)
    assert shares.sum() == pytest.approx(1)
    assert shares[good].mean() >= most * shares[~good].mean()


def regret(bandit, phases, length, rng):
    """Mean reward lost to the best environment of each phase, per group."""
    lost = 0.0
    for rates in phases:
        for _ in range(length // 25):
            shares = 0.95 * bandit.shares(np.ones(len(rates)), rng) + 0.05 / len(rates)
            codes = np.repeat(np.arange(len(rates)), allocate(shares, 25, rng))
            bandit.update(codes, (rng.random(25) < rates[codes]) * 1.0, shares[codes])
            lost += 25 * (rates.max() - float(shares @ rates))
    return lost / (length * len(phases))


@pytest.mark.parametrize("rule", RULES)
def test_rules_lose_less_than_even_shares_when_the_best_switches(rule):
    rates = np.array([0.7, 0.4, 0.2, 0.1])
    phases = [np.roll(rates, turn) for turn in range(4)]
    even = rates.max() - rates.mean()
    losses = [regret(RULES[rule](4), phases, 1500, np.random.default_rng(seed)) for seed in range(3)]
    assert np.mean(losses) < 0.75 * even


def test_play_reports_shares():
    found = play(FixedShares(np.array([1.0, 3.0])), np.array([0.5, 0.5]), 100, np.random.default_rng(0))
    np.testing.assert_allclose(found, [0.25, 0.75])
