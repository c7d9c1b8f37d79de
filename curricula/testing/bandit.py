"""What every bandit over environments is asked: run it on your own in a test."""

from collections.abc import Callable
from typing import cast

import numpy as np

from curricula.bandits.base import Bandit, Codes, Floats
from curricula.errors import CheckpointError
from curricula.stateful import Reader
from curricula.testing.compare import global_generators, same_state

Factory = Callable[[int], Bandit]

_BATCH = 25
_EVEN = 0.1  # part of the draws that floors spread evenly


def check_bandit(factory: Factory, *, learns: bool = True, within: int = 1500) -> None:
    """Raise AssertionError where a bandit breaks what `Bandit` promises.

    Its shares are finite, not negative and of sum 1: before it was told anything, for one environment and for many,
    through an outage, after groups that were not drawn, and after 200,000 groups. It treats environments alike,
    whatever their order; it leaves its arguments and the global generators alone; it restores a saved state exactly
    and goes on alike from there, and refuses one of another number of environments. One that learns finds the better
    of three environments, finds another after a switch, from fractional rewards, from rewards that come late or
    never, and after an outage; it prefers what costs less.

    Args:
        factory: Makes a fresh bandit for a number of environments.
        learns: False for shares that are fixed on purpose.
        within: Groups in which the better environment must have come to lead.

    >>> from curricula.bandits import Exp3S
    >>> check_bandit(Exp3S)
    """
    _check_shapes(factory)
    _check_long(factory)
    _check_state(factory, learns)
    _check_order(factory)
    if learns:
        _check_learning(factory, within)
        _check_costs(factory, within)


