"""Runs in a real MLflow server, forecast and compared from the command line: what TRL logged, and what is refused."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import mlflow
import numpy as np
import pytest
from host import trainer
from inputs_cli import call
from mlflow import MlflowClient
from mlflow_server import Server

from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.errors import CurriculaRuntimeError, CurriculaValueError
from curricula.scaling.laws import sigmoid
from curricula_mlflow import read_points, stores
from curricula_trl import CurriculumSampler

RECIPES = {"fast": (0.55, 2.0, 40.0), "high": (0.75, 1.5, 90.0)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server"))
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(running.address)
    mlflow.create_experiment("recipes")
    rng = np.random.default_rng(0)
    for recipe, (asymptote, exponent, midpoint) in RECIPES.items():
        for seed in (0, 1):
            with mlflow.start_run(experiment_id=mlflow.get_experiment_by_name("recipes").experiment_id):
                mlflow.log_params({"recipe": recipe, "seed": seed})
                for step in range(5, 205, 5):
                    mlflow.log_metric("curriculum/rollouts", 64.0 * step, step)
                    if step % 10 == 5:
                        score = sigmoid(step, asymptote, exponent, midpoint, 0.2) + rng.normal(0, 0.005)
                        mlflow.log_metric("eval/accuracy", float(score), step)
    yield running
    mlflow.set_tracking_uri(before)
    running.stop()


def first_run() -> str:
    return MlflowClient().search_runs([mlflow.get_experiment_by_name("recipes").experiment_id])[0].info.run_id


@pytest.mark.slow
def test_recipes_of_an_experiment_are_compared(server: Server, tmp_path: Path) -> None:
    picture = tmp_path / "recipes.png"
    source = ("mlflow-experiment:recipes", "--metric", "eval/accuracy", "--tracking-uri", server.address)
    text = call("scaling", "compare", *source, "--by", "recipe", "--plot", str(picture))
    assert "by the paper's rule: high (the higher ceiling)" in text
    assert picture.stat().st_size > 10_000
    found = json.loads(call("scaling", "compare", *source, "--json"))
    assert set(found["fits"]) == set(RECIPES)
    for recipe, (asymptote, _, midpoint) in RECIPES.items():
        made = found["fits"][recipe]
        assert made["points"] == 40
        assert made["axis"] == "rollouts"
        low, high = made["intervals"]["asymptote"]
        assert low - 0.02 < asymptote < high + 0.02
        assert made["midpoint"] == pytest.approx(64 * midpoint, rel=0.25)
    (pair,) = found["pairs"]
    assert pair["higher"][0 if pair["a"] == "high" else 1] > 0.95


def test_what_a_resume_made_void_is_not_read(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(uri)
    run = client.create_run(client.create_experiment("resumed"))
    moment = 1_000

    def log(steps: range, scored: int, by: float) -> None:
        nonlocal moment
        for step in steps:
            moment += 1_000
            client.log_metric(run.info.run_id, "curriculum/rollouts", by * step, moment, step)
            if step % 2 == 0 and step <= scored:
                client.log_metric(run.info.run_id, "eval/accuracy", by * step / 1000, moment + 5, step)

    def read() -> dict[str, list[float]]:
        found = read_points(score="eval/accuracy", run_id=run.info.run_id, tracking_uri=uri)
        return {name: found[name] for name in ("step", "rollouts", "eval/accuracy")}

    log(range(1, 11), 10, 10.0)
    assert read()["step"] == [2, 4, 6, 8, 10]
    # Resumed from 4, and no score yet: the steps of the run that was given up are void all the same.
    log(range(5, 6), 0, 20.0)
    assert read() == {"step": [2, 4], "rollouts": [20, 40], "eval/accuracy": [0.02, 0.04]}
    log(range(6, 9), 8, 20.0)
    assert read() == {
        "step": [2, 4, 6, 8], "rollouts": [20, 40, 120, 160], "eval/accuracy": [0.02, 0.04, 0.12, 0.16]
    }  # fmt: skip


@pytest.mark.slow
def test_one_run_by_its_id_and_steps_as_compute(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)
    run = f"mlflow:{first_run()}"
    text = call("scaling", "forecast", run, "--metric", "eval/accuracy", "--compute", "step", "--at", "400", "--json")
    ((label, made),) = json.loads(text)["fits"].items()
    assert label == first_run()
    (forecast,) = made["forecast"]
    assert forecast["compute"] == 400
    name = MlflowClient().get_run(first_run()).data.params["recipe"]
    assert forecast["low"] - 0.02 < sigmoid(400, *RECIPES[name], 0.2) < forecast["high"] + 0.02


@pytest.mark.slow
def test_a_run_of_trl_is_read_back_with_what_it_spent(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "trl")
    host = trainer(
        tmp_path,
        report_to=["mlflow"],
        max_steps=40,
        eval_strategy="steps",
        eval_steps=4,
        eval_dataset=trainer(tmp_path / "x").train_dataset.select(range(8)),
        logging_steps=3,
    )
    sampler = CurriculumSampler().attach(host)
    host.train()
    (run,) = MlflowClient().search_runs([mlflow.get_experiment_by_name("trl").experiment_id])
    for compute in ("rollouts", "generated_tokens", "trained_tokens", "gpu_hours", "wall_time"):
        points = read_points(run_id=run.info.run_id, score="eval_reward", compute=compute)
        spent = points[compute]
        assert points["step"] == list(range(4, 41, 4))
        assert spent == sorted(spent)
        assert 0 < spent[0] < spent[-1] <= sampler.metrics()[compute] * 1.2
    rollouts = read_points(run_id=run.info.run_id, score="eval_reward")["rollouts"]
    # 8 rollouts a step, logged every third step, evaluated every fourth.
    assert rollouts == pytest.approx([8 * step for step in range(4, 41, 4)])
    text = (
        call(
            "scaling", "fit", f"mlflow:{run.info.run_id}", "--metric", "success_drawn", "--tracking-uri", server.address
        )
        if "curriculum/success_drawn" in run.data.metrics
        else call(
            "scaling", "fit", f"mlflow:{run.info.run_id}", "--metric", "informative", "--tracking-uri", server.address
        )
    )
    assert "against rollouts" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (
            "mlflow:RUN",
            ("--metric", "eval/acuracy"),
            "expected a metric 'eval/acuracy'; got none; there are eval/accura",
        ),
        (
            "mlflow:RUN",
            ("--metric", "eval/accuracy", "--compute", "gpu_hours"),
            "the metric 'curriculum/gpu_hours' besi",
        ),
        ("mlflow:0123456789abcdef0123456789abcdef", ("--metric", "x"), "got none of this id"),
        ("mlflow-experiment:recipe", ("--metric", "x"), "got none of this name; there are recipes"),
        ("mlflow:RUN", (), "expected --metric with the name of the metric that is the score; got none"),
    ],
)
def test_what_the_server_does_not_have_is_one_line(
    server: Server, source: str, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CurriculaValueError) as caught:
        call("scaling", "fit", source.replace("RUN", first_run()), *options, "--tracking-uri", server.address)
    assert said in str(caught.value)


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PATIENCE", {**stores.PATIENCE, "MLFLOW_HTTP_REQUEST_TIMEOUT": "1"})
    for name in stores.PATIENCE:
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://me:secret@127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(CurriculaRuntimeError, match="does not answer") as caught:
            read_points(score="x", run_id="abc", tracking_uri=uri)
    assert time.monotonic() - start < 20
    assert "secret" not in str(caught.value)
    assert not set(stores.PATIENCE) & set(os.environ)


def test_values_without_steps_are_refused_and_runs_without_a_recipe_have_their_names(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("some")
    for name, recipe in (("one", "fast"), ("two", None), ("twin", None), ("twin", None)):
        run = client.create_run(experiment, run_name=name).info.run_id
        if recipe:
            client.log_param(run, "recipe", recipe)
        for step in range(1, 4):
            client.log_metric(run, "score", 0.1 * step, step=step)
    asked = Asked(compute="step", score="score", tracking_uri=uri)
    labels = [series.label for series in read_series(["mlflow-experiment:some"], asked, Scale())]
    assert {"fast", "two"} < set(labels)
    assert len(labels) == 4
    assert not {"None", "twin"} & set(labels)
    (found, *_) = read_series(["mlflow-experiment:some"], asked, Scale())
    assert not any("left out" in note for note in found.notes)
    bare = client.create_run(experiment).info.run_id
    for _ in range(30):
        client.log_metric(bare, "score", 0.5)
    with pytest.raises(CurriculaValueError, match=r"values of 'score' at steps of their own; got 30 at step 0; log"):
        read_points(score="score", compute="step", run_id=bare, tracking_uri=uri)


def test_runs_that_are_left_out_are_named_and_columns_that_tell_runs_apart(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("arms")
    for arm in ("uniform", "curriculum"):
        for seed in range(3):
            run = client.create_run(experiment, run_name=f"{arm}, seed {seed}").info.run_id
            for name, value in {"kind": arm, "seed": seed, "bf16": False, "output_dir": f"{arm}-{seed}"}.items():
                client.log_param(run, name, value)
            for step in range(1, 7):
                client.log_metric(run, "score", 0.1 * step, step=step)
                if arm == "curriculum":
                    client.log_metric(run, "curriculum/rollouts", 64.0 * step, step=step)
    client.create_run(experiment, run_name="empty")
    source, notes = {"score": "score", "experiment": "arms", "tracking_uri": uri}, list[str]()
    assert set(read_points(**source, note=notes.append)["kind"]) == {"curriculum"}
    missing, uncounted = notes
    assert missing == "1 of 7 runs (empty) has no metric 'score' and was left out"
    assert uncounted.startswith("3 of 7 runs (uniform, seed ")
    assert "have no metric 'curriculum/rollouts' and were left out" in uncounted
    assert "--compute step" in uncounted
    with pytest.warns(UserWarning, match="left out"):
        read_points(**source)
    options = ("mlflow-experiment:arms", "--metric", "score", "--tracking-uri", uri)
    with pytest.raises(CurriculaValueError, match=r"got 'curriculum' alone.*were left out: take compute"):
        call("scaling", "compare", *options, "--by", "kind")
    asked = Asked(score="score", compute="step", by="arm", tracking_uri=uri)
    with pytest.raises(CurriculaValueError, match=r"'arm' for --by; got columns that differ: kind \(2 v"):
        read_series(["mlflow-experiment:arms"], asked, Scale())
    asked = Asked(score="score", compute="step", tracking_uri=uri)
    (first, *_) = read_series(["mlflow-experiment:arms"], asked, Scale())
    assert first.notes[-1].endswith("its runs are one curve; between runs differ kind, seed")
