"""The parts of the hierarchical belief against direct computation of what their docstrings state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from curricula import PromptPool
from curricula.beliefs import Hierarchical
from curricula.beliefs.abilities import Abilities, likelihood
from curricula.beliefs.bins import Bins
from curricula.beliefs.evidence import MOST_CLOCK, Evidence
from curricula.beliefs.grid import DEVIATIONS, NODES, SPACING, VARIANCES, rates, shift, spreads, variance_class
from curricula.beliefs.shapes import BASE, BINS, CENTRES, Shapes
from curricula.config import HierarchicalConfig
from curricula.errors import CheckpointError
from curricula.stateful import Reader


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=float)))


def node_rates(ability):
    """Pass rate at each node by the definition: never, or sigmoid(A + d)."""
    return np.concatenate([[1e-9], np.clip(sigmoid(ability + DEVIATIONS), 1e-9, 1 - 1e-9)])


def fresh(names, **config):
    return Hierarchical(PromptPool(names), HierarchicalConfig(**config))


def tell(belief, rows, passed, tried=8.0):
    rows = np.asarray(rows)
    belief.update(rows, np.broadcast_to(np.asarray(passed, dtype=float), rows.shape), np.full(rows.size, float(tried)))


class Direct:
    """The docstring's equations for one environment in float64, nothing rounded, ages of any size."""

    def __init__(self, size, drift, ageing):
        self.log, self.then, self.asks = np.zeros((size, NODES)), np.zeros(size), np.zeros(size)
        self.told = np.zeros(size, dtype=bool)
        self.drift, self.ageing = drift, ageing

    def variance(self, row, ability, clock):
        return self.drift * (ability - self.then[row]) ** 2 + self.ageing * (clock - self.asks[row])

    def aged(self, row, ability, clock):
        weight = np.exp(self.log[row])
        variance = self.variance(row, ability, clock)
        return spreads()[variance_class(np.array([variance]))[0]] @ weight if self.told[row] else weight

    def learn(self, row, ability_before, ability, clock, passed, tried):
        """Age at the ability before the batch, then add the group at the ability after it."""
        p = node_rates(ability)
        young = variance_class(np.array([self.variance(row, ability_before, clock)]))[0] == 0
        self.log[row] = np.log(self.aged(row, ability_before, clock))
        self.log[row] += passed * np.log(p) + (tried - passed) * np.log1p(-p)
        self.log[row] -= self.log[row].max()
        self.log[row] = np.maximum(self.log[row], -12.75)
        if not (self.told[row] and young):
            self.then[row], self.asks[row] = ability, clock
        self.told[row] = True

    def mean(self, row, prior, mean, std, clock):
        weight = prior * self.aged(row, mean, clock)
        weight /= weight.sum()
        nodes = [(-np.sqrt(3), 1 / 6), (0.0, 2 / 3), (np.sqrt(3), 1 / 6)]
        rate = sum(part * np.concatenate([[0.0], sigmoid(mean + x * std + DEVIATIONS)]) for x, part in nodes)
        return float(weight @ rate)


def test_posteriors_are_those_of_the_equations():
    rng = np.random.default_rng(1)
    belief = fresh(["a"] * 30)
    direct = Direct(30, 0.08, belief.config.ageing)
    ease = rng.normal(0, 2, 30)
    for step in range(40):
        rows = rng.choice(30, 8, replace=False)
        passed = rng.binomial(8, sigmoid(ease[rows] + 0.05 * step)) + rng.choice([0.0, 0.0, -0.25], 8)
        passed = np.clip(passed, 0, 8)
        # The ability on visited prompts, then that on new ones: a first group is one of a new prompt.
        new = 1 - direct.told[rows]
        before = belief.abilities.mean_E[new]
        tell(belief, rows, passed)
        after = belief.abilities.mean_E[new]
        for place, row in enumerate(rows):
            direct.learn(row, before[place], after[place], belief.clock, passed[place], 8.0)
        belief.tick()
        mean, std = belief.abilities.mean_E, np.sqrt(belief.abilities.variance_E)
        prior = belief.shapes.prior_EBN[0, 0]
        kinds = 1 - direct.told
        expected = [direct.mean(row, prior, mean[kinds[row]], std[kinds[row]], belief.clock) for row in range(30)]
        # Steps of .05 in the log-likelihood, abilities in half precision, variances of ageing rounded alike.
        np.testing.assert_allclose(belief.moments(np.arange(30))[0], expected, atol=0.02)


