"""State of a curriculum: exact resume, and refusal of whatever cannot be right."""

import copy

import numpy as np
import pytest

from curricula import CheckpointError, Curriculum, GroupOutcome, PromptPool, load_state, save_state

NAMES = ["a"] * 40 + ["b"] * 25 + ["c"] * 5
LEVELS = np.arange(70) % 4


def pool(**changes):
    return PromptPool(**{"environments": NAMES, "levels": LEVELS, **changes})


def rewards_of(draw, rng):
    return np.where(rng.random(4) < {"a": 0.9, "b": 0.4, "c": 0.0}[draw.environment], 1.0, 0.0)


def play(curriculum, rng, rounds, late):
    """Rounds in which tells come two asks late, some never, some fail; returns all that was seen."""
    trace = []
    for _ in range(rounds):
        late.append(curriculum.ask(5, group_size=4, policy_version=len(late)))
        trace.append(late[-1])
        if len(late) > 2:
            draws = late.pop(0)
            statuses = ["ok", "ok", "error", "ok"]
            outcomes = [
                GroupOutcome(draw.ticket, rewards_of(draw, rng), tokens=rng.integers(1, 90, 4), status=status)
                for draw, status in zip(draws, statuses, strict=False)
            ]
            trace.append(curriculum.tell(outcomes))
        trace.append(curriculum.metrics())
    return trace


def played(rounds=25, config=None, rng=None, late=None):
    config = {"curriculum": {"expiry": 6}, "monitor": {"window": 32}} if config is None else config
    curriculum = Curriculum(pool(), config, seed=4)
    curriculum.set_window("a", 1, 2)
    play(curriculum, rng or np.random.default_rng(0), rounds, late if late is not None else [])
    return curriculum


@pytest.mark.parametrize("config", [None, {"curriculum": {"bandit": {"type": "size_proportional"}}}, {}])
def test_a_resumed_run_is_the_unbroken_one(tmp_path, config):
    rng, late = np.random.default_rng(0), []
    curriculum = played(25, config, rng, late)
    save_state(tmp_path / "state", curriculum.state_dict())
    resumed = Curriculum(pool(), curriculum.config, seed=99)
    resumed.load_state_dict(load_state(tmp_path / "state"))
    assert equal(resumed.state_dict(), curriculum.state_dict())
    assert resumed.shares() == curriculum.shares()
    assert resumed.window("a") == (1, 2)
    again = copy.deepcopy(rng)
    assert play(curriculum, rng, 25, list(late)) == play(resumed, again, 25, list(late))


def test_a_state_is_a_copy():
    curriculum = played()
    state = curriculum.state_dict()
    before = copy.deepcopy(state)
    play(curriculum, np.random.default_rng(1), 5, [])
    assert equal(state, before)
    resumed = Curriculum(pool(), curriculum.config)
    resumed.load_state_dict(state)
    play(resumed, np.random.default_rng(1), 5, [])
    assert equal(state, before)


def test_what_hosts_put_into_the_mix_need_not_be_json():
    config = {"trainer": {"dtype": object()}, "environments": {"a": {"source": {"type": "x", "of": object()}}}}
    curriculum = Curriculum(pool(), config)
    curriculum.load_state_dict(curriculum.state_dict())


def test_readings_of_rewards_are_resumed():
    curriculum = Curriculum(PromptPool(["a"] * 9))
    curriculum.tell([GroupOutcome(None, [3.0, 4.0], index=2)])
    resumed = Curriculum(PromptPool(["a"] * 9))
    resumed.load_state_dict(curriculum.state_dict())
    assert resumed.success_mode == "informative"


@pytest.mark.parametrize(
    "other",
    [{"environments": NAMES[::-1]}, {"keys": [str(i) for i in range(70)]}],
)
def test_the_state_of_another_pool_is_refused(other):
    with pytest.raises(CheckpointError, match="that of another one"):
        Curriculum(pool(**other)).load_state_dict(played().state_dict())


def test_a_mix_that_changed_is_said_and_taken(caplog):
    curriculum = played()
    changed = {
        "curriculum": {"expiry": 6, "probe": 0.2, "bandit": {"type": "size_proportional"}},
        "monitor": {"window": 8},
    }
    resumed = Curriculum(pool(), changed)
    resumed.load_state_dict(curriculum.state_dict())
    said = [record.getMessage() for record in caplog.records if "the mix changed" in record.getMessage()]
    assert len(said) == 3
    assert "curriculum.probe: the saved run had 0.02, this one has 0.2" in said[1]
    assert resumed.metrics()["a/kept"] == curriculum.metrics()["a/kept"]
    play(resumed, np.random.default_rng(0), 10, [])
    back = Curriculum(pool(), curriculum.config)
    back.load_state_dict(resumed.state_dict())
    play(back, np.random.default_rng(0), 10, [])


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*path, name)
            yield from leaves(item, (*path, name))


