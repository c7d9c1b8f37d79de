"""Shares that follow a plan by the environments' scaling curves."""

import copy
import logging

import numpy as np
import pytest

from curricula import (
    CheckpointError,
    ConfigError,
    Curriculum,
    CurriculumConfig,
    GroupOutcome,
    PromptPool,
    load_state,
    save_state,
)
from curricula.allocation import Allocation, allocate
from curricula.bandits.plan import LEAST_POINTS, Plan
from curricula.bandits.success_curves import MOST, WIDTH, SuccessCurves
from curricula.config import as_config, load_mix, resolved
from curricula.config.planned import SharesConfig
from curricula.scaling import fit
from curricula.scaling.laws import sigmoid
from curricula.scored import Scored
from curricula.stateful import Reader

NAMES = ["fast"] * 200 + ["done"] * 200 + ["never"] * 200
SHARES = {"from": "scaling", "every": 5}


def rates(spent: dict[str, float]) -> dict[str, float]:
    """One environment rises with what is spent in it, one is at its end, one stays where it is."""
    return {"fast": float(sigmoid(spent["fast"], 0.9, 2.0, 3000, 0.1)), "done": 0.9, "never": 0.1}


def play(
    curriculum: Curriculum, rng: np.random.Generator, asks: int, spent: dict[str, float], tokens=10
) -> list[object]:
    """Asks and tells; returns all that was seen."""
    seen: list[object] = []
    for _ in range(asks):
        draws, outcomes = curriculum.ask(24, group_size=4), []
        for draw in draws:
            rewards = (rng.random(4) < rates(spent)[draw.environment]) * 1.0
            outcomes.append(GroupOutcome(draw.ticket, rewards, tokens=None if tokens is None else [tokens] * 4))
            spent[draw.environment] += 4
        curriculum.tell(outcomes)
        seen += [draws, curriculum.metrics()]
    return seen


def made(shares=SHARES, bandit="equal", **environments) -> Curriculum:
    mix = {"curriculum": {"bandit": {"type": bandit}, "shares": shares}, "environments": environments}
    return Curriculum(PromptPool(NAMES), mix, seed=3)


def fresh() -> dict[str, float]:
    return dict.fromkeys(("fast", "done", "never"), 0.0)


@pytest.mark.parametrize("bandit", ["equal", "competition", "discounted_thompson"])
def test_compute_goes_where_curves_say_that_it_gains(bandit):
    curriculum = made(bandit=bandit)
    play(curriculum, np.random.default_rng(0), 60, fresh())
    found = curriculum.metrics()
    assert found["plan/made"] >= 10
    assert found["fast/plan_share"] > 0.7
    assert found["fast/share"] == max(curriculum.shares().values())
    assert found["fast/plan_gain"] > found["done/plan_gain"]
    assert found["done/plan_ceiling"] == pytest.approx(0.9, abs=0.1)
    assert found["plan/gain_low"] <= found["plan/gain"] <= found["plan/gain_high"]
    assert found["plan/gain"] >= found["plan/gain_equal"]
    # The default floor.
    assert min(curriculum.shares().values()) >= 0.02 - 1e-9


@pytest.mark.parametrize("rate", [lambda ask: 0.0, lambda ask: 1.0, lambda ask: 0.8 - 0.006 * ask])
def test_where_curves_tell_nothing_apart_the_bandit_decides(rate):
    curriculum, rng = made(), np.random.default_rng(0)
    for ask in range(50):
        draws = curriculum.ask(24, group_size=4)
        told = [(rng.random(4) < rate(ask)) * 1.0 for _ in draws]
        curriculum.tell(
            [GroupOutcome(draw.ticket, got, tokens=[10] * 4) for draw, got in zip(draws, told, strict=True)]
        )
    found = curriculum.metrics()
    assert found["plan/environments"] == 3
    assert found["plan/trust"] == 0
    assert max(curriculum.shares().values()) - min(curriculum.shares().values()) < 0.05


def test_until_there_are_points_the_bandit_decides():
    curriculum, other = made(), Curriculum(PromptPool(NAMES), {"curriculum": {"bandit": {"type": "equal"}}}, seed=3)
    few = (LEAST_POINTS - 1) * WIDTH // 8
    one, two = (play(each, np.random.default_rng(0), few, fresh()) for each in (curriculum, other))
    assert [draws for draws in one if isinstance(draws, list)] == [draws for draws in two if isinstance(draws, list)]
    assert curriculum.metrics()["plan/environments"] == 0
    assert not any("plan_" in name for name in curriculum.metrics())


