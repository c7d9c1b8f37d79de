import logging

import numpy as np
import pytest

from curricula import ConfigError, CurriculaValueError, Curriculum, GroupOutcome, PromptPool

MIXED = [0, 1, 1, 0]


def tell(curriculum, draws, rewards=MIXED, **fields):
    return curriculum.tell([GroupOutcome(draw.ticket, rewards, **fields) for draw in draws])


def play(curriculum, rate_of, rounds, seed=0, n=8, group_size=8):
    """Ask and tell, with Bernoulli rewards; returns how often each prompt was drawn."""
    rng, hits = np.random.default_rng(seed), np.zeros(len(curriculum.pool))
    for _ in range(rounds):
        draws = curriculum.ask(n, group_size=group_size)
        for draw in draws:
            hits[draw.index] += 1
        curriculum.tell([GroupOutcome(d.ticket, (rng.random(group_size) < rate_of(d)) * 1.0) for d in draws])
    return hits


# What is asked


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None, True])
def test_a_number_of_draws_that_cannot_be_is_refused(n):
    with pytest.raises(CurriculaValueError, match="ask: expected n to be an integer >= 1"):
        Curriculum(PromptPool(["a"])).ask(n, group_size=4)


def test_a_group_of_one_is_an_error_that_says_why():
    curriculum = Curriculum(PromptPool(["a"] * 4))
    with pytest.raises(CurriculaValueError, match="group of one has none, so every group would be dropped"):
        curriculum.ask(2, group_size=1)
    assert curriculum.metrics()["asks"] == 0


def test_numpy_integers_are_integers():
    draws = Curriculum(PromptPool(["a"] * 9)).ask(np.int64(3), group_size=np.int32(4))
    assert [type(value) for value in (draws[0].index, draws[0].ticket, draws[0].propensity)] == [int, int, float]


def test_tickets_count_up_and_draws_carry_their_names():
    pool = PromptPool(["a", "b"] * 5, keys=list("qwertyuiop"))
    draws = Curriculum(pool).ask(6, group_size=4, policy_version=12)
    assert [draw.ticket for draw in draws] == list(range(6))
    for draw in draws:
        assert draw.key == "qwertyuiop"[draw.index]
        assert draw.environment == "ab"[draw.index % 2]
        assert draw.policy_version == 12
        assert draw.reason == "explore"


def test_environments_are_spread_over_the_batch():
    draws = Curriculum(PromptPool(["a"] * 64 + ["b"] * 64)).ask(64, group_size=4)
    assert len({draw.environment for draw in draws[:16]}) == len({draw.environment for draw in draws[-16:]}) == 2


# In flight


def test_a_prompt_in_flight_is_not_drawn_again_until_told_or_cancelled():
    curriculum = Curriculum(PromptPool(["a", "b"] * 8))
    first, second = curriculum.ask(8, group_size=4), curriculum.ask(8, group_size=4)
    assert sorted(draw.index for draw in first + second) == list(range(16))
    tell(curriculum, first[:3])
    curriculum.cancel([draw.ticket for draw in first[3:5]])
    assert {draw.index for draw in curriculum.ask(5, group_size=4)} == {draw.index for draw in first[:5]}


def test_draws_beyond_an_environment_go_to_those_that_have_some():
    curriculum = Curriculum(PromptPool(["a"] * 2 + ["b"] * 20), {"environments": {"a": {"share": {"floor": 0.9}}}})
    draws = curriculum.ask(12, group_size=4)
    assert sum(draw.environment == "a" for draw in draws) == 2
    assert len({draw.index for draw in draws}) == 12
    assert all(draw.reason != "repeat" for draw in draws)