def test_one_group_is_bayes_on_a_fine_grid():
    """Against an integral over deviations that are not on the grid at all, prior a normal with an atom."""
    belief = fresh(["a"] * 4 + ["b"] * 4, noise=1e-9)
    for passed in (0, 1, 4, 7, 8):
        belief.clear()
        belief.abilities.variance_E[:] = 1e-10
        tell(belief, [0], passed)
        prior = lambda d: np.exp(-0.5 * (d / 2.5) ** 2)  # noqa: E731
        norm = quad(prior, -6.6, 6.6)[0]

        def part(power, passed=passed, prior=prior, norm=norm):
            value = quad(
                lambda d: prior(d) / norm * sigmoid(d) ** (passed + power) * sigmoid(-d) ** (8 - passed), -6.6, 6.6
            )
            return 0.95 * value[0] + (0.05 if passed + power == 0 else 0.0)

        belief.shapes = Shapes(2)  # the prior as it was before the group taught the shape
        belief._tables.clear()
        mean = belief.moments(np.array([0]))[0][0]
        assert mean == pytest.approx(part(1) / part(0), abs=0.02)


def log_likelihood(prior_KN, ability, passed, tried):
    p = node_rates(ability)
    log = passed[:, None] * np.log(p) + (tried - passed)[:, None] * np.log1p(-p)
    peak = log.max(axis=1, keepdims=True)
    return float((np.log((prior_KN * np.exp(log - peak)).sum(axis=1)) + peak[:, 0]).sum())


groups = st.lists(st.tuples(st.integers(0, 8), st.floats(-3, 3), st.floats(0.3, 3)), min_size=4, max_size=60)


def priors(told):
    centre, width = np.array([g[1] for g in told]), np.array([g[2] for g in told])
    prior = np.exp(-0.5 * ((DEVIATIONS - centre[:, None]) / width[:, None]) ** 2)
    prior = 0.95 * prior / prior.sum(axis=1, keepdims=True)
    return np.concatenate([np.full((len(told), 1), 0.05), prior], axis=1)


@given(groups)
@settings(max_examples=80, deadline=None)
def test_the_ability_is_the_maximum_of_the_stated_likelihood(told):
    prior, passed, tried = priors(told), np.array([g[0] for g in told], dtype=float), np.full(len(told), 8.0)
    abilities = Abilities(1, 0.003)
    codes = np.zeros(len(told), dtype=np.int64)
    abilities.variance_E[:] = before = 0.05
    abilities.update(codes, prior, passed, tried)

    def loss(ability, spread):
        return 0.5 * ability**2 / spread - log_likelihood(prior, ability, passed, tried)

    found, std = float(abilities.mean_E[0]), float(np.sqrt(abilities.variance_E[0]))
    spread = before + 0.003
    grid = np.linspace(-4, 4, 161)
    near = [grid[np.argmin([loss(a, s) for a in grid])] for s in (spread, 2.25)]
    best = [
        minimize_scalar(loss, bounds=(a - 0.1, a + 0.1), args=(s,), method="bounded").x
        for a, s in zip(near, (spread, 2.25), strict=True)
    ]
    # Where the batch asks for a jump the prior is widened: the maximum then lies between those of the two priors.
    low, high = min(best) - 0.5 * std, max(best) + 0.5 * std
    assert low <= found <= high
    if std**2 < spread:
        assert abs(found - best[0]) < 0.1 + 0.5 * std or abs(best[0] - best[1]) > 0.2


def test_the_variance_is_louis_and_the_numerical_curvature():
    rng = np.random.default_rng(3)
    told = [(int(rng.binomial(8, sigmoid(d))), float(d + rng.normal(0, 0.3)), 0.5) for d in rng.normal(0, 1.5, 60)]
    prior, passed, tried = priors(told), np.array([g[0] for g in told], dtype=float), np.full(60, 8.0)
    abilities = Abilities(1, 0.003)
    abilities.variance_E[:] = 0.2
    abilities.update(np.zeros(60, dtype=np.int64), prior, passed, tried)
    mean, step = float(abilities.mean_E[0]), 1e-3
    values = [log_likelihood(prior, mean + x, passed, tried) for x in (-step, 0.0, step)]
    curvature = -(values[0] - 2 * values[1] + values[2]) / step**2
    assert abilities.variance_E[0] == pytest.approx(1.0 / (curvature + 1.0 / 0.203), rel=0.02)
    # It is a good summary of the whole density.
    grid = np.linspace(mean - 1.5, mean + 1.5, 601)
    density = np.array([log_likelihood(prior, a, passed, tried) - 0.5 * a * a / 0.203 for a in grid])
    density = np.exp(density - density.max())
    density /= density.sum()
    centre = float(density @ grid)
    assert mean == pytest.approx(centre, abs=0.03)
    assert abilities.variance_E[0] == pytest.approx(float(density @ (grid - centre) ** 2), rel=0.1)