def test_floors_and_caps_hold():
    curriculum = made(fast={"share": {"cap": 0.5}}, never={"share": {"floor": 0.2}})
    play(curriculum, np.random.default_rng(0), 60, fresh())
    shares = curriculum.shares()
    assert curriculum.metrics()["plan/environments"] >= 2
    assert shares["fast"] <= 0.5 + 1e-6
    assert shares["never"] >= 0.2 - 1e-6


BASE = np.array([0.3, 0.5, 0.2])
PRICES = np.array([30.0, 10.0, 10.0])
TOPS = np.array([0.9, 0.8, 0.5])


def groups(rng: np.random.Generator, spent: np.ndarray, count: int = 96) -> Scored:
    """Groups of 4 of three environments that rise with the tokens spent; `value` is not what is corrected."""
    codes = rng.integers(3, size=count)
    truth = sigmoid(spent[codes], TOPS[codes], 2.0, 100 * np.array([60, 90, 20])[codes], 0.1)
    results = (rng.random((count, 4)) < truth[:, None]) * 1.0
    np.add.at(spent, codes, 4 * PRICES[codes])
    some = dict.fromkeys(("rows_K",), np.arange(count)) | dict.fromkeys(("members_K", "counted_K"), np.full(count, 4))
    yes = dict.fromkeys(("drawn_K", "first_K", "mixed_K", "kept_K"), np.ones(count, dtype=np.bool_))
    means = results.mean(axis=1)
    return Scored(
        codes_K=codes, results_KG=results, passed_K=results.sum(axis=1), value_K=np.zeros(count), corrected_K=means,
        weight_K=np.ones(count), share_K=np.full(count, 1 / 3), tokens_K=4 * PRICES[codes], **some, **yes,
    )  # fmt: skip


def planned(monkeypatch, **config) -> tuple[Plan, dict[str, list], list[Allocation]]:
    """A plan of known costs, after some; what the last fits and the last split were asked for, and all splits."""
    asked: dict[str, list] = {"fits": [], "splits": []}
    made: list[Allocation] = []

    def fitted(*given, **named):
        asked["fits"].append((given, named))
        return fit(*given, **named)

    def split(*given, **named):
        asked["splits"].append((given, named))
        made.append(allocate(*given, **named))
        return made[-1]

    monkeypatch.setattr("curricula.scaling.fit", fitted)
    monkeypatch.setattr("curricula.allocation.allocate", split)
    plan = Plan(SharesConfig(**{"from": "scaling", "every": 5} | config), BASE, np.full(3, 0.02), np.ones(3), 3)
    rng, spent = np.random.default_rng(0), np.zeros(3)
    for _ in range(16):
        plan.tick()
        plan.observe(groups(rng, spent), True, ["a", "b", "c"])
    assert plan.planned_E.all()
    assert plan.trust > 0
    return plan, asked, made


def test_dear_environments_get_their_share_of_compute_not_of_draws(monkeypatch):
    plan, _, made = planned(monkeypatch)
    targets, trusts = np.zeros(3), 0.0
    for number, split in enumerate(made):
        draws = np.array(list(split.shares.values())) / PRICES
        mine, old = (1.0, 0.0) if number == 0 else (0.5 * split.trust, 0.5 * trusts)
        targets = (mine * draws / draws.sum() + old * targets) / max(mine + old, 1e-300) if mine + old else targets
        trusts = split.trust if number == 0 else mine + old
    assert len(made) >= 2
    assert plan.target_E == pytest.approx(targets, abs=1e-9)
    assert plan.trust == pytest.approx(trusts)
    # Between what the bandit would and what the plan would, on all that is planned.
    bandit = np.array([0.2, 0.2, 0.6])
    assert plan.mix(bandit) == pytest.approx(trusts * targets + (1 - trusts) * bandit)


def test_a_split_is_asked_for_what_the_mix_says(monkeypatch):
    plan, asked, _ = planned(monkeypatch, horizon=2.5)
    ((_, budget), named) = asked["splits"][-1]
    at_the_time = sum(named["spent"].values())
    assert budget == pytest.approx(2.5 * at_the_time)
    assert named["spent"]["0"] / named["spent"]["1"] == pytest.approx(3, rel=0.3)
    assert list(named["weights"].values()) == BASE.tolist()
    assert list(named["floor"].values()) == [0.02] * 3
    assert plan.whole["compute"] == budget


def test_a_plan_may_count_rollouts(monkeypatch):
    plan, asked, made = planned(monkeypatch, axis="rollouts")
    (_, named) = asked["splits"][-1]
    assert named["spent"]["0"] / named["spent"]["1"] == pytest.approx(1, rel=0.2)
    (compute, _), _ = asked["fits"][-3]
    assert compute[-1] < named["spent"]["0"] < 600 * 4
    if len(made) == 1:
        assert plan.target_E == pytest.approx(list(made[0].shares.values()))