def test_when_nothing_is_left_prompts_repeat_by_name_and_are_counted():
    curriculum = Curriculum(PromptPool(["a", "a", "b"]))
    draws = curriculum.ask(8, group_size=4)
    repeats = [draw for draw in draws if draw.reason == "repeat"]
    assert len(repeats) == curriculum.metrics()["repeats"] == 5
    assert sorted(draw.index for draw in draws if draw.reason != "repeat") == [0, 1, 2]
    assert all(0 < draw.propensity <= 1 for draw in draws)
    assert all(verdict.keep for verdict in tell(curriculum, draws))
    assert curriculum.metrics()["in_flight"] == 0
    assert all(draw.reason != "repeat" for draw in curriculum.ask(3, group_size=4))


def test_expired_draws_come_back_and_their_late_tells_teach():
    curriculum = Curriculum(PromptPool(["a"] * 3), {"curriculum": {"expiry": 2}})
    late = curriculum.ask(2, group_size=4)
    tell(curriculum, curriculum.ask(1, group_size=4))
    tell(curriculum, curriculum.ask(1, group_size=4))
    assert curriculum.metrics()["expired"] == 0
    assert {draw.index for draw in curriculum.ask(3, group_size=4)} == {0, 1, 2}
    assert curriculum.metrics()["expired"] == 2
    before = curriculum.beliefs([late[0].index]).mean[0]
    (verdict,) = tell(curriculum, late[:1], [1, 1, 1, 1])
    assert verdict.reason == "zero_variance"
    assert curriculum.beliefs([late[0].index]).mean[0] > before
    assert tell(curriculum, late[:1])[0].reason == "duplicate"


# What is told


def test_a_second_tell_teaches_nothing():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    draws = curriculum.ask(2, group_size=4)
    outcomes = [GroupOutcome(draws[0].ticket, MIXED), GroupOutcome(draws[0].ticket, [1, 1, 1, 1])]
    assert [verdict.reason for verdict in curriculum.tell(outcomes)] == ["informative", "duplicate"]
    before = curriculum.beliefs(range(9)).mean
    assert [(v.keep, v.reason) for v in curriculum.tell(outcomes[:1])] == [(False, "duplicate")]
    np.testing.assert_array_equal(curriculum.beliefs(range(9)).mean, before)
    assert curriculum.metrics()["duplicates"] == 2


def test_a_tell_after_cancel_teaches_nothing():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    (draw,) = curriculum.ask(1, group_size=4)
    curriculum.cancel([draw.ticket])
    curriculum.cancel([draw.ticket])
    assert tell(curriculum, [draw])[0].reason == "cancelled"
    assert curriculum.metrics()["coverage"] == 0
    assert curriculum.metrics()["a/cancelled"] == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (GroupOutcome(99, MIXED), r"in \[0, 3\); got 99"),
        (GroupOutcome(-1, MIXED), r"got -1"),
        (GroupOutcome(None, MIXED, index=9), r"outcome 1: expected an index in \[0, 9\); got 9"),
        (GroupOutcome(None, MIXED, index=-1), r"got -1"),
        (GroupOutcome(1, [0, 1], tokens=[4, -1]), r"expected tokens"),
    ],
)
def test_a_tell_with_one_outcome_that_cannot_be_changes_nothing(bad, message):
    curriculum = Curriculum(PromptPool(["a"] * 9))
    draws = curriculum.ask(3, group_size=4)
    before = curriculum.state_dict()
    with pytest.raises(CurriculaValueError, match=message):
        curriculum.tell([GroupOutcome(draws[0].ticket, MIXED), bad])
    assert equal(before, curriculum.state_dict())


def test_cancelling_a_ticket_that_was_never_issued_changes_nothing():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    draws = curriculum.ask(2, group_size=4)
    with pytest.raises(CurriculaValueError, match="cancel: expected a ticket"):
        curriculum.cancel([draws[0].ticket, 17])
    assert curriculum.metrics()["in_flight"] == 2


