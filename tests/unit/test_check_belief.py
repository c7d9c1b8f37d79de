"""The public checks of beliefs: all of ours pass, and what is wrong is found."""

import numpy as np
import pytest

from curricula import PromptPool
from curricula.beliefs import ArcsineKalman, Assessment, DecayedBeta, Hierarchical
from curricula.config import DecayedBetaConfig, HierarchicalConfig
from curricula.testing import check_belief


@pytest.mark.parametrize(
    "factory",
    [
        lambda pool: Hierarchical(pool, HierarchicalConfig()),
        lambda pool: Hierarchical(pool, HierarchicalConfig(drift=0.0, ageing=0.0, noise=1e-9)),
        lambda pool: Hierarchical(pool, HierarchicalConfig(drift=1.0, ageing=0.1, noise=0.1)),
        lambda pool: DecayedBeta(pool, DecayedBetaConfig()),
        lambda pool: ArcsineKalman(pool, drift=0.005, noise=0.001),
    ],
    ids=["hierarchical", "hierarchical-lasting", "hierarchical-fleeting", "decayed_beta", "arcsine_kalman"],
)
def test_every_belief_passes(factory):
    check_belief(factory)


class Forgetful(DecayedBeta):
    def state_dict(self):
        return {**super().state_dict(), "first": np.zeros_like(self.first_E2)}


class Draws(DecayedBeta):
    def update(self, rows, passed, tried):
        np.random.rand()  # noqa: NPY002
        super().update(rows, passed, tried)


class Unbounded(DecayedBeta):
    def assess(self, rows, group_size, normaliser):
        means, signals, spreads = super().assess(rows, group_size, normaliser)
        return Assessment(means, signals * 4.5, spreads)


class Absorbing(DecayedBeta):
    def update(self, rows, passed, tried):
        open_ = ~(self.tried[rows] > 40)
        super().update(rows[open_], passed[open_], tried[open_])


class Rounding(DecayedBeta):
    def update(self, rows, passed, tried):
        super().update(rows, np.rint(passed), tried)


class Blind(DecayedBeta):
    def pool_means(self, windows_E2):
        return self.environment_means()


class Named(DecayedBeta):
    def moments(self, rows):
        means, stds = super().moments(rows)
        return np.where(self.pool.codes[rows] == 0, means, 0.9 * means), stds


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Forgetful, "a restored belief goes on alike"),
        (Draws, "global random generators"),
        (Unbounded, "signals: expected within"),
        (Absorbing, "solved or hopeless for ever"),
        (Rounding, "fractions of successes count"),
        (Blind, "pool_means: expected"),
        (Named, "assess and moments"),
    ],
)
def test_what_is_wrong_is_found(kind, said):
    with pytest.raises(AssertionError, match=said):
        check_belief(lambda pool: kind(pool, DecayedBetaConfig()))


def test_a_pool_of_one_prompt_is_borne():
    for kind in (Hierarchical(PromptPool(["a"]), HierarchicalConfig()), ArcsineKalman(PromptPool(["a"]), 0.0, 1e-9)):
        kind.update(np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0, 1.0]))
        assert 0.0 < float(kind.moments(np.array([0]))[0][0]) < 1.0
