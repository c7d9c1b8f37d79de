import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.config import SuccessConfig
from curricula.success import SuccessRule

NAN = np.nan


def rule_after(*rewards, **config):
    rule = SuccessRule(SuccessConfig(**config))
    changes = [rule.observe(np.array(seen, dtype=float)) for seen in rewards]
    return rule, changes


@pytest.mark.parametrize(
    ("rewards", "mode", "changes"),
    [
        ([[0, 1, 0.5, NAN]], "rate", [False]),
        ([[-1, 1], [1, NAN]], "signed", [False, False]),
        ([[1, 1], [-1, 1]], "signed", [False, False]),
        ([[0, 1], [-1, 1]], "informative", [False, True]),
        ([[-1, 1], [0.5]], "informative", [False, True]),
        ([[2]], "informative", [True]),
        ([[2], [0, 1], [5]], "informative", [True, False, False]),
        ([[NAN]], "rate", [False]),
    ],
)
def test_what_was_seen_decides_how_rewards_are_read(rewards, mode, changes):
    rule, said = rule_after(*rewards)
    assert (rule.mode, said) == (mode, changes)


def test_readings():
    given = np.array([-1.0, 0.0, 0.5, 1.0, NAN])
    np.testing.assert_array_equal(rule_after()[0].read(given[1:]), given[1:])
    np.testing.assert_array_equal(rule_after([-1, 1])[0].read(given), [0, 0.5, 0.75, 1, NAN])
    np.testing.assert_array_equal(rule_after(threshold=0.5)[0].read(given), [0, 0, 1, 1, NAN])
    np.testing.assert_array_equal(rule_after(threshold=-1.0)[0].read(given), [1, 1, 1, 1, NAN])
    np.testing.assert_array_equal(rule_after(range=(-1, 0))[0].read(given), [0, 1, 1, 1, NAN])
    np.testing.assert_array_equal(rule_after([7])[0].read(given), given)


def tell_all(curriculum, rewards, successes=None, count=4):
    draws = curriculum.ask(count, group_size=len(rewards))
    return draws, curriculum.tell([GroupOutcome(draw.ticket, rewards, successes) for draw in draws])


def test_a_declared_rule_never_changes():
    curriculum = Curriculum(PromptPool(["a"] * 99), {"success": {"threshold": 3}})
    draws, _ = tell_all(curriculum, [5.0, -7.0, 3.0, 2.9])
    assert curriculum.success_mode == "threshold"
    assert curriculum.metrics()["a/success_drawn"] == 0.5
    assert curriculum.beliefs([draws[0].index]).mean[0] == pytest.approx(0.5)


def test_a_declared_rule_reads_successes_too():
    curriculum = Curriculum(PromptPool(["a"] * 99), {"success": {"reward": "exact", "range": [0, 10]}})
    tell_all(curriculum, rewards=[0.0, -3.0], successes=[10.0, 5.0])
    assert curriculum.metrics()["a/success_drawn"] == 0.75


def test_shaped_rewards_turn_beliefs_to_the_chance_of_being_informative(caplog):
    curriculum = Curriculum(PromptPool(["a"] * 30), {"curriculum": {"belief": {"type": "decayed_beta", "strength": 2}}})
    tell_all(curriculum, [1, 1, 0, 1])
    assert curriculum.metrics()["coverage"] == 4 / 30
    draws, _ = tell_all(curriculum, [3.0, 3.0, 3.0, 1.0], count=2)
    assert curriculum.success_mode == "informative"
    assert sum("evidence starts afresh" in record.getMessage() for record in caplog.records) == 1
    metrics = curriculum.metrics()
    assert metrics["coverage"] == 2 / 30
    assert metrics["a/mean_reward_drawn"] == 2.5
    assert not [name for name in metrics if "success" in name]
    # k = 1 of n = 1 for each; the environment's mean over two first visits of a uniform prior: (1 + 1 + .98) / 3.98.
    prior = (1 + 1 + 0.98) / (2 + 1 + 0.98)
    assert curriculum.beliefs([draws[0].index]).mean[0] == pytest.approx((2 * prior + 1) / 3)
    tell_all(curriculum, [7.0, 7.0])
    assert curriculum.metrics()["a/mean_reward_drawn"] == pytest.approx((2 * 2.5 + 4 * 7) / 6)


def test_informative_prompts_are_drawn_more_in_informative_mode():
    curriculum = Curriculum(PromptPool(["a"] * 40), seed=1)
    counts = np.zeros(40)
    for _ in range(150):
        draws = curriculum.ask(4, group_size=4)
        for draw in draws:
            counts[draw.index] += 1
        rewards = [[0, 9.0, 3, 3] if draw.index < 8 else [5.0, 5, 5, 5] for draw in draws]
        curriculum.tell([GroupOutcome(draw.ticket, r) for draw, r in zip(draws, rewards, strict=True)])
    assert counts[:8].sum() > 0.7 * counts.sum()


def test_rounding_of_float32_is_no_other_kind_of_reward():
    # What a host that weighs rewards in float32 gives for 0.6 + 0.4, for 0.9, and for -0.6 - 0.4.
    above, below = float(np.float32(0.6)) + float(np.float32(0.4)), float(np.float32(0.9))
    assert above > 1
    assert below < 0.9
    rule, said = rule_after([0.0, above])
    assert (rule.mode, said) == ("rate", [False])
    assert rule.read(np.array([above])).max() == 1.0
    assert rule_after([-above, above])[0].mode == "signed"
    assert rule_after(threshold=0.9)[0].read(np.array([below])) == 1.0