@pytest.mark.parametrize("status", ["error", "stale", "cancelled"])
def test_errors_of_infrastructure_teach_nothing_and_are_counted_apart(status):
    curriculum = Curriculum(PromptPool(["a"] * 9), {"curriculum": {"bandit": "discounted_thompson"}})
    draws = curriculum.ask(3, group_size=4)
    before = curriculum.beliefs(range(9)).mean
    shares = curriculum._learner.mixer.rule.state_dict()["counts"]
    assert {verdict.reason for verdict in tell(curriculum, draws, [0, 0, 0, 0], status=status)} == {status}
    np.testing.assert_array_equal(curriculum.beliefs(range(9)).mean, before)
    np.testing.assert_array_equal(curriculum._learner.mixer.rule.state_dict()["counts"], shares)
    metrics = curriculum.metrics()
    assert metrics[f"a/{status}"] == 3
    assert metrics["a/zero_variance"] == metrics["in_flight"] == metrics["coverage"] == 0


def test_outcomes_from_a_log_teach_beliefs_and_no_rates():
    curriculum = Curriculum(PromptPool(["a", "b"] * 5), {"curriculum": {"belief": "decayed_beta"}})
    verdicts = curriculum.tell([GroupOutcome(None, [0, 0, 0, 1], index=3), GroupOutcome(None, [1, 1], index=3)])
    assert [verdict.reason for verdict in verdicts] == ["informative", "zero_variance"]
    metrics = curriculum.metrics()
    assert metrics["coverage"] == 0.1
    assert metrics["told"] == 0
    assert "b/success_drawn" not in metrics
    assert curriculum.beliefs([3]).mean[0] == pytest.approx((2 * (1 + 0.25) / 3 + 0.9 * 1 + 2) / (2 + 0.9 * 4 + 2))


def test_an_empty_tell_is_nothing():
    assert Curriculum(PromptPool(["a"])).tell([]) == []


def test_groups_of_different_sizes_are_told_together():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    draws = curriculum.ask(2, group_size=8)
    outcomes = [GroupOutcome(draws[0].ticket, [0, 1]), GroupOutcome(draws[1].ticket, [1] * 6)]
    assert [verdict.reason for verdict in curriculum.tell(outcomes)] == ["informative", "zero_variance"]


def test_beliefs_are_beta_posteriors():
    curriculum = Curriculum(PromptPool(["a"] * 9), {"curriculum": {"belief": "decayed_beta"}})
    belief = curriculum.beliefs([0, 1])
    np.testing.assert_allclose(belief.mean, 0.5)
    np.testing.assert_allclose(belief.std, np.sqrt(1 / 12))
    assert curriculum.beliefs([]).mean.shape == (0,)
    for indices in ([9], [-1], [[0]], [0.5], "a"):
        with pytest.raises(CurriculaValueError, match="beliefs: expected indices"):
            curriculum.beliefs(indices)


# What is chosen


def test_with_every_prompt_solved_draws_go_on():
    """S1, whatever the beliefs: chance alone is a part of the draws."""
    curriculum = Curriculum(PromptPool(["a"] * 40), {"curriculum": {"probe": 0.2}}, seed=2)
    play(curriculum, lambda draw: 1.0, 100)
    assert len({draw.index for draw in _round(curriculum)}) == 8
    assert curriculum.metrics()["repeats"] == 0
    hits = play(curriculum, lambda draw: 1.0, 200)
    assert (hits > 0).all()


def test_a_mastered_prompt_is_reviewed_at_the_probe_rate_and_comes_back_when_it_is_failed():
    solved = {*range(20)}
    curriculum = Curriculum(PromptPool(["a"] * 100), {"curriculum": {"probe": 0.1}}, seed=2)
    rows = [GroupOutcome(None, [1] * 8 if row in solved else [0, 1] * 4, index=row) for row in range(100)]
    curriculum.tell(rows * 2)
    draws = [draw for _ in range(250) for draw in _round(curriculum)]
    reviews = [draw for draw in draws if draw.index in solved]
    assert {draw.reason for draw in reviews} == {"review"}
    # 8 draws of 100 prompts, of which a tenth is spread evenly.
    assert len(reviews) / (250 * 8 * 20 / 100) == pytest.approx(0.1, abs=0.04)
    curriculum.tell([GroupOutcome(None, [0] * 8, index=row) for row in solved])
    draws = [draw for _ in range(250) for draw in _round(curriculum)]
    assert sum(draw.index in solved for draw in draws) > 3 * len(reviews)


