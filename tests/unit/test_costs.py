import numpy as np
import pytest

from curricula import PromptPool
from curricula.costs import TokenCosts


def costs():
    return TokenCosts(PromptPool(["a", "a", "b", "b", "c"]), discount=1.0)


def told(parts, *visits):
    rows, tokens, rollouts = (np.array(column, dtype=float) for column in zip(*visits, strict=True))
    parts.update(rows.astype(int), tokens, rollouts)


def test_without_tokens_every_rollout_costs_one():
    parts = costs()
    told(parts, (0, 0, 0))
    np.testing.assert_array_equal(parts.environments(), [1, 1, 1])
    np.testing.assert_array_equal(parts.prompts(np.arange(5)), np.ones(5))


def test_environments_are_shrunk_to_the_whole():
    parts = costs()
    told(parts, (0, 1600, 16), (2, 160, 16))
    means = parts.environments()
    overall = 1760 / 32
    assert means[2] == pytest.approx(overall)
    assert means[0] == pytest.approx((8 * overall + 1600) / 24)
    assert means[1] == pytest.approx((8 * overall + 160) / 24)


def test_prompts_start_at_their_environment_and_follow_their_own():
    parts = costs()
    told(parts, *[(0, 800, 8)] * 12, (2, 80, 8))
    assert parts.prompts(np.array([1]))[0] == pytest.approx(parts.environments()[0])
    assert parts.prompts(np.array([0]))[0] == pytest.approx(100, rel=0.01)


def test_an_empty_completion_still_costs_a_token():
    parts = costs()
    told(parts, *[(0, 0, 8)] * 30)
    assert parts.prompts(np.array([0, 1])).min() >= 1.0


def test_two_bytes_hold_what_a_rollout_costs():
    parts = costs()
    assert parts.mean.itemsize == 2
    for value in (1.0, 17.0, 3000.0, 900_000.0, 5e9):
        parts = costs()
        told(parts, *[(0, 8 * value, 8)] * 40)
        assert parts.prompts(np.array([0]))[0] == pytest.approx(min(value, 65504.0 * 16), rel=2e-3)
