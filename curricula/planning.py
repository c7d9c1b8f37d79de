"""From shares to prompts: how many draws each environment gets, and which prompts they fall on."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.config import SelectionConfig
from curricula.filters import chance_rates, holds_back
from curricula.learner import Learner
from curricula.pool import PromptPool
from curricula.records import Reason
from curricula.sampling import (
    PADDING,
    alike,
    allocate,
    draw_weights,
    even_parts,
    inclusion_probabilities,
    sample_range,
    systematic,
)
from curricula.tickets import Tickets

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]

_MASTERED = 0.9


class Choice(NamedTuple):
    """One chosen prompt: its row, its position and environment, its propensity, weight (mean 1) and reason."""

    row: int
    position: int
    code: int
    propensity: float
    weight: float
    reason: Reason


class Candidates(NamedTuple):
    """Prompts that may be drawn, shape (M,) each: where they are, what is believed of them, what they are worth."""

    positions: Ints
    rows: Ints
    means: Floats
    scores: Floats
    unseen: NDArray[np.bool_]


class Planner:
    """Chooses prompts in two phases, so that the probability of each is known exactly.

    In each environment, m of the N eligible prompts are drawn at random as candidates, with m the number of draws
    times `candidates`. They are scored, and draws are made among them with inclusion probabilities that follow the
    scores softly; a fraction `probe` of the draws is spread evenly. The propensity is m / N times the probability
    among candidates. It is conditional on how many draws the environment got.
    """

    def __init__(self, pool: PromptPool, config: SelectionConfig) -> None:
        self.pool, self.config = pool, config
        self._holds = holds_back(config.filters)

    def plan(
        self,
        count: int,
        group_size: int,
        shares: Floats,
        spans: list[tuple[int, int]],
        tickets: Tickets,
        learner: Learner,
        rng: np.random.Generator,
    ) -> list[Choice]:
        """Choose `count` prompts, in random order.

        Args:
            count: How many.
            group_size: Rollouts per group.
            shares: Shape (E,), of sum 1.
            spans: Range of eligible positions of each environment.
            tickets: What is in flight.
            learner: What is believed of pass rates and costs.
            rng: The only source of randomness.
        """
        taken = [tickets.taken(*span) for span in spans]
        free = np.array([stop - start - len(out) for (start, stop), out in zip(spans, taken, strict=True)])
        fresh = settle(allocate(shares, count, rng), free, shares, rng)
        choices: list[Choice] = []
        if codes := np.flatnonzero(fresh).tolist():
            sizes = np.minimum(free, fresh * self.config.candidates)
            parts = [sample_range(*spans[code], taken[code], int(sizes[code]), rng) for code in codes]
            candidates = self._score(np.concatenate(parts), group_size, learner)
            choices = self._choose(codes, fresh[codes], sizes[codes], free[codes], candidates, rng)
        if (missing := count - len(choices)) > 0:
            choices += self._repeat(allocate(shares, missing, rng), spans, rng)
        # Hosts split a batch over ranks and micro-batches: no part of it should hold one environment only.
        return [choices[place] for place in rng.permutation(count).tolist()]

    def chances(self, scores_EM: Floats, counts_E: Ints, sizes_E: Ints) -> Floats:
        """Probability that each candidate is drawn, shape (E, M), for scores padded with `PADDING`."""
        even = even_parts(scores_EM, counts_E, sizes_E, self.config.probe)
        if even is not None:
            scores_EM = np.where(scores_EM > PADDING, np.maximum(scores_EM, 0.0), PADDING)
        weights = draw_weights(scores_EM, counts_E, self.config.temperature)
        return inclusion_probabilities(weights, counts_E, sizes_E, self.config.probe, even)

    def scores(self, positions: Ints, group_size: int, learner: Learner) -> Floats:
        """What each of these positions is worth as a candidate, shape (M,); minus its rate where it is held back."""
        return self._score(positions, group_size, learner).scores

    def _score(self, positions: Ints, group_size: int, learner: Learner) -> Candidates:
        objective, rows = self.config.objective, self.pool.rows(positions)
        means, scores = learner.beliefs.assess(rows, group_size, objective.normaliser)
        held = self._held_back(rows, group_size, means, scores, learner)
        if objective.type == "uniform":
            scores = np.ones(rows.size)
        elif learner.rule.mode == "informative":
            scores = means
        if objective.type == "signal_per_token":
            scores = scores / learner.costs.prompts(rows)
        if held is not None:
            scores = np.where(held < 1.0, -held, scores)
        return Candidates(positions, rows, means, scores, ~learner.beliefs.seen(rows))

    def _held_back(
        self, rows: Ints, group_size: int, means: Floats, signals: Floats, learner: Learner
    ) -> Floats | None:
        """Rate at which each prompt is drawn by chance, shape (M,), 1 where it is not held back; None where none is."""
        if not self._holds:
            return None
        if learner.rule.mode == "informative":
            # What is believed is the chance of an informative group; there is no pass rate to cap.
            return chance_rates(np.zeros(rows.size), means, self.config.filters)
        if self.config.objective.normaliser != "group":
            signals = learner.beliefs.assess(rows, group_size, "group").signals
        return chance_rates(means, signals, self.config.filters)

    def _choose(
        self, codes: list[int], counts: Ints, sizes: Ints, free: Ints, candidates: Candidates, rng: np.random.Generator
    ) -> list[Choice]:
        """Draw among candidates that stand environment by environment; counts, sizes and free are per environment."""
        config = self.config
        starts = sizes.cumsum() - sizes
        place = np.empty(int(counts.sum()), dtype=np.int64)
        chance, evenness = np.empty(place.size), np.ones(place.size)
        ends = counts.cumsum()
        for part in alike(sizes):
            count_P, size_P = counts[part], sizes[part]
            held = np.arange(int(size_P.max())) < size_P[:, None]
            scores = np.full(held.shape, PADDING)
            if len(part) == len(sizes):
                scores[held] = candidates.scores
            else:
                scores[held] = np.concatenate([candidates.scores[starts[e] : starts[e] + sizes[e]] for e in part])
            chances = self.chances(scores, count_P, size_P)
            drawn = systematic(chances, count_P, rng)
            row, column = np.divmod(drawn, held.shape[1])
            # Draws stand environment by environment, as the candidates do.
            where = np.arange(drawn.size) + np.repeat(ends[part] - count_P.cumsum(), count_P)
            place[where] = starts[part][row] + column
            chance[where] = chances.ravel()[drawn]
            if (even := even_parts(scores, count_P, size_P, config.probe)) is not None:
                evenness[where] = even.ravel()[drawn]
        rate = np.repeat(counts / sizes, counts)
        # Which part of its probability a draw came from is a coin of exactly that bias.
        evenly = rng.random(place.size) * chance < config.probe * rate * evenness
        reasons = (candidates.unseen[place].tolist(), evenly.tolist(), (candidates.means[place] > _MASTERED).tolist())
        columns = (
            candidates.rows[place].tolist(),
            candidates.positions[place].tolist(),
            np.repeat(codes, counts).tolist(),
            np.minimum(np.repeat(sizes / free, counts) * chance, 1.0).tolist(),
            (rate / chance).tolist(),
            [_reason(*flags) for flags in zip(*reasons, strict=True)],
        )
        return [Choice(*fields) for fields in zip(*columns, strict=True)]

    def _repeat(self, counts: Ints, spans: list[tuple[int, int]], rng: np.random.Generator) -> list[Choice]:
        """Draw evenly among all eligible prompts, in flight or not, each as rarely twice as can be."""
        choices: list[Choice] = []
        for code in np.flatnonzero(counts).tolist():
            (start, stop), count = spans[code], int(counts[code])
            whole, rest = divmod(count, stop - start)
            positions = np.concatenate(
                [np.tile(np.arange(start, stop), whole), sample_range(start, stop, [], rest, rng)]
            )
            propensity = min(1.0, count / (stop - start))
            for position, row in zip(positions.tolist(), self.pool.rows(positions).tolist(), strict=True):
                choices.append(Choice(row, position, code, propensity, 1.0, "repeat"))
        return choices


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


def _reason(unseen: bool, evenly: bool, mastered: bool) -> Reason:
    if unseen:
        return "explore"
    if not evenly:
        return "signal"
    return "review" if mastered else "probe"