def _round(curriculum):
    draws = curriculum.ask(8, group_size=8)
    curriculum.cancel([draw.ticket for draw in draws])
    return draws


def test_the_environment_with_the_most_informative_groups_per_token_gets_the_draws():
    names = ["dear"] * 60 + ["cheap"] * 60 + ["never"] * 60
    curriculum = Curriculum(PromptPool(names), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(120):  # all prompts have been looked at by then
        draws = curriculum.ask(8, group_size=8)
        outcomes = []
        for draw in draws:
            rate = {"dear": 0.5, "cheap": 0.5, "never": 0.0}[draw.environment]
            tokens = np.full(8, {"dear": 400.0, "cheap": 40.0, "never": 10.0}[draw.environment])
            outcomes.append(GroupOutcome(draw.ticket, (rng.random(8) < rate) * 1.0, tokens=tokens))
        curriculum.tell(outcomes)
    shares = curriculum.shares()
    assert shares["cheap"] > 0.8
    assert shares["dear"] == pytest.approx(0.02)
    assert shares["never"] < 0.15  # rollouts of 10 tokens: a chance that has not been ruled out costs little
    assert sum(shares.values()) == pytest.approx(1)


def test_cheap_prompts_are_preferred_within_an_environment():
    curriculum = Curriculum(PromptPool(["a"] * 60), seed=0)
    rng, hits = np.random.default_rng(0), np.zeros(60)
    for _ in range(80):
        draws = curriculum.ask(8, group_size=8)
        for draw in draws:
            hits[draw.index] += 1
        tokens = [np.full(8, 10.0 if draw.index < 30 else 100.0) for draw in draws]
        outcomes = zip(draws, tokens, strict=True)
        curriculum.tell([GroupOutcome(d.ticket, (rng.random(8) < 0.5) * 1.0, tokens=t) for d, t in outcomes])
    assert hits[:30].sum() > 3 * hits[30:].sum()


def test_a_skewed_mix_gives_more_informative_groups_than_uniform():
    rates = np.concatenate([np.full(600, 0.97), np.full(60, 0.4), np.full(120, 0.02), np.zeros(220)])
    names = ["easy"] * 600 + ["frontier"] * 60 + ["hard"] * 120 + ["never"] * 220
    uniform = {"curriculum": {"objective": {"type": "uniform"}, "bandit": {"type": "size_proportional"}}}
    informative = []
    for config in (uniform, None):
        curriculum = Curriculum(PromptPool(names), config, seed=1)
        play(curriculum, lambda draw: rates[draw.index], 80)
        informative.append(curriculum.metrics()["informative"])
    assert informative[1] > 2 * informative[0]


# Randomness and start


def test_the_same_seed_gives_the_same_stream_and_global_generators_are_left_alone():
    def stream(seed):
        curriculum = Curriculum(PromptPool(["a", "b"] * 50), seed=seed)
        draws = []
        for _ in range(10):
            draws += curriculum.ask(4, group_size=4)
            tell(curriculum, draws[-4:])
        return draws

    np.random.seed(0)  # noqa: NPY002  the global generator is what is watched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert stream(3) == stream(3) != stream(4)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_shares_before_an_ask_are_the_priors_and_draw_nothing():
    quiet, looked = (Curriculum(PromptPool(["a", "b", "c"] * 9), seed=1) for _ in range(2))
    shares = looked.shares()
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) > 0.2
    assert quiet.ask(6, group_size=4) == looked.ask(6, group_size=4)


