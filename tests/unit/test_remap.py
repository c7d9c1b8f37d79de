"""A data set that changed between two runs: what is known of prompts goes where their keys are now."""

import copy
import logging
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula import CheckpointError, Curriculum, GroupOutcome, PromptPool, load_state, save_state
from curricula.axes import axis_of
from curricula.config.bandit import BanditConfig
from curricula.config.belief import BeliefConfig
from curricula.matching import find_digests

SIZES = {"easy": 31, "hard": 17, "odd": 11}
PROMPTS = [(name, f"{name} {i}", i % 3) for name, size in SIZES.items() for i in range(size)]
BELIEFS = [kind.model_fields["type"].default for kind in get_args(BeliefConfig)]
# A class of one's own has no name here, and quotas are as equal shares are but for their weights.
TYPES = [kind.model_fields["type"].default for kind in get_args(BanditConfig)]
BANDITS = [kind for kind in TYPES if isinstance(kind, str) and kind != "quotas"]


def pool_of(prompts, levels=True):
    names, keys, level = zip(*prompts, strict=True)
    return PromptPool(names, keys=keys, levels=level if levels else None)


def run(prompts, belief="decayed_beta", bandit="discounted_thompson", rounds=12, levels=True):
    config = {
        "curriculum": {"belief": {"type": belief}, "bandit": {"type": bandit}, "explore": 1.0, "expiry": 3},
        "monitor": {"window": 16},
    }
    curriculum = Curriculum(pool_of(prompts, levels), config, seed=1)
    rng = np.random.default_rng(5)
    for _ in range(rounds):
        draws = curriculum.ask(5, group_size=4)
        rates = {"easy": 0.9, "hard": 0.2, "odd": 0.5}
        told = [
            GroupOutcome(d.ticket, rng.random(4) < rates[d.environment], tokens=rng.integers(1, 9, 4)) for d in draws
        ]
        curriculum.tell(told[:4])
    return curriculum


def resumed(curriculum, prompts, levels=True):
    other = Curriculum(pool_of(prompts, levels), curriculum.config, seed=9)
    other.load_state_dict(curriculum.state_dict())
    return other


def known(curriculum):
    """What is believed of each prompt by its key, and what it costs."""
    pool = curriculum.pool
    rows = np.arange(len(pool))
    learner = curriculum._learner
    seen = learner.beliefs.seen(rows)
    believed = curriculum.beliefs(rows)
    table = zip(pool.keys_of(range(len(pool))), believed.mean, believed.std, learner.costs.mean, strict=True)
    return {key: facts for (key, *facts), visited in zip(table, seen, strict=True) if visited}


def figures(curriculum):
    """Metrics but for those of the last ask alone."""
    return {n: v for n, v in curriculum.metrics().items() if not n.endswith("/share") and n != "least_propensity"}


def shuffled(prompts, seed=0):
    return [prompts[place] for place in np.random.default_rng(seed).permutation(len(prompts))]


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("bandit", BANDITS)
def test_another_order_changes_nothing_that_is_known(belief, bandit, caplog):
    before = run(PROMPTS, belief, bandit)
    with caplog.at_level(logging.WARNING, "curricula"):
        after = resumed(before, shuffled(PROMPTS))
    assert known(after) == known(before)
    assert figures(after) == pytest.approx(figures(before))
    flying = {ticket: after.pool.key(row) for ticket, row in after.in_flight().items()}
    assert flying == {ticket: before.pool.key(row) for ticket, row in before.in_flight().items()}
    said = caplog.messages[-1]
    assert "it had 59 prompts and has 59" in said
    assert "0 are gone; 0 of them are in another environment than before; 0 draws in flight are cancelled" in said


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("levels", [False, True])
def test_prompts_that_came_and_went(belief, levels, caplog):
    before = run(PROMPTS, belief, levels=levels)
    flying = before.in_flight()
    lost = {"easy 0", "odd 3", *(before.pool.key(row) for row in list(flying.values())[:2])}
    came = [("easy", f"new {i}", 7) for i in range(9)]
    after = resumed(before, shuffled([p for p in PROMPTS if p[1] not in lost] + came), levels)
    assert known(after) == {key: facts for key, facts in known(before).items() if key not in lost}
    assert "it had 59 prompts and has" in caplog.text
    gone = [ticket for ticket, row in flying.items() if before.pool.key(row) in lost]
    assert f"{len(gone)} draws in flight are cancelled" in caplog.text
    assert [v.reason for v in after.tell([GroupOutcome(t, [0, 1]) for t in gone])] == ["cancelled"] * len(gone)
    # Sums over the pool are as those of all prompts one by one.
    pool = after.pool
    believed = after.beliefs(np.arange(len(pool))).mean
    means = after._learner.beliefs.pool_means(pool.block_ranges_E2)
    assert means == pytest.approx([believed[pool.codes == code].mean() for code in range(3)], abs=5e-3)
    after.ask(12, group_size=4)


