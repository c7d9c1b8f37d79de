"""A log as points of a curve: the success of stretches of groups against what the run had spent by then."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.bandits.bounds import base_mix
from curricula.config import CurriculumConfig, load_mix
from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow, compute
from curricula.log.reader import read_log
from curricula.log.runs import RUNS, Run, read_runs
from curricula.success import SuccessRule

Floats = NDArray[np.float64]

AXES = ("rollouts", "generated_tokens", "trained_tokens", "gpu_hours")
SCORES = ("success_corrected", "success_drawn", "success_trained")
ALL = "all"
"""Stands for all environments, in the place of one's name."""
_LEAST_EFFECTIVE = 5.0
_LEAST_GROUPS = 8
_MOST = 1e100  # a larger reward is none, as where it was told


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of one history in the order they were told; `spent` has what the history had spent after each."""

    spent: dict[str, Floats]
    environment: NDArray[np.int64]
    success: Floats
    weight: Floats
    kept: NDArray[np.bool_]
    members: Floats

    def take(self, rows: NDArray[np.int64]) -> "_Groups":
        return _Groups(
            {name: values[rows] for name, values in self.spent.items()},
            self.environment[rows],
            self.success[rows],
            self.weight[rows],
            self.kept[rows],
            self.members[rows],
        )


def read_curve(folder: str | os.PathLike[str], *, bins: int = 40) -> dict[str, list[Any]]:
    """Read a log as a table of points.

    A history is a fresh start with all that continues it, less what a resume made void. It is cut into stretches with
    as many groups each. `success_corrected` weighs drawn groups by the inverse of their probability, environment by
    environment, and those by the base mix; it is NaN where that leaves an effective sample below 5.
    `success_drawn` is the mean of the groups drawn, `success_trained` of those kept. Noise is their standard error.

    Args:
        folder: The log.
        bins: Stretches of a history, at most; none has fewer than 8 groups.

    Returns:
        Columns of equal length: run (the number of the fresh start), environment ("all" for all of them), the axes
        (`AXES`: what the whole run had spent, in the middle of the stretch, NaN where it is not known; and
        `own_rollouts`, `own_generated_tokens`, `own_trained_tokens`, what of it went to that environment), the scores
        (`SCORES`), and `noise_corrected`, `noise_drawn`, `noise_trained`.

    Raises:
        CurriculaValueError: Not a log, a damaged or an empty one, or one whose rewards are no rates.
    """
    root = Path(folder)
    runs, table = read_runs(root), read_log(root)
    points: list[dict[str, Any]] = []
    for first, numbers in _histories(runs).items():
        rows = table.filter(compute().is_in(table["run"], value_set=arrow().array(numbers, "int32")))
        newest = runs[numbers[-1]]
        config = load_mix(root / RUNS / f"{newest.name}.yaml")
        groups = _groups(rows, newest, config, root)
        if len(groups.success):
            points += _points(groups, newest, base_mix(config, _sizes(newest)), first, bins)
    if not points:
        raise CurriculaValueError(f"{root}: expected an outcome log with groups that were told; got one without any")
    return {name: [point[name] for point in points] for name in points[0]}


def _histories(runs: dict[int, Run]) -> dict[int, list[int]]:
    root: dict[int, int] = {}
    for number in sorted(runs):
        root[number] = root.get(runs[number].continues or 0, number)
    return {first: [number for number in root if root[number] == first] for first in dict.fromkeys(root.values())}


def _sizes(run: Run) -> dict[str, int]:
    sizes = dict.fromkeys(run.environments, 0)
    for name, _, size in run.blocks:
        sizes[name] += size
    return sizes


def _groups(table: Any, run: Run, config: CurriculumConfig, folder: Path) -> _Groups:
    """Groups that were told, but for those told twice, with what the history had spent after each."""
    pc = compute()
    taken = pc.invert(pc.is_in(table["verdict"], value_set=arrow().array(["duplicate", "cancelled"])))
    table = table.filter(pc.and_(pc.is_valid(table["rewards"]), taken)).sort_by("told_at")
    sizes = table["rewards"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    shape = (len(table), int(sizes.max(initial=1)))

    def dense(name: str, missing: float) -> Floats:
        values = np.full(shape, missing)
        column = table[name].combine_chunks()
        row: NDArray[np.int64] = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
        place: NDArray[np.int64] = np.arange(len(row)) - np.searchsorted(row, row)
        values[row, place] = column.flatten().to_numpy(zero_copy_only=False)
        return values

    def numbers(name: str) -> Floats:
        return table[name].cast("float64").to_numpy()

    inside = np.arange(shape[1]) < sizes[:, None]
    rewards, successes, tokens = dense("rewards", np.nan), dense("successes", np.nan), dense("tokens", np.nan)
    ok = np.array(table["status"].to_pylist()) == "ok"
    for values in (rewards, successes):
        values[~ok[:, None] | (np.abs(values) > _MOST)] = np.nan
    tokens = np.where(np.isnan(tokens), 0, tokens)
    kept = table["keep"].to_numpy().astype(bool)
    trained = tokens * (dense("trainable", 1.0) != 0) * ~np.isnan(rewards) * kept[:, None]
    with np.errstate(invalid="ignore"):
        spent = {
            "rollouts": inside.sum(axis=1) * 1.0,
            "generated_tokens": tokens.sum(axis=1),
            "trained_tokens": trained.sum(axis=1),
        }
    given = pc.is_valid(table["successes"]).to_numpy()
    results = _rates(np.where(given[:, None], successes, rewards), config, folder)
    live = ~np.isnan(results)
    members = live.sum(axis=1) * 1.0
    success = np.where(members > 0, np.where(live, results, 0).sum(axis=1) / np.maximum(members, 1), np.nan)
    codes = {name: code for code, name in enumerate(run.environments)}
    environment = np.array([codes.get(name, -1) for name in table["environment"].to_pylist()], dtype=np.int64)
    repeats = np.array([reason is None or reason == "repeat" for reason in table["reason"].to_pylist()])
    weight = np.where(repeats, 0, 1 / np.nan_to_num(numbers("propensity"), nan=1.0))
    totals: dict[str, Floats] = {name: np.cumsum(values) for name, values in spent.items()}
    totals["gpu_hours"] = numbers("device_seconds") / 3600
    for name, values in spent.items():
        own = np.zeros(len(values))
        for code in range(len(codes)):
            own[environment == code] = np.cumsum(values[environment == code])
        totals[f"own_{name}"] = own
    everything = _Groups(totals, environment, success, weight, kept, members)
    return everything.take(np.flatnonzero(~np.isnan(success) & (environment >= 0)))


def _rates(results: Floats, config: CurriculumConfig, folder: Path) -> Floats:
    rule = SuccessRule(config.success)
    seen = results[~np.isnan(results)]
    unit, signed = bool(((seen > -1e-6) & (seen < 1 + 1e-6)).all()), bool((abs(abs(seen) - 1) < 1e-6).all())
    if rule.mode == "rate" and not unit and not signed:
        raise CurriculaValueError(
            f"{folder}: expected successes, or rewards that are rates; got rewards from {seen.min():g} to "
            f"{seen.max():g}; log a run whose mix says what success is (success.threshold or success.range)"
        )
    if rule.mode == "rate" and not unit:
        rule.observe(seen)
    return rule.read(results)


def _points(groups: _Groups, run: Run, base: Floats, first: int, bins: int) -> Iterator[dict[str, Any]]:
    for code, name in [(None, ALL), *enumerate(run.environments)]:
        rows = np.arange(len(groups.success)) if code is None else np.flatnonzero(groups.environment == code)
        for part in np.array_split(rows, max(min(bins, len(rows) // _LEAST_GROUPS), 1)):
            if not len(part):
                continue
            stretch = groups.take(part)
            spent = {axis: float(np.mean(values)) for axis, values in stretch.spent.items()}
            if code is None:
                spent |= {f"own_{axis}": spent[axis] for axis in AXES[:3]}
            shares = base if code is None else np.eye(len(base))[code]
            yield {"run": first, "environment": name, **spent, **_scores(stretch, shares)}


def _scores(groups: _Groups, base: Floats) -> dict[str, float]:
    corrected, noise = 0.0, 0.0
    for code in np.flatnonzero(base):
        own = groups.take(np.flatnonzero(groups.environment == code))
        mean, error = _mean(own.success, own.weight, own.members)
        corrected, noise = corrected + base[code] * mean, noise + (base[code] * error) ** 2
    every: Floats = np.ones(len(groups.success))
    drawn = _mean(groups.success, every, groups.members, least=1)
    trained = _mean(groups.success, groups.kept.astype(np.float64), groups.members, least=1)
    return {
        **dict(zip(SCORES, (corrected, drawn[0], trained[0]), strict=True)),
        **{"noise_corrected": float(np.sqrt(noise)), "noise_drawn": drawn[1], "noise_trained": trained[1]},
    }


def _mean(success: Floats, weight: Floats, members: Floats, least: float = _LEAST_EFFECTIVE) -> tuple[float, float]:
    """Weighted mean and its standard error: never below that of as many rollouts of one pass rate."""
    total = weight.sum()
    effective = total**2 / max((weight**2).sum(), 1e-300)
    if effective < least:
        return np.nan, np.nan
    mean = float((weight * success).sum() / total)
    error = float(np.sqrt(((weight * (success - mean)) ** 2).sum()) / total)
    rollouts = effective * float(members.mean())
    rate = (np.clip(mean, 0, 1) * rollouts + 0.5) / (rollouts + 1)
    return mean, max(error, float(np.sqrt(rate * (1 - rate) / rollouts)))