def test_the_resolved_mix_is_said_at_the_start(caplog):
    caplog.set_level(logging.INFO, "curricula")
    Curriculum(PromptPool(["a"] * 30 + ["b"] * 10), {"environments": {"a": {"share": {"cap": 0.6}}}})
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == (
        "base mix of 40 prompts, bandit competition: a 0.75 (floor 0.02, cap 0.6), b 0.25 (floor 0.02, cap 1)"
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"environments": {"c": {}}}, "environments.c"),
        ({"nonsense": 1}, "nonsense"),
        ({"environments": {n: {"share": {"cap": 0.3}} for n in "ab"}}, "caps"),
        ({"environments": {n: {"share": {"floor": 0.7}} for n in "ab"}}, "floors"),
    ],
)
def test_a_mix_that_does_not_fit_is_refused(config, message):
    with pytest.raises(ConfigError, match=message):
        Curriculum(PromptPool(["a", "b"]), config)


def equal(one, other):
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return one == other


def test_groups_that_the_named_success_does_not_score_are_filtered_on_their_rewards():
    curriculum = Curriculum(PromptPool(["rated"] * 20 + ["other"] * 20))
    for _ in range(20):
        draws = curriculum.ask(8, group_size=4)
        outcomes = [
            GroupOutcome(draw.ticket, [0, 1, 0, 0], successes=[0, 1, 0, 0])
            if draw.environment == "rated"
            else GroupOutcome(draw.ticket, [0, 1.5, 0, 3], successes=[np.nan] * 4)
            for draw in draws
        ]
        assert all(verdict.keep for verdict in curriculum.tell(outcomes))
    metrics = curriculum.metrics()
    assert curriculum.success_mode == "rate"
    assert metrics["rated/success_drawn"] == 0.25
    assert metrics["other/kept"] > 0
    assert "other/success_drawn" not in metrics


def test_infinite_rewards_are_unscorable_and_said(caplog):
    curriculum = Curriculum(PromptPool(["a"] * 9))
    first, second = curriculum.ask(2, group_size=4)
    outcomes = [GroupOutcome(first.ticket, [np.inf, 0, 1, 0]), GroupOutcome(second.ticket, [-np.inf] * 4)]
    assert [verdict.reason for verdict in curriculum.tell(outcomes)] == ["informative", "unscorable"]
    (third,) = curriculum.ask(1, group_size=4)
    (verdict,) = curriculum.tell([GroupOutcome(third.ticket, [0, 1, 0, 1], successes=[np.inf, 0, 0, -1e300])])
    assert verdict.reason == "zero_variance"
    assert curriculum.success_mode == "rate"
    assert sum("taken as unscorable" in record.getMessage() for record in caplog.records) == 1


def test_every_filter_acts():
    mix = {"curriculum": {"filters": [{"type": "zero_variance"}, {"type": "zero_variance", "tolerance": 0.9}]}}
    curriculum = Curriculum(PromptPool(["a"] * 9), mix)
    (draw,) = curriculum.ask(1, group_size=4)
    assert not curriculum.tell([GroupOutcome(draw.ticket, [0, 0.5, 0, 0])])[0].keep


def test_the_mix_names_the_seed():
    pool = PromptPool(["a"] * 99)
    drawn = [[d.index for d in Curriculum(pool, {"seed": seed}).ask(4, group_size=2)] for seed in (5, 6, 5)]
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]


def test_levels_need_a_pool_that_has_them():
    with pytest.raises(CurriculaValueError, match=r"environments.a.levels: expected prompts that have levels"):
        Curriculum(PromptPool(["a"] * 9), {"environments": {"a": {"levels": [0, 1]}}})


def test_levels_that_the_mix_changes_are_meant_on_resume_and_others_go_on():
    def build(levels):
        pool = PromptPool(["a"] * 40, levels=[row % 4 for row in range(40)])
        return Curriculum(pool, {"environments": {"a": {"levels": levels}}})

    saved = build([0, 1])
    saved.set_window("a", 1, 2)
    same, other = build([0, 1]), build([3, 3])
    same.load_state_dict(saved.state_dict())
    other.load_state_dict(saved.state_dict())
    assert same.window("a") == (1, 2)
    assert other.window("a") == (3, 3)
    assert {draw.index % 4 for draw in other.ask(5, group_size=2)} == {3}


