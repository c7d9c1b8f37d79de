"""A log as points of a curve: the success of stretches of groups against what the run had spent by then."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.bandits.bounds import base_mix
from curricula.bandits.success_curves import means_of, rows_of, stretches
from curricula.config import CurriculumConfig, load_mix
from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow, compute
from curricula.log.reader import read_log
from curricula.log.runs import RUNS, Run, read_runs
from curricula.success import SuccessRule

Floats = NDArray[np.float64]

AXES = ("rollouts", "generated_tokens", "trained_tokens", "gpu_hours")
SCORES = ("success_corrected", "success_drawn", "success_trained")
NOISE = ("noise_corrected", "noise_drawn", "noise_trained")
ALL = "all"
"""Stands for all environments, in the place of one's name."""
_LEAST_GROUPS = 8
_MOST = 1e100  # a larger reward is none, as where it was told


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of one history in the order they were told; `spent` has what the history had spent after each."""

    spent: dict[str, Floats]
    environment: NDArray[np.int64]
    success: Floats
    corrected: Floats  # NaN where the log has not what it takes
    weight: Floats
    kept: NDArray[np.bool_]
    members: Floats

    def take(self, rows: NDArray[np.int64]) -> "_Groups":
        return _Groups(
            {name: values[rows] for name, values in self.spent.items()},
            self.environment[rows],
            self.success[rows],
            self.corrected[rows],
            self.weight[rows],
            self.kept[rows],
            self.members[rows],
        )


def read_curve(folder: str | os.PathLike[str], *, bins: int = 40) -> dict[str, list[Any]]:
    """Read a log as a table of points.

    A history is a fresh start with all that continues it, less what a resume made void. It is cut into stretches with
    as many groups each. `success_corrected` is what a plan's curves are of (`SuccessCurves`): results less what was
    believed of the prompts drawn, plus what was believed of all that could be, weighed by the inverse of their
    probability (what counts for more than two counts for two), environment by environment, and those by the base mix.
    Neighbouring stretches are one until that has an effective sample of 5; it is NaN where the whole history has less.
    A log of format 1 has not what it takes: there it is success as drawn, and `corrected` False.
    `success_drawn` is the mean of the groups drawn, `success_trained` of those kept. Noise is their standard error.
    Outcomes that were told by index are no part of any of it.

    Args:
        folder: The log.
        bins: Stretches of a history, at most; none has fewer than 8 groups.

    Returns:
        Columns of equal length: run (the number of the fresh start), environment ("all" for all of them), the axes
        (`AXES`: what the whole run had spent, in the middle of the stretch, NaN where it is not known; and
        `own_rollouts`, `own_generated_tokens`, `own_trained_tokens`, what of it went to that environment), the scores
        (`SCORES`), `noise_corrected`, `noise_drawn`, `noise_trained`, and `corrected`.

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
    """Groups that were drawn and told, but for those told twice, with what the history had spent after each."""
    pc = compute()
    taken = pc.invert(pc.is_in(table["verdict"], value_set=arrow().array(["duplicate", "cancelled"])))
    drawn = pc.and_(pc.is_valid(table["ticket"]), pc.is_valid(table["rewards"]))
    table = table.filter(pc.and_(drawn, taken)).sort_by("told_at")
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
    believed = numbers("belief_pool") - numbers("belief_mean")
    live = ~np.isnan(results)
    members = live.sum(axis=1) * 1.0
    success = np.where(members > 0, np.where(live, results, 0).sum(axis=1) / np.maximum(members, 1), np.nan)
    codes = {name: code for code, name in enumerate(run.environments)}
    environment = np.array([codes.get(name, -1) for name in table["environment"].to_pylist()], dtype=np.int64)
    totals: dict[str, Floats] = {name: np.cumsum(values) for name, values in spent.items()}
    totals["gpu_hours"] = numbers("device_seconds") / 3600
    for name, values in spent.items():
        own = np.zeros(len(values))
        for code in range(len(codes)):
            own[environment == code] = np.cumsum(values[environment == code])
        totals[f"own_{name}"] = own
    everything = _Groups(totals, environment, success, success + believed, numbers("weight"), kept, members)
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
    known = bool(np.isfinite(groups.corrected + groups.weight).all())
    for code, name in [(None, ALL), *enumerate(run.environments)]:
        rows = np.arange(len(groups.success)) if code is None else np.flatnonzero(groups.environment == code)
        parts = [part for part in np.array_split(rows, max(min(bins, len(rows) // _LEAST_GROUPS), 1)) if len(part)]
        shares = base if code is None else np.eye(len(base))[code]
        parts, corrected = _corrected(groups, parts, shares) if known else (parts, None)
        for place, part in enumerate(parts):
            stretch = groups.take(part)
            spent = {axis: float(np.mean(values)) for axis, values in stretch.spent.items()}
            if code is None:
                spent |= {f"own_{axis}": spent[axis] for axis in AXES[:3]}
            drawn = _mean(stretch, np.ones(len(part)))
            trained = _mean(stretch, stretch.kept.astype(np.float64))
            found = (drawn if corrected is None else corrected[place], drawn, trained)
            scores = dict(zip(SCORES, (score for score, _ in found), strict=True))
            noise = dict(zip(NOISE, (error for _, error in found), strict=True))
            yield {"run": first, "environment": name, **spent, **scores, **noise, "corrected": known}


def _corrected(
    groups: _Groups, parts: list[NDArray[np.int64]], shares: Floats
) -> tuple[list[NDArray[np.int64]], list[tuple[float, float]]]:
    """Stretches joined until they suffice, with the success of each and its error."""
    codes = np.flatnonzero(shares)
    nothing = np.zeros(len(groups.success))
    rows = rows_of(groups.corrected, groups.weight, nothing, nothing)

    def sums(parts: list[NDArray[np.int64]]) -> Floats:
        return np.array(
            [[rows[part[groups.environment[part] == code]].sum(axis=0) for code in codes] for part in parts]
        )

    numbers = stretches(sums(parts), shares[codes]) if parts else None
    if numbers is None:
        return parts, [(np.nan, np.nan)] * len(parts)
    joined = [
        np.concatenate([part for part, mine in zip(parts, numbers == n, strict=True) if mine])
        for n in range(numbers[-1] + 1)
    ]
    means = [means_of(sums_BF) for sums_BF in sums(joined).swapaxes(0, 1)]
    weights = shares[codes]
    score: Floats = weights @ np.array([mean for mean, _ in means])
    noise: Floats = np.sqrt(weights**2 @ np.array([error**2 for _, error in means]))
    return joined, list(zip(score.tolist(), noise.tolist(), strict=True))


def _mean(groups: _Groups, weight: Floats) -> tuple[float, float]:
    """Weighted mean and its standard error: never below that of as many rollouts of one pass rate."""
    total = float(weight.sum())
    if total == 0:
        return np.nan, np.nan
    mean = float((weight * groups.success).sum() / total)
    error = float(np.sqrt(((weight * (groups.success - mean)) ** 2).sum()) / total)
    rollouts = total * float(groups.members.mean())
    rate = (np.clip(mean, 0, 1) * rollouts + 0.5) / (rollouts + 1)
    return mean, max(error, float(np.sqrt(rate * (1 - rate) / rollouts)))
