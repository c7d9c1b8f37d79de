"""Environments that compete for the draws: equals stay equals, and what is explored follows the shares."""

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.choosing.candidates import Candidates
from curricula.choosing.competing import compete


@pytest.mark.parametrize("seed", [0, 1])
def test_of_environments_that_are_alike_none_takes_all(seed):
    curriculum = Curriculum(PromptPool(["a", "b"] * 500), {"curriculum": {"objective": {"type": "signal"}}}, seed=seed)
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(150):
        draws = curriculum.ask(32, group_size=8)
        rewards = (rng.random((32, 8)) < 0.5) * 1.0
        curriculum.tell([GroupOutcome(d.ticket, row) for d, row in zip(draws, rewards, strict=True)])
        shares.append(curriculum.shares()["a"])
    assert 0.3 < np.mean(shares) < 0.7
    # Noise moves them, and they come back.
    late = np.array(shares[50:])
    assert late.min() > 0.05
    assert late.max() < 0.95
    assert 0.25 < np.median(late) < 0.75


def test_what_is_explored_in_all_follows_the_shares():
    """Nine environments wholly visited and a small poor one that is not: it cannot take the exploration of all."""
    sizes = np.array([[200, 0]] * 9 + [[0, 20]])
    count = int(sizes.sum())
    scores = np.concatenate([np.full(1800, 1.0), np.full(20, 0.01)])
    candidates = Candidates(np.arange(count), np.arange(count), sizes, np.ones((10, 2)), np.array([0.0] * 9 + [1.0]))
    explore = np.array([0.0] * 9 + [0.15])
    won = compete(candidates, scores, np.ones(10), 64, explore, np.full(10, 0.1))
    assert won.shares[9] == pytest.approx(0.015)
    assert won.shares.sum() == pytest.approx(1.0)
