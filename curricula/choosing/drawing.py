"""The draws themselves."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.candidates import Candidates
from curricula.choosing.sampling import sample_range, systematic
from curricula.choosing.strata import Strata
from curricula.pool import PromptPool
from curricula.records import Reason

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MASTERED = 0.9


_REPEAT_WEIGHT = 1.0


class Choice(NamedTuple):
    """One chosen prompt: its row, its position and environment, its propensity, weight (mean 1) and reason."""

    row: int
    position: int
    code: int
    propensity: float
    weight: float
    reason: Reason


def draw(
    candidates: Candidates, means: Floats, strata: Strata, free_E: Ints, rng: np.random.Generator
) -> tuple[list[Choice], float]:
    """Draw from each kind as many candidates as it has draws.

    Args:
        candidates: M of them, in each kind in random order.
        means: Expected pass rate of each, shape (M,).
        strata: Draws of each kind, and probabilities.
        free_E: Eligible prompts of each environment that are not in flight.
        rng: The only source of randomness.

    Returns:
        What was drawn, and the smallest propensity that a candidate had in the environments that were drawn from.
    """
    counts_R, sizes_R = strata.counts_R, candidates.sizes_E2.reshape(-1)
    live = np.flatnonzero(counts_R > 0)
    if not live.size:
        return [], 1.0
    count_L, size_L = counts_R[live], sizes_R[live]
    # Rows laid end to end: each takes up as much room as it has draws.
    alive: list[int] = live.tolist()
    chance = np.concatenate([strata.chances[row] for row in alive])
    even = np.concatenate([strata.evens[row] for row in alive])
    stated = np.concatenate([strata.stated[row] for row in alive])
    drawn = systematic(chance, size_L, count_L, rng)
    starts = (sizes_R.cumsum() - sizes_R)[live]
    row = np.repeat(np.arange(live.size), count_L)
    place = drawn - (size_L.cumsum() - size_L)[row] + starts[row]
    # Which part of its probability a draw came from is a coin of exactly that bias.
    evenly = rng.random(drawn.size) * chance[drawn] < even[drawn]
    reach_R = candidates.reach_E2.reshape(-1)
    propensity = np.minimum(reach_R[live][row] * stated[drawn], 1.0)
    least = min(
        (float(reach_R[kind] * part.min()) for kind, part in enumerate(strata.stated) if part.size), default=1.0
    )
    codes = live[row] // 2
    weight = weigh(codes, propensity, np.zeros(codes.size, dtype=np.bool_), free_E)
    reasons = zip((live[row] % 2 == 1).tolist(), evenly.tolist(), (means[place] > _MASTERED).tolist(), strict=True)
    columns = (
        candidates.rows[place].tolist(),
        candidates.positions[place].tolist(),
        codes.tolist(),
        propensity.tolist(),
        weight.tolist(),
        [_reason(*flags) for flags in reasons],
    )
    return [Choice(*fields) for fields in zip(*columns, strict=True)], min(least, 1.0)


def repeat(pool: PromptPool, counts: Ints, spans: list[tuple[int, int]], rng: np.random.Generator) -> list[Choice]:
    """Draw evenly among all eligible prompts, in flight or not, each as rarely twice as can be."""
    choices: list[Choice] = []
    asked: list[int] = np.flatnonzero(counts).tolist()
    for code in asked:
        (start, stop), count = spans[code], int(counts[code])
        whole, rest = divmod(count, stop - start)
        positions = np.concatenate([np.tile(np.arange(start, stop), whole), sample_range(start, stop, [], rest, rng)])
        propensity = min(1.0, count / (stop - start))
        for position, row in zip(positions.tolist(), pool.rows(positions).tolist(), strict=True):
            choices.append(Choice(row, position, code, propensity, _REPEAT_WEIGHT, "repeat"))
    return choices


def weigh(codes: Ints, propensities: Floats, repeats: NDArray[np.bool_], free_E: Ints) -> Floats:
    """Weights of an ask's draws: the inverse propensity, relative to an even draw of as many prompts.

    Args:
        codes: Shape (n,), the draws' environments.
        propensities: Shape (n,).
        repeats: Shape (n,), draws of prompts that may be in flight; they are even already, and no part of the others.
        free_E: Eligible prompts of each environment that were not in flight.

    Returns:
        Shape (n,).

    >>> weigh(np.array([0, 0, 1]), np.array([0.5, 0.1, 1.0]), np.array([False, False, True]), np.array([10, 0]))
    array([0.4, 2. , 1. ])
    """
    drawn_E = np.bincount(codes[~repeats], minlength=len(free_E))
    even_E = drawn_E / np.maximum(free_E, 1)
    return np.where(repeats, _REPEAT_WEIGHT, even_E[codes] / propensities)


def _reason(unseen: bool, evenly: bool, mastered: bool) -> Reason:
    if unseen:
        return "explore"
    if not evenly:
        return "signal"
    return "review" if mastered else "probe"