def test_success_that_the_mix_changes_starts_beliefs_afresh_on_resume(caplog):
    saved = Curriculum(PromptPool(["a"] * 9))
    for draw in saved.ask(5, group_size=4):
        saved.tell([GroupOutcome(draw.ticket, [0, 3, 9, 15])])
    other = Curriculum(PromptPool(["a"] * 9), {"success": {"range": [0, 15]}})
    other.load_state_dict(saved.state_dict())
    assert "start afresh" in caplog.text
    assert "a/success_drawn" not in other.metrics()
    assert other.metrics()["told"] == 5


def test_a_warm_start_teaches_and_is_no_group_of_this_run():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    curriculum.tell([GroupOutcome(None, [0, 1], tokens=[3, 4], index=2)])
    metrics = curriculum.metrics()
    assert (metrics["a/kept"], metrics["a/tokens"]) == (0, 0)
    assert metrics["coverage"] > 0
    curriculum.tell([GroupOutcome(None, [0, 1], status="error", index=2)])
    assert curriculum.metrics()["a/error"] == 0


@pytest.mark.parametrize("mode", ["rate", "informative"])
def test_groups_that_no_success_was_told_of_teach_no_pass_rates_and_count_for_the_bandit(mode):
    curriculum = Curriculum(PromptPool(["a", "b"] * 20), {"curriculum": {"bandit": "discounted_thompson"}})
    curriculum.tell([GroupOutcome(None, [0.0, 1.0 if mode == "rate" else 7.0], index=0)])
    before, nothing = curriculum.beliefs(range(40)).mean, [np.nan] * 3
    draws = [draw for draw in curriculum.ask(20, group_size=3) if draw.environment == "b"]
    counts = curriculum._learner.mixer.rule.state_dict()["counts"]
    outcomes = [GroupOutcome(draw.ticket, [-7.0, 3.0, -7.0], nothing, tokens=[1, 2, 3]) for draw in draws[:2]]
    outcomes += [GroupOutcome(draws[2].ticket, [5.0] * 3, nothing)]
    outcomes += [GroupOutcome(draws[3].ticket, [np.nan] * 3, nothing)]
    reasons = [verdict.reason for verdict in curriculum.tell(outcomes)]
    assert reasons == ["informative", "informative", "zero_variance", "unscorable"]
    assert curriculum.success_mode == mode
    np.testing.assert_array_equal(curriculum.beliefs(range(40)).mean, before)
    after = curriculum._learner.mixer.rule.state_dict()["counts"]
    np.testing.assert_allclose(after[1], counts[1] + [1, 2], atol=0.05)
    assert not {"b/success_drawn", "b/mean_reward_drawn", "b/informative"} & curriculum.metrics().keys()


def test_of_several_groups_of_a_prompt_in_one_tell_the_first_is_its_first_visit(monkeypatch):
    curriculum, given, seen = Curriculum(PromptPool(["a"] * 6)), [], []
    learner = curriculum._learner
    observe, add = learner.mixer.observe, learner.visited.add
    monkeypatch.setattr(learner.mixer, "observe", lambda groups, *more: (given.append(groups), observe(groups, *more)))
    monkeypatch.setattr(learner.visited, "add", lambda rows: (seen.append(rows.tolist()), add(rows)))
    nan = [float("nan")] * 2
    told = [(3, nan), (1, [0, 1]), (3, [1, 1]), (1, [1, 0]), (3, [0, 0])]
    curriculum.tell([GroupOutcome(None, rewards, index=row, successes=rewards) for row, rewards in told])
    curriculum.tell([GroupOutcome(None, [0, 1], index=row) for row in (1, 2, 2)])
    rows = [[row for row, first in zip(g.rows_K.tolist(), g.first_K.tolist(), strict=True) if first] for g in given]
    assert rows == [[1, 3], [2]] == seen
    assert sum(given[0].first_K) == 2
