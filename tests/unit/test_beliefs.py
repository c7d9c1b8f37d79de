import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula import PromptPool
from curricula.beliefs import DecayedBeta
from curricula.config import DecayedBetaConfig
from curricula.windows import Windows

NAMES = ["a", "b"] * 6
LEVELS = [0, 0, 1, 1, 2, 2] * 2


def fresh(levels=None, **config):
    return DecayedBeta(PromptPool(NAMES, levels=levels), DecayedBetaConfig(**config))


def tell(beliefs, *visits):
    rows, passed, tried = (np.array(column) for column in zip(*visits, strict=True))
    beliefs.update(rows, passed.astype(float), tried.astype(float))


def posterior(beliefs, row):
    alpha, beta = beliefs.posterior(np.array([row]))
    return float(alpha[0]), float(beta[0])


def test_an_unseen_prompt_has_the_environments_prior():
    assert posterior(fresh(), 0) == (1.0, 1.0)
    assert posterior(fresh(strength=5), 0) == (2.5, 2.5)


def test_one_rollout_is_one_rollout():
    beliefs = fresh()
    tell(beliefs, (0, 1, 1))
    mean = (0.5 * 2 + 1) / 3
    assert posterior(beliefs, 0) == pytest.approx((2 * mean + 1, 2 * (1 - mean)))


def test_evidence_decays_at_each_visit():
    beliefs = fresh(decay=0.5)
    tell(beliefs, (0, 8, 8), (0, 0, 8), (0, 2, 8))
    assert float(beliefs.passed[0]) == 0.25 * 8 + 2
    assert float(beliefs.tried[0]) == 0.25 * 8 + 0.5 * 8 + 8


def test_the_prior_is_the_mean_of_first_visits_alone():
    beliefs = fresh()
    tell(beliefs, (0, 0, 4))
    before = beliefs.environment_means()
    tell(beliefs, *[(0, 4, 4)] * 50)
    np.testing.assert_array_equal(beliefs.environment_means(), before)
    tell(beliefs, *[(row, 0, 4) for row in (2, 4, 6, 8, 10)])
    means = beliefs.environment_means()
    assert means[0] < 0.15
    assert means[1] == 0.5


visits = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=40)


@given(visits, st.booleans())
@settings(max_examples=200)
def test_pool_means_equal_a_pass_over_all_prompts(history, leveled):
    beliefs = fresh(LEVELS if leveled else None)
    windows = Windows(beliefs.pool)
    if leveled:
        windows.set("b", 1, 2)
    tell(beliefs, *[(row, min(passed, tried), tried) for row, passed, tried in history])
    for code, mean in enumerate(beliefs.pool_means(windows.blocks_E2)):
        rows = beliefs.pool.rows(np.arange(*windows.spans[code]))
        assert mean == pytest.approx(float(beliefs.moments(rows)[0].mean()))
    assert beliefs.visited == len({row for row, _, _ in history})


@given(visits)
def test_one_batch_equals_one_by_one(history):
    together, apart = fresh(), fresh()
    history = [(row, min(passed, tried), tried) for row, passed, tried in history]
    tell(together, *history)
    for visit in history:
        tell(apart, visit)
    np.testing.assert_allclose(together.passed, apart.passed, rtol=1e-6)
    np.testing.assert_allclose(together.tried, apart.tried, rtol=1e-6)
    means = [beliefs.pool_means(beliefs.pool.block_ranges_E2) for beliefs in (together, apart)]
    np.testing.assert_allclose(*means, rtol=0.05)


def test_clear_forgets_everything():
    beliefs = fresh()
    tell(beliefs, (0, 1, 4), (3, 2, 2))
    beliefs.clear()
    assert beliefs.visited == 0
    np.testing.assert_array_equal(beliefs.pool_means(beliefs.pool.block_ranges_E2), [0.5, 0.5])
