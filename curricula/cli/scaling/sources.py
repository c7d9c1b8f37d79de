"""Where points come from: a file, the folder of an outcome log, a run or an experiment of MLflow."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curricula.cli.scaling.tables import Table, read_file
from curricula.errors import CurriculaValueError, MissingExtraError
from curricula.log.curve import ALL, AXES, SCORES, read_curve

RUN, EXPERIMENT = "mlflow:", "mlflow-experiment:"
ALIASES = {"tokens": "generated_tokens"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say of reading.

    Attributes:
        compute: the column of compute; None for the source's own.
        score: the column, or the metric, of scores; None for the source's own.
        by: the column that tells curves apart.
        seed: the column that tells repetitions apart.
        tracking_uri: of MLflow.
        bins: points of a log, at most.
        own: whether an environment's compute is what was spent on it, not on the whole run.
    """

    compute: str | None = None
    score: str | None = None
    by: str | None = None
    seed: str | None = None
    tracking_uri: str | None = None
    bins: int = 40
    own: bool = False


def read_source(source: str, asked: Asked) -> Table:
    """The points of a source.

    Raises:
        CurriculaValueError: Nothing that points can be read from, said in one line.
    """
    if source.startswith((RUN, EXPERIMENT)):
        return _mlflow(source, asked)
    path = Path(source).expanduser()
    return _log(path, asked) if path.is_dir() else _file(path, asked)


def axis_of(table: Table, name: str) -> str:
    """A column of compute by its own name or another that it goes by."""
    return ALIASES.get(name, name) if name not in table.columns else name


def _file(path: Path, asked: Asked) -> Table:
    table = read_file(path)
    if "environment" not in table.columns:
        return table
    if asked.own:
        return replace(table, by="environment")
    count = len(set(map(str, table.columns["environment"])))
    if count == 1 or "environment" in (asked.by, asked.seed, asked.score):
        return table
    return replace(table, notes=(f"points of {count} environments are one curve: --by environment tells them apart",))


def _log(path: Path, asked: Asked) -> Table:
    curve = read_curve(path, bins=asked.bins)
    apart = asked.by == "environment" or (asked.own and asked.by is None)
    rows = [row for row, name in enumerate(curve["environment"]) if (name != ALL) == apart]
    columns = {name: [values[row] for row in rows] for name, values in curve.items()}
    noise = {score: score.replace("success", "noise") for score in SCORES}
    if asked.own:
        # Of a clock there is one for the whole run.
        columns |= {axis: columns[f"own_{axis}"] for axis in AXES if f"own_{axis}" in columns}
        del columns["gpu_hours"]
    by = "environment" if apart else None
    notes: tuple[str, ...] = ()
    if asked.score in (None, SCORES[0]) and not all(columns["corrected"]):
        notes = (f"{SCORES[0]} is success as drawn: the log is of a version that did not keep what corrects it",)
    return Table(str(path), path.name, columns, AXES[0], SCORES[0], by=by, seed="run", noise=noise, notes=notes)


def _mlflow(source: str, asked: Asked) -> Table:
    if asked.score is None:
        raise CurriculaValueError(
            f"{source}: expected --metric with the name of the metric that is the score; got none"
        )
    try:
        from curricula_mlflow import read_points
    except MissingExtraError as error:
        raise CurriculaValueError(f"{source}: {error}") from error
    compute = ALIASES.get(asked.compute or "", asked.compute or AXES[0])
    kind, _, name = source.partition(":")
    notes: list[str] = []
    columns = read_points(
        **{"run_id" if f"{kind}:" == RUN else "experiment": name},
        score=asked.score,
        compute=compute,
        tracking_uri=asked.tracking_uri,
        note=notes.append,
    )
    count = len(set(columns["run_id"]))
    by = None if count == 1 else "recipe" if "recipe" in columns else "run"
    apart = asked.by or by
    if apart in columns:
        columns[apart] = _all_named(columns, apart)
    table = Table(source, name, columns, compute, asked.score, by=by, seed="run_id", notes=tuple(notes))
    if asked.by is not None or by != "run":
        return table
    differing = table.differing(most=count - 1)
    found = f"; between runs differ {', '.join(differing)}" if differing else ""
    hint = f"each run is a curve of its own: name what tells recipes apart with --by, and its runs are one curve{found}"
    return replace(table, notes=(*notes, hint))


def _all_named(columns: dict[str, list[Any]], by: str) -> list[Any]:
    """Values that tell curves apart; a run without one is called by its own name, or by its id if others have that."""
    runs = dict(zip(columns["run_id"], columns["run"], strict=True))
    taken = [*runs.values(), *(value for value in set(columns[by]) if by != "run")]
    own = {run: name if name and taken.count(name) == 1 else run for run, name in runs.items()}
    return [own[run] if value is None else value for run, value in zip(columns["run_id"], columns[by], strict=True)]
