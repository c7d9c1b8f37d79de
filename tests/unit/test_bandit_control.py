"""The mix that is trained on: targets, bounds, outages, and what hopeless environments may cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula import ConfigError, Curriculum, GroupOutcome, PromptPool
from curricula.bandits import TrainedShares

WEIGHTS = {"a": {"weight": 1.0}, "b": {"weight": 1.0}}


def run(bandit, keep, late=(0, 0), groups=6000, batch=16, environments=None, stale=0.0, objective="uniform"):
    """Trained and drawn shares of the last half, with batches that come back late or are never kept."""
    pool = PromptPool(["a"] * 1500 + ["b"] * 1500)
    mix = {"curriculum": {"bandit": bandit, "objective": {"type": objective}}, "environments": environments or {}}
    curriculum, rng = Curriculum(pool, mix, seed=0), np.random.default_rng(0)
    out: list[tuple[int, object]] = []
    trained, drawn = [], []
    for step in range(groups // batch):
        draws = curriculum.ask(batch, group_size=4)
        drawn += [draw.environment == "a" for draw in draws]
        out += [(step + late[draw.environment == "b"], draw) for draw in draws]
        back = [draw for due, draw in out if due <= step]
        out = [(due, draw) for due, draw in out if due > step]
        outcomes = []
        for draw in back:
            kept = rng.random() < keep[draw.environment == "b"]
            old = draw.environment == "b" and rng.random() < stale
            outcomes.append(GroupOutcome(draw.ticket, [0, 1] * 2 if kept else [0] * 4, status="stale" if old else "ok"))
        verdicts = curriculum.tell(outcomes)
        trained += [draw.environment == "a" for draw, verdict in zip(back, verdicts, strict=True) if verdict.keep]
    return np.mean(trained[len(trained) // 2 :]), np.mean(drawn[len(drawn) // 2 :])


@pytest.mark.parametrize(
    "bandit", [{"type": "equal"}, {"type": "size_proportional"}, {"type": "quotas", "most_draws": 4.0}]
)
@pytest.mark.parametrize("slow", ["filtered", "late", "late and filtered", "stale"])
def test_m1_speeds_of_one_to_ten_train_half_each(bandit, slow):
    keep = (0.9, 0.09) if "filtered" in slow else (0.8, 0.8)
    late = (1, 10) if "late" in slow else (0, 0)
    trained, _ = run(bandit, keep, late, environments=WEIGHTS, stale=0.9 if slow == "stale" else 0.0)
    assert trained == pytest.approx(0.5, abs=0.05)


def test_without_control_filters_change_the_mix():
    trained, drawn = run({"type": "equal", "most_draws": 1.0}, (0.9, 0.09))
    assert drawn == pytest.approx(0.5, abs=0.02)
    assert trained > 0.85


@pytest.mark.parametrize("bound", [{"b": {"share": {"floor": 0.3}}}, {"a": {"share": {"cap": 0.7}}}])
@pytest.mark.parametrize(
    ("bandit", "objective"),
    [({"type": "discounted_thompson", "reward": "informative"}, "uniform"), ({"reward": "informative"}, "signal")],
)
def test_declared_bounds_hold_for_what_is_trained_when_shares_learn(bound, bandit, objective):
    trained, _ = run(bandit, (0.9, 0.15), environments=bound, objective=objective)
    assert trained == pytest.approx(0.7, abs=0.05)


def test_hopeless_environments_get_no_premium():
    trained, drawn = run({"type": "equal"}, (1.0, 0.0), groups=4000)
    assert trained == 1.0
    assert drawn > 0.45
    _, drawn = run({"type": "discounted_thompson"}, (1.0, 0.0), groups=4000)
    assert drawn > 0.9
    # Those of its prompts that were never visited are looked at, in the part of the draws that explores.
    _, drawn = run({}, (1.0, 0.0), groups=4000, objective="signal")
    assert drawn > 0.75
    for bandit, objective in (({"type": "discounted_thompson"}, "uniform"), ({}, "signal")):
        floor = {"b": {"share": {"floor": 0.1}}}
        _, drawn = run(bandit, (1.0, 0.0), groups=4000, environments=floor, objective=objective)
        assert drawn > 0.6 - 0.02


def test_where_all_prompts_count_alike_there_is_nothing_to_compete_for():
    _, drawn = run({}, (1.0, 0.0), groups=2000)
    assert drawn == pytest.approx(0.5, abs=0.02)


def test_m2_a_floor_is_a_minimum_of_every_batch():
    mix = {"environments": {"b": {"share": {"floor": 0.25}}}}
    curriculum = Curriculum(PromptPool(["a"] * 500 + ["b"] * 500), mix, seed=0)
    for _ in range(60):
        draws = curriculum.ask(16, group_size=4)
        assert sum(draw.environment == "b" for draw in draws) >= 4
        curriculum.tell([GroupOutcome(d.ticket, [0, 1] if d.environment == "a" else [1, 1]) for d in draws])


def test_m3_quotas_sum_to_the_batch_and_are_exact():
    mix = {
        "curriculum": {"bandit": {"type": "quotas"}},
        "environments": {name: {"weight": weight} for name, weight in zip("abc", (1, 2, 5), strict=True)},
    }
    curriculum, rng = Curriculum(PromptPool(list("abc") * 400), mix, seed=0), np.random.default_rng(0)
    for batch in (8, 16, 64, 7, 13):
        totals = np.zeros(3)
        for _ in range(20):
            draws = curriculum.ask(batch, group_size=4)
            counts = np.array([sum(draw.environment == name for draw in draws) for name in "abc"])
            assert counts.sum() == batch
            assert (np.abs(counts - batch * np.array([1, 2, 5]) / 8) < (1e-9 if batch % 8 == 0 else 1)).all()
            totals += counts
            curriculum.tell([GroupOutcome(d.ticket, rng.integers(0, 2, 4)) for d in draws])


def test_quotas_need_weights():
    with pytest.raises(ConfigError, match=r"curriculum\.bandit\.type.*expected weights.*environments\.NAME\.weight"):
        Curriculum(PromptPool(["a", "b"]), {"curriculum": {"bandit": {"type": "quotas"}}})


def test_m6_an_outage_winds_nothing_up():
    control, rng = TrainedShares(2), np.random.default_rng(0)
    for _ in range(200):
        control.observe(np.repeat([0, 1], 10), rng.random(20) < 0.5)
    before = control.draws(np.full(2, 0.5))
    for _ in range(5000):  # nothing comes from 1
        control.observe(np.zeros(20, dtype=int), rng.random(20) < 0.5)
    assert np.abs(control.draws(np.full(2, 0.5)) - before).max() < 0.05
    # All of it is dropped for a while, then it is as before.
    control.observe(np.ones(3000, dtype=int), np.zeros(3000, dtype=bool))
    control.observe(np.ones(1000, dtype=int), rng.random(1000) < 0.5)
    assert np.abs(control.draws(np.full(2, 0.5)) - before).max() < 0.06


def test_counts_are_discounted_by_their_own_groups():
    rng, together, apart = np.random.default_rng(1), TrainedShares(3), TrainedShares(3)
    codes, kept = rng.integers(3, size=500), rng.random(500) < 0.3
    together.observe(codes, kept)
    for k in range(500):
        apart.observe(codes[[k]], kept[[k]])
    np.testing.assert_allclose(together.told_E, apart.told_E)
    np.testing.assert_allclose(together.kept_E, apart.kept_E)
    mine = kept[codes == 1]
    fade = (1 - 1 / 256) ** np.arange(mine.size - 1, -1, -1)
    assert together.kept_E[1] == pytest.approx((fade * mine).sum())


cases = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        *(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n) for _ in range(2)), st.floats(1.0, 20.0)
    )
)


@given(cases)
@settings(max_examples=300, deadline=None)
def test_draws_cost_no_more_than_they_may(case):
    targets, keep, most = np.array(case[0]) + 1e-6, np.array(case[1]), case[2]
    targets /= targets.sum()
    control = TrainedShares(len(targets), most)
    control.told_E = np.full(len(targets), 200.0)
    control.kept_E = 200.0 * keep
    draws, rates = control.draws(targets), control.keep_rates()
    assert draws.sum() == pytest.approx(1)
    assert (draws >= 0).all()
    assert (draws <= most * targets + 1e-9).all()
    assert targets @ rates <= most * (draws @ rates) * (1 + 1e-9)