@pytest.mark.parametrize(
    "predictor",
    [
        {"type": "hashed_text"},
        {
            "type": "stack",
            "members": [
                {"type": "hashed_text"},
                {"type": "sklearn.linear_model:SGDRegressor", "features": "hashed_text"},
            ],
        },
    ],
    ids=lambda predictor: predictor["type"],
)
def test_what_predicts_difficulty_remembers_the_prompts_that_are_left(predictor):
    def curriculum(prompts):
        names, keys, _ = zip(*prompts, strict=True)
        return Curriculum(PromptPool(names, keys=keys, texts=[f"text of {key}" for key in keys]), config)

    config = {"curriculum": {"predictor": predictor}}
    before = curriculum(PROMPTS)
    for _ in range(8):
        before.tell([GroupOutcome(draw.ticket, [0, 1]) for draw in before.ask(6, group_size=2)])
    after = curriculum(shuffled(PROMPTS[4:]) + [("breadth", f"b{i}", 0) for i in range(9)])
    after.load_state_dict(before.state_dict())
    for _ in range(3):
        after.tell([GroupOutcome(draw.ticket, [0, 1]) for draw in after.ask(6, group_size=2)])

    def visits(state, pool, place=()):
        for name, value in state.items():
            if name == "visits":
                yield place, pool.keys_of(value["rows"].tolist())
            elif isinstance(value, dict):
                yield from visits(value, pool, (*place, name))

    lost = {key for _, key, _ in PROMPTS[:4]}
    was = dict(visits(before.state_dict()["learner"]["predictor"], before.pool))
    now = dict(visits(after.state_dict()["learner"]["predictor"], after.pool))
    assert was
    assert now.keys() == was.keys()
    for place, keys in was.items():
        kept = [key for key in keys if key not in lost]
        assert now[place][: len(kept)] == kept


@pytest.mark.parametrize("bandit", BANDITS)
def test_an_environment_that_has_another_name(bandit, caplog):
    before = run(PROMPTS, bandit=bandit)
    after = resumed(before, [("a first name" if n == "odd" else n, k, v) for n, k, v in PROMPTS])
    assert known(after) == known(before)
    assert figures(after) == pytest.approx({n.replace("odd/", "a first name/"): v for n, v in figures(before).items()})
    assert "environment odd is called a first name now" in caplog.text
    assert sum(after.shares().values()) == pytest.approx(1)
    after.ask(9, group_size=4)


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("bandit", BANDITS)
def test_environments_that_came_and_went(belief, bandit, caplog):
    before = run(PROMPTS, belief, bandit)
    kept = [p for p in PROMPTS if p[0] != "hard"]
    after = resumed(before, kept + [("breadth", f"b{i}", 0) for i in range(20)])
    assert "environments that are gone: hard; environments that are new: breadth" in caplog.text
    left = {key: facts for key, facts in known(before).items() if not key.startswith("hard")}
    # What is learned of each environment is shrunk to what is learned of all.
    assert known(after) == {key: pytest.approx(facts, abs=0.1) for key, facts in left.items()}
    was, now = before.metrics(), after.metrics()
    for name in ("easy/kept", "odd/kept", "easy/tokens", "easy/success_drawn"):
        assert now[name] == was[name]
    assert now["breadth/kept"] == 0
    for _ in range(3):
        after.tell([GroupOutcome(d.ticket, [0, 1, 1, 0], tokens=[1] * 4) for d in after.ask(9, group_size=4)])
    assert after.metrics()["breadth/kept"] > 0


