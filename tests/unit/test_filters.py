import numpy as np
import pytest

from curricula import ConfigError, CurriculaValueError, Curriculum, GroupOutcome, PromptPool
from curricula.config import PassRateCapConfig, ZeroVarianceConfig, as_config
from curricula.filters import Filters, Groups, chance_rates, holds_back

NAN = np.nan


def judge(*groups, tolerance=1e-6):
    width = max(map(len, groups))
    results = np.array([[*group, *[NAN] * (width - len(group))] for group in groups])
    nothing = np.zeros(results.shape, dtype=bool)
    told = Groups(results, None, nothing[:, 0], ~np.isnan(results), nothing, nothing)
    judgements, mixed = Filters([ZeroVarianceConfig(tolerance=tolerance)]).judge(told)
    assert mixed.tolist() == [judgement == "informative" for judgement in judgements]
    return judgements


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


def judge_of(config, *outcomes):
    curriculum = Curriculum(PromptPool(["a"] * 99), {"curriculum": {"filters": config}})
    draws = curriculum.ask(len(outcomes), group_size=4)
    verdicts = curriculum.tell([GroupOutcome(draw.ticket, **told) for draw, told in zip(draws, outcomes, strict=True)])
    return [verdict.reason for verdict in verdicts], curriculum.metrics()


ZERO = [{"type": "zero_variance"}]