def test_points_are_of_corrected_success_and_as_sure_as_they_are(monkeypatch):
    _, asked, _ = planned(monkeypatch)
    for code, ((compute, score), named) in enumerate(asked["fits"][-3:]):
        truth = sigmoid(compute, TOPS[code], 2.0, 100 * [60, 90, 20][code], 0.1)
        assert 0.5 < np.std((score - truth) / named["noise"]) < 1.6
        assert named["noise"].shape == score.shape
        # Of bins of about 16 groups of 4.
        assert 0.02 < np.median(named["noise"]) < 0.09
        assert score[-1] > 0.2


def test_one_rare_draw_is_not_all_of_its_bin():
    rng = np.random.default_rng(0)
    rare = SuccessCurves(1)
    count = 32 * WIDTH
    # Half of the prompts are never solved and drawn one time in fifty: weights of 25 there and of .51 elsewhere.
    hard = rng.random(count) < 0.02
    values, weights = np.where(hard, 0.0, (rng.random(count) < 0.6) * 1.0), np.where(hard, 25.0, 0.51)
    rare.observe(np.zeros(count, dtype=np.int64), values, weights, np.ones(count), np.ones(count))
    points = rare.points(0, "tokens")
    assert len(points.score) >= 16
    assert np.abs(points.score - 0.6).mean() < 0.15


@pytest.mark.parametrize("method", ["expected", "thompson"])
@pytest.mark.parametrize("bandit", ["equal", "competition"])
def test_a_resumed_run_is_the_unbroken_one(tmp_path, method, bandit):
    curriculum = made(SHARES | {"method": method}, bandit)
    rng, spent = np.random.default_rng(0), fresh()
    # In the middle between two plans, and after some.
    play(curriculum, rng, 43, spent)
    assert curriculum.metrics()["plan/environments"] >= 2
    save_state(tmp_path / "state", curriculum.state_dict())
    resumed = made(SHARES | {"method": method}, bandit)
    resumed.load_state_dict(load_state(tmp_path / "state"))
    assert resumed.metrics() == curriculum.metrics()
    again, kept = copy.deepcopy(rng), dict(spent)
    assert play(curriculum, rng, 12, spent) == play(resumed, again, 12, kept)


def test_lazy_or_at_once_the_draws_are_the_same():
    lazy, prompt = made(), made()
    lazy.lazy = True
    rngs, spents = [np.random.default_rng(0) for _ in range(2)], [fresh(), fresh()]
    one, two = (play(each, rng, 45, spent) for each, rng, spent in zip((lazy, prompt), rngs, spents, strict=True))
    assert one == two


def test_a_run_may_come_to_a_plan_and_leave_it(tmp_path):
    without = Curriculum(PromptPool(NAMES), {"curriculum": {"bandit": {"type": "equal"}}}, seed=3)
    play(without, np.random.default_rng(0), 5, fresh())
    curriculum = made()
    curriculum.load_state_dict(without.state_dict())
    play(curriculum, np.random.default_rng(0), 50, fresh())
    assert curriculum.metrics()["plan/environments"] == 3
    without.load_state_dict(curriculum.state_dict())
    assert not any("plan" in name for name in without.metrics())


def test_a_run_from_before_there_were_plans_may_come_to_one():
    without = made({})
    play(without, np.random.default_rng(0), 5, fresh())
    state = without.state_dict()
    del state["learner"]["mixer"]["plan"]
    curriculum = made()
    curriculum.load_state_dict(state)
    play(curriculum, np.random.default_rng(0), 50, fresh())
    assert curriculum.metrics()["plan/environments"] == 3


def test_environments_that_come_and_go_leave_the_rest_of_the_plan():
    curriculum = made()
    play(curriculum, np.random.default_rng(0), 45, fresh())
    keys = [str(row) for row in range(600)]
    changed = PromptPool([*NAMES[:400], *["other"] * 200], keys=[*keys[:400], *(f"new{row}" for row in range(200))])
    moved = Curriculum(PromptPool(NAMES, keys=keys), curriculum.config, seed=3)
    spent = fresh()
    play(moved, np.random.default_rng(0), 45, spent)
    before = moved.metrics()
    resumed = Curriculum(changed, curriculum.config, seed=3)
    resumed.load_state_dict(moved.state_dict())
    found = resumed.metrics()
    assert found["fast/plan_gain"] == before["fast/plan_gain"]
    assert "other/plan_share" not in found
    assert sum(resumed.shares().values()) == pytest.approx(1)
    draws = resumed.ask(24, group_size=4)
    assert len(draws) == 24


