"""`curricula simulate`: its figures, its files, and what it assumes of a mix."""

import json
from pathlib import Path
from typing import Any

import inputs_cli
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from curricula import CurriculaValueError, CurriculumConfig
from curricula.cli.simulate.environments import simulated, source_size
from curricula.cli.simulate.left_out import left_out, simulable
from curricula.cli.simulate.preview import ARMS, Plan, Preview, run_mix, run_uniform
from curricula.simulation import EnvironmentLaw, Law, Prerequisite, fit_law, named_law

MIX = """
environments:
  sums: {source: {type: reasoning_gym, name: chain_sum, size: 300, levels: [0, 3]}, levels: [0, 1]}
  maths: {weight: 2, share: {floor: 0.2}}
trainer: {num_generations: 4}
success: {range: [-1, 1]}
"""


def preview(folder: Path, *more: str) -> dict[str, Any]:
    (folder / "mix.yaml").write_text(MIX, encoding="utf-8")
    few = ("--seeds", "2", "--steps", "20", "--groups", "8", "--prompts", "200", "--out", str(folder / "out"))
    return json.loads(inputs_cli.call("simulate", str(folder / "mix.yaml"), *few, *more, "--json"))


def test_the_figures_hang_together_and_follow_the_seed(tmp_path: Path) -> None:
    found = preview(tmp_path)
    assert found == json.loads((tmp_path / "out" / "simulate.json").read_text())
    assert found == preview(tmp_path)
    assert found != preview(tmp_path, "--seed", "1")
    assert found["rollouts"] == 20 * 8 * 4  # the mix's group size
    assert {name: figures["prompts"] for name, figures in found["environments"].items()} == {"sums": 300, "maths": 200}
    for which in ("share_drawn", "share_trained"):
        for arm in ARMS:
            assert sum(e[which][arm] for e in found["environments"].values()) == pytest.approx(1.0, abs=1e-3)
    uniform = [e["uniform"]["seeds"][1] for e in found["environments"].values()]
    assert found["base_mix"]["uniform"]["seeds"][1] == pytest.approx((uniform[0] + 2 * uniform[1]) / 3, abs=1e-3)
    needed = found["to_uniforms_final"]["rollouts"]
    assert needed["gain"]["low"] < needed["gain"]["value"] < needed["gain"]["high"]
    assert any("not a forecast" in note for note in found["notes"])
    assert found["notes"][-1] == "Not simulated, of what the mix sets: success."
    assert any("maths" in note and "200 prompts" in note for note in found["notes"])
    for file in found["plots"]:
        assert Path(file).stat().st_size > 10_000


def test_options_change_the_law(tmp_path: Path) -> None:
    frozen = preview(tmp_path, "--learning", "0", "--unlearnable", "0.5", "--correlation", "0.25", "--world", "steep")
    assert {e["unlearnable"] for e in frozen["law"]["environments"]} == {0.5}
    assert {e["correlation"] for e in frozen["law"]["environments"]} == {0.25}
    assert {e["rate"] for e in frozen["law"]["environments"]} == {0.0}
    random = preview(tmp_path, "--world", "random")
    assert random["law"] != frozen["law"]


def test_only_eligible_levels_are_drawn_from() -> None:
    config = CurriculumConfig.model_validate(
        {"environments": {"sums": {"source": {"type": "x", "levels": [0, 3]}, "levels": [0, 1]}}}
    )
    about = simulated(config, Path(), named_law("skewed"), 400)
    assert about.levels == ((0, 3),)
    plan = Plan(about.law, about.levels, steps=30, groups=8, group_size=4)
    world = plan.world(0)
    levels = world.levels(plan.levels)
    assert np.bincount(levels).tolist() == [100] * 4
    assert world.difficulty_N[levels == 0].max() <= world.difficulty_N[levels == 1].min()
    curve = run_mix(plan, config, 0, 2.0, lambda step: None)
    assert curve.visited <= 200


def test_a_preview_counts_what_was_not_reached() -> None:
    plan = Plan(Law((EnvironmentLaw("one", 50, rate=0.5),)), ((0, 0),), steps=5, groups=4, group_size=4)
    uniform = [run_uniform(plan, seed, lambda step: None) for seed in range(3)]
    flat = Plan(Law((EnvironmentLaw("one", 50, rate=0.0),)), ((0, 0),), steps=5, groups=4, group_size=4)
    never = [run_mix(flat, CurriculumConfig(), seed, run.final, lambda step: None) for seed, run in enumerate(uniform)]
    found = Preview(plan, {"uniform": uniform, "mix": never})
    assert found.late("rollouts") == 3
    assert found.gain("rollouts")[0] == pytest.approx(0.5)
    assert found.success("mix").shape == (3, 6, 1)