def replaced(state, path, value):
    state = copy.deepcopy(state)
    place = state
    for name in path[:-1]:
        place = place[name]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return state


def damages(value):
    yield from (..., None, "x", -1, 10**30, 1.5, float("nan"), True, [], {}, ["a"], np.array(["x"]))
    if isinstance(value, np.ndarray):
        yield value.astype(np.int16)
        yield value[:-1] if value.size else np.zeros(3, dtype=value.dtype)
        yield value[..., None]
        if value.size:
            low = 0 if value.dtype.kind == "u" else -7
            yield np.full_like(value, low)
            yield value[::-1] if value.ndim == 1 and len(set(value.tolist())) > 1 else np.full_like(value, low)
            if value.dtype.kind == "f":
                yield np.full_like(value, np.nan)
                yield np.full_like(value, np.inf)


def load_error(curriculum, state):
    try:
        curriculum.load_state_dict(state)
    except CheckpointError as error:
        return str(error)
    return None


def test_whatever_is_wrong_with_a_state_is_one_error_and_changes_nothing():
    config = {"curriculum": {"expiry": 6}, "monitor": {"window": 32}}
    state, target = played().state_dict(), Curriculum(pool(), config)
    untouched = target.state_dict()
    refused = 0
    for path in leaves(state):
        value = state
        for name in path:
            value = value[name]
        for damage in damages(value):
            damaged = replaced(state, path, damage)
            error = load_error(target, damaged)
            if error is not None:
                refused += 1
                assert "\n" not in error
                assert equal(target.state_dict(), untouched), path
            else:
                # What is taken must be usable.
                play(target, np.random.default_rng(0), 3, [])
                target = Curriculum(pool(), config)
    assert refused > 500


@pytest.mark.parametrize("state", [None, [], "x", 3, {}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(CheckpointError, match="state"):
        Curriculum(pool()).load_state_dict(state)


def equal(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    return one == other


def test_a_state_of_an_older_format_is_refused_in_one_line():
    state = {**played().state_dict(), "format": 1}
    with pytest.raises(CheckpointError, match=r"^state\.format: expected 4; got 1: another version .* anew$") as error:
        Curriculum(pool()).load_state_dict(state)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("order", [np.zeros(0, dtype=np.int64), np.arange(70)])
def test_visited_prompts_are_those_that_beliefs_know(order):
    state = replaced(played().state_dict(), ("learner", "visited", "order"), order)
    with pytest.raises(CheckpointError, match="expected the prompts that beliefs have evidence of"):
        Curriculum(pool(), played().config).load_state_dict(state)


TEXTS = [f"add {row % 7} and {row % 5}{' slowly' * (row % 3)}" for row in range(280)]


@pytest.mark.parametrize("levels", [None, np.arange(280) % 4])
def test_a_run_whose_candidates_wait_for_their_predictions_goes_on_exactly(tmp_path, levels):
    """Saved at every ask, before and after its tells: what was sampled ahead, and what is learned, go on."""

    def make():
        return Curriculum(PromptPool(NAMES * 4, texts=TEXTS, levels=levels), seed=4)

    whole, rng = make(), np.random.default_rng(0)
    for step in range(24):
        draws = whole.ask(8, group_size=4)
        outcomes = [GroupOutcome(draw.ticket, rewards_of(draw, rng)) for draw in draws]
        for cut, told in enumerate((outcomes[:0], outcomes[:2], outcomes[2:])):
            whole.tell(told)
            if step % 5 == 4:
                save_state(tmp_path / f"{step}-{cut}", whole.state_dict())
                resumed = make()
                resumed.load_state_dict(load_state(tmp_path / f"{step}-{cut}"))
                assert equal(resumed.state_dict(), whole.state_dict())
                copied = copy.deepcopy(whole)
                for again in range(3):
                    asked = copied.ask(3 + again, group_size=4)
                    assert asked == resumed.ask(3 + again, group_size=4)
                    late = [GroupOutcome(draw.ticket, rewards_of(draw, np.random.default_rng(again))) for draw in asked]
                    assert copied.tell(late) == resumed.tell(late)
                assert copied.metrics() == resumed.metrics()
    assert whole.metrics()["predictor/visits"] >= 32
