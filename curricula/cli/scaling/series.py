"""From columns to curves: one for each recipe, its seeds in rows, scores as rates."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.cli.scaling.sources import Asked, axis_of, read_source
from curricula.cli.scaling.tables import MOST_CURVES, Table
from curricula.errors import CurriculaValueError
from curricula.scaling import evaluation_noise

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """What the options say of the scores.

    Attributes:
        percent: whether they are percentages.
        noise: the column of their standard errors.
        prompts: of each evaluation.
        samples: of each prompt.
    """

    percent: bool = False
    noise: str | None = None
    prompts: int | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one curve.

    Attributes:
        label: what it is called.
        axis: what its compute is in.
        measure: what its score is.
        compute: (seeds, n), ascending; the last is repeated where a seed has fewer.
        score: (seeds, n), rates; NaN there.
        noise: (seeds, n), standard errors; None where they are not known.
        notes: what was done to the points.
    """

    label: str
    axis: str
    measure: str
    compute: Floats
    score: Floats
    noise: Floats | None
    notes: tuple[str, ...] = ()


def read_series(sources: Sequence[str], asked: Asked, scale: Scale) -> list[Series]:
    """The curves of all sources, under names that are theirs alone.

    Raises:
        CurriculaValueError: What cannot be read, said in one line.
    """
    found: list[Series] = []
    for source in sources:
        table = read_source(source, asked)
        found += _series_of(table, asked, scale, alone=len(sources) == 1)
    _few(sources[0], len(found), asked)
    labels = [series.label for series in found]
    for label in labels:
        if labels.count(label) > 1:
            raise CurriculaValueError(f"{sources[0]}: expected curves of different names; got {label!r} twice")
    for series in found[1:]:
        if series.axis != found[0].axis:
            raise CurriculaValueError(
                f"{series.label}: expected compute as {found[0].axis}, as {found[0].label} has it; got {series.axis}; "
                "name one column with --compute"
            )
    return found


def _series_of(table: Table, asked: Asked, scale: Scale, alone: bool) -> list[Series]:
    axis, measure = axis_of(table, asked.compute or table.compute), asked.score or table.score
    table = replace(table, compute=axis, score=measure)
    compute = _numbers(table, axis, "--compute", missing=bool(table.noise))
    score = _rates(table, _numbers(table, measure, "--score", missing=True, percent=scale.percent), measure, scale)
    noise, trials, notes = _noise(table, measure, scale)
    notes = (*table.notes, *notes)
    by, seed = asked.by or table.by, asked.seed or table.seed
    names = _names(table, by) if by else [table.name] * len(compute)
    seeds = [_text(value) for value in table.column(seed, "--seed")] if seed else [""] * len(compute)
    known = ~np.isnan(compute) & ~np.isnan(score)
    if not known.any():
        missing = axis if np.isnan(compute).all() else measure
        raise CurriculaValueError(
            f"{table.where}: expected numbers in column {missing!r}; got none in {len(known)} rows"
        )
    left_out = len(known) - int(known.sum())
    if left_out:
        notes = (*notes, f"{left_out} of {len(known)} rows have no score, or no compute, and were left out")
    if scale.percent and 0 < float(np.nanmax(score)) < 0.01:
        notes = (*notes, f"no score is above {100 * np.nanmax(score):.2g}%: leave out --percent if they are rates")
    found: list[Series] = []
    of_name = _places(names)
    _few(table.where, len(of_name), asked)
    for name, all_rows in of_name.items():
        mine = [row for row in all_rows if known[row]]
        if not mine:
            raise CurriculaValueError(f"{table.where}: expected scores of {name!r}; got none")
        label = name if alone or by is None else f"{table.name}: {name}"
        parts = [np.array(mine)[part] for part in _places([seeds[row] for row in mine]).values()]
        rows = [part[np.argsort(compute[part], kind="stable")] for part in parts]
        scores = _stacked(score, rows, math.nan)
        errors = None if noise is None else _stacked(noise, rows, None)
        if trials is not None:
            errors = evaluation_noise(scores, _stacked(trials, rows, None))
        found.append(
            Series(
                _readable(label),
                axis,
                measure,
                _stacked(compute, rows, None),
                scores,
                errors,
                notes,
            )
        )
    return found