def test_prompts_that_moved_to_another_environment():
    before = run(PROMPTS)
    moved = {key for key in known(before) if key.startswith("odd")}
    after = resumed(before, [("hard" if k in moved else n, k, v) for n, k, v in PROMPTS])
    assert set(known(after)) == set(known(before))


def test_the_resumed_run_goes_on_and_its_own_state_is_exact(tmp_path):
    after = resumed(run(PROMPTS), shuffled(PROMPTS[3:]))
    save_state(tmp_path / "state", after.state_dict())
    again = Curriculum(pool_of(shuffled(PROMPTS[3:])), after.config, seed=77)
    again.load_state_dict(load_state(tmp_path / "state"))
    assert [draw.key for draw in again.ask(20, group_size=4)] == [draw.key for draw in after.ask(20, group_size=4)]


def test_windows_stay_where_they_still_hold_prompts(caplog):
    before = run(PROMPTS)
    before.set_window("easy", 1, 1)
    before.set_window("odd", 2, 2)
    after = resumed(before, shuffled([(n, k, 0 if n == "odd" else v) for n, k, v in PROMPTS]))
    assert after.window("easy") == (1, 1)
    assert after.window("odd") == (0, 0)


@pytest.mark.parametrize("rounds", [0, 12])
def test_the_state_of_another_data_set_is_refused_and_changes_nothing(rounds):
    before = run(PROMPTS, rounds=rounds)
    others = [(n, f"other {k}" if i % 2 or not rounds else k, v) for i, (n, k, v) in enumerate(PROMPTS)]
    others = [(n, k if known(before).get(k) is None else f"other {k}", v) for n, k, v in others]
    curriculum = Curriculum(pool_of(others), before.config)
    with pytest.raises(CheckpointError, match="that of another one"):
        curriculum.load_state_dict(before.state_dict())
    assert curriculum.metrics()["asks"] == 0
    state = before.state_dict()
    del state["keys"]
    with pytest.raises(CheckpointError, match="that of another one"):
        Curriculum(pool_of(PROMPTS[1:]), before.config).load_state_dict(state)


def places(state, place=()):
    for name, value in state.items():
        if isinstance(value, dict):
            yield from places(value, (*place, name))
        elif isinstance(value, np.ndarray):
            yield (*place, name)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damage_is_refused_in_one_line(data):
    state = copy.deepcopy(DAMAGED.state_dict())
    path = data.draw(st.sampled_from(sorted(places(state))))
    inner = state
    for name in path[:-1]:
        inner = inner[name]
    value = inner[path[-1]]
    damages = (
        lambda: value[:-1],
        lambda: value.astype(np.complex128),
        lambda: np.zeros(0),
        lambda: None,
        lambda: -value.astype(np.float64),
        lambda: value.reshape(-1)[::-1].copy(),
        lambda: np.array(3),
        lambda: value + value.dtype.type(60),
    )
    inner[path[-1]] = data.draw(st.sampled_from(damages))()
    curriculum = Curriculum(pool_of(shuffled(PROMPTS[2:])), DAMAGED.config)
    refused = None
    try:
        curriculum.load_state_dict(state)
    except CheckpointError as error:
        refused = str(error)
    if refused is None:
        curriculum.ask(3, group_size=2)
    else:
        assert "\n" not in refused
        assert curriculum.metrics()["asks"] == 0


DAMAGED = run(PROMPTS)


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("bandit", BANDITS)
def test_every_array_of_what_learns_says_what_it_is_about(belief, bandit):
    """An array that is not in AXES would be read wrongly once the data set has changed."""
    state = run(PROMPTS, belief, bandit).state_dict()["learner"]
    undeclared = [
        place for place in map(".".join, places(state)) if not place.endswith("rows") and axis_of(place) is None
    ]
    assert not undeclared


def test_digests_are_found_wherever_they_are():
    pool = PromptPool(["a"] * 9, keys=list("abcdefghi"))
    wanted = PromptPool(["z"] * 4, keys=["i", "q", "a", "c"]).key_digests(np.arange(4))
    assert find_digests(wanted, pool).tolist() == [8, -1, 0, 2]
    assert find_digests(wanted[:0], pool).size == 0