@given(st.floats(-50, 50), st.floats(0, 8), st.sampled_from([1.0, 8.0, 1e6]))
def test_likelihoods_are_finite_with_a_maximum_of_one(ability, share, tried):
    passed = share / 8.0 * tried
    found = likelihood(rates(np.array([ability])), np.array([0]), np.array([passed]), np.array([tried]))[0]
    assert np.isfinite(found).all()
    assert found.max() == 1.0
    p = node_rates(ability)
    expected = passed * np.log(p) + (tried - passed) * np.log1p(-p)
    expected = np.exp(expected - expected.max())
    np.testing.assert_allclose(found, expected, atol=1e-6 if tried < 1e3 else 1e-2)


@given(st.floats(-50, 50), st.lists(st.tuples(st.floats(0, 1), st.sampled_from([1.0, 8.0, 1e6])), max_size=8))
@settings(max_examples=60)
def test_no_ability_and_no_outcome_breaks_a_belief(ability, told):
    belief = fresh(["a"] * 6 + ["b"] * 6)
    belief.abilities.mean_E[:] = np.clip(ability, -9, 9)
    for row, (share, tried) in enumerate(told):
        tell(belief, [row], share * tried, tried)
        belief.tick()
    means, stds = belief.moments(np.arange(12))
    assert np.isfinite(means).all()
    assert ((means >= 0) & (means <= 1) & (stds >= 0)).all()
    assert np.isfinite(belief.pool_means(belief.pool.block_ranges_E2)).all()
    again = fresh(["a"] * 6 + ["b"] * 6)
    again.load(Reader(belief.state_dict(), "state"))


def test_doubt_spreads_as_a_random_walk():
    found = spreads()
    assert found.shape == (len(VARIANCES), NODES, NODES)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, atol=1e-6)
    assert (found >= 0).all()
    np.testing.assert_array_equal(found[:, 0, 1:], 0.0)
    np.testing.assert_array_equal(found[:, 1:, 0], 0.0)
    middle = 1 + (NODES - 1) // 2
    for place, variance in enumerate(VARIANCES):
        row = found[place, middle, 1:].astype(float)
        assert row @ DEVIATIONS == pytest.approx(0.0, abs=1e-6)
        assert row @ DEVIATIONS**2 == pytest.approx(variance, rel=0.1, abs=1e-9)
    np.testing.assert_array_equal(variance_class(VARIANCES), np.arange(len(VARIANCES)))


@given(st.integers(0, NODES - 1), st.floats(-20, 20))
def test_shift_keeps_mass_and_moves_the_mean(node, by):
    moved = shift(np.eye(NODES)[[node]], np.array([by]))[0]
    assert moved.sum() == pytest.approx(1.0)
    assert (moved >= 0).all()
    if node == 0:
        assert moved[0] == 1.0
    else:
        expected = np.clip(DEVIATIONS[node - 1] + by, DEVIATIONS[0], DEVIATIONS[-1])
        assert moved[1:] @ DEVIATIONS == pytest.approx(expected)


