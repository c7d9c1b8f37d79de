"""Outcomes as arrays: checked once, then every part works on all groups of a tell together."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curricula.errors import CurriculaValueError
from curricula.records import GroupOutcome

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_COLUMNS = {
    "rewards": np.nan,
    "successes": np.nan,
    "tokens": np.nan,
    "truncated": 0.0,
    "interrupted": 0.0,
    "trainable": 1.0,
}
"""Columns of G numbers, and what stands for one that was not given."""

_MOST = 1e100  # sums and squares of rewards must stay finite too


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeBatch:
    """K outcomes, padded with NaN to the largest group G.

    Attributes:
        rewards_KG: Rewards; NaN where unscorable or infinite, a row of NaN where the status is not ok.
        successes_KG: Raw successes; NaN where not given or infinite.
        given_K: Whether successes were given.
        infinite_K: Whether a reward or success was infinite, or too large to be added up.
        tokens_K: Tokens, summed over the rollouts whose tokens are known.
        counted_K: How many rollouts those are.
        trained_K: Tokens of those rollouts among them that have a reward, and a token to train on.
        truncated_KG: Rollouts that were cut off at the limit of tokens.
        interrupted_KG: Rollouts that were cut short on purpose.
        trainable_KG: Rollouts that have a token to train on, or of which nothing was said.
        truncation_told_K: Whether it was said which rollouts were cut off.
        interruption_told_K: Whether it was said which rollouts were cut short.
        components_KGC: Rewards by component, NaN as above; None where no outcome has any.
    """

    rewards_KG: Floats
    successes_KG: Floats
    given_K: Flags
    infinite_K: Flags
    tokens_K: Floats
    counted_K: Floats
    trained_K: Floats
    truncated_KG: Flags
    interrupted_KG: Flags
    trainable_KG: Flags
    truncation_told_K: Flags
    interruption_told_K: Flags
    components_KGC: Floats | None


def stack(outcomes: Sequence[GroupOutcome]) -> OutcomeBatch:
    """Check the values of outcomes and stack them.

    Raises:
        CurriculaValueError: Tokens that are negative or infinite.
    """
    count = len(outcomes)
    good = [outcome.status == "ok" for outcome in outcomes]
    columns = [list(column) for column in zip(*map(attrgetter(*_COLUMNS), outcomes), strict=True)] or [[]] * 6
    sizes = np.array(list(map(len, _arrays(columns[0]))), dtype=np.int64)
    shape = (count, int(sizes.max(initial=1)))
    if not all(good):
        columns = [[value if ok else None for value, ok in zip(column, good, strict=True)] for column in columns]
    (
        (rewards, _),
        (successes, given),
        (tokens, _),
        (truncated, truncation),
        (interrupted, interruption),
        (trainable, _),
    ) = [_fill(column, sizes, shape, missing) for column, missing in zip(columns, _COLUMNS.values(), strict=True)]
    components = _components(outcomes, good, shape)
    infinite = np.zeros(count, dtype=np.bool_)
    for values in (rewards, successes if given.any() else None, components):
        if values is not None and (wild := np.abs(values) > _MOST).any():
            infinite |= wild.any(axis=tuple(range(1, wild.ndim)))
            values[wild] = np.nan
    known = ~np.isnan(tokens)
    _require(outcomes, ~known | ((tokens >= 0.0) & (tokens <= 1e18)), tokens, "tokens", "counts >= 0")
    counts = np.where(known, tokens, 0.0)
    live = (trainable != 0.0) & ~np.isnan(rewards)
    return OutcomeBatch(
        rewards_KG=rewards,
        successes_KG=successes,
        given_K=given,
        infinite_K=infinite,
        tokens_K=counts.sum(axis=1),
        counted_K=known.sum(axis=1) * 1.0,
        trained_K=(counts * live).sum(axis=1),
        truncated_KG=truncated != 0.0,
        interrupted_KG=interrupted != 0.0,
        trainable_KG=trainable != 0.0,
        truncation_told_K=truncation,
        interruption_told_K=interruption,
        components_KGC=components,
    )


def _fill(
    columns: list[ArrayLike | None], sizes_K: NDArray[np.int64], shape: tuple[int, int], missing: float
) -> tuple[Floats, Flags]:
    """Columns under one another, padded with `missing`, and which of them there are."""
    present = _arrays([column for column in columns if column is not None])
    if not present:
        return np.full(shape, missing), np.zeros(shape[0], dtype=np.bool_)
    values = np.concatenate(present)
    if values.size == shape[0] * shape[1]:
        return values.reshape(shape), np.ones(shape[0], dtype=np.bool_)
    given = np.array([column is not None for column in columns])
    padded = np.full(shape, missing)
    padded[given[:, None] & (np.arange(shape[1]) < sizes_K[:, None])] = values
    return padded, given


def _components(outcomes: Sequence[GroupOutcome], good: list[bool], shape: tuple[int, int]) -> Floats | None:
    """Shape (K, G, C), NaN where there is none; None where no outcome has any."""
    parts = [outcome.components for outcome in outcomes]
    widths = [part.shape[1] for part in _arrays([part for part in parts if part is not None])]
    if not widths:
        return None
    components = np.full((*shape, max(widths)), np.nan)
    for place, part in enumerate(parts):
        if part is not None and good[place]:
            (values,) = _arrays([part])
            components[place, : values.shape[0], : values.shape[1]] = values
    return components


def _arrays(columns: Sequence[ArrayLike]) -> Sequence[Floats]:
    return cast(Sequence[Floats], columns)  # GroupOutcome made them so


def _require(
    outcomes: Sequence[GroupOutcome], good_KG: NDArray[np.bool_], values_KG: Floats, name: str, expected: str
) -> None:
    if good_KG.all():
        return
    place = int(np.argmin(good_KG.all(axis=1)))
    value = values_KG[place][~good_KG[place]][0]
    outcome = outcomes[place]
    where = f"index {outcome.index}" if outcome.ticket is None else f"ticket {outcome.ticket}"
    raise CurriculaValueError(f"tell, outcome {place} ({where}): expected {name} to be {expected}; got {value:g}")
