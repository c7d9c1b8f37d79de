"""The MLflow tracker on a real embedded store and a real server: one run, the trainer's own."""

import contextlib
import gc
import logging
import queue
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from host import trainer
from mlflow import MlflowClient
from mlflow_server import Server

from curricula.tracking import metric_names
from curricula_mlflow import MLflowTracker
from curricula_trl import CurriculumSampler
from curricula_trl.mixin import prefixed

MIX = "environments: {sums: {weight: 2.0}}\nnote: größer\n"
EVERY_STEP = ["share_drawn", "kept", "zero_variance", "error"]
WHERE_THERE_ARE_ANY = ["success_drawn", "success_trained", "share_trained", "informative"]


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No run is left open, and other tests' tracking address comes back."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(mlflow.tracking._tracking_service.utils, "_tracking_uri", None)
    yield
    while mlflow.active_run() is not None:
        mlflow.end_run()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"


@pytest.fixture
def experiment(database: str, tmp_path: Path) -> str:
    """An experiment of its own in the embedded store."""
    mlflow.set_tracking_uri(database)
    return mlflow.create_experiment(str(tmp_path), (tmp_path / "artifacts").as_uri())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    mlflow.set_tracking_uri(running.address)
    yield running
    running.stop()


@pytest.fixture
def tracker() -> MLflowTracker:
    return MLflowTracker(patience=120)


def history(run_id: str, name: str) -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in MlflowClient().get_metric_history(run_id, name)]


def mix_of(run_id: str) -> str:
    return mlflow.artifacts.load_text(f"runs:/{run_id}/curricula/mix.yaml")


def count_runs(experiment: str) -> int:
    return len(MlflowClient().search_runs([experiment]))


def test_without_a_run_nothing_is_joined_or_started(experiment: str, tracker: MLflowTracker) -> None:
    assert not tracker.start(MIX, 0)
    tracker.log({"informative": 0.5}, 1)
    tracker.finish()
    assert count_runs(experiment) == count_runs("0") == 0


def test_the_active_run_gets_metrics_and_the_mix(experiment: str, tracker: MLflowTracker) -> None:
    run_id = mlflow.start_run(experiment_id=experiment).info.run_id
    assert tracker.start(MIX, 0)
    for step in (1, 2):
        tracker.log({"curriculum/sums/success_drawn": 0.25 * step, "curriculum/informative": 0.5}, step)
    tracker.finish()
    assert mlflow.active_run().info.run_id == run_id
    assert history(run_id, "curriculum/sums/success_drawn") == [(1, 0.25), (2, 0.5)]
    assert mix_of(run_id) == MIX
    assert count_runs(experiment) == 1


def test_it_goes_on_after_the_fluent_run_has_ended(experiment: str, tracker: MLflowTracker, database: str) -> None:
    run_id = mlflow.start_run(experiment_id=experiment).info.run_id
    tracker.start(MIX, 0)
    mlflow.end_run()
    mlflow.set_tracking_uri("sqlite:////nowhere/else.db")
    tracker.log({"informative": 0.5}, 3)
    tracker.finish()
    # A second train() with no run of its own goes on in the same run.
    assert tracker.start(MIX, 3)
    tracker.log({"informative": 0.75}, 4)
    tracker.finish()
    mlflow.set_tracking_uri(database)
    assert history(run_id, "informative") == [(3, 0.5), (4, 0.75)]
    assert MlflowClient().get_run(run_id).info.status == "FINISHED"
    assert count_runs(experiment) == 1


def test_a_new_run_is_joined_by_the_next_start(experiment: str, tracker: MLflowTracker) -> None:
    ids = []
    for step in (1, 2):
        with mlflow.start_run(experiment_id=experiment) as run:
            tracker.start(MIX, step)
            tracker.log({"informative": float(step)}, step)
            tracker.finish()
            ids.append(run.info.run_id)
    assert [history(run_id, "informative") for run_id in ids] == [[(1, 1.0)], [(2, 2.0)]]