@pytest.mark.parametrize("penalty", [[0, -0.3, 0, -0.8], [-5.0, 1.0, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("raw", [0.0, 1.0, 0.5])
def test_what_shapes_rewards_makes_no_group_informative(penalty, raw):
    """F1: groups are judged on raw successes where they are told, whatever was added to the rewards."""
    shaped = np.array(penalty) + raw
    reasons, _ = judge_of(ZERO, {"rewards": shaped, "successes": [raw] * 4})
    assert reasons == ["zero_variance"]


def test_masked_members_and_float_noise_make_no_variance():
    """F2, F3: the spread is over live members, and never a standard deviation compared with 0."""
    masked = {"rewards": [1, 1, 1, 0], "trainable": [1, 1, 1, 0]}
    noise = {"rewards": [0.1, 0.1, 0.1, 0.1 + 1e-9]}
    reasons, _ = judge_of(ZERO, masked, noise, {"rewards": [0.1] * 3}, {"rewards": [1, 0, NAN, NAN]})
    assert reasons == ["zero_variance", "zero_variance", "zero_variance", "informative"]
    assert np.std([0.1] * 3) > 0


def test_components_that_differ_keep_a_group_whose_sums_are_equal():
    """F4: where each component is trained on by itself, any of them that varies keeps the group."""
    parts = [[1, 0], [0, 1], [1, 0], [0, 1]]
    same = [[1, 0]] * 4
    sums = {"rewards": [1, 1, 1, 1]}
    assert judge_of(ZERO, {**sums, "components": parts}, {**sums, "components": same}, sums)[0] == [
        "informative",
        "zero_variance",
        "zero_variance",
    ]
    # A length component of its own does not bring F1 back: told successes decide, unless the mix says otherwise.
    wrong = {**sums, "components": parts, "successes": [0, 0, 0, 0]}
    assert judge_of(ZERO, wrong)[0] == ["zero_variance"]
    assert judge_of([{"type": "zero_variance", "on": "components"}], wrong)[0] == ["informative"]
    masked = {**sums, "components": [[1, 0], [0, 1], [0, 1], [0, 1]], "trainable": [0, 1, 1, 1]}
    assert judge_of(ZERO, masked)[0] == ["zero_variance"]


def test_filters_see_rewards_before_they_are_normalised():
    """F5: a tolerance is in units of the raw rewards; normalised ones of every mixed group have the same spread."""
    small, large = np.array([0, 0, 0, 1e-7]), np.array([0, 0, 0, 1.0])
    normalised = [(group - group.mean()) / group.std() for group in (small, large)]
    np.testing.assert_allclose(*normalised)
    assert judge_of(ZERO, {"rewards": small}, {"rewards": large})[0] == ["zero_variance", "informative"]


@pytest.mark.parametrize("name", ["rewards", "successes", "tokens", "interrupted", "truncated", "trainable"])
def test_a_group_has_one_value_for_each_rollout(name):
    """F6: one value per turn, or for other rollouts than were rewarded, is refused."""
    fields = {"rewards": [0, 1], name: [[0, 1], [1, 0]]}
    with pytest.raises(CurriculaValueError, match=rf"GroupOutcome.{name}: expected shape"):
        GroupOutcome(0, **fields)


def test_components_have_a_row_for_each_rollout():
    """F6: as above, for rewards by component."""
    for wrong in ([0, 1], [[0, 1]], [[], []], [[0], ["x"]]):
        with pytest.raises(CurriculaValueError, match=r"GroupOutcome.components: expected"):
            GroupOutcome(0, [0, 1], components=wrong)


def test_a_group_of_one_is_an_error_that_says_why():
    """F7: it has no variance by nature, so every group would be dropped for ever."""
    with pytest.raises(CurriculaValueError, match=r"group_size >= 2; got 1; .* every group would be dropped"):
        Curriculum(PromptPool(["a"])).ask(1, group_size=1)


def test_rollouts_without_a_token_to_train_on_are_no_signal():
    """F8: counted apart from zero variance, and no evidence of a pass rate."""
    none = {"rewards": [0, 1, 1, 0], "trainable": [0, 0, 0, 0]}
    one = {"rewards": [0, 1, 1, 0], "trainable": [0, 1, 0, 0]}
    alike = {"rewards": [0, 1, 1, 0], "trainable": [0, 1, 1, 0]}
    lost = {"rewards": [NAN] * 4, "trainable": [0] * 4}
    reasons, metrics = judge_of(ZERO, none, one, alike, lost, {"rewards": [1, 1, 0, 1]})
    assert reasons == ["no_signal", "single", "zero_variance", "unscorable", "informative"]
    counts = {name: metrics[f"a/{name}"] for name in ("no_signal", "single", "zero_variance", "unscorable", "kept")}
    assert set(counts.values()) == {1.0}
    curriculum = Curriculum(PromptPool(["a"]))
    (draw,) = curriculum.ask(1, group_size=4)
    before = curriculum.beliefs([0]).mean
    curriculum.tell([GroupOutcome(draw.ticket, **none)])
    assert curriculum.beliefs([0]).mean == before


@pytest.mark.parametrize(
    ("filter_", "place"),
    [
        ({"type": "pass_rate_cap", "above": 8}, "above"),
        ({"type": "pass_rate_cap", "above": 90}, "above"),
        ({"type": "pass_rate_cap", "review": 0}, "review"),
        ({"type": "pass_rate_cap", "review": 2}, "review"),
        ({"type": "predicted_zero_variance", "below": -0.1}, "below"),
        ({"type": "predicted_zero_variance", "probe": 1}, "probe"),
        ({"type": "overlong", "most": 4}, "most"),
    ],
)
def test_thresholds_are_rates(filter_, place):
    """F9: a threshold that is a count, a sum or a percentage is refused when the mix is read."""
    with pytest.raises(ConfigError, match=rf"curriculum.filters\[0\].{place}: expected a number [<>]"):
        as_config({"curriculum": {"filters": [filter_]}})


def test_thresholds_are_compared_with_means():
    """F9: a group's size does not move it across a threshold."""
    cap = [PassRateCapConfig(above=0.9)]
    assert (chance_rates(np.array([0.9, 0.91]), np.array([0.5, 0.5]), cap) >= 1.0).tolist() == [True, False]
    for size in (4, 16):
        cut = np.arange(size) < size // 2
        config = [{"type": "overlong", "most": 0.5}]
        reasons, _ = judge_of(config, {"rewards": [0, 1] * (size // 2), "truncated": cut})
        assert reasons == ["informative"]


def test_groups_that_mostly_ran_into_the_limit_are_dropped():
    """DAPO's overlong filtering on whole groups: what was cut short on purpose counts only when asked."""
    cut, few = [1, 1, 1, 0], [1, 0, 0, 0]
    rewards = {"rewards": [0, 0, 0, 1]}
    told = ({**rewards, "truncated": cut}, {**rewards, "truncated": few}, {**rewards, "interrupted": cut}, rewards)
    rule = {"type": "overlong", "most": 0.5}
    reasons, metrics = judge_of([rule, *ZERO], *told)
    assert reasons == ["overlong", "informative", "informative", "informative"]
    assert metrics["a/overlong"] == 1
    assert judge_of([{**rule, "interrupted": True}], *told)[0][2] == "overlong"
    # Masked by the trainer as well, the group is dropped for the same reason; and the first filter names it.
    masked = {**rewards, "truncated": [1] * 4, "trainable": [0] * 4}
    alike = {"rewards": [0] * 4, "truncated": cut}
    assert judge_of([rule, *ZERO], masked, alike)[0] == ["overlong", "overlong"]
    assert judge_of([*ZERO, rule], masked, alike)[0] == ["overlong", "zero_variance"]


def test_what_holds_prompts_back_has_the_lowest_rate():
    means, informative = np.array([0.95, 0.5, 0.95, 0.02]), np.array([0.2, 0.9, 0.05, 0.05])
    filters = as_config(
        {
            "curriculum": {
                "filters": [
                    {"type": "pass_rate_cap", "review": 0.03},
                    {"type": "predicted_zero_variance", "probe": 0.01},
                    *ZERO,
                ]
            }
        }
    ).curriculum.filters
    assert holds_back(filters)
    assert not holds_back([ZeroVarianceConfig()])
    assert chance_rates(means, informative, filters).tolist() == [0.03, 1.0, 0.01, 0.01]
    assert (chance_rates(means, informative, filters) >= 1.0).tolist() == [False, True, False, False]