def play(
    bandit: Bandit,
    rates: Floats,
    groups: int,
    rng: np.random.Generator,
    *,
    costs: Floats | None = None,
    late: int = 0,
    missing: float = 0.0,
    spread: float = 0.0,
    silent: int | None = None,
) -> Floats:
    """Let a bandit share out draws, and tell it what they gave.

    Args:
        bandit: Is taught.
        rates: Shape (E,), mean reward of each environment.
        groups: How many are drawn, in batches of 25.
        rng: The only source of randomness.
        costs: Shape (E,); 1 each where not given.
        late: Batches by which tells come late.
        missing: Fraction of groups that are never told.
        spread: 0 for rewards of 0 and 1; else rewards are fractions within so much of the mean.
        silent: An environment of which nothing is told.

    Returns:
        Shares, mean over the last quarter of the asks, shape (E,).
    """
    costs = np.ones(len(rates)) if costs is None else costs
    waiting: list[tuple[Codes, Floats, Floats]] = []
    seen: list[Floats] = []
    for _ in range(max(groups // _BATCH, 1)):
        shares = valid(bandit.shares(costs, rng), len(rates))
        seen.append(shares)
        drawn = (1.0 - _EVEN) * shares + _EVEN / len(rates)
        codes = rng.choice(len(rates), _BATCH, p=drawn / drawn.sum())
        mean = rates[codes]
        chance = (rng.random(_BATCH) < mean).astype(np.float64)
        rewards = chance if spread == 0.0 else mean + spread * rng.uniform(-1, 1, _BATCH)
        told = (rng.random(_BATCH) >= missing) & (codes != (-1 if silent is None else silent))
        waiting.append((codes[told], np.clip(rewards, 0.0, 1.0).astype(np.float64)[told], drawn[codes][told]))
        if len(waiting) > late:
            bandit.update(*waiting.pop(0))
    return np.mean(seen[-max(len(seen) // 4, 1) :], axis=0)


def valid(shares: Floats, arms: int) -> Floats:
    """The shares, after an AssertionError where they are none."""
    assert isinstance(cast(object, shares), np.ndarray), f"shares: expected an array; got {type(shares).__name__}"
    assert shares.shape == (arms,), f"shares: expected shape ({arms},); got {shares.shape}"
    assert np.isfinite(shares).all(), f"shares: expected finite numbers; got {shares}"
    assert (shares >= 0.0).all(), f"shares: expected none below 0; got {shares.min()}"
    assert abs(float(shares.sum()) - 1.0) < 1e-9, f"shares: expected a sum of 1; got {shares.sum()}"
    return shares


def _check_shapes(factory: Factory) -> None:
    rng = np.random.default_rng(1)
    for arms in (1, 2, 7, 3000):
        bandit = factory(arms)
        valid(bandit.shares(np.ones(arms), rng), arms)
        bandit.update(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
        valid(bandit.shares(np.full(arms, 1e9), rng), arms)
        codes, rewards, shares = rng.integers(arms, size=64), rng.random(64), np.full(64, 1.0 / arms)
        kept = codes.copy(), rewards.copy(), shares.copy()
        costs = rng.lognormal(0.0, 3.0, arms)
        asked = costs.copy()
        bandit.update(codes, rewards, shares)
        bandit.update(codes, rewards, np.zeros(64))
        valid(bandit.shares(costs, rng), arms)
        assert all(map(np.array_equal, (codes, rewards, shares, costs), (*kept, asked))), "arguments stay as they are"


def _check_long(factory: Factory) -> None:
    rng, bandit = np.random.default_rng(2), factory(4)
    for reward in (1.0, 0.0):
        for _ in range(100):
            bandit.update(np.zeros(1000, dtype=np.int64), np.full(1000, reward), np.full(1000, 0.05))
        valid(bandit.shares(np.ones(4), rng), 4)


def _check_state(factory: Factory, learns: bool) -> None:
    rates, first, second = np.array([0.2, 0.6, 0.4]), factory(3), factory(3)
    play(first, rates, 500, np.random.default_rng(3))
    second.load(Reader(first.state_dict(), "state"))
    assert same_state(first.state_dict(), second.state_dict()), "a restored state is the saved one"
    before = global_generators()
    on = play(first, rates, 500, np.random.default_rng(4))
    assert global_generators() == before, "global random generators are left alone"
    assert np.array_equal(on, play(second, rates, 500, np.random.default_rng(4))), "a restored bandit goes on alike"
    if not learns:
        return
    try:
        factory(4).load(Reader(first.state_dict(), "state"))
    except CheckpointError:
        return
    raise AssertionError("load: expected CheckpointError for the state of another number of environments")


def _check_order(factory: Factory) -> None:
    rng, turn = np.random.default_rng(5), np.array([2, 0, 3, 1])
    codes, costs = rng.integers(4, size=400), np.array([1.0, 2.0, 1.5, 1.2])
    rewards = (rng.random(400) < np.array([0.3, 0.5, 0.4, 0.35])[codes]).astype(np.float64)
    plain, turned = factory(4), factory(4)
    for bandit, named, paid in ((plain, codes, costs), (turned, turn[codes], costs[np.argsort(turn)])):
        bandit.shares(paid, rng)
        for part in range(0, 400, 40):
            bandit.update(named[part : part + 40], rewards[part : part + 40], np.full(40, 0.25))
    one = np.mean([plain.shares(costs, rng) for _ in range(200)], axis=0)
    other = np.mean([turned.shares(costs[np.argsort(turn)], rng) for _ in range(200)], axis=0)
    assert np.abs(one - other[turn]).max() < 0.05, "environments are treated alike, whatever their order"


def _check_learning(factory: Factory, within: int) -> None:
    rng, bandit, rates = np.random.default_rng(6), factory(3), np.array([0.2, 0.8, 0.3])
    found = play(bandit, rates, within, rng)
    assert found[1] > 0.5, f"the better environment leads; its share is {found[1]:.2f}"
    switched = play(bandit, rates[[1, 0, 2]], within, rng)
    assert switched.argmax() == 0, f"a switch is followed in {within} groups; the shares are {switched.round(2)}"
    fractional = play(factory(3), rates * 0.5, within, rng, spread=0.1)
    assert fractional.argmax() == 1, f"fractional rewards teach; the shares are {fractional.round(2)}"
    delayed = play(factory(3), rates, within, rng, late=6, missing=0.3)
    assert delayed.argmax() == 1, f"late and missing tells are borne; the shares are {delayed.round(2)}"
    bandit = factory(3)
    play(bandit, rates, 3 * within, rng, silent=1)
    back = play(bandit, rates, within, rng)
    assert back.argmax() == 1, f"what comes back after an outage is found; the shares are {back.round(2)}"


def _check_costs(factory: Factory, within: int) -> None:
    costs = np.array([1.0, 4.0])
    shares = play(factory(2), np.array([0.5, 0.5]), within, np.random.default_rng(7), costs=costs)
    assert shares[0] > 0.6, f"of equal rewards the cheaper one is preferred; its share is {shares[0]:.2f}"
