"""Candidates sampled before the ask that they are for: what comes back, what is forgotten, what is saved."""

import copy
from collections.abc import Mapping

import numpy as np
import pytest

from curricula import CheckpointError, Curriculum, GroupOutcome, PromptPool
from tests.unit.frozen import asks

NAMES = ["a"] * 360 + ["b"] * 240
TEXTS = [f"add {row % 7} and {row % 5}{' slowly' * (row % 3)}, then {row}" for row in range(600)]


def predicting(in_flight=0, **config):
    """A curriculum whose predictor has learned, and whose next candidates wait."""
    mix = {"curriculum": {"temperature": 2.0, "probe": 0.5, "expiry": 10**6, **config}}
    curriculum = Curriculum(PromptPool(NAMES, texts=TEXTS), mix, seed=5)
    rng = np.random.default_rng(0)
    for rows in rng.permutation(600)[:144].reshape(24, 6).tolist():
        rewards = [(rng.random(4) < 0.2 + 0.1 * (row % 7)) * 1.0 for row in rows]
        curriculum.tell([GroupOutcome(None, own, index=row) for row, own in zip(rows, rewards, strict=True)])
    assert curriculum.metrics()["predictor/visits"] >= 32
    curriculum.ask(max(in_flight, 1), group_size=4)
    assert curriculum._planner.scout._ahead.size
    return curriculum


def test_inverse_propensities_are_unbiased_with_predictions_and_for_what_comes_back_untold():
    """Every ask samples ahead for the next one, and every draw is given up in between."""
    curriculum = predicting(in_flight=6)
    free = np.setdiff1d(np.arange(600), list(curriculum.in_flight().values()))
    seen = curriculum._learner.beliefs.seen(np.arange(600))
    kinds = {"visited": seen, "unvisited": ~seen}
    rounds, back = 1500, np.zeros(600, dtype=bool)
    weights = {name: [] for name in (*kinds, "back")}
    for draws in asks(curriculum, 8, rounds):
        inverse = np.zeros(600)
        inverse[[draw.index for draw in draws]] = [1 / draw.propensity for draw in draws]
        for name, own in kinds.items():
            weights[name].append(inverse[free][(own & ~back)[free]].mean())
        if (back & ~seen).any():
            weights["back"].append(inverse[back & ~seen].mean())
        back[:] = False
        back[[draw.index for draw in draws]] = True
        reach = curriculum._planner.scout._reach_E
        assert 0 < reach.min() < 1
    assert len(weights["back"]) > 700
    for name, found in weights.items():
        error = np.std(found) / np.sqrt(len(found))
        assert abs(np.mean(found) - 1) < 4.5 * error, (name, np.mean(found), error)
        assert error < 0.2, name


def test_candidates_of_forgotten_visits_are_sampled_anew():
    curriculum = predicting()
    scout, learner = curriculum._planner.scout, curriculum._learner
    learner.clear()
    scout.receive(learner)
    assert not scout._ahead.size
    assert len(curriculum.ask(5, group_size=4)) == 5


def arrays(value, place="", known=None):
    """Copies of all arrays and plain values inside an object, by where they are."""
    known = set() if known is None else known
    if isinstance(value, np.ndarray | int | float | str | None):
        return {place: copy.deepcopy(value)}
    if id(value) in known:
        return {}
    known.add(id(value))
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    elif type(value).__module__.startswith("curricula") and not isinstance(value, PromptPool | type):
        inner = list(vars(value).items()) if hasattr(value, "__dict__") else []
    else:
        return {}
    return {name: leaf for key, part in inner for name, leaf in arrays(part, f"{place}.{key}", known).items()}


def test_planning_and_foreseeing_change_nothing():
    curriculum = predicting()
    parts = (curriculum._planner, curriculum._learner, curriculum._tickets, curriculum._windows)
    # Tables that are made when first asked for are no change of state.
    curriculum._learner.beliefs.assess(np.arange(3), 4, curriculum.config.curriculum.objective.normaliser)
    curriculum.predictor.wait()
    before = arrays(parts)
    assert sum(isinstance(value, np.ndarray) for value in before.values()) > 30
    rng, shares = np.random.default_rng(0), np.array([0.6, 0.4])
    now = curriculum._situation(6, 4, shares)
    for _ in range(2):
        curriculum._planner.plan(now, rng)
        curriculum._planner.chances(np.arange(600), now, rng)
    after = arrays(parts)
    assert before.keys() == after.keys()
    for place, value in before.items():
        np.testing.assert_array_equal(after[place], value, err_msg=place)


def damaged(ahead):
    rows, sizes = ahead["rows"], ahead["sizes"]
    swapped = rows.copy()
    swapped[0], swapped[-1] = rows[-1], rows[0]
    twice = rows.copy()
    twice[0] = rows[1]
    yield "distinct rows", {"rows": twice}
    yield "distinct rows", {"out": rows[:1]}
    yield "rows within the spans of their environments", {"rows": swapped}
    yield "more than 0 where there are rows", {"reach": np.zeros(2)}
    yield "ranges of their environments", {"spans": np.array([[0, 600], [0, 600]])}
    yield "in the order of the pool's groups", {"out": ahead["out"][::-1].copy()}
    yield "as many as there are rows", {"sizes": sizes + 1}


def test_candidates_that_cannot_be_are_refused():
    curriculum = predicting(in_flight=8)
    state = curriculum.state_dict()
    assert state["ahead"]["out"].size > 1
    for expected, change in damaged(state["ahead"]):
        with pytest.raises(CheckpointError, match=f"^state.ahead.*{expected}") as error:
            curriculum.load_state_dict({**state, "ahead": {**state["ahead"], **change}})
        assert "\n" not in str(error.value)
    curriculum.load_state_dict(state)
    np.testing.assert_array_equal(curriculum._planner.scout._out, curriculum.pool.positions(state["ahead"]["out"]))
