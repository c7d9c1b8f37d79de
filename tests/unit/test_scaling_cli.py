"""`curricula scaling` on files and logs: what is read, what is printed, and that pictures hold what they should."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inputs_cli import call

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, open_log
from curricula.allocation import allocate
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked, read_source
from curricula.cli.scaling.tables import Table
from curricula.scaling import ScalingFit, evaluation_noise
from curricula.scaling.laws import sigmoid

LAWS = {"fast": (0.56, 2.0, 1500.0), "high": (0.72, 1.6, 3500.0)}


def rows(seeds: int = 2, points: int = 16) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [
        {
            "recipe": recipe,
            "seed": seed,
            "compute": round(compute),
            "tokens": 300 * round(compute),
            "score": float(sigmoid(compute, *law, 0.2) + rng.normal(0, 0.006)),
            "prompts": 384,
            "samples": 4,
        }
        for recipe, law in LAWS.items()
        for seed in range(seeds)
        for compute in np.linspace(300, 9000, points)
    ]


def text(table: list[dict[str, Any]]) -> str:
    return "\n".join([",".join(table[0]), *(",".join(map(str, row.values())) for row in table)]) + "\n"


@pytest.fixture
def csv(tmp_path: Path) -> str:
    (tmp_path / "two.csv").write_text(text(rows()))
    return str(tmp_path / "two.csv")


def test_csv_parquet_and_json_say_the_same(csv: str, tmp_path: Path) -> None:
    table = rows()
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "two.parquet")
    (tmp_path / "two.json").write_text(json.dumps({"settings": {}, "points": table}))
    (tmp_path / "list.json").write_text(json.dumps(table))
    (tmp_path / "two.tsv").write_text(text(table).replace(",", "\t"))
    first = read_series([csv], Asked(), Scale())
    assert [series.label for series in first] == ["fast", "high"]
    assert first[0].compute.shape == first[0].score.shape == (2, 16)
    assert first[0].noise == pytest.approx(evaluation_noise(first[0].score, 384, 4))
    for name in ("two.parquet", "two.json", "list.json", "two.tsv"):
        again = read_series([str(tmp_path / name)], Asked(), Scale())
        for one, other in zip(first, again, strict=True):
            assert (one.label, one.axis, one.measure) == (other.label, other.axis, other.measure)
            np.testing.assert_allclose(one.score, other.score)
            np.testing.assert_allclose(one.compute, other.compute)


def test_seeds_of_other_lengths_are_rows_and_no_point_is_made_up(tmp_path: Path) -> None:
    table = rows(points=10)
    del table[13:18]
    (tmp_path / "t.csv").write_text(text(table))
    first, second = read_series([str(tmp_path / "t.csv")], Asked(), Scale())
    assert np.isfinite(first.score).sum(axis=1).tolist() == [10, 5]
    assert np.isfinite(second.score).all()
    found = json.loads(call("scaling", "fit", str(tmp_path / "t.csv"), "--json"))["fits"]
    assert [found[name]["points"] for name in LAWS] == [15, 20]
    assert not any("NaN" in note for made in found.values() for note in made["notes"])


def test_percentages_and_missing_scores(csv: str, tmp_path: Path) -> None:
    table = [{**row, "score": 100 * row["score"]} for row in rows()]
    (tmp_path / "percent.csv").write_text(
        text(table).replace(",384,4\n", ",,\n", 1).replace(str(table[3]["score"]), "")
    )
    options = ("--percent", "--r0", "20", "--prompts", "384", "--samples", "4", "--json")
    found = json.loads(call("scaling", "fit", str(tmp_path / "percent.csv"), *options))["fits"]["fast"]
    assert found["r0"] == pytest.approx(0.2)
    assert found["asymptote"] == pytest.approx(0.56, abs=0.02)
    assert found["points"] == 31
    assert "1 of 64 rows have no score, or no compute, and were left out" in found["notes"]


def test_a_forecast_holds_the_truth_and_says_where(csv: str, tmp_path: Path) -> None:
    found = json.loads(call("scaling", "forecast", csv, "--at", "2x", "--at", "40000", "--json"))["fits"]
    for name, law in LAWS.items():
        for row, compute in zip(found[name]["forecast"], (18_000, 40_000), strict=True):
            assert row["compute"] == compute
            assert row["low"] - 0.01 < sigmoid(compute, *law, 0.2) < row["high"] + 0.01
            assert row["low"] <= row["mean"] <= row["high"]
    printed = call("scaling", "forecast", csv, "--compute", "tokens")
    assert "score against tokens" in printed
    assert "27,000,000" in printed  # ten times the last


def test_reasons_are_printed_as_notes(tmp_path: Path) -> None:
    lines = [f"{step},{0.3 + 0.001 * (step % 3)}" for step in range(1, 12)]
    (tmp_path / "flat.csv").write_text("\n".join(["compute,score", *lines]))
    printed = call("scaling", "fit", str(tmp_path / "flat.csv"))
    assert "note: no rise is told from noise" in printed


@pytest.mark.parametrize("method", ["grid", "power_law", "log_linear"])
def test_other_methods_print_what_they_have(csv: str, method: str) -> None:
    printed = call("scaling", "fit", csv, "--method", method)
    assert method in printed
    assert "probability of a bend" not in printed
    assert ("ceiling A" in printed) == (method != "log_linear")


def test_how_far_runs_of_a_recipe_differ_is_asked(csv: str) -> None:
    def said(*options: str) -> tuple[float, float]:
        (pair,) = json.loads(call("scaling", "compare", csv, "--json", *options))["pairs"]
        return pair["run_spread"], max(pair["higher"])

    default, these, wide = said(), said("--run-spread", "0"), said("--run-spread", "0.2")
    assert (default[0], these[0], wide[0]) == (0.01, 0.0, 0.2)
    assert 0.5 < wide[1] < default[1] <= these[1]


def test_a_split_that_is_not_clear_says_so(tmp_path: Path) -> None:
    rows = [f"{step},{0.3 + 0.001 * (step % 3)},{name}" for name in "ab" for step in range(1, 12)]
    (tmp_path / "flat.csv").write_text("\n".join(["compute,score,recipe", *rows]))
    printed = call("scaling", "allocate", str(tmp_path / "flat.csv"), "--budget", "10")
    assert "is not clear: these are 0% of the way from equal ones to it" in printed
    assert "the gains of a, b are what curves do in general" in printed


def test_environments_of_a_file_are_told_apart(tmp_path: Path) -> None:
    rises = {"x": 0.5, "y": 0.8}
    points = [f"{step},{rise * step / (step + 9):.3f},{name}" for name, rise in rises.items() for step in range(1, 20)]
    (tmp_path / "e.csv").write_text("\n".join(["rollouts,score,environment", *points]))
    printed = call("scaling", "allocate", str(tmp_path / "e.csv"), "--budget", "10", "--json")
    assert set(json.loads(printed)["plan"]["shares"]) == {"x", "y"}
    note = "points of 2 environments are one curve: --by environment tells them apart"
    assert note in call("scaling", "fit", str(tmp_path / "e.csv"))
    assert note not in call("scaling", "fit", str(tmp_path / "e.csv"), "--by", "environment")


@pytest.mark.parametrize("method", ["bayes", "grid", "power_law", "log_linear"])
def test_points_at_one_compute_tell_nothing(tmp_path: Path, method: str) -> None:
    many = "\n".join(f"a,{step * 100},{0.1 + 0.02 * step}" for step in range(1, 20))
    (tmp_path / "one.csv").write_text(f"recipe,compute,score\n{many}\nb,100,0.2\n")
    path = str(tmp_path / "one.csv")
    found = json.loads(call("scaling", "fit", path, "--method", method, "--json"))
    alone = found.get("fits", found)["b"]
    assert {alone[name] for name in ("asymptote", "exponent", "midpoint", "r0")} == {None}
    assert set(alone["reasons"]) == {"too_short"}
    assert "1 place over a factor of 1" in call("scaling", "fit", path, "--method", method)
    with pytest.raises(CurriculaValueError, match=r"two computes or more of each; got 1 at 100 alone"):
        call("scaling", "compare", path, "--method", method)


def test_columns_that_differ_within_a_run_tell_no_recipes_apart() -> None:
    columns = {"run_id": list("xxyyzz"), "step": [1, 2] * 3, "lr": [1, 1, 2, 2, 2, 2], "score": [1, 2, 3, 4, 5, 6]}
    assert Table("m", "m", columns).differing(most=2) == ["lr"]
    asked = Table("m", "m", {"accuracy": [1, 2], "arm": ["a", "b"]}, score="accuracy")
    with pytest.raises(CurriculaValueError, match=r"got columns that differ: arm \(2 values\); and 1 more$"):
        asked.column("recipe", "--by")


def test_the_slope_of_a_split_is_that_of_its_curve() -> None:
    known = {"a": ScalingFit.of_parameters(0.5, 2.0, 300, r0=0.1), "b": ScalingFit.of_parameters(0.7, 1.5, 800, r0=0.1)}
    slopes = [allocate(known, budget).marginal["b"] for budget in range(900, 1100, 10)]
    assert max(np.diff(slopes)) < 1e-6
    assert min(slopes[1:]) > 0.9 * max(slopes) * 900 / 1100


def test_a_width_in_percent_is_two_by_default() -> None:
    guess = ("--spacing", "500", "--pilots", "5", "--longest", "3000", "--json")
    rates = call("scaling", "design", "--asymptote", ".6", "--midpoint", "900", "--noise", ".01", *guess)
    percent = call("scaling", "design", "--asymptote", "60", "--midpoint", "900", "--noise", "1", "--percent", *guess)
    assert json.loads(rates) == json.loads(percent)


def test_a_name_that_is_given_twice_is_refused(csv: str) -> None:
    with pytest.raises(CurriculaValueError, match="--weight: expected each name once; got 'fast' twice"):
        call("scaling", "allocate", csv, "--budget", "10", "--weight", "fast=1", "--weight", "fast=2")


def test_output_that_is_closed_is_no_error(csv: str) -> None:
    code = f"{sys.executable} -c 'from curricula.cli import main; main()' scaling fit {csv} --method log_linear >&-"
    done = subprocess.run(["sh", "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_recipes_are_compared_in_words_and_as_json(csv: str, tmp_path: Path) -> None:
    printed = call("scaling", "compare", csv, "--target", "0.5", "--plot", str(tmp_path / "p.svg"))
    assert "by the paper's rule: high (the higher ceiling)" in printed
    assert "first to 0.500, probability" in printed
    assert "note: noise of each score is that of its columns prompts and samples" in printed
    drawn = (tmp_path / "p.svg").read_text()
    assert "<!-- the data end -->" in drawn
    assert "<!-- ceiling of the sigmoid, 90% -->" in drawn
    assert "<!-- points, ± standard error -->" in drawn
    assert "within the data high overtook fast at about 5," in printed
    found = json.loads(call("scaling", "compare", csv, "--json"))
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], pair["winner"]) == ("fast", "high", "b")
    assert set(found["fits"]) == set(LAWS)
    before, after = (read_early(csv, tmp_path, most) for most in (3500, 9000))
    assert "<!--  high overtakes fast at" in before
    assert "overtakes" not in after
    assert "<!--  high overtook fast at" in after


def read_early(csv: str, tmp_path: Path, most: float) -> str:
    (tmp_path / "early.csv").write_text(text([row for row in rows(points=40) if row["compute"] <= most]))
    call("scaling", "compare", str(tmp_path / "early.csv"), "--plot", str(tmp_path / "early.svg"))
    return (tmp_path / "early.svg").read_text()


def test_one_point_has_no_figures(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(text([*(row for row in rows(seeds=1) if row["recipe"] == "high"), rows()[0]]))
    printed = call("scaling", "forecast", str(tmp_path / "one.csv"))
    assert re.search(r"fast +ceiling A +- +- +- *\n 1 point +exponent B +- +- +- *\n", printed)
    assert re.search(r"fast +600 +2 +- +- +- *\n", printed)
    assert "note: fast: 1 place over a factor of 1 in compute" in printed


def test_names_that_are_nearly_right_are_hinted_at(csv: str) -> None:
    with pytest.raises(CurriculaValueError, match=r"got 'fest=2'; did you mean fast\?"):
        call("scaling", "allocate", csv, "--budget", "9", "--weight", "fest=2")
    with pytest.raises(CurriculaValueError, match=r"got 'hihg'; did you mean high\?"):
        call("scaling", "compare", csv, "--against", "hihg")


def test_several_sources_are_side_by_side(tmp_path: Path) -> None:
    for name in LAWS:
        (tmp_path / f"{name}.csv").write_text(text([row for row in rows() if row["recipe"] == name]))
    paths = [str(tmp_path / f"{name}.csv") for name in LAWS]
    found = json.loads(call("scaling", "compare", *paths, "--json"))
    assert set(found["fits"]) == {"fast: fast", "high: high"}
    found = json.loads(call("scaling", "compare", *paths, "--against", "fast: fast", "--json"))
    assert len(found["pairs"]) == 1


def test_a_budget_is_split(csv: str, tmp_path: Path) -> None:
    options = ("--budget", "5000", "--floor", "0.1", "--weight", "high=2", "--plot", str(tmp_path / "plan.png"))
    printed = call("scaling", "allocate", csv, *options)
    assert "no split gains more than" in printed
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    plan = json.loads(call("scaling", "allocate", csv, "--budget", "5000", "--floor", "0.1", "--json"))["plan"]
    assert plan["shares"] == pytest.approx({"fast": 0.1, "high": 0.9}, abs=1e-6)
    assert plan["spent"] == {"fast": 9000, "high": 9000}


def test_a_log_is_fitted_whole_and_by_environment(tmp_path: Path) -> None:
    pool = PromptPool(["sums"] * 40 + ["maths"] * 60)
    made, rng = Curriculum(pool, {"curriculum": {"probe": 1.0}}, seed=1), np.random.default_rng(0)
    log = open_log(made, tmp_path / "log")
    made.compute.begin(devices=8)
    for step in range(60):
        rates = {"sums": sigmoid(step, 0.8, 1.5, 15, 0.2), "maths": sigmoid(step, 0.5, 1.5, 30, 0.1)}
        draws = made.ask(16, group_size=8)
        told = [rng.random((16, 8)) < rates[draw.environment] for draw in draws]
        made.tell([GroupOutcome(d.ticket, t[0] * 1.0, tokens=np.full(8, 20)) for d, t in zip(draws, told, strict=True)])
    made.compute.pause()
    log.close()
    folder = str(tmp_path / "log")
    whole = json.loads(call("scaling", "fit", folder, "--json"))["fits"]["log"]
    assert (whole["axis"], whole["score"]) == ("rollouts", "success_corrected")
    assert whole["compute"][1] == pytest.approx(60 * 128, rel=0.05)
    assert 0.3 < whole["asymptote"] < 0.9
    hours = json.loads(call("scaling", "fit", folder, "--compute", "gpu_hours", "--score", "success_drawn", "--json"))
    assert hours["fits"]["log"]["compute"][1] == pytest.approx(made.compute.metrics()["gpu_hours"], rel=0.05)
    apart = json.loads(call("scaling", "fit", folder, "--by", "environment", "--compute", "tokens", "--json"))["fits"]
    assert set(apart) == {"sums", "maths"}
    assert all(part["compute"][1] == pytest.approx(60 * 128 * 20, rel=0.05) for part in apart.values())
    plan = json.loads(call("scaling", "allocate", folder, "--budget", "5000", "--json"))["plan"]
    # Of each environment, what was spent on it.
    assert sum(plan["spent"].values()) == pytest.approx(60 * 128, rel=0.05)
    with pytest.raises(CurriculaValueError, match="expected a column 'gpu_hours' for --compute"):
        call("scaling", "allocate", folder, "--budget", "1", "--compute", "gpu_hours")


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curricula.versions._installed", lambda host: None)
    for name in [name for name in sys.modules if name.startswith("curricula_mlflow")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(CurriculaValueError, match=r'mlflow is not installed: pip install -e "\.\[mlflow\]"'):
        read_source("mlflow:abc", Asked(score="x"))


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for given in ((), ("--tracking-uri", "sqlite:///none.db"), ("--tracking-uri", "runs/none")):
        with pytest.raises(CurriculaValueError, match=r"MLflow: expected a store with runs; got .* is not there; "):
            call("scaling", "fit", "mlflow:abc", "--metric", "x", *given)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_without_room_is_one_line(csv: str, options: tuple[str, ...]) -> None:
    code = "from curricula.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "scaling", "fit", csv, "--method", "log_linear", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("curricula: standard output: expected room to write; got No space left on device")
    assert done.stderr.count("\n") == 1
