"""What every belief about pass rates is asked: run it on your own in a test."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.base import Assessment, Belief, Normaliser
from curricula.pool import PromptPool
from curricula.stateful import Reader
from curricula.testing.compare import global_generators, same_state

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Factory = Callable[[PromptPool], Belief]

_NAMES = ["a", "b", "c"] * 100
_LEVELS = [0, 0, 1, 1, 2] * 60
_TINY = 1e-6
_ENOUGH = 0.25


def check_belief(factory: Factory, *, pool_tolerance: float = 0.01, within: int = 8) -> None:
    """Raise AssertionError where a belief breaks what `Belief` promises.

    Means are within [0, 1], standard deviations and signals within what those allow; successes raise a mean and
    failures lower it, fractions between the two, a group of one less than one of eight; several groups of one prompt in
    one update teach as one by one; `visited` and `seen` count what was told and nothing else; means over the pool, and
    over windows of levels, are those of a pass over prompts, within a tolerance; whatever the order of environments. A
    saved state is restored exactly and goes on alike, `clear` forgets all. Arguments and the global generators are left
    alone. Extremes are borne, and 100,000 groups; after 1,000 groups that were all solved a few failed ones bring
    the mean down by at least .25, and the other way round.

    Args:
        factory: Makes a fresh belief on a pool.
        pool_tolerance: How far `pool_means` may be from the mean of `moments`.
        within: Groups of eight that must turn a mean which 1,000 groups had settled.

    >>> from curricula.beliefs import DecayedBeta
    >>> from curricula.config import DecayedBetaConfig
    >>> check_belief(lambda pool: DecayedBeta(pool, DecayedBetaConfig()))
    """
    _check_fresh(factory)
    _check_direction(factory)
    _check_repeats(factory)
    _check_sums(factory, pool_tolerance)
    _check_order(factory)
    _check_state(factory)
    _check_extremes(factory)
    _check_long(factory)
    _check_turn(factory, within)


def sound(belief: Belief, rows: Rows) -> tuple[Floats, Floats]:
    """Moments of rows, after an AssertionError where they or the signals are none."""
    means, stds = belief.moments(rows)
    assert means.shape == stds.shape == rows.shape, f"moments: expected shape {rows.shape}; got {means.shape}"
    assert ((means >= 0.0) & (means <= 1.0)).all(), f"means: expected within [0, 1]; got {means.min()} to {means.max()}"
    assert (stds >= 0.0).all(), f"standard deviations: expected none below 0; got {stds.min()}"
    over = stds - np.sqrt(means * (1.0 - means))
    assert (over <= 1e-3).all(), f"standard deviations: expected at most sqrt(m (1 - m)); got {over.max()} more"
    normalisers: tuple[Normaliser, ...] = ("batch", "group")
    for size in (2, 8):
        for normaliser in normalisers:
            most = (size - 1) / 4.0 if normaliser == "batch" else 1.0 - 2.0 ** (1 - size)
            _sound_signals(belief.assess(rows, size, normaliser), means, most)
    return means, stds


def _sound_signals(found: Assessment, means: Floats, most: float) -> None:
    assert np.allclose(found.means, means, atol=1e-5), "assess and moments tell the same means"
    for name, values in (("signals", found.signals), ("spreads", found.spreads)):
        assert values.shape == means.shape, f"{name}: expected shape {means.shape}; got {values.shape}"
        inside = bool(((values >= 0.0) & (values <= most + _TINY)).all())
        assert inside, f"{name}: expected within [0, {most}]; got {values.min()} to {values.max()}"


def _check_fresh(factory: Factory) -> None:
    pool = PromptPool(_NAMES)
    belief, rows = factory(pool), np.arange(len(pool))
    sound(belief, rows)
    assert belief.visited == 0, "nothing is visited at first"
    assert not belief.seen(rows).any(), "nothing is seen at first"
    assert belief.assess(rows[:0], 8, "batch").signals.shape == (0,), "no rows, no signals"
    before = belief.moments(rows)
    belief.update(rows[:0], np.zeros(0), np.zeros(0))
    assert np.array_equal(before, belief.moments(rows)), "no groups teach nothing"
    told, passed, tried = np.array([7, 3, 7]), np.array([1.0, 8.0, 0.5]), np.array([8.0, 8.0, 1.0])
    kept = told.copy(), passed.copy(), tried.copy()
    belief.update(told, passed, tried)
    assert all(map(np.array_equal, (told, passed, tried), kept)), "arguments stay as they are"
    assert belief.visited == 2, f"visited: expected 2; got {belief.visited}"
    assert np.flatnonzero(belief.seen(rows)).tolist() == [3, 7], "what was told is seen, and nothing else"
    belief.clear()
    assert np.array_equal(before, belief.moments(rows)), "cleared beliefs are fresh ones"
    assert belief.visited == 0, "nothing is visited after clearing"
    assert not belief.seen(rows).any(), "nothing is seen after clearing"


def _check_direction(factory: Factory) -> None:
    groups = [(0.0, 8.0), (0.0, 1.0), (2.0, 8.0), (2.5, 8.0), (6.0, 8.0), (1.0, 1.0), (8.0, 8.0)]
    start = float(factory(PromptPool(_NAMES)).moments(np.array([0]))[0][0])
    means: list[float] = []
    for passed, tried in groups:
        belief = factory(PromptPool(_NAMES))
        belief.update(np.array([0]), np.array([passed]), np.array([tried]))
        means.append(float(sound(belief, np.arange(len(_NAMES)))[0][0]))
    none, failed, low, more, high, passed, full = means
    assert none < failed < start < passed < full, f"success raises a mean: {none}, {failed}, {start}, {passed}, {full}"
    assert low < more < high, f"fractions of successes count; got {low}, {more}, {high}"


def _check_repeats(factory: Factory) -> None:
    together, apart = factory(PromptPool(_NAMES)), factory(PromptPool(_NAMES))
    rows, passed = np.array([4, 4, 4, 4]), np.array([0.0, 8.0, 3.0, 1.0])
    together.update(rows, passed, np.full(4, 8.0))
    for place in range(4):
        apart.update(rows[place : place + 1], passed[place : place + 1], np.full(1, 8.0))
    one, other = (float(belief.moments(rows[:1])[0][0]) for belief in (together, apart))
    assert abs(one - other) < 0.05, f"groups of one prompt teach as one by one; got {one} and {other}"
    assert together.visited == apart.visited == 1, "one prompt was visited"


def _check_sums(factory: Factory, tolerance: float) -> None:
    for levels in (None, _LEVELS):
        pool = PromptPool(_NAMES, levels=levels)
        belief, rng = factory(pool), np.random.default_rng(1)
        ease = rng.normal(0.5, 2.0, len(pool))
        windows = [pool.block_ranges_E2]
        if levels is not None:
            windows.append(windows[0] + np.array([1, 0]))
            windows.append(windows[0] - np.array([0, 1]))
        for step in range(120):
            _tell(belief, rng, np.where(np.arange(len(pool)) % 4 < 2, ease + 0.02 * step, 0.0), len(pool) // 2)
            if step in (0, 10, 60, 119):
                for window in windows:
                    _same_sums(belief, pool, window, tolerance if step else 4.0 * tolerance)


def _same_sums(belief: Belief, pool: PromptPool, windows_E2: Rows, tolerance: float) -> None:
    means, _ = belief.moments(np.arange(len(pool)))
    inside = (pool.blocks >= windows_E2[pool.codes, 0]) & (pool.blocks < windows_E2[pool.codes, 1])
    found = belief.pool_means(windows_E2)
    for code, name in enumerate(pool.environments):
        mean = float(means[inside & (pool.codes == code)].mean())
        assert abs(found[code] - mean) <= tolerance, (
            f"pool_means: expected {mean:.4f} for {name}, as by a pass over prompts; got {found[code]:.4f}"
        )


def _check_order(factory: Factory) -> None:
    turned = {"a": "z", "b": "a", "c": "y"}
    pools = PromptPool(_NAMES), PromptPool([turned[name] for name in _NAMES])
    results: list[Floats] = []
    for pool in pools:
        belief, rng = factory(pool), np.random.default_rng(2)
        for step in range(20):
            _tell(belief, rng, np.linspace(-3.0, 3.0, len(pool)) + 0.1 * step, len(pool))
        results.append(belief.moments(np.arange(len(pool)))[0])
    assert np.allclose(*results, atol=1e-3), "environments are believed alike, whatever their order"


def _check_state(factory: Factory) -> None:
    pool = PromptPool(_NAMES, levels=_LEVELS)
    first, second, rows = factory(pool), factory(pool), np.arange(len(pool))
    ease = np.linspace(-4.0, 4.0, len(pool))
    _tell(first, np.random.default_rng(3), ease, 40)
    # Not at the first time: libraries that are imported then may draw.
    before = global_generators()
    for _ in range(12):
        _tell(first, np.random.default_rng(4), ease, 100)
    sound(first, rows)
    assert global_generators() == before, "global random generators are left alone"
    second.load(Reader(first.state_dict(), "state"))
    assert same_state(first.state_dict(), second.state_dict()), "a restored state is the saved one"
    assert np.array_equal(first.seen(rows), second.seen(rows)), "what was seen is restored"
    assert first.visited == second.visited == int(first.seen(rows).sum()), "visited prompts are counted"
    for belief in (first, second):
        rng = np.random.default_rng(5)
        for _ in range(20):
            _tell(belief, rng, ease, len(pool))
    assert np.array_equal(first.moments(rows), second.moments(rows)), "a restored belief goes on alike"
    windows = pool.block_ranges_E2
    assert np.array_equal(first.pool_means(windows), second.pool_means(windows)), "so do its sums over the pool"
    assert same_state(first.state_dict(), second.state_dict()), "a restored state goes on alike, bit for bit"


def _check_extremes(factory: Factory) -> None:
    for passed, tried in ((0.0, 1.0), (1.0, 1.0), (1e6, 1e6), (0.0, 1e6), (5e5, 1e6), (1e-9, 8.0), (8.0 - 1e-9, 8.0)):
        belief, rows = factory(PromptPool(_NAMES)), np.arange(len(_NAMES))
        for _ in range(20):
            belief.update(rows, np.full(rows.size, passed), np.full(rows.size, tried))
        means, _ = sound(belief, rows)
        rate = passed / tried
        assert (np.abs(means - rate) < 0.2).all(), f"{passed} of {tried}: expected means near {rate}; got {means[0]}"
    alone = factory(PromptPool(["only"]))
    alone.update(np.array([0]), np.array([3.0]), np.array([8.0]))
    sound(alone, np.array([0]))
    many = PromptPool([f"e{code}" for code in range(1000) for _ in range(2)])
    belief, rows = factory(many), np.arange(0, 2000, 4)
    belief.update(rows, np.full(rows.size, 8.0), np.full(rows.size, 8.0))
    sound(belief, np.arange(2000))
    assert belief.pool_means(many.block_ranges_E2).shape == (1000,), "pool_means has an entry for each environment"


def _check_long(factory: Factory) -> None:
    pool = PromptPool(np.repeat(["a", "b", "c", "d"], 250), levels=np.tile([0, 1], 500))
    belief, rng = factory(pool), np.random.default_rng(6)
    for step in range(200):
        _tell(belief, rng, np.full(len(pool), 3.0 * np.sin(step / 20.0)), len(pool), 500)
    sound(belief, np.arange(len(pool)))
    _same_sums(belief, pool, pool.block_ranges_E2, 0.05)
    factory(pool).load(Reader(belief.state_dict(), "state"))


def _check_turn(factory: Factory, within: int) -> None:
    for settled, then in ((8.0, 0.0), (0.0, 8.0)):
        belief, row, tried = factory(PromptPool(_NAMES)), np.array([5]), np.array([8.0])
        for _ in range(1000):
            belief.update(row, np.array([settled]), tried)
        before = float(sound(belief, row)[0][0])
        for _ in range(within):
            belief.update(row, np.array([then]), tried)
        after = float(sound(belief, row)[0][0])
        assert abs(after - before) >= _ENOUGH, (
            f"no prompt is believed solved or hopeless for ever: expected {within} groups with {then:.0f} of 8 to move "
            f"a mean of {before:.3f} by {_ENOUGH}; got {after:.3f}"
        )


def _tell(belief: Belief, rng: np.random.Generator, logits: Floats, first: int, groups: int = 30) -> None:
    """Groups of eight of distinct rows among the first so many."""
    rows = rng.choice(first, min(groups, first), replace=False)
    rate = 1.0 / (1.0 + np.exp(-logits[rows]))
    belief.update(rows, rng.binomial(8, rate).astype(np.float64), np.full(rows.size, 8.0))