def _few(where: str, curves: int, asked: Asked) -> None:
    if curves > MOST_CURVES:
        raise CurriculaValueError(
            f"{where}: expected at most {MOST_CURVES} curves; got {curves}: {asked.by or 'the default --by'} "
            "has too many values; name a column of recipes with --by, and one of repetitions with --seed"
        )


def _places(names: Sequence[str]) -> dict[str, list[int]]:
    """The places of each name, in the order of the first."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return found


def _stacked(values: Floats, rows: list[NDArray[np.int64]], fill: float | None) -> Floats:
    """Rows of seeds, filled up behind: with the last value where there is no other."""
    width = max(map(len, rows))
    ends = [values[row[-1]] if fill is None else fill for row in rows]
    filled = [[*values[row], *[end] * (width - len(row))] for row, end in zip(rows, ends, strict=True)]
    return np.array(filled, dtype=np.float64)


def _noise(table: Table, measure: str, scale: Scale) -> tuple[Floats | None, Floats | None, tuple[str, ...]]:
    """Standard errors of all rows, or of how many rollouts each is the mean, or neither; and what is to be said."""
    if scale.noise is not None and scale.prompts is not None:
        raise CurriculaValueError("--noise: expected either --noise or --prompts; got both; leave out one")
    if scale.samples is not None and scale.prompts is None:
        raise CurriculaValueError("--samples: expected --prompts beside it; got --samples alone")
    if scale.prompts is not None:
        return None, np.full(len(table.column(measure, "--score")), float(scale.prompts * (scale.samples or 1))), ()
    column = scale.noise or table.noise.get(measure)
    if column is not None:
        noise = _numbers(table, column, "--noise", missing=column != scale.noise, percent=scale.percent)
        return np.nan_to_num(noise / (100 if scale.percent else 1)), None, ()
    if "prompts" in table.columns and "samples" in table.columns:
        prompts, samples = (_numbers(table, name, f"--{name}") for name in ("prompts", "samples"))
        return None, prompts * samples, ("noise of each score is that of its columns prompts and samples",)
    return None, None, ()


def _rates(table: Table, score: Floats, measure: str, scale: Scale) -> Floats:
    if scale.percent:
        return score / 100
    most = float(np.nanmax(score, initial=0.0))
    if 1.05 < most <= 105:
        raise CurriculaValueError(
            f"{table.where}: expected rates in [0, 1] in column {measure!r}; got {most:g}; give --percent if they are "
            "percentages"
        )
    return score


def _numbers(table: Table, name: str, option: str, missing: bool = False, percent: bool = False) -> Floats:
    values = table.column(name, option)
    found = np.empty(len(values))
    for row, value in enumerate(values):
        text = value.removesuffix("%") if percent and isinstance(value, str) else value
        try:
            # An empty cell is a score that was not measured; nothing else is guessed at.
            found[row] = math.nan if text is None or text == "" else float(text)
            good = not isinstance(value, bool)
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good or (math.isnan(found[row]) and not missing):
            place = f"line {row + table.counted}" if table.counted else f"row {row + 1}"
            given = "an empty cell" if value is None or value == "" else repr(value)[:60]
            raise CurriculaValueError(f"{table.where} ({place}): expected a number in column {name!r}; got {given}")
    return found


def _names(table: Table, by: str) -> list[str]:
    values = table.column(by, "--by")
    for row, value in enumerate(values):
        if value is None or value == "":
            place = f"line {row + table.counted}" if table.counted else f"row {row + 1}"
            raise CurriculaValueError(
                f"{table.where} ({place}): expected the name of a curve in column {by!r}; got none"
            )
    return [_text(value) for value in values]


def _readable(name: str) -> str:
    r"""A name in one line, with control characters as escapes.

    >>> _readable("a\nb")
    'a\\nb'
    """
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        mark.encode("unicode_escape").decode() if unicodedata.category(mark) in hidden else mark for mark in name
    )


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