def test_shapes_are_those_by_hand():
    rng = np.random.default_rng(5)
    codes, bins = rng.integers(2, size=200), rng.integers(BINS + 1, size=200)
    posterior = rng.dirichlet(np.full(NODES, 0.3), 200)
    shapes = Shapes(2)
    np.testing.assert_allclose(shapes.prior_EBN, np.broadcast_to(BASE, shapes.prior_EBN.shape), atol=1e-6)
    shapes.refit(codes, bins, posterior)
    products, squares = np.zeros(2), np.zeros(2)
    for code in range(2):
        use = (codes == code) & (bins > 0)
        w = posterior[use, 1:].sum(axis=1)
        x, y = CENTRES[bins[use]], posterior[use, 1:] @ DEVIATIONS / w
        mx, my = np.average(x, weights=w), np.average(y, weights=w)
        products[code], squares[code] = (w * (x - mx) * (y - my)).sum(), (w * (x - mx) ** 2).sum()
    pooled = products.sum() / (squares.sum() + 10)
    slope = (products + 10 * pooled) / (squares + 10)
    np.testing.assert_allclose(shapes.slope_E, slope)

    def shrunk(counts, towards, pseudo):
        return (counts + pseudo * towards) / (counts.sum() + pseudo)

    aligned = np.zeros((2, NODES))
    for code, at, mass in zip(codes, bins, posterior, strict=True):
        aligned[code] += shift(mass[None], -np.array([slope[code] * CENTRES[at]]))[0]
    pooled_shape = shrunk(aligned.sum(axis=0), BASE, 30)
    for code in range(2):
        whole = shrunk(aligned[code], pooled_shape, 30)
        for at in (0, 1, 8, BINS):
            counts = posterior[(codes == code) & (bins == at)].sum(axis=0)
            expected = shrunk(counts, shift(whole[None], np.array([slope[code] * CENTRES[at]]))[0], 10)
            expected = np.maximum(expected, 1e-6)
            np.testing.assert_allclose(shapes.prior_EBN[code, at], expected / expected.sum(), atol=1e-9)


@given(st.lists(st.lists(st.floats(-300, 0), min_size=NODES, max_size=NODES), min_size=1, max_size=5))
def test_rounding_keeps_a_maximum_and_loses_at_most_half_a_step(logs):
    likely = np.exp(np.array(logs))
    evidence = Evidence(9)
    rows = np.arange(len(logs))
    written = evidence.write(rows, likely, np.zeros(rows.size), np.full(rows.size, 3), rows)
    held = evidence.read(rows)
    np.testing.assert_array_equal(written, held.likelihood_MN)
    assert (held.likelihood_MN.max(axis=1) == 1.0).all()
    log = np.log(likely / likely.max(axis=1, keepdims=True))
    np.testing.assert_allclose(np.log(held.likelihood_MN), np.maximum(log, -12.75), atol=0.0251)
    assert held.clock_M.tolist() == [3] * rows.size
    assert held.bin_M.tolist() == rows.tolist()


def test_evidence_ages_as_much_when_it_comes_often():
    """An age below the smallest variance of the grid is kept until it counts."""
    stds = []
    for asks in (1, 4, 40):
        belief = fresh(["a"] * 20, ageing=0.002)
        belief.abilities.update = lambda *_: None
        belief.abilities.variance_E[:] = 1e-9
        belief.shapes.refit = lambda *_: None
        for ask in range(1600):
            if ask % asks == 0:
                # As much evidence an ask, however it is told.
                tell(belief, np.arange(10), 1.0 * asks, 2.0 * asks)
            belief.tick()
        stds.append(float(belief.moments(np.array([0]))[1][0]))
    assert max(stds) < 1.6 * min(stds), stds


def test_clocks_stop_at_their_end_and_evidence_stays():
    belief = fresh(["a"] * 3)
    belief.clock = MOST_CLOCK - 1
    tell(belief, [0], 8)
    near = belief.moments(np.array([0]))[0]
    for _ in range(3):
        belief.tick()
    tell(belief, [1], 8)
    assert belief.evidence.read(np.array([0, 1])).clock_M.tolist() == [MOST_CLOCK - 1, MOST_CLOCK]
    assert belief.seen(np.arange(3)).tolist() == [True, True, False]
    assert belief.moments(np.array([0]))[0] == pytest.approx(near, abs=0.05)
    again = fresh(["a"] * 3)
    again.load(Reader(belief.state_dict(), "state"))
    assert again.clock == MOST_CLOCK + 2


def test_placing_is_of_unvisited_prompts_and_bins_are_even():
    belief = fresh(["a"] * 2000)
    rng = np.random.default_rng(1)
    tell(belief, [3], 8)
    rows = np.arange(2000)
    for _ in range(20):
        belief.place(rows, rng.normal(5.0, 0.3, 2000))
    bins = belief.evidence.read(rows).bin_M
    assert bins[3] == 0
    counts = np.bincount(np.delete(bins, 3), minlength=BINS + 1)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 125) < 50).all()
    same = Bins(PromptPool(["a"] * 4))
    assert same.of(np.zeros(4, dtype=np.int64), np.full(4, 3.0)).tolist() == [9] * 4