def test_values_that_are_not_finite_are_left_out(
    experiment: str, tracker: MLflowTracker, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = mlflow.start_run(experiment_id=experiment).info.run_id
    tracker.start(MIX, 0)
    tracker.log({"a": float("nan"), "b": float("inf"), "c": 1.0}, 1)
    tracker.log({}, 2)
    tracker.finish()
    assert set(MlflowClient().get_run(run_id).data.metrics) == {"c"}
    assert not [record for record in caplog.records if record.name == "curricula"]


def test_any_environment_name_and_more_than_one_batch(experiment: str, tracker: MLflowTracker) -> None:
    environments = ["sums", "//a//../b/", "漢字", "数学", "é" * 300, "é" * 299 + "!", " ", "☃ (1%)", "A", "a"]
    safe = metric_names(environments)
    metrics = {f"curriculum/{safe[name]}/success_corrected": 1.0 * i for i, name in enumerate(environments)}
    metrics |= {f"curriculum/{'long' * 100}/{number}": 1.0 for number in range(1200)}
    run_id = mlflow.start_run(experiment_id=experiment).info.run_id
    tracker.start(MIX, 0)
    tracker.log(metrics, 1)
    tracker.finish()
    logged = MlflowClient().get_run(run_id).data.metrics
    assert len(logged) == len(metrics)
    for i, name in enumerate(environments):
        assert logged[f"curriculum/{safe[name]}/success_corrected"] == i


def test_a_failing_store_costs_one_warning(
    experiment: str, tracker: MLflowTracker, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = mlflow.start_run(experiment_id=experiment).info.run_id
    tracker.start(MIX, 0)
    tracker.finish()
    mlflow.end_run()
    MlflowClient().delete_run(run_id)
    with caplog.at_level(logging.WARNING, "curricula"):
        for step in range(5):
            tracker.log({"informative": 0.5}, step)
        tracker.finish()
    (record,) = [record for record in caplog.records if record.name == "curricula"]
    assert "values are lost, training goes on" in record.getMessage()
    assert "\n" not in record.getMessage()


@pytest.mark.slow
def test_a_real_server_and_its_death(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "4")
    run_id = mlflow.start_run(experiment_id="0").info.run_id
    tracker = MLflowTracker(patience=120)
    assert tracker.start(MIX, 0)
    tracker.log({"curriculum/漢字/share_drawn": 0.5, "curriculum/a b/kept": 3.0}, 1)
    tracker.finish()
    logged = MlflowClient().get_run(run_id).data.metrics
    assert logged == {"curriculum/漢字/share_drawn": 0.5, "curriculum/a b/kept": 3.0}
    assert mix_of(run_id) == MIX
    assert not [record for record in caplog.records if record.name == "curricula"]

    server.stop()
    impatient = MLflowTracker(patience=0.5)
    assert impatient.start(MIX, 0)
    with caplog.at_level(logging.WARNING, "curricula"):
        for step in range(10_000):
            impatient.log({"informative": 0.5}, step)
        writer, calls = impatient._thread, impatient._calls
        impatient.finish()
    # MLflow is still repeating its call, with its own patience; the run did not wait for it.
    assert writer.is_alive()
    assert writer.daemon
    (record,) = [record for record in caplog.records if record.name == "curricula"]
    assert "values are lost, training goes on" in record.getMessage()
    # The run cannot be closed on a dead server: forget it without a call.
    mlflow.tracking.fluent._active_run_stack.set([])
    # Its retries draw from the global generator, which tests after this one do not expect.
    with contextlib.suppress(queue.Empty):
        while True:
            calls.get_nowait()
    calls.put(None)
    writer.join(120)
    assert not writer.is_alive()


def assert_figures(run_id: str) -> None:
    for figure in EVERY_STEP:
        assert [step for step, _ in history(run_id, f"curriculum/frontier/{figure}")] == list(range(1, 13)), figure
    for figure in WHERE_THERE_ARE_ANY:
        steps = [step for step, _ in history(run_id, f"curriculum/frontier/{figure}")]
        assert steps, figure
        assert sorted(set(steps)) == steps, figure
    # Left out below an effective sample of five: which environment gets there first is up to the draws.
    names = ("easy", "frontier", "hard", "never")
    assert any(history(run_id, f"curriculum/{name}/success_corrected") for name in names)
    assert "environment_column" in mix_of(run_id)


def test_trl_reports_to_mlflow_itself(experiment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment)
    host = trainer(tmp_path / "run", report_to=["mlflow"], max_steps=12)
    CurriculumSampler().attach(host)
    host.train()
    (run,) = MlflowClient().search_runs([experiment])
    assert run.info.status == "FINISHED"
    assert "loss" in run.data.metrics
    assert_figures(run.info.run_id)


def test_names_of_environments_stay_apart_and_stay_the_same() -> None:
    early = prefixed(
        {"informative": 0.5, "漢字/kept": 1.0, "数学/kept": 2.0, "漢字/success_drawn": 0.5, "a//b/kept": 3.0}
    )
    later = prefixed({"漢字/kept": 1.0, "数学/kept": 2.0, "漢字/success_drawn": 0.5, "数学/success_drawn": 0.1})
    assert {"curriculum/informative", "curriculum/a/b/kept"} < set(early)
    assert set(later) - set(early) == {name.replace("/kept", "/success_drawn") for name in early if early[name] == 2.0}
    assert len({name.encode("ascii", "replace") for name in early}) == 5


def test_a_run_of_the_users_own_gets_the_figures(experiment: str, tmp_path: Path) -> None:
    # A trainer of before, when it is collected, ends whatever run is active then: transformers' callback does.
    gc.collect()
    with mlflow.start_run(experiment_id=experiment) as run:
        host = trainer(tmp_path / "run", max_steps=12)
        CurriculumSampler().attach(host)
        host.train()
        assert mlflow.active_run().info.run_id == run.info.run_id
    assert_figures(run.info.run_id)
    assert "loss" not in MlflowClient().get_run(run.info.run_id).data.metrics
    assert count_runs(experiment) == 1
