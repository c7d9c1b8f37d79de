"""Runs read back: a metric against what the run had spent when it was logged."""

import difflib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException

from curricula.errors import CurriculaRuntimeError, CurriculaValueError
from curricula_mlflow.stores import opened, patience, shown

Columns = dict[str, list[Any]]

PREFIX = "curriculum/"
AXES = ("rollouts", "generated_tokens", "trained_tokens", "wall_time", "gpu_hours")
STEP = "step"
_NAMES = 8
_MOST = 1000


def read_points(
    *,
    score: str,
    compute: str = "rollouts",
    run_id: str | None = None,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    note: Callable[[str], object] = warnings.warn,
) -> Columns:
    """Points of one run, or of all runs of an experiment that logged both metrics.

    Scores and compute are logged at steps of their own: compute is interpolated between its steps, from nothing before
    the first where it is one of ours, and goes on at its last rate for as long as its last interval.

    Args:
        score: Name of the metric that is the score.
        compute: rollouts, generated_tokens, trained_tokens, wall_time or gpu_hours, as a run of ours logs them; step,
            for the steps themselves; or the name of another metric.
        run_id: The run.
        experiment: The name of the experiment, where it is not one run.
        tracking_uri: The store; MLflow's own choice where it is left out.
        note: Told once for each reason why runs were left out: which ones, and what to do.

    Returns:
        Columns: run_id, run (its name), step, compute and score under their names, then parameters and tags.

    Raises:
        CurriculaValueError: A store, run, experiment or metric that is not there, or values without steps; the line
            names others that are.
        CurriculaRuntimeError: A store that does not answer.
    """
    uri = tracking_uri or mlflow.get_tracking_uri()
    where = f"mlflow:{run_id}" if run_id is not None else f"mlflow-experiment:{experiment}"
    try:
        with patience():
            client = opened(uri, tracking_uri is not None)
            runs = [client.get_run(run_id)] if run_id is not None else _runs(client, str(experiment), where, shown(uri))
            return _read(client, runs, score, compute, where, note)
    except MlflowException as error:
        text = shown(" ".join(str(error).split()))[:200]
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise CurriculaValueError(
                f"{where}: expected a run of {shown(uri)}; got none of this id ({text}); name another store with "
                "--tracking-uri"
            ) from error
        raise CurriculaRuntimeError(f"{where}: the store {shown(uri)} does not answer ({text})") from error


def _runs(client: mlflow.MlflowClient, name: str, where: str, uri: str) -> list[Any]:
    found = client.get_experiment_by_name(name)
    if found is None:
        names = [experiment.name for experiment in client.search_experiments()]
        raise CurriculaValueError(
            f"{where}: expected an experiment of {uri}; got none of this name; there are {_like(name, names)}"
        )
    runs: list[Any] = []
    token: str | None = None
    while True:
        page = client.search_runs([found.experiment_id], max_results=_MOST, page_token=token)
        runs += page
        token = page.token
        if not token:
            break
    if not runs:
        raise CurriculaValueError(f"{where}: expected runs; got an experiment without any")
    return runs


def _read(
    client: mlflow.MlflowClient,
    runs: list[Any],
    score: str,
    compute: str,
    where: str,
    note: Callable[[str], object],
) -> Columns:
    metric = PREFIX + compute if compute in AXES else compute
    columns: Columns = {}
    logged: set[str] = set()
    rows: list[dict[str, Any]] = []
    unscored: list[Any] = []
    uncounted: list[Any] = []
    for run in runs:
        names = set(run.data.metrics)
        logged |= names
        # A score may be named as a run's own figures are in its metrics().
        wanted = score if score in names else PREFIX + score
        if wanted not in names:
            unscored.append(run)
            continue
        if metric not in names and compute != STEP:
            uncounted.append(run)
            continue
        said = {**run.data.tags, **run.data.params}
        about = {name: value for name, value in said.items() if not name.startswith("mlflow.")}
        logged_in = [wanted] if compute == STEP else [wanted, metric]
        (steps, scores), *spending = _histories(client, run.info.run_id, logged_in)
        spent = _spent(*spending[0], steps, compute in AXES) if spending else steps
        for step, amount, value in zip(steps, spent, scores, strict=True):
            if np.isfinite(amount):
                own = {"run_id": run.info.run_id, "run": run.info.run_name, STEP: step, compute: amount, score: value}
                rows.append({**about, **own})
    if not rows:
        raise _refused(where, score, compute, metric, logged)
    if unscored:
        note(f"{_these(unscored, len(runs))} no metric {score!r} and {_were(unscored)} left out")
    if uncounted:
        note(
            f"{_these(uncounted, len(runs))} no metric {metric!r} and {_were(uncounted)} left out: take compute that "
            "all runs have, such as step (--compute step)"
        )
    for name in dict.fromkeys(name for row in rows for name in row):
        columns[name] = [row.get(name) for row in rows]
    return columns


