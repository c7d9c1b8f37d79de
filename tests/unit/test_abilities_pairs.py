"""Abilities in pairs: what is seen of visited prompts and of new ones, each apart and one through the other."""

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.beliefs import hierarchical
from curricula.beliefs.abilities import Abilities
from curricula.beliefs.grid import DEVIATIONS
from curricula.errors import CheckpointError
from curricula.stateful import Reader

PRIOR = 1.5**2


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.asarray(x, dtype=float)))


def batch(rng, abilities, count):
    """Groups of 8 of a pair's environments whose prompts are known to about half a logit."""
    codes = rng.integers(2, size=count)
    ease = rng.normal(0, 1.5, count)
    prior = np.exp(-0.5 * ((DEVIATIONS - (ease + rng.normal(0, 0.5, count))[:, None]) / 0.5) ** 2)
    prior = np.concatenate([np.zeros((count, 1)), prior / prior.sum(axis=1, keepdims=True)], axis=1)
    return codes, prior, rng.binomial(8, sigmoid(np.asarray(abilities)[codes] + ease)).astype(float)


def by_grid(covariance, mean, codes, prior, passed, axis=None):
    """Mean (2,) and covariance (2, 2) of the two abilities by Bayes' rule on a grid of both."""
    axis = np.linspace(-5, 5, 401) if axis is None else axis
    logs = []
    for kind in range(2):
        mine = codes == kind
        p = sigmoid(axis[:, None] + DEVIATIONS)
        k, weight = passed[mine][:, None, None], prior[mine][:, None, 1:]
        logs.append(np.log((weight * p**k * (1 - p) ** (8 - k)).sum(axis=2)).sum(axis=0))
    apart = np.stack(np.meshgrid(axis - mean[0], axis - mean[1], indexing="ij"), axis=2)
    log = logs[0][:, None] + logs[1][None] - 0.5 * np.einsum("abi,ij,abj->ab", apart, np.linalg.inv(covariance), apart)
    density = np.exp(log - log.max())
    density /= density.sum()
    one, two = np.meshgrid(axis, axis, indexing="ij")
    points = np.stack([one.ravel(), two.ravel()])
    centre = points @ density.ravel()
    return centre, (points - centre[:, None]) * density.ravel() @ (points - centre[:, None]).T


def covariance(abilities):
    return np.array(
        [[abilities.variance_E[0], abilities.shared_P[0]], [abilities.shared_P[0], abilities.variance_E[1]]]
    )


