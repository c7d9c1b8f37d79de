"""How many draws visited and unvisited prompts of each environment get, and the probability of each candidate."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.candidates import Candidates
from curricula.choosing.competing import unseen_among_best
from curricula.choosing.sampling import PADDING, alike, allocate, draw_weights, even_parts, inclusion_probabilities
from curricula.config import SelectionConfig

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WHOLE = 1e-9


class Strata(NamedTuple):
    """Draws among the candidates of each kind: R = 2 E of them, visited and not, environment by environment.

    Attributes:
        counts_R: Draws.
        chances: For each kind, the probability of each of its candidates to be among those draws.
        evens: For each kind, what part of that is spread by chance.
        stated: For each kind, the probability of each of its candidates, whichever whole number of draws the kind
            had got; it is what a draw's propensity says.
    """

    counts_R: Ints
    chances: list[Floats]
    evens: list[Floats]
    stated: list[Floats]


def expected_draws(
    candidates: Candidates, scores: Floats, counts_E: Ints, explored_E: Floats | None, probe: float
) -> Floats:
    """Mean draws of each kind, given those of the environments.

    Prompts never visited get the part `explored`, or as many as there are of them among the best candidates of the
    environment if that is more. Both kinds get at least `probe` of what part of the prompts they are: neither is shut
    out, however good the other looks.

    Args:
        candidates: M of them.
        scores: What each is worth, shape (M,).
        counts_E: Draws of each environment, at most its candidates.
        explored_E: At least this part of them for prompts never visited; None: the part of the prompts that they are.
        probe: Fraction of the draws that is spread by chance.

    Returns:
        Shape (2 E,).
    """
    sizes_E2, unseen_E = candidates.sizes_E2, candidates.unseen_E
    if explored_E is None:
        fresh_E = counts_E * unseen_E
    else:
        fresh_E = np.maximum(counts_E * explored_E, unseen_among_best(scores, sizes_E2, counts_E))
        fresh_E = np.clip(fresh_E, counts_E * probe * unseen_E, counts_E * (1.0 - probe * (1.0 - unseen_E)))
    fresh_E = np.clip(fresh_E, counts_E - sizes_E2[:, 0], np.minimum(sizes_E2[:, 1], counts_E))
    return np.stack([counts_E - fresh_E, fresh_E], axis=1).reshape(-1)


def stratify(
    candidates: Candidates, scores: Floats, expected_R: Floats, config: SelectionConfig, rng: np.random.Generator
) -> Strata:
    """Whole numbers of draws that are `expected_R` on average, and the probabilities of all candidates."""
    # One number for the two kinds of an environment: what one gets more, the other gets less.
    fresh_E = np.floor(expected_R[1::2] + rng.random(expected_R.size // 2))
    total_E = np.rint(expected_R.reshape(-1, 2).sum(axis=1))
    counts_R = np.stack([total_E - fresh_E, fresh_E], axis=1).reshape(-1).astype(np.int64)
    least_R, more_R = whole_draws(expected_R)
    other_R = np.where(counts_R > least_R, least_R, least_R + 1)
    split = more_R > 0.0
    own, other = np.flatnonzero(counts_R > 0), np.flatnonzero(split & (other_R > 0))
    kinds = np.concatenate([own, other])
    counts = np.concatenate([counts_R[own], other_R[other]])
    chances: list[Floats] = [np.zeros(0)] * counts_R.size
    evens, stated = chances.copy(), chances.copy()
    likely_R = np.where(split, np.where(counts_R > least_R, more_R, 1.0 - more_R), 1.0)
    for place, (chance, even) in enumerate(_by_kind(scores, candidates.sizes_E2.reshape(-1), kinds, counts, config)):
        kind = int(kinds[place])
        if place < own.size:
            chances[kind], evens[kind], stated[kind] = chance, even, likely_R[kind] * chance
        else:
            rest = (1.0 - likely_R[kind]) * chance
            stated[kind] = stated[kind] + rest if stated[kind].size else rest
    return Strata(counts_R, chances, evens, stated)


def whole_draws(expected_R: Floats) -> tuple[Ints, Floats]:
    """The lower of the two whole numbers around each mean number of draws, and the probability of the higher one.

    >>> whole_draws(np.array([2.25, 3.0]))
    (array([2, 3]), array([0.25, 0.  ]))
    """
    least_R = np.floor(expected_R + _WHOLE).astype(np.int64)
    more_R = np.maximum(expected_R - least_R, 0.0)
    return least_R, np.where(more_R > _WHOLE, more_R, 0.0)


def inclusion(scores_RM: Floats, counts_R: Ints, config: SelectionConfig) -> tuple[Floats, Floats]:
    """Probability of each candidate in each row, and the part of it that is spread by chance, shape (R, M) each."""
    sizes_R = (scores_RM > PADDING).sum(axis=1)
    even_RM = even_parts(scores_RM, counts_R, sizes_R, config.probe)
    weights = draw_weights(scores_RM, counts_R, config.temperature)
    chance = inclusion_probabilities(weights, counts_R, sizes_R, config.probe, even_RM)
    rate = np.broadcast_to((config.probe * counts_R / sizes_R)[:, None], chance.shape)
    return chance, rate if even_RM is None else rate * even_RM


def settle(counts: Ints, free: Ints, shares: Floats, rng: np.random.Generator) -> Ints:
    """Hand draws that an environment cannot fill to those that have prompts left, by their shares.

    Args:
        counts: Shape (E,), draws wanted.
        free: Shape (E,), prompts that can be drawn.
        shares: Shape (E,), of sum 1.
        rng: Used only when something is missing.

    Returns:
        Shape (E,), at most `free`; of the same sum as `counts` unless nothing is left anywhere.
    """
    settled = np.minimum(counts, free)
    while (missing := int(counts.sum() - settled.sum())) > 0 and (room := free - settled).any():
        extra = allocate(np.where(room > 0, shares + 1e-9, 0.0), missing, rng)
        settled += np.minimum(extra, room)
    return settled


def _by_kind(
    scores: Floats, sizes_R: Ints, kinds: Ints, counts: Ints, config: SelectionConfig
) -> list[tuple[Floats, Floats]]:
    """Probabilities and their even parts for each of these kinds and numbers of draws."""
    result: list[tuple[Floats, Floats]] = [(np.zeros(0), np.zeros(0))] * kinds.size
    starts_R = sizes_R.cumsum() - sizes_R
    for part in alike(sizes_R[kinds]) if kinds.size else []:
        rows = kinds[part]
        places = np.arange(int(sizes_R[rows].max()))
        held = places < sizes_R[rows][:, None]
        padded = np.where(held, scores.take(starts_R[rows][:, None] + places, mode="clip"), PADDING)
        chance, even = inclusion(padded, counts[part], config)
        for place, (row, at) in enumerate(zip(rows.tolist(), part.tolist(), strict=True)):
            size = int(sizes_R[row])
            result[at] = chance[place, :size], even[place, :size]
    return result
