"""Files of points as columns: CSV, Parquet, JSON."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from curricula.errors import CurriculaValueError, described
from curricula.log.arrow import parquet
from curricula.log.curve import AXES

Columns = dict[str, list[Any]]
ENDINGS = (".csv", ".tsv", ".parquet", ".json")
MOST_CURVES = 24
_SHOWN = 12
_APART = ("--by", "--seed")


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, and what they are taken for where an option does not say.

    Attributes:
        where: the source, for messages.
        name: a short one, for a curve without a name of its own.
        columns: values as they were read.
        compute: the column of compute.
        score: the column of scores.
        by: the column that tells curves apart; None for one curve.
        seed: the column that tells its repetitions apart.
        noise: the column of standard errors of each column of scores that has one.
        notes: what was done to the points.
        counted: the first row's number in the file, for messages; 0 where rows have no numbers there.
    """

    where: str
    name: str
    columns: Columns
    compute: str = "compute"
    score: str = "score"
    by: str | None = None
    seed: str | None = None
    noise: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    counted: int = 0

    def column(self, name: str, option: str) -> list[Any]:
        """A column; one line names those there are where it is missing."""
        if name not in self.columns:
            there = [column for column in self.columns if column]
            if option in _APART and (differing := self.differing()):
                counts = {column: len(set(map(str, self.columns[column]))) for column in differing}
                shown = ", ".join(f"{column} ({count} values)" for column, count in counts.items())
                rest = len(there) - len(differing)
                others = f"; and {rest} more" if rest else ""
                raise CurriculaValueError(
                    f"{self.where}: expected a column {name!r} for {option}; got columns that differ: {shown}{others}"
                )
            shown = ", ".join(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
            raise CurriculaValueError(f"{self.where}: expected a column {name!r} for {option}; got columns {shown}")
        return self.columns[name]

    def differing(self, most: int = MOST_CURVES) -> list[str]:
        """Columns of 2 to so many values, fewest first, each run of one alone: those that may tell curves apart.

        >>> Table("a.csv", "a", {"step": [1, 2, 3], "arm": ["a", "b", "a"], "kind": ["x"] * 3}).differing(most=2)
        ['arm']
        """
        runs = list(map(str, self.columns.get("run_id", [])))
        counts: dict[str, int] = {}
        for column, values in self.columns.items():
            texts = list(map(str, values))
            alone = not runs or len(set(zip(runs, texts, strict=True))) == len(set(runs))
            if column and column not in (self.compute, self.score) and alone:
                counts[column] = len(set(texts))
        few = [column for column, count in counts.items() if 2 <= count <= most]
        return sorted(few, key=lambda column: counts[column])[:_SHOWN]


def read_file(path: Path) -> Table:
    """A file of points.

    JSON is a list of rows, or an object with such a list as `points`.

    Raises:
        CurriculaValueError: No such file, another ending, an empty file, or content that is none of its kind.
    """
    where = str(path)
    if not path.is_file():
        got = "a folder" if path.is_dir() else "no such file"
        raise CurriculaValueError(f"{where}: expected a file of points; got {got}; check the path")
    readers = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".json": _json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise CurriculaValueError(
            f"{where}: expected a file that ends in {', '.join(ENDINGS)}, the folder of an outcome log, mlflow:RUN_ID "
            "or mlflow-experiment:NAME; got another ending"
        )
    try:
        columns = reader(path)
    except (CurriculaValueError, ImportError):
        raise
    except Exception as error:  # a date past all dates and a time zone that there is not have classes of their own
        kind = path.suffix.lower().lstrip(".").upper().replace("PARQUET", "Parquet")
        raise CurriculaValueError(f"{where}: expected {kind}; got something else ({described(error)})") from None
    if not columns or not any(columns.values()):
        raise CurriculaValueError(f"{where}: expected rows of points; got none")
    counted = 2 if reader is _csv else 0
    by, seed = ("recipe" if "recipe" in columns else None), ("seed" if "seed" in columns else None)
    compute = next((name for name in ("compute", *AXES) if name in columns), "compute")
    return Table(where, path.stem, columns, compute, by=by, seed=seed, counted=counted)


def _apart(path: Path, heads: Sequence[str]) -> None:
    if len(set(heads)) < len(heads):
        twice = next(head for head in heads if heads.count(head) > 1)
        raise CurriculaValueError(f"{path}: expected columns of different names; got {twice!r} twice")


def _csv(path: Path) -> Columns:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        heads = [head.strip() for head in next(lines, list[str]())]
        _apart(path, heads)
        if len(heads) == 1 and ";" in heads[0]:
            between = "tabs" if path.suffix.lower() == ".tsv" else "commas"
            raise CurriculaValueError(f"{path}: expected {between} between cells; got semicolons: {heads[0][:60]!r}")
        columns: Columns = {head: [] for head in heads}
        for row in lines:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(heads):
                raise CurriculaValueError(
                    f"{path} (line {lines.line_num}): expected {len(heads)} cells, as in the first; got {len(row)}"
                )
            for head, cell in zip(heads, row, strict=True):
                columns[head].append(cell.strip())
    return columns


def _parquet(path: Path) -> Columns:
    table = parquet().ParquetFile(path).read()
    _apart(path, table.column_names)
    return cast(Columns, table.to_pydict())


def _json(path: Path) -> Columns:
    content: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, dict):
        content = cast("dict[str, Any]", content).get("points")
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in cast("list[Any]", content)):
        raise CurriculaValueError(f"{path}: expected a list of rows, or an object with such a list as points")
    rows = cast("list[dict[str, Any]]", content)
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