def test_rewards_that_are_no_rates_leave_it_to_the_bandit(caplog):
    curriculum = made()
    rng = np.random.default_rng(0)
    with caplog.at_level(logging.WARNING, "curricula"):
        for _ in range(12):
            draws = curriculum.ask(24, group_size=4)
            curriculum.tell([GroupOutcome(draw.ticket, rng.normal(3, 2, 4)) for draw in draws])
    assert curriculum.metrics()["plan/made"] == 0
    assert sum("no success rates" in record.message for record in caplog.records) == 1


def test_without_tokens_rollouts_are_counted(caplog):
    curriculum = made()
    with caplog.at_level(logging.WARNING, "curricula"):
        play(curriculum, np.random.default_rng(0), 45, fresh(), tokens=None)
    assert curriculum.metrics()["plan/environments"] == 3
    assert sum("no tokens are told" in record.message for record in caplog.records) == 1
    assert curriculum.metrics()["plan/compute"] == 4 * 24 * 45


def test_one_environment_has_no_plan():
    curriculum = Curriculum(PromptPool(["sums"] * 100), {"curriculum": {"shares": "scaling"}})
    curriculum.ask(8, group_size=4)
    assert not any("plan" in name for name in curriculum.metrics())


def test_bins_are_bounded_and_lose_nothing():
    rng = np.random.default_rng(1)
    one, many = SuccessCurves(2), SuccessCurves(2)
    codes, values = rng.integers(2, size=40_000), (rng.random(40_000) < 0.3) * 1.0
    weights, tokens = rng.choice([0.0, 0.5, 1.5, 50.0], 40_000), rng.integers(1, 100, 40_000) * 1.0
    one.observe(codes, values, weights, tokens, np.full(40_000, 8.0))
    for part in np.array_split(np.arange(40_000), 977):
        many.observe(codes[part], values[part], weights[part], tokens[part], np.full(len(part), 8.0))
    for name, value in one.state_dict().items():
        np.testing.assert_allclose(value, many.state_dict()[name], rtol=1e-9)
    assert one.bins_EBF.shape[1] == MOST
    assert (one.full_E >= MOST // 2 - 1).all()
    assert one.bins_EBF[:, :, 0].sum() == (weights > 0).sum()
    points = one.points(0, "tokens")
    assert (np.diff(points.compute) > 0).all()
    assert points.compute[-1] <= one.spent_E2[0, 0]
    # The standard error is what the points scatter by.
    assert np.std((points.score - 0.3) / points.noise) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("curves", "bins"), np.full((3, MOST, 7), -1.0)),
        (("curves", "full"), np.full(3, MOST + 1)),
        (("curves", "width"), np.zeros(3, dtype=np.int64)),
        (("target",), np.full(3, 2.0)),
        (("planned",), np.full(3, 7)),
        (("whole",), np.ones(2)),
        (("plans",), -1),
    ],
)
def test_a_damaged_state_is_refused(place, value):
    curriculum = made()
    play(curriculum, np.random.default_rng(0), 8, fresh())
    state = curriculum.state_dict()
    section = state["learner"]["mixer"]["plan"]
    for name in place[:-1]:
        section = section[name]
    section[place[-1]] = value
    with pytest.raises(CheckpointError, match="plan"):
        made().load_state_dict(state)


def test_the_key_is_read_and_written(tmp_path):
    assert CurriculumConfig().curriculum.shares.planned is False
    short = as_config({"curriculum": {"shares": "scaling"}})
    assert short.curriculum.shares.planned
    file = tmp_path / "mix.yaml"
    file.write_text("curriculum: {shares: {from: scaling, axis: rollouts, horizon: 2}}", encoding="utf-8")
    mix = load_mix(file)
    assert (mix.curriculum.shares.axis, mix.curriculum.shares.horizon) == ("rollouts", 2)
    file.write_text(resolved(mix), encoding="utf-8")
    assert "from: scaling" in file.read_text(encoding="utf-8")
    assert load_mix(file) == mix
    file.write_text("curriculum: {shares: {from: scalling}}", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"curriculum.shares.from \(line 1\): expected one of bandit, scaling; got 'sc"
    ):
        load_mix(file)


def test_the_state_of_curves_is_its_own():
    curves = SuccessCurves(1)
    curves.observe(np.zeros(40, dtype=np.int64), np.ones(40), np.ones(40), np.ones(40), np.ones(40))
    state = curves.state_dict()
    other = SuccessCurves(1)
    other.load(Reader(state, "curves"))
    curves.observe(np.zeros(40, dtype=np.int64), np.ones(40), np.ones(40), np.ones(40), np.ones(40))
    assert other.full_E.tolist() == [2]
    assert state["full"].tolist() == [2]
