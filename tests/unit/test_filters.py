import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.filters import ZeroVariance

NAN = np.nan


def judge(*groups, tolerance=1e-6):
    width = max(map(len, groups))
    return ZeroVariance(tolerance).judge(np.array([[*group, *[NAN] * (width - len(group))] for group in groups]))


@pytest.mark.parametrize(
    ("group", "verdict"),
    [
        ([0, 0, 0, 0], "zero_variance"),
        ([1, 0, 0, 0], "informative"),
        ([1, 1, 1, NAN], "zero_variance"),
        ([1, NAN, NAN, NAN], "single"),
        ([NAN] * 4, "unscorable"),
        ([0.1] * 3, "zero_variance"),
        ([0.1 + 0.2, 0.3, 0.3], "zero_variance"),
        ([0.3, 0.3 + 5e-7], "zero_variance"),
        ([0.3, 0.3 + 2e-6], "informative"),
        ([1e9, 1e9 + 1], "informative"),
        ([1], "single"),
    ],
)
def test_spread_is_over_live_members_and_never_a_standard_deviation(group, verdict):
    assert judge(group) == [verdict]


def test_groups_of_any_size_are_judged_together():
    assert judge([0, 1], [1, 1, 1], [NAN]) == ["informative", "zero_variance", "unscorable"]


def test_the_tolerance_is_the_mixes():
    assert judge([0.1, 0.15], tolerance=0.1) == ["zero_variance"]


def verdict_of(config=None, **outcome):
    curriculum = Curriculum(PromptPool(["a"] * 9), config)
    (draw,) = curriculum.ask(1, group_size=4)
    (verdict,) = curriculum.tell([GroupOutcome(draw.ticket, **outcome)])
    return verdict.keep, verdict.reason


def test_a_length_penalty_does_not_make_an_all_wrong_group_informative():
    shaped = [0, -0.3, 0, -0.8]
    assert verdict_of(rewards=shaped, successes=[0, 0, 0, 0]) == (False, "zero_variance")
    assert verdict_of(rewards=shaped, successes=[0, 0, 1, 0]) == (True, "informative")
    assert verdict_of({"success": {"threshold": 0.5}}, rewards=shaped) == (False, "zero_variance")
    assert verdict_of({"success": {"range": [0, 1]}}, rewards=shaped) == (False, "zero_variance")


def test_shaped_rewards_alone_are_said_once(caplog):
    curriculum = Curriculum(PromptPool(["a"] * 99))
    for _ in range(3):
        draws = curriculum.ask(4, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, rewards=[0, -0.3, 0, -0.8]) for draw in draws])
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "saw -0.8 to 0" in warnings[0]
    assert "success.threshold" in warnings[0]


def test_a_member_that_cannot_be_scored_is_not_live_whatever_its_success():
    assert verdict_of(rewards=[1, 1, NAN, 1], successes=[1, 1, 0, 1]) == (False, "zero_variance")
    assert verdict_of(rewards=[1, NAN, NAN, NAN]) == (False, "single")
    assert verdict_of(rewards=[NAN] * 4) == (False, "unscorable")


def test_without_a_filter_everything_with_two_live_members_is_kept():
    assert verdict_of({"curriculum": {"filters": []}}, rewards=[1, 1, 1, 1]) == (True, "unfiltered")
    assert verdict_of({"curriculum": {"filters": []}}, rewards=[0, 1, 1, 1]) == (True, "informative")
    assert verdict_of({"curriculum": {"filters": []}}, rewards=[0, NAN, NAN, NAN]) == (False, "single")
