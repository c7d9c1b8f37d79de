"""What was measured: scores against compute, put in order and refused where they cannot be rates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from curricula.errors import CurriculaValueError, described
from curricula.scaling.laws import Floats

# Corrected rates may leave [0, 1] by a little; percentages and rewards by more.
SLACK = 0.05
# More points than this are averaged: the cost of a fit does not grow with the log's length.
MOST = 400
LEAST_NOISE, MOST_NOISE = 1e-4, 1e6
# Compute further from 1 than this has no powers that floats hold.
LEAST_COMPUTE, MOST_COMPUTE = 1e-60, 1e60
NEIGHBOURS = 9


@dataclass(frozen=True, slots=True)
class Observations:
    """Points in the order of their series, and of compute in each.

    Attributes:
        compute: (n,), 0 or more, in the unit of the caller.
        score: (n,), rates.
        noise: (n,), standard errors that are known beforehand; None where noise is estimated.
        series: (n,), which seed a point is of: neighbours in a series are correlated, seeds are not.
        r0: the score at no compute, where it is known.
        notes: what was left out or averaged, in words.
    """

    compute: Floats
    score: Floats
    noise: Floats | None
    series: npt.NDArray[np.int64]
    r0: float | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.score)

    @property
    def positive(self) -> Floats:
        """The compute above 0, (m,)."""
        return self.compute[self.compute > 0]

    def take(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> "Observations":
        """Some of the points, in the same order."""
        return replace(
            self,
            compute=self.compute[rows],
            score=self.score[rows],
            noise=None if self.noise is None else self.noise[rows],
            series=self.series[rows],
        )


def evaluation_noise(score: npt.ArrayLike, prompts: npt.ArrayLike, samples: npt.ArrayLike = 1) -> Floats:
    """Standard error of a mean over prompts × samples, at its most: as if every prompt had the same pass rate.

    The rate is that of neighbours: one that is low by chance would count as precise, and pull a fit down.

    Args:
        score: (n,) or (seeds, n), rates in the order of compute.
        prompts: how many prompts an evaluation has: a whole number, or one for each score.
        samples: how many rollouts of each, likewise.

    >>> evaluation_noise([0.48, 0.52], prompts=1000, samples=16).round(5).tolist()
    [0.00395, 0.00395]
    """
    trials = _count("prompts", prompts) * _count("samples", samples)
    rates = np.clip(numbers("evaluation_noise", "score", score), 0, 1)
    rate = (_neighbours(rates) * trials + 0.5) / (trials + 1)
    return np.sqrt(rate * (1 - rate) / trials)


def _count(name: str, value: npt.ArrayLike) -> Floats:
    found = numbers("evaluation_noise", name, value)
    if not (np.isfinite(found) & (found >= 1) & (found == np.floor(found))).all():
        raise CurriculaValueError(f"evaluation_noise: expected {name} as whole numbers of 1 or more; got {value!r:.60}")
    return found


def _neighbours(rates: Floats) -> Floats:
    """Means over up to `NEIGHBOURS` scores about each, along the last axis and over seeds; NaN is none."""
    if not rates.size or not rates.ndim:
        return rates
    known, filled = ~np.isnan(rates), np.nan_to_num(rates)
    if rates.ndim > 1:
        known, filled = known.sum(axis=0), filled.sum(axis=0)
    window, reach, size = np.ones(NEIGHBOURS), NEIGHBOURS // 2, len(filled)
    total = np.convolve(filled, window)[reach : reach + size]
    count = np.convolve(known.astype(float), window)[reach : reach + size]
    return np.broadcast_to(total / np.maximum(count, 1), rates.shape)


def observe(
    compute: npt.ArrayLike,
    score: npt.ArrayLike,
    *,
    noise: npt.ArrayLike | None = None,
    r0: float | None = None,
) -> Observations:
    """Put measurements in order.

    Args:
        compute: (n,) or (seeds, n).
        score: (n,) or (seeds, n), rates. A score that is NaN was not measured and is left out.
        noise: standard errors, one number or one for each score.
        r0: the score at no compute, where it is known.

    Points of the same compute are replicates, each of another seed. Where those of every compute are all alike, they
    were logged twice and count once, unless seeds were given as rows.

    Raises:
        CurriculaValueError: lengths that differ, nothing to fit, compute below 0, not finite or out of all
            proportion, scores that are no rates, noise below 0 or past all that rates have.
    """
    x, y, error = numbers("fit", "compute", compute), numbers("fit", "score", score), None
    if y.ndim > 2 or x.ndim > 2 or x.shape[-1:] != y.shape[-1:] or (x.ndim == 2 and x.shape != y.shape) or y.ndim == 0:
        raise CurriculaValueError(
            "fit: expected compute (n,) and score (n,), or score (seeds, n) with compute of the same shape or (n,); "
            f"got compute {x.shape} and score {y.shape}"
        )
    if noise is not None:
        error = numbers("fit", "noise", noise)
        if error.ndim and error.shape not in (y.shape, y.shape[-1:]):
            raise CurriculaValueError(
                f"fit: expected noise as one number or of shape {y.shape} as score; got {error.shape}"
            )
        error = np.broadcast_to(error, y.shape).ravel()
    rows = y.ndim == 2
    series = np.repeat(np.arange(len(y)), y.shape[1]) if rows else np.zeros(y.size, int)
    x, y = np.broadcast_to(x, y.shape).ravel(), y.ravel()
    notes: list[str] = []
    missing = np.isnan(y)
    if missing.any():
        notes.append(f"{missing.sum()} of {len(y)} scores are NaN and were left out")
        x, y, series = x[~missing], y[~missing], series[~missing]
        error = None if error is None else error[~missing]
    r0 = None if r0 is None else number("fit", "r0", r0)
    _check(x, y, error, r0)
    if r0 is not None and (x == 0).any():
        notes.append(f"{(x == 0).sum()} scores at no compute were left out: r0 is given")
        above = x > 0
        x, y, series, error = x[above], y[above], series[above], None if error is None else error[above]
    if not rows:
        x, y, error, series = _replicates(x, y, error, notes)
    order = np.lexsort((x, series))
    if error is not None:
        error = np.maximum(error[order], LEAST_NOISE)
    found = Observations(x[order], y[order], error, series[order], r0)
    found = _averaged(found, notes)
    return replace(found, notes=tuple(notes))


def numbers(where: str, name: str, values: npt.ArrayLike) -> Floats:
    """An array of floats; what is masked is NaN.

    Raises:
        CurriculaValueError: no numbers: text, dates, complex ones, what does not convert.
    """
    given: Any = values
    try:
        if isinstance(values, np.ma.MaskedArray):  # pyright: ignore[reportUnknownMemberType]
            given = given.astype(float).filled(np.nan)
        found: npt.NDArray[Any] = np.asarray(given)
        if found.dtype.kind not in "cmMV":
            return found.astype(float)
        reason = f"they are {found.dtype}"
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason = described(error)
    raise CurriculaValueError(f"{where}: expected numbers as {name}; got {str(given)[:60]!r} ({reason})")


def number(where: str, name: str, value: float) -> float:
    """One float, as `numbers`."""
    found = numbers(where, name, value)
    if found.ndim:
        raise CurriculaValueError(f"{where}: expected one number as {name}; got {found.size}")
    return float(found)


def check_unit(where: str, name: str, compute: float) -> None:
    """Raises CurriculaValueError where a compute above 0 is so far from 1 that floats do not hold its powers."""
    if not LEAST_COMPUTE <= compute <= MOST_COMPUTE:
        raise CurriculaValueError(
            f"{where}: expected {name} from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}; got {compute:g}; take another unit"
        )


def _check(x: Floats, y: Floats, error: Floats | None, r0: float | None) -> None:
    if not np.isfinite(x).all() or (x < 0).any():
        worst = x[~np.isfinite(x) | (x < 0)][0]
        raise CurriculaValueError(f"fit: expected compute as finite numbers of 0 or more; got {worst:g}")
    if not (x > 0).any():
        raise CurriculaValueError(f"fit: expected a score that is a number at a compute above 0; got none of {len(y)}")
    for extreme in (x[x > 0].min(), x.max()):
        check_unit("fit", "compute", extreme)
    for name, values in (("score", y), ("r0", np.atleast_1d(np.nan if r0 is None else r0))):
        if name == "r0" and r0 is None:
            continue
        if not np.isfinite(values).all() or values.min() < -SLACK or values.max() > 1 + SLACK:
            worst = values[np.argmax(np.where(np.isfinite(values), np.abs(values - 0.5), np.inf))]
            hint = "divide percentages by 100" if 1 < worst <= 100 else "map rewards to rates first"
            raise CurriculaValueError(f"fit: expected {name} as rates in [0, 1]; got {worst:g}: {hint}")
    if error is not None and (not np.isfinite(error).all() or (error < 0).any()):
        worst = error[~np.isfinite(error) | (error < 0)][0]
        raise CurriculaValueError(f"fit: expected noise as finite standard errors of 0 or more; got {worst:g}")
    if error is not None and error.max() > MOST_NOISE:
        raise CurriculaValueError(
            f"fit: expected noise as standard errors of rates, up to {MOST_NOISE:g}; got {error.max():g}"
        )


def _replicates(
    x: Floats, y: Floats, error: Floats | None, notes: list[str]
) -> tuple[Floats, Floats, Floats | None, npt.NDArray[np.int64]]:
    """Double rows out; the k-th point of one compute is the k-th seed's."""
    table = np.column_stack([x, y] if error is None else [x, y, error])
    _, first = np.unique(table, axis=0, return_index=True)
    # Replicates differ somewhere, or they are one set of rows that was logged twice.
    if len(first) < len(x) and len(first) == len(np.unique(x)):
        notes.append(f"{len(x) - len(first)} of {len(x)} points repeat another's compute and score: counted once")
        first.sort()
        x, y, error = x[first], y[first], None if error is None else error[first]
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.diff(x[order], prepend=-1))
    rank = np.arange(len(x)) - np.repeat(starts, np.diff(np.append(starts, len(x))))
    series = np.empty(len(x), np.int64)
    series[order] = rank
    return x, y, error, series


def _averaged(found: Observations, notes: list[str]) -> Observations:
    """About `MOST` points: seeds averaged at each compute, then runs of neighbours."""
    if len(found) <= MOST:
        return found
    if found.series.any():
        places, run = np.unique(found.compute, return_inverse=True)
        notes.append(f"{len(found)} points were averaged over seeds, at {len(places)} places")
        found = _merged(found, run)
    size = -(-len(found) // MOST)
    if size > 1:
        notes.append(f"{len(found)} points were averaged in runs of {size}")
        # A score at no compute stays by itself.
        start = int((found.compute == 0).sum())
        runs = np.maximum(np.arange(len(found)) - start + size, 0) // size
        found = _merged(found, np.unique(runs, return_inverse=True)[1])
    return found


def _merged(found: Observations, run: npt.NDArray[np.int64]) -> Observations:
    """Means over the points of each run, as one series in the order of the runs."""
    count = np.bincount(run)

    def mean(values: Floats) -> Floats:
        return np.bincount(run, values) / count

    noise = None if found.noise is None else np.sqrt(np.bincount(run, found.noise**2)) / count
    return replace(
        found,
        compute=mean(found.compute),
        score=mean(found.score),
        noise=noise,
        series=np.zeros(len(count), np.int64),
    )
