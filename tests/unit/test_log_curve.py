"""A log as a curve: the axis is what the curriculum counted, the scores are means that can be done by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from inputs_cli import call

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, open_log, read_log, warm_start
from curricula.bandits.success_curves import means_of
from curricula.cli.scaling.sources import Asked, read_source
from curricula.log.curve import AXES, SCORES, read_curve
from curricula.simulation import CurriculumRule, World, named_law, simulate

NEW = ["device_seconds", "weight", "belief_pool"]
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
    value: dict[str, list[tuple[float, float]]] = {"sums": [], "maths": []}
    for row in read_log(tmp_path).to_pylist():
        rate = np.mean(np.array(row["rewards"]) >= 2.0)
        value[row["environment"]].append((row["belief_pool"] + rate - row["belief_mean"], min(row["weight"], 2.0)))
    assert np.mean([w for pairs in value.values() for _, w in pairs]) > 0.2
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
    middles = [64 * number + 34 for number in range(8)]
    assert len(curve["rollouts"]) >= 4
    assert curve["rollouts"][0] >= middles[0] == 34
    assert 400 < curve["rollouts"][-1] <= middles[-1]
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
    # Open draws of that format had no weight either.
    waiting = json.dumps([[*range(1, 7), 0, "k", "sums", None, "learnable", 0.5, 0.5, 0.5, 0.1]])
    said = {**pq.read_metadata(part).metadata, b"curricula.format": b"1", b"curricula.open": waiting.encode()}
    pq.write_table(table.drop_columns(NEW).replace_schema_metadata(said), part)
    record = tmp_path / "runs" / "0001.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "format": 1}))
    old = read_log(tmp_path).slice(0, len(now))
    assert old.drop_columns(NEW).equals(now.drop_columns(NEW))
    assert old["weight"].null_count == len(now)
    curve = read_curve(tmp_path)
    assert curve["rollouts"]
    assert curve["success_corrected"] == curve["success_drawn"]
    assert curve["noise_corrected"] == curve["noise_drawn"]
    assert set(curve["corrected"]) == {False}
    table = read_source(str(tmp_path), Asked())
    assert "is success as drawn" in table.notes[0]
    assert not read_source(str(tmp_path), Asked(score="success_drawn")).notes


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


def test_outcomes_from_elsewhere_are_no_part_of_the_curve(tmp_path: Path) -> None:
    plain, warm = curriculum(), curriculum()
    for made, name in ((plain, "plain"), (warm, "warm")):
        open_log(made, tmp_path / name)
        made.compute.begin(devices=1)
        made.compute.pause()
    warm.tell([GroupOutcome(None, [1, 1, 1, 0], tokens=[9] * 4, index=row) for row in range(100)])
    assert warm.compute.metrics()["rollouts"] == 0
    assert warm.compute.metrics().get("generated_tokens", 0) == warm.compute.metrics().get("trained_tokens", 0) == 0
    for made, name in ((plain, "plain"), (warm, "warm")):
        play(made, np.random.default_rng(0), 5, rate=0.0)
        made.log.close()  # type: ignore[union-attr]
        curve = read_curve(tmp_path / name)
        assert curve["rollouts"][-1] < 5 * 64
        assert made.compute.metrics()["rollouts"] == 5 * 64
        assert set(curve["success_drawn"]) == {0.0}


class Simulated:
    """A run in a world, its log, and what the curve should be."""

    def __init__(self, folder: Path, law: str, seed: int, steps: int = 100, **mix: Any) -> None:
        world = World(named_law(law), seed)
        pool = world.pool()
        order = [list(world.law.names).index(name) for name in pool.environments]
        rule = CurriculumRule(pool, 8, {"seed": seed, **mix}, seed)
        self.made, self.names = rule.curriculum, pool.environments
        base = np.bincount(pool.codes) / len(pool)
        truth: list[Any] = []
        spent: list[float] = []

        def look(_: int) -> None:
            rates = [float(world.pass_rates(np.flatnonzero(world.codes_N == code)).mean()) for code in order]
            truth.append([*rates, base @ rates])
            spent.append(float(self.made.compute.rollouts))

        look(0)
        open_log(self.made, folder)
        simulate(world, rule, steps, 32, 8, seed, on_step=look)
        self.made.log.close()  # type: ignore[union-attr]
        curve = read_curve(folder)
        self.whole = last(curve)
        columns = [*self.names, "all"]
        self.error, self.z = np.array(
            [
                (score - true, (score - true) / noise)
                for name, at, score, noise in zip(
                    curve["environment"], curve["rollouts"], curve[SCORES[0]], curve["noise_corrected"], strict=True
                )
                for true in [np.interp(at, spent, np.array(truth)[:, columns.index(name)])]
            ]
        ).T


def test_corrected_success_is_the_truth_of_a_world(tmp_path: Path) -> None:
    runs = [Simulated(tmp_path / name, name, 1) for name in ("balanced", "chains", "steep", "uneven")]
    for run in runs:
        assert len(run.whole["rollouts"]) >= 15
        assert np.isfinite(run.error).all()
        assert abs(run.error.mean()) < 0.04
        assert (abs(run.z) > 2).mean() < 0.25
    errors, z = np.concatenate([run.error for run in runs]), np.concatenate([run.z for run in runs])
    assert abs(errors.mean()) < 0.025
    assert abs(z.mean()) < 0.4
    assert z.std() < 1.4
    assert "ceiling" in call("scaling", "fit", str(tmp_path / "uneven"))


def test_a_log_and_a_plan_have_one_rule(tmp_path: Path) -> None:
    run = Simulated(tmp_path, "balanced", 0, 60, curriculum={"shares": "scaling"})
    curves = run.made._learner.mixer.plan.curves  # type: ignore[union-attr]
    table = read_log(tmp_path)
    names = table["environment"].to_pylist()
    for code, name in enumerate(run.names):
        w = np.minimum(table["weight"].to_numpy(), 2.0) * np.array([other == name for other in names])
        rates = np.array([np.mean(rewards) for rewards in table["rewards"].to_pylist()])
        y = table["belief_pool"].to_numpy() + rates - table["belief_mean"].to_numpy()
        weighed = curves.bins_EBF[code, :, 3:].sum(axis=0)
        np.testing.assert_allclose(weighed, [w.sum(), w @ y, w @ y**2, w @ w], rtol=1e-4)


def test_one_group_of_an_environment_is_not_taken_for_certain(tmp_path: Path) -> None:
    made = Curriculum(PromptPool(["sums"] * 30 + ["rare"], keys=[f"k{row}" for row in range(31)]), {}, seed=5)
    open_log(made, tmp_path)
    play(made, np.random.default_rng(0), 6)
    made.log.close()  # type: ignore[union-attr]
    curve = read_curve(tmp_path)
    assert all(0.005 < error < 0.5 for error in last(curve)["noise_corrected"])
    few = np.array([[1.0, 0, 0, 1, 0.3, 0.09, 1]])
    for bins in (few, np.repeat(few, 3, axis=0)):
        score, noise = means_of(bins)
        assert score == pytest.approx(0.3)
        assert (noise > 0).all()
    assert means_of(few)[1] == pytest.approx(0.5)