def _these(runs: Sequence[Any], of: int) -> str:
    """The runs, by their names as far as there are few."""
    names = [str(run.info.run_name or run.info.run_id) for run in runs]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    verb = "has" if len(names) == 1 else "have"
    return f"{len(names)} of {of} runs ({'; '.join(names[:_NAMES])}{more}) {verb}"


def _were(runs: Sequence[Any]) -> str:
    return "was" if len(runs) == 1 else "were"


def _refused(where: str, score: str, compute: str, metric: str, logged: set[str]) -> CurriculaValueError:
    if score in logged or PREFIX + score in logged:
        hint = "runs of ours log it while curricula is attached; " if compute in AXES else ""
        return CurriculaValueError(
            f"{where}: expected compute as the metric {metric!r} beside {score!r}; got none; {hint}name another metric "
            f"with --compute, or step; there are {_like(compute, logged)}"
        )
    return CurriculaValueError(f"{where}: expected a metric {score!r}; got none; there are {_like(score, logged)}")


def _histories(client: mlflow.MlflowClient, run_id: str, names: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps, ascending, and values of each metric.

    Where a metric went back to a lower step, the run was resumed from before: higher steps that any of them had logged
    by then are void. Of a step that was logged again, what was logged last counts.
    """
    found = [
        sorted(client.get_metric_history(run_id, name), key=lambda metric: (metric.timestamp, metric.step))
        for name in names
    ]
    for name, history in zip(names, found, strict=True):
        # A run that was started over has two.
        if len(history) > 2 and not any(metric.step for metric in history):
            raise CurriculaValueError(
                f"mlflow:{run_id}: expected values of {name!r} at steps of their own; got {len(history)} at step 0; "
                "log them with a step"
            )
    back: list[tuple[int, int]] = []
    for history in found:
        steps = [metric.step for metric in history]
        back += [
            (after.timestamp, after.step) for after, step in zip(history[1:], steps, strict=False) if after.step < step
        ]
    result: list[tuple[np.ndarray, np.ndarray]] = []
    for history in found:
        values = {
            metric.step: metric.value
            for metric in history
            if not any(metric.timestamp < time and metric.step > step for time, step in back)
        }
        kept = sorted(values)
        result.append((np.array(kept, dtype=float), np.array([values[step] for step in kept], dtype=float)))
    return result


def _spent(steps: np.ndarray, amounts: np.ndarray, at: np.ndarray, ours: bool) -> np.ndarray:
    """Compute at the steps of scores; NaN where it is not known."""
    if ours and steps[0] > 0:
        steps, amounts = np.concatenate([[0.0], steps]), np.concatenate([[0.0], amounts])
    spent = np.interp(at, steps, amounts, left=np.nan)
    if len(steps) > 1:
        interval = steps[-1] - steps[-2]
        beyond = amounts[-1] + (amounts[-1] - amounts[-2]) * (at - steps[-1]) / interval
        spent = np.where(at > steps[-1], np.where(at <= steps[-1] + interval, beyond, np.nan), spent)
    return spent


def _like(name: str, names: Any) -> str:
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=_NAMES, cutoff=0.3)
    shown = [*near, *(other for other in known if other not in near)][:_NAMES]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return (", ".join(shown) or "none") + more