def test_sizes_are_read_where_that_is_cheap(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"prompt": ["a", "b", "c"]}), tmp_path / "three.parquet")
    (tmp_path / "two.jsonl").write_text('{"prompt": "a"}\n\n{"prompt": "b"}\n')
    (tmp_path / "broken.parquet").write_text("no parquet")

    def size(path: str, **more: str) -> int | None:
        return source_size({"type": "dataset", "path": path, **more}, tmp_path)

    assert (size("three.parquet"), size("two.jsonl")) == (3, 2)
    assert [size("broken.parquet"), size("none.parquet"), size("."), size("two.jsonl", split="train[:1]")] == [None] * 4
    assert source_size({"type": "reasoning_gym", "name": "chain_sum"}, tmp_path) == 1000


def test_large_mixes_are_scaled_down_and_worlds_are_stretched() -> None:
    names = {f"e{i}": {"source": {"type": "reasoning_gym", "size": 10_000}} for i in range(7)}
    about = simulated(CurriculumConfig.model_validate({"environments": names}), Path(), named_law("chains"), 1000)
    assert sum(e.prompts for e in about.law.environments) == pytest.approx(20_000, abs=10)
    assert "Scaled down from 70,000" in about.notes[0]
    assert [(rule.environment, rule.needs) for rule in about.law.prerequisites] == [(i, i - 1) for i in range(1, 7)]
    two = fit_law(Law(tuple(EnvironmentLaw(str(i), rate=i) for i in range(1, 5))), ["a", "b"], [10, 20], [None, 3.0])
    assert [(e.rate, e.prompts, e.weight) for e in two.environments] == [(2.0, 10, None), (3.0, 20, 3.0)]
    one = fit_law(Law(two.environments, prerequisites=(Prerequisite(1, 0),)), ["a"], [5], [None])
    assert one.prerequisites == ()
    bare = simulated(CurriculumConfig(), Path(), named_law("balanced"), 50)
    assert bare.law.names == named_law("balanced").names
    assert "names no environments" in bare.notes[0]


def test_what_is_not_simulated_is_named() -> None:
    everything = {
        "environments": {"a b": {"source": {"type": "dataset"}, "reward": "rewards:exact", "weight": 2.0}},
        "environment_column": "env",
        "key": "uid",
        "success": {"threshold": 1.0},
        "curriculum": {
            "predictor": {"type": "stack", "members": [{"type": "hashed_text"}, {"type": "policy_head"}]},
            "filters": [{"type": "overlong"}, {"type": "zero_variance", "on": "components"}, {"type": "pass_rate_cap"}],
            "expiry": 10,
            "explore": 0.1,
        },
        "refill": {"rounds": 1},
        "recipe": "cispo",
        "interruption": {"at": [8, 12], "answer": 6},
        "monitor": {"trackers": ["mlflow"]},
        "seed": 7,
        "log": "log",
        "model": "m",
        "trainer": {"num_generations": 4, "max_steps": 9},
    }
    config = CurriculumConfig.model_validate(everything)
    assert ", ".join(left_out(config)) == (
        "environments.'a b'.reward, curriculum.predictor, curriculum.filters[0], curriculum.filters[1].on, "
        "curriculum.expiry, environment_column, key, success, refill, recipe, interruption, monitor, seed, log, "
        "model, trainer"
    )
    assert simulable(config).curriculum.predictor.type == "auto"
    named = {"environments": {"a": {"weight": 2.0}}, "trainer": {"num_generations": 4}}
    own = {"curriculum": {"predictor": {"type": "hashed_text"}, "filters": [{"type": "pass_rate_cap"}]}}
    assert left_out(CurriculumConfig.model_validate(named | own)) == []


def test_a_plan_is_simulated(tmp_path: Path) -> None:
    file = tmp_path / "mix.yaml"
    few = ("--seeds", "1", "--steps", "200", "--world", "skewed", "--prompts", "300", "--out", str(tmp_path / "out"))
    found: list[dict[str, Any]] = []
    for shares in ("bandit", "{from: scaling, every: 5}"):
        file.write_text(f"curriculum: {{bandit: equal, shares: {shares}}}", encoding="utf-8")
        found.append(json.loads(inputs_cli.call("simulate", str(file), *few, "--json")))
    by_bandit, planned = ([e["share_drawn"]["mix"] for e in run["environments"].values()] for run in found)
    # What is learned slowest has most to gain, once curves are long enough to tell.
    assert planned[2] > by_bandit[2] + 0.1
    assert not any("Not simulated" in note for note in found[1]["notes"])


@pytest.mark.parametrize("name", ["simulate.png", "simulate.json"])
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    (tmp_path / "mix.yaml").write_text("environments: {a: {}, b: {}}\n")
    options = ("--steps", "2", "--seeds", "1", "--groups", "2", "--prompts", "10", "--out", str(tmp_path / "out"))
    with pytest.raises(CurriculaValueError, match=rf"--out: expected a folder that can be written; got .*{name}: "):
        inputs_cli.call("simulate", str(tmp_path / "mix.yaml"), *options)
    with pytest.raises(CurriculaValueError, match=r"--out: expected a folder that can be written; got /proc"):
        inputs_cli.call("simulate", str(tmp_path / "mix.yaml"), *options[:-1], "/proc")
