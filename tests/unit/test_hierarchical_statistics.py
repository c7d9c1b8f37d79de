"""The hierarchical belief on data from its own model: calibrated, followed, and better for each of its parts."""

import numpy as np
import pytest

from curricula import PromptPool
from curricula.beliefs import DecayedBeta, Hierarchical
from curricula.beliefs.shapes import CENTRES
from curricula.config import DecayedBetaConfig, HierarchicalConfig

SIZE, BATCH = 1200, 32


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=float)))


class Model:
    """Deviations from a mixture (mastered, frontier, hopeless, never), an ability that moves, chosen or random rows."""

    def __init__(self, seed, speed=0.01, wander=0.05):
        self.rng = np.random.default_rng(seed)
        part = self.rng.choice(4, SIZE, p=[0.3, 0.4, 0.2, 0.1])
        ease = self.rng.normal(np.array([3.5, 0.0, -3.5, 0.0])[part], 1.0)
        self.ease = np.where(part == 3, -np.inf, ease)
        self.pool = PromptPool(["a"] * SIZE)
        self.ability, self.speed, self.wander = 0.0, speed, wander

    def step(self, belief, chosen=True):
        """One batch, half of the best and half at random; what was forecast of it and what came."""
        self.ability += self.speed + self.wander * self.rng.standard_normal()
        signals = belief.assess(np.arange(SIZE), 8, "batch").signals
        best = np.argsort(-signals - 0.02 * self.rng.random(SIZE))[: BATCH // 2] if chosen else []
        rows = np.unique(np.concatenate([best, self.rng.choice(SIZE, BATCH // 2, replace=False)]).astype(int))
        rate = self.rates()[rows]
        forecast = belief.assess(rows, 8, "group").signals
        means, stds = belief.moments(rows)
        passed = self.rng.binomial(8, rate).astype(float)
        belief.update(rows, passed, np.full(rows.size, 8.0))
        if isinstance(belief, Hierarchical):
            belief.tick()
        mixed = (passed > 0) & (passed < 8)
        return rows, rate, forecast, mixed, means, stds

    def rates(self):
        return sigmoid(self.ability + self.ease)


def test_forecasts_are_calibrated():
    forecast, mixed, errors, stds = [], [], [], []
    for seed in range(3):
        model = Model(seed)
        belief = Hierarchical(model.pool, HierarchicalConfig())
        for step in range(120):
            _, rate, said, came, means, doubt = model.step(belief)
            if step > 20:
                forecast.append(said)
                mixed.append(came)
                errors.append(rate - means)
                stds.append(doubt)
    forecast, mixed = np.concatenate(forecast), np.concatenate(mixed)
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.0)):
        here = (forecast >= low) & (forecast <= high)
        if here.sum() > 100:
            assert abs(mixed[here].mean() - forecast[here].mean()) < 0.08, (low, high)
    assert abs(mixed.mean() - forecast.mean()) < 0.03
    errors, stds = np.concatenate(errors), np.concatenate(stds)
    assert abs(errors.mean()) < 0.02
    # The variance that is stated is that of the errors, and 1.645 standard deviations hold about 90%.
    assert np.sqrt((errors**2).mean()) == pytest.approx(np.sqrt((stds**2).mean()), rel=0.2)
    assert 0.83 < (np.abs(errors) < 1.645 * stds + 0.01).mean() < 0.98


def test_the_ability_is_followed_within_its_stated_doubt():
    changes = []
    for seed in range(6):
        model = Model(seed, speed=0.015, wander=0.03)
        belief = Hierarchical(model.pool, HierarchicalConfig())
        for step in range(80):
            model.step(belief, chosen=False)
            if step == 20:
                # Where its zero lies is a convention that the shape takes up: moves are what counts.
                start, said = model.ability, belief.ability()[0][0]
        found, std = (float(value[0]) for value in belief.ability())
        changes.append(((found - said) - (model.ability - start), std))
    errors, stds = np.array(changes).T
    assert abs(errors.mean()) < 0.25
    assert np.sqrt((errors**2).mean()) < 2.5 * np.sqrt(2) * stds.mean()


def test_the_drift_of_the_ability_is_what_beliefs_without_it_miss():
    better = []
    for seed in range(4):
        scores = []
        for make in (
            lambda pool: Hierarchical(pool, HierarchicalConfig()),
            lambda pool: DecayedBeta(pool, DecayedBetaConfig()),
        ):
            model = Model(seed, speed=0.04, wander=0.0)
            belief = make(model.pool)
            for _ in range(90):
                model.step(belief, chosen=False)
            rows = np.arange(SIZE)[belief.seen(np.arange(SIZE))]
            scores.append(float(((belief.moments(rows)[0] - model.rates()[rows]) ** 2).mean()))
        better.append(scores[1] - scores[0])
    assert min(better) > 0.0
    assert np.mean(better) > 0.01


def test_a_learned_shape_beats_a_normal_prior():
    errors = []
    for seed in range(6):
        for learned in (True, False):
            model = Model(seed)
            belief = Hierarchical(model.pool, HierarchicalConfig())
            if not learned:
                belief.shapes.refit = lambda *_: None
            for _ in range(60):
                model.step(belief, chosen=False)
            rows = np.flatnonzero(belief.seen(np.arange(SIZE)))
            rate = model.rates()[rows]
            said = belief.assess(rows, 8, "group").signals
            errors.append(said - (1 - rate**8 - (1 - rate) ** 8))
    learned, normal = (np.concatenate(errors[start::2]) for start in (0, 1))
    assert (learned**2).mean() < 0.97 * (normal**2).mean()
    assert abs(learned.mean()) < 0.02 < abs(normal.mean())


def test_the_share_of_prompts_that_are_never_solved_is_found():
    model = Model(4)
    belief = Hierarchical(model.pool, HierarchicalConfig())
    for _ in range(100):
        model.step(belief, chosen=False)
    # Hopeless and never solved are alike until the ability has come far: their sum is what is known.
    mass = belief.shapes.prior_EBN[0, 0]
    assert 0.2 < mass[0] + mass[1 : 1 + 8].sum() < 0.4


@pytest.mark.parametrize("skill", [0.0, 0.7])
def test_a_prediction_is_trusted_as_far_as_prompts_turned_out_so(skill):
    slopes = []
    for seed in range(4):
        model = Model(seed, wander=0.0)
        rng = np.random.default_rng(seed + 50)
        finite = np.where(np.isfinite(model.ease), model.ease, -3.0)
        standard = (finite - finite.mean()) / finite.std()
        predictions = skill * standard + np.sqrt(1 - skill**2) * rng.standard_normal(SIZE)
        belief = Hierarchical(model.pool, HierarchicalConfig())
        for _ in range(80):
            belief.place(np.arange(SIZE), predictions)
            model.step(belief)
        slopes.append(float(belief.shapes.slope_E[0]))
    expected = skill * np.std(finite)
    assert np.mean(slopes) == pytest.approx(expected, abs=0.25 if skill == 0 else 0.4 * expected)
    assert np.std(slopes) < 0.3


def test_bins_stand_for_equal_parts():
    assert CENTRES[0] == 0.0
    assert np.mean(CENTRES[1:]) == pytest.approx(0.0, abs=1e-12)
    assert np.std(CENTRES[1:]) == pytest.approx(1.0, abs=0.06)
