"""A log as a curve: the axis is what the curriculum counted, the scores are means that can be done by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, open_log, read_log, warm_start
from curricula.log.curve import AXES, read_curve

NAMES = ["sums"] * 30 + ["maths"] * 90


def curriculum(**mix: Any) -> Curriculum:
    return Curriculum(PromptPool(NAMES, keys=[f"k{row}" for row in range(120)]), mix, seed=5)


def play(made: Curriculum, rng: np.random.Generator, steps: int = 10, rate: float = 0.5, **more: Any) -> None:
    for _ in range(steps):
        told = []
        for draw in made.ask(16, group_size=4):
            rewards = (rng.random(4) < rate) * 1.0
            trainable = rng.random(4) < 0.8
            told.append(GroupOutcome(draw.ticket, rewards, tokens=rng.integers(1, 50, 4), trainable=trainable, **more))
        made.tell(told)


def last(curve: dict[str, list[Any]], environment: str = "all") -> dict[str, Any]:
    rows = [number for number, name in enumerate(curve["environment"]) if name == environment]
    return {name: [values[row] for row in rows] for name, values in curve.items()}


def test_the_axis_of_a_log_is_what_was_counted(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    log = open_log(made, tmp_path)
    made.compute.begin(devices=4)
    play(made, rng, rate=0.3)
    # Told twice, failed, without a reward: the first costs nothing again, the others did cost.
    draws = made.ask(3, group_size=4)
    made.tell([GroupOutcome(draws[0].ticket, [0, 1, 1, 0], tokens=[5] * 4)])
    made.tell([GroupOutcome(draws[0].ticket, [0, 1, 1, 0], tokens=[5] * 4)])
    made.tell([GroupOutcome(draws[1].ticket, [0] * 4, tokens=[3] * 4, status="error")])
    made.tell([GroupOutcome(draws[2].ticket, [np.nan, 1, 0, np.inf], tokens=[7] * 4)])
    made.compute.pause()
    spent = made.compute.metrics()
    log.close()
    assert spent["rollouts"] == 4 * 16 * 10 + 12
    assert spent["gpu_hours"] == pytest.approx(4 * spent["wall_time"] / 3600)
    kept = [row for row in read_log(tmp_path).to_pylist() if row["keep"]]
    trained = sum(
        tokens
        for row in kept
        for tokens, able, reward in zip(row["tokens"], row["trainable"] or [1] * 4, row["rewards"], strict=True)
        if able and np.isfinite(reward)
    )
    assert spent["trained_tokens"] == trained
    curve = read_curve(tmp_path, bins=10_000)
    for axis in AXES:
        assert all(np.diff(last(curve)[axis]) >= 0), axis
    ends = {name: made.metrics()[f"{name}/tokens"] for name in ("sums", "maths")}
    assert sum(ends.values()) == spent["generated_tokens"] - 12
    # The middle of the last stretch is before the end, and after the end of the one before.
    for axis, end in spent.items():
        if axis in AXES:
            assert 0.7 * end < last(curve)[axis][-1] <= end


def test_environments_have_an_axis_of_their_own(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    open_log(made, tmp_path)
    play(made, rng)
    made.log.close()  # type: ignore[union-attr]
    curve = read_curve(tmp_path, bins=5)
    rows = [row for row in read_log(tmp_path).to_pylist() if row["environment"] == "sums"]
    own = last(curve, "sums")
    assert own["own_rollouts"][-1] <= 4 * len(rows)
    assert own["own_rollouts"][-1] > 4 * len(rows) * 0.8
    assert own["rollouts"][-1] > own["own_rollouts"][-1]
    assert last(curve)["own_rollouts"] == last(curve)["rollouts"]
    assert np.isnan(own["gpu_hours"]).all()


def test_scores_are_weighed_by_propensity(tmp_path: Path) -> None:
    made = curriculum(success={"threshold": 2.0})
    open_log(made, tmp_path)
    for _ in range(30):
        draws = made.ask(16, group_size=4)
        # Rows of odd number pass: half of each environment.
        made.tell([GroupOutcome(d.ticket, [3.0 * (d.index % 2), 0, 3.0, 3.0 * (d.index % 2)]) for d in draws])
    made.log.close()  # type: ignore[union-attr]
    curve = last(read_curve(tmp_path, bins=1))
    rows = [row for row in read_log(tmp_path).to_pylist() if row["reason"] != "repeat"]
    value: dict[str, list[tuple[float, float]]] = {"sums": [], "maths": []}
    for row in rows:
        value[row["environment"]].append((np.mean(np.array(row["rewards"]) >= 2.0), 1 / row["propensity"]))
    means = {name: np.average([v for v, _ in pairs], weights=[w for _, w in pairs]) for name, pairs in value.items()}
    assert curve["success_corrected"][0] == pytest.approx(0.25 * means["sums"] + 0.75 * means["maths"])
    assert abs(curve["success_corrected"][0] - 0.5) < 4 * curve["noise_corrected"][0] < 0.5


def test_a_resume_goes_on_and_a_warm_start_costs_nothing(tmp_path: Path) -> None:
    made, rng = curriculum(), np.random.default_rng(0)
    open_log(made, tmp_path / "log")
    made.compute.begin(devices=2)
    play(made, rng, 4)
    state = made.state_dict()
    play(made, rng, 3)
    made.log.close()  # type: ignore[union-attr]
    other = curriculum()
    open_log(other, tmp_path / "log")
    other.load_state_dict(state)
    assert other.compute.state_dict() == state["compute"]
    assert state["compute"]["rollouts"] == 256
    assert state["compute"]["spent"][3] == pytest.approx(2 * state["compute"]["spent"][2]) != 0
    play(other, rng, 4)
    other.log.close()  # type: ignore[union-attr]
    assert other.compute.metrics()["rollouts"] == 8 * 64
    curve = last(read_curve(tmp_path / "log", bins=8))
    assert curve["rollouts"] == [64 * number + 34 for number in range(8)]
    assert set(curve["run"]) == {1}
    fresh = curriculum()
    warm_start(fresh, tmp_path / "log")
    assert fresh.compute.metrics() == {"rollouts": 0.0}


def test_a_log_of_before_the_clock_is_read(tmp_path: Path) -> None:
    made = curriculum()
    open_log(made, tmp_path)
    play(made, np.random.default_rng(0), 3)
    made.log.close()  # type: ignore[union-attr]
    now = read_log(tmp_path)
    (part,) = (tmp_path / "outcomes").iterdir()
    table = pq.read_table(part)
    said = {**pq.read_metadata(part).metadata, b"curricula.format": b"1"}
    pq.write_table(table.drop_columns(["device_seconds"]).replace_schema_metadata(said), part)
    record = tmp_path / "runs" / "0001.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "format": 1}))
    assert read_log(tmp_path).equals(now)
    assert read_curve(tmp_path)["rollouts"]


def test_what_has_no_curve_is_refused(tmp_path: Path) -> None:
    made = curriculum()
    open_log(made, tmp_path)
    made.ask(4, group_size=4)
    made.log.close()  # type: ignore[union-attr]
    with pytest.raises(CurriculaValueError, match="groups that were told; got one without any"):
        read_curve(tmp_path)
    play(made, np.random.default_rng(0), 1)
    made.tell([GroupOutcome(made.ask(1, group_size=4)[0].ticket, [7.0, 0, 0, 0])])
    made.log.close()  # type: ignore[union-attr]
    with pytest.raises(CurriculaValueError, match=r"rewards that are rates; got rewards from 0 to 7; .*threshold"):
        read_curve(tmp_path)