def test_levels_are_a_first_guess_that_outcomes_correct():
    pool = PromptPool(["a"] * 300, levels=np.repeat([0, 1, 2], 100))
    belief = Hierarchical(pool, HierarchicalConfig())
    rng = np.random.default_rng(1)
    for _ in range(30):
        rows = rng.choice(300, 16, replace=False)
        tell(belief, rows, rng.binomial(8, sigmoid(2.0 * (rows // 100) - 2.0)))
    unseen = np.flatnonzero(~belief.seen(np.arange(300)))
    belief_means = belief.moments(unseen)[0]
    by_level = [belief_means[unseen // 100 == level].mean() for level in range(3)]
    assert by_level[0] < 0.35 < by_level[1] < 0.65 < by_level[2]


def test_pool_means_follow_what_was_placed():
    rng = np.random.default_rng(2)
    size = 1500
    ease = rng.normal(0, 1.5, size)
    belief = fresh(["a"] * size)
    for step in range(150):
        belief.place(np.arange(size), ease + rng.normal(0, 1, size))
        signals = belief.assess(np.arange(size), 8, "batch").signals
        rows = np.argsort(-signals - 0.1 * rng.random(size))[:16]
        tell(belief, rows, rng.binomial(8, sigmoid(ease[rows] + 0.01 * step)))
        belief.tick()
    whole = belief.moments(np.arange(size))[0].mean()
    assert belief.pool_means(belief.pool.block_ranges_E2)[0] == pytest.approx(whole, abs=0.02)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sums", -1.0), ("visited", -1.0), ("placed", np.nan), ("change", 2.0)],
)
def test_damaged_totals_are_refused(name, value):
    belief = fresh(["a"] * 3)
    tell(belief, [0], 4)
    state = belief.state_dict()
    state["totals"][name].reshape(-1)[0] = value
    with pytest.raises(CheckpointError, match=f"totals.{name}"):
        fresh(["a"] * 3).load(Reader(state, "state"))


def test_a_jump_is_followed_in_two_batches():
    for start, jump in ((0.0, 2.0), (0.0, -2.0), (3.0, -3.0)):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            belief, ease = fresh(["a"] * 1000), rng.normal(0, 1, 1000)
            for step in range(62):
                rows = rng.choice(1000, 16, replace=False)
                ability = start + jump * (step >= 60)
                tell(belief, rows, rng.binomial(8, sigmoid(ability + ease[rows])))
                belief.tick()
                if step == 59:
                    before = belief.ability()[0][0]
            assert abs(belief.ability()[0][0] - before - jump) < 0.75, (start, jump, seed)


def test_a_prompt_that_may_never_be_solved_says_nothing_of_the_ability():
    prior = np.zeros((1, NODES))
    prior[0, [0, 11]] = 0.5
    for passed in (0.0, 1e-6):
        abilities = Abilities(1, 1e-9)
        abilities.update(np.zeros(1, dtype=np.int64), prior, np.array([passed]), np.array([8.0]))
        grid = np.linspace(-8, 3, 2201)
        loss = [a * a / 4.5 - log_likelihood(prior, a, np.array([passed]), np.array([8.0])) for a in grid]
        assert abilities.mean_E[0] == pytest.approx(grid[np.argmin(loss)], abs=0.15), passed


def test_an_ability_at_its_end_comes_back():
    for end, then in ((8.0, 1.0), (8.0, 4.0), (0.0, 7.0), (0.0, 4.0)):
        belief = fresh(["a"] * 100)
        for step in range(400):
            tell(belief, np.arange(100)[step % 4 :: 4], end)
            belief.tick()
        assert abs(belief.ability()[0][0]) <= 9
        for step in range(30):
            tell(belief, np.arange(100)[step % 4 :: 4], then)
            belief.tick()
            if step == 3:
                assert abs(belief.moments(np.arange(100))[0].mean() - then / 8) < 0.25, (end, then)
        assert belief.moments(np.arange(100))[0] == pytest.approx(then / 8, abs=0.1), (end, then)


def test_spacing_is_that_of_the_grid():
    np.testing.assert_allclose(np.diff(DEVIATIONS), SPACING)
