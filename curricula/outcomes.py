"""Outcomes as arrays: checked once, then every part works on all groups of a tell together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError
from curricula.records import GroupOutcome

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

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
        truncated_KG: Rollouts that were cut off at the limit of tokens.
        interrupted_KG: Rollouts that were cut short on purpose.
        trainable_KG: Rollouts that have a token to train on, or of which nothing was said.
        components_KGC: Rewards by component, NaN as above; None where no outcome has any.
    """

    rewards_KG: Floats
    successes_KG: Floats
    given_K: Flags
    infinite_K: Flags
    tokens_K: Floats
    counted_K: Floats
    truncated_KG: Flags
    interrupted_KG: Flags
    trainable_KG: Flags
    components_KGC: Floats | None


def stack(outcomes: Sequence[GroupOutcome]) -> OutcomeBatch:
    """Check the values of outcomes and stack them.

    Raises:
        CurriculaValueError: Tokens that are negative or infinite.
    """
    count = len(outcomes)
    widest = max((len(_floats(outcome.rewards)) for outcome in outcomes), default=1)
    rewards, successes = np.full((count, widest), np.nan), np.full((count, widest), np.nan)
    given = np.zeros(count, dtype=np.bool_)
    tokens = np.full((count, widest), np.nan)
    marks = {"truncated": np.zeros((count, widest)), "interrupted": np.zeros((count, widest))}
    marks["trainable"] = np.ones((count, widest))
    parts = max(
        (_floats(outcome.components).shape[1] for outcome in outcomes if outcome.components is not None), default=0
    )
    components = np.full((count, widest, parts), np.nan)
    for place, outcome in enumerate(outcomes):
        if outcome.status != "ok":
            continue
        size = len(_floats(outcome.rewards))
        rewards[place, :size] = outcome.rewards
        if outcome.successes is not None:
            successes[place, :size] = outcome.successes
            given[place] = True
        if outcome.tokens is not None:
            tokens[place, :size] = outcome.tokens
        if outcome.components is not None:
            components[place, :size, : _floats(outcome.components).shape[1]] = outcome.components
        for name, flags in marks.items():
            if (told := getattr(outcome, name)) is not None:
                flags[place, :size] = told
    infinite = np.zeros(count, dtype=np.bool_)
    for values in (rewards, successes, components):
        wild = np.abs(values) > _MOST
        infinite |= wild.any(axis=tuple(range(1, wild.ndim)))
        values[wild] = np.nan
    known = ~np.isnan(tokens)
    _require(outcomes, ~known | ((tokens >= 0.0) & (tokens <= 1e18)), tokens, "tokens", "counts >= 0")
    sums, counted = np.where(known, tokens, 0.0).sum(axis=1), known.sum(axis=1) * 1.0
    truncated, interrupted, trainable = (flags != 0.0 for flags in marks.values())
    by_component = components if parts else None
    return OutcomeBatch(
        rewards, successes, given, infinite, sums, counted, truncated, interrupted, trainable, by_component
    )


def _floats(column: object) -> Floats:
    return cast(Floats, column)  # GroupOutcome made it one


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