@pytest.mark.parametrize("alike", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_a_pair_is_bayes_in_two_dimensions(seed, alike):
    rng = np.random.default_rng(seed)
    abilities = Abilities(2, 0.01, paired=True)
    abilities.mean_E[:] = mean = np.array([0.5, 0.2])
    abilities.variance_E[:] = 0.3, 0.2
    abilities.shared_P[:] = alike * np.sqrt(0.06)
    before = covariance(abilities) + 0.01 * np.array([[1, 0.8], [0.8, 1]])
    codes, prior, passed = batch(rng, [0.9, 0.3], 24)
    abilities.update(codes, prior, passed, np.full(24, 8.0))
    centre, spread = by_grid(before, mean, codes, prior, passed)
    std = np.sqrt(spread.diagonal())
    assert (np.abs(abilities.mean_E - centre) < 0.25 * std).all(), (abilities.mean_E, centre, std)
    found = covariance(abilities)
    np.testing.assert_allclose(found.diagonal(), spread.diagonal(), rtol=0.15)
    assert found[0, 1] == pytest.approx(spread[0, 1], abs=0.1 * std.prod())


@pytest.mark.parametrize("told", [0, 1])
def test_groups_of_one_kind_move_the_other_as_far_as_they_are_alike(told):
    rng = np.random.default_rng(5)
    abilities = Abilities(4, 0.001, paired=True)
    mean, before = abilities.mean_E.copy(), covariance(abilities)
    codes, prior, passed = batch(rng, [0.8, 0.8], 40)
    codes = np.full(40, told)
    abilities.update(codes, prior, passed, np.full(40, 8.0))
    centre, spread = by_grid(before, mean[:2], codes, prior, passed)
    np.testing.assert_allclose(abilities.mean_E[:2], centre, atol=0.05)
    np.testing.assert_allclose(np.sqrt(abilities.variance_E[:2]), np.sqrt(spread.diagonal()), rtol=0.15)
    assert abilities.variance_E[1 - told] > abilities.variance_E[told]
    # The other pair heard nothing.
    np.testing.assert_array_equal(abilities.mean_E[2:], 0.0)
    np.testing.assert_allclose(abilities.variance_E[2:], PRIOR)


def test_where_they_part_each_is_followed():
    rng, abilities, errors = np.random.default_rng(6), Abilities(2, 0.003, paired=True), []
    for step in range(200):
        truth = np.array([0.015 * step, 0.002 * step])
        codes, prior, passed = batch(rng, truth, 16)
        abilities.update(codes, prior, passed, np.full(16, 8.0))
        errors.append((abilities.mean_E - truth) / np.sqrt(abilities.variance_E))
        widest = np.sqrt(abilities.variance_E.prod())
        assert abs(abilities.shared_P[0]) < widest
    assert np.sqrt(np.mean(np.square(errors[20:]))) < 1.6
    assert (np.abs(np.mean(errors[100:], axis=0)) < 1).all()


@pytest.mark.parametrize("jump", [-3.0, 3.0])
def test_a_jump_of_one_is_most_of_a_jump_of_the_other(jump):
    rng, abilities = np.random.default_rng(8), Abilities(2, 0.003, paired=True)
    for step in range(62):
        codes, prior, passed = batch(rng, np.full(2, jump * (step >= 60)), 24)
        if step >= 60:
            told = codes == 0  # only visited prompts
            codes, prior, passed = codes[told], prior[told], passed[told]
        abilities.update(codes, prior, passed, np.full(codes.size, 8.0))
    assert abilities.mean_E[0] == pytest.approx(jump, abs=0.8)
    assert 0.5 < abilities.mean_E[1] / jump < 1.0
    assert abilities.variance_E[1] > 2 * abilities.variance_E[0]


def test_few_groups_that_all_failed_are_no_jump():
    """Three prompts of which nothing is known: with a chance of a third each fails whatever the ability."""
    for passed in (0.0, 8.0):
        abilities = Abilities(2, 0.003, paired=True)
        abilities.variance_E[:], abilities.shared_P[:] = 0.04, 0.02
        ease = np.array([-5.0, 0.0, 5.0])
        prior = np.exp(-0.5 * ((DEVIATIONS - ease[:, None]) / 1.0) ** 2).sum(axis=0)
        prior = np.tile(np.concatenate([[0.0], prior / prior.sum()]), (3, 1))
        abilities.update(np.ones(3, dtype=int), prior, np.full(3, passed), np.full(3, 8.0))
        assert abs(abilities.mean_E[1]) < 0.2


def test_pairs_go_on_where_they_were_and_damage_is_refused():
    rng, abilities = np.random.default_rng(7), Abilities(4, 0.003, paired=True)
    for _ in range(5):
        codes, prior, passed = batch(rng, [1.0, -0.5], 12)
        abilities.update(codes + 2, prior, passed, np.full(12, 8.0))
    again = Abilities(4, 0.003, paired=True)
    again.load(Reader(abilities.state_dict(), "state"))
    told = batch(rng, [1.0, -0.5], 12)
    for each in (abilities, again):
        each.update(*told, np.full(12, 8.0))
    for name in ("mean_E", "variance_E", "shared_P"):
        np.testing.assert_array_equal(getattr(abilities, name), getattr(again, name))
    damaged = abilities.state_dict() | {"shared": np.full(2, 2.0)}
    with pytest.raises(CheckpointError, match="shared"):
        again.load(Reader(damaged, "state"))
    np.testing.assert_array_equal(abilities.mean_E, again.mean_E)
    with pytest.raises(CheckpointError, match="mean"):
        Abilities(4, 0.003).load(Reader(abilities.state_dict(), "state"))


def by_heart(steps=160, seed=0):
    """Prompts become easier by up to 3 logits for having been visited, and others do not; means of new ones, truth."""
    rng, size = np.random.default_rng(100 + seed), 3000
    ease = rng.normal(-0.5, 1.5, size)
    curriculum = Curriculum(PromptPool(["a"] * size), seed=seed)
    visited, errors = np.zeros(size, dtype=bool), []
    for step in range(steps):
        gain = np.where(visited, 3.0 * min(1.0, step / 80), 0.0)
        draws = curriculum.ask(16, group_size=8)
        rows = np.array([draw.index for draw in draws])
        results = rng.random((16, 8)) < sigmoid(ease + gain)[rows][:, None]
        curriculum.tell([GroupOutcome(d.ticket, r * 1.0) for d, r in zip(draws, results, strict=True)])
        visited[rows] = True
        new = np.flatnonzero(~visited)
        errors.append(curriculum.beliefs(new).mean.mean() - sigmoid(ease[new]).mean())
    assert 100 < visited.sum() < size / 2
    return np.array(errors[steps // 2 :])


def test_what_is_learned_by_heart_is_not_believed_of_new_prompts(monkeypatch):
    errors = np.abs(by_heart())
    # A batch by chance far from what was expected is followed for a few steps.
    assert np.mean(errors < 0.1) > 0.9
    assert errors.mean() < 0.06
    # One ability for both would take new prompts for nearly as easy.
    monkeypatch.setattr(hierarchical, "_kinds", lambda codes, held: 2 * codes.astype(np.int64))
    assert by_heart().min() > 0.2
