"""`curricula demo` from end to end, in a few steps: every file it promises, and figures that are the runs' own."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curricula.cli.app import app
from curricula.cli.demo.command import EXPERIMENT
from curricula.cli.demo.jobs import Job, run_one
from curricula.cli.demo.results import Comparison
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.errors import CurriculaRuntimeError

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "120"}
STEPS = 6  # one more than between two logs of the trainer
ARGUMENTS = (sys.executable, "-m", "curricula", "demo", "--seeds", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("demo") / "out"
    done = subprocess.run(
        [*ARGUMENTS, "--steps", str(STEPS), "--warm-up", "20", "--out", str(out)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_it_prints_one_table_and_where_to_look(finished: tuple[Path, str]) -> None:
    out, printed = finished
    for word in ("easy", "frontier", "hard", "unlearnable", "informative groups", "rollouts a run", "curriculum"):
        assert word in printed
    assert f"mlflow ui --backend-store-uri sqlite:///{out}/mlflow.db" in printed


def test_its_figures_are_those_of_the_runs(finished: tuple[Path, str]) -> None:
    out, _ = finished
    report = json.loads((out / "report.json").read_text())
    assert report["rollouts"] == STEPS * 64
    runs: dict[str, Any] = {
        arm: json.loads((out / "runs" / f"{arm}-0.json").read_text()) for arm in ("uniform", "curriculum")
    }
    for arm, run in runs.items():
        assert len(run["rounds"]) == STEPS
        assert all(sum(r["drawn"].values()) == 8 for r in run["rounds"])
        for environment, accuracy in run["evaluations"][-1]["accuracy"].items():
            assert report["held_out_accuracy"][environment][arm]["mean"] == pytest.approx(accuracy, abs=1e-4)
        assert [e["rollouts"] for e in run["evaluations"]] == [0, STEPS * 64]
    assert runs["uniform"]["evaluations"][0] == runs["curriculum"]["evaluations"][0]  # the same weights


def test_it_draws_the_picture_twice(finished: tuple[Path, str]) -> None:
    out, _ = finished
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (out / "demo.svg").read_text(encoding="utf-8")[:1000]


def test_mlflow_has_a_run_per_arm(finished: tuple[Path, str]) -> None:
    out, _ = finished
    with closing(sqlite3.connect(out / "mlflow.db")) as store:
        names = {name for (name,) in store.execute("select name from runs where status = 'FINISHED'")}
        assert names == {"uniform, seed 0", "curriculum, seed 0"}
        for name in names:
            query = "select distinct key from metrics join runs using (run_uuid) where name = ?"
            keys = {key for (key,) in store.execute(query, (name,))}
            assert {"held_out/frontier", "reward", "curriculum/rollouts"} <= keys
            assert any(key.startswith("curriculum/easy") for key in keys) == (name == "curriculum, seed 0")
    asked = Asked(score="held_out/frontier", tracking_uri=f"sqlite:///{out / 'mlflow.db'}")
    found = read_series([f"mlflow-experiment:{EXPERIMENT}"], asked, Scale())
    assert {series.label for series in found} == {"uniform", "curriculum"}
    assert all(series.compute.max() == STEPS * 64 and not series.notes for series in found)


def test_a_run_that_fails_is_one_line_that_names_its_log(tmp_path: Path) -> None:
    with pytest.raises(CurriculaRuntimeError, match=r"demo: bad failed: ValueError: .*bad\.log"):
        run_one(
            Job("bad", ("run", str(tmp_path), "no-such-arm", "0", "1", "1"), 1),
            tmp_path,
            {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]},
        )


def test_a_folder_that_cannot_be_made_is_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*ARGUMENTS, "--out", str(tmp_path / "file" / "x")],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("curricula: --out: expected a folder")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [*ARGUMENTS, "--out", str(tmp_path)],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that the signal reaches this process alone
        # A shell that runs this in the background has its children ignore the signal.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    log = tmp_path / "runs" / "uniform-seed-0.log"
    for _ in range(1200):
        if log.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    assert log.exists()
    time.sleep(1)
    os.kill(process.pid, number)
    assert process.wait(timeout=60) != 0
    # The process led a group of its own: once it is reaped, the group lives on only in children left behind.
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["demo", "--help"])
    assert shown.exit_code == 0
    assert "Example: curricula demo" in shown.output


def test_a_comparison_reads_what_runs_wrote(finished: tuple[Path, str]) -> None:
    out, _ = finished
    comparison = Comparison.read([out / "runs" / f"{arm}-0.json" for arm in ("uniform", "curriculum")])
    assert comparison.environments == ("easy", "frontier", "hard", "unlearnable")
    assert comparison.groups("uniform", "drawn").sum() == STEPS * 8
    assert comparison.table().row_count == 10
