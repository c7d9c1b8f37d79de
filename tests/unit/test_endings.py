import json
import logging

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool, load_state, save_state
from curricula.slots import in_windows


def play(curriculum, rounds, size=4, **how):
    for _ in range(rounds):
        draws = curriculum.ask(2, group_size=size)
        curriculum.tell([GroupOutcome(draw.ticket, **how) for draw in draws])


def test_success_is_told_apart_for_interrupted_and_finished():
    curriculum = Curriculum(PromptPool(["a"] * 40))
    first, second, third = curriculum.ask(3, group_size=4)
    curriculum.tell(
        [
            GroupOutcome(first.ticket, [1, 0, 0, 1], interrupted=[1, 1, 0, 0], truncated=[0, 1, 0, 0]),
            GroupOutcome(second.ticket, [1, 1, np.nan, 0], interrupted=[0, 1, 1, 1], truncated=[0, 0, 1, 0]),
            GroupOutcome(third.ticket, [1, 1, 1, 0]),  # of this one nothing was said
        ]
    )
    metrics = curriculum.metrics()
    assert metrics["a/truncated"] == pytest.approx(1 / 7)
    assert metrics["a/interrupted"] == pytest.approx(4 / 7)
    assert metrics["a/success_interrupted"] == pytest.approx(2 / 4)
    assert metrics["a/success_finished"] == pytest.approx(2 / 3)


def test_what_was_not_told_is_not_shown():
    curriculum = Curriculum(PromptPool(["a"] * 40))
    play(curriculum, 3, rewards=[0, 1, 1, 0])
    assert not [name for name in curriculum.metrics() if "interrupted" in name or "truncated" in name]
    play(curriculum, 1, rewards=[0, 1, 1, 0], truncated=[0] * 4)
    assert curriculum.metrics()["a/truncated"] == 0
    assert "a/interrupted" not in curriculum.metrics()


def test_shaped_rewards_are_named_as_they_are():
    curriculum = Curriculum(PromptPool(["a"] * 40))
    play(curriculum, 1, rewards=[5, -7, 3, 9], interrupted=[1, 0, 0, 0])
    metrics = curriculum.metrics()
    assert metrics["a/mean_reward_interrupted"] == 5
    assert metrics["a/mean_reward_finished"] == pytest.approx(5 / 3)


def test_a_warning_once_above_a_tenth(caplog):
    curriculum = Curriculum(PromptPool(["a"] * 200), {"monitor": {"window": 16}})
    with caplog.at_level(logging.WARNING, logger="curricula"):
        play(curriculum, 8, size=8, rewards=[0, 1] * 4, truncated=[1] + [0] * 7)
        curriculum.metrics()
        (record,) = caplog.records
        assert record.getMessage().startswith("a: 12% of the last 112 rollouts were cut off at the limit of tokens;")
        play(curriculum, 8, size=8, rewards=[0, 1] * 4, truncated=[1] * 8)
        curriculum.metrics()
    assert len(caplog.records) == 1


def test_once_is_once_over_a_resume_too(tmp_path, caplog):
    pools = [PromptPool(["a"] * 200 + ["b"] * more) for more in (200, 200, 201)]
    first, again, changed = (Curriculum(pool, {"monitor": {"window": 16}}) for pool in pools)
    with caplog.at_level(logging.WARNING, logger="curricula"):
        cut = {"size": 8, "rewards": [0, 1] * 4, "truncated": [1] * 8}
        play(first, 40, **cut)
        first.metrics()
        save_state(tmp_path / "state", first.state_dict())
        for other in (again, changed):
            other.load_state_dict(load_state(tmp_path / "state"))
            play(other, 40, **cut)
            other.metrics()
    said = [record.getMessage()[0] for record in caplog.records if "were cut off" in record.getMessage()]
    assert sorted(said) == ["a", "b"]


def test_a_few_rollouts_are_no_reason_to_warn(caplog):
    curriculum = Curriculum(PromptPool(["a"] * 200))
    with caplog.at_level(logging.WARNING, logger="curricula"):
        play(curriculum, 6, size=8, rewards=[0, 1] * 4, truncated=[1] * 8)
        assert curriculum.metrics()["a/truncated"] == 1
        assert not caplog.records
        play(curriculum, 30, size=8, rewards=[0, 1] * 4, truncated=[0] * 8)
        curriculum.metrics()
    assert len(caplog.records) == 1  # there were 104 rollouts, of which 48 were cut off


def test_the_windows_forget_and_are_saved(tmp_path):
    config = {"monitor": {"window": 8}}
    curriculum = Curriculum(PromptPool(["a"] * 80), config)
    play(curriculum, 4, rewards=[0, 1, 1, 0], interrupted=[1] * 4)
    play(curriculum, 2, rewards=[0, 1, 1, 0], interrupted=[0] * 4)
    save_state(tmp_path / "state", curriculum.state_dict())
    again = Curriculum(PromptPool(["a"] * 80), config)
    again.load_state_dict(load_state(tmp_path / "state"))
    assert json.dumps(again.metrics()) == json.dumps(curriculum.metrics())
    assert again.metrics()["a/interrupted"] == 0.5
    play(again, 4, rewards=[0, 1, 1, 0], interrupted=[0] * 4)
    assert again.metrics()["a/interrupted"] == 0
    other = Curriculum(PromptPool(["a"] * 80), {"monitor": {"window": 9}})
    other.load_state_dict(load_state(tmp_path / "state"))
    assert "a/interrupted" not in other.metrics()


def test_of_more_than_fill_a_window_the_last_are_kept():
    rng = np.random.default_rng(0)
    for _ in range(50):
        codes, told, window = rng.integers(0, 3, 20), rng.integers(0, 9, 3), int(rng.integers(1, 9))
        groups, entered, slots, counts = in_windows(codes, told, window)
        plain = {}
        seen = told.copy()
        for group, code in enumerate(codes):
            plain[code, seen[code] % window] = group
            seen[code] += 1
        assert dict(zip(zip(entered, slots, strict=True), groups, strict=True)) == plain
        assert (told + counts == seen).all()
