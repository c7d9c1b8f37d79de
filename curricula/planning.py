"""From shares to prompts: how many draws each environment gets, and which prompts they fall on."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs import Assessment
from curricula.candidates import Candidates, Scout
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
from curricula.schedule import Schedule
from curricula.tickets import Tickets
from curricula.windows import Windows

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]

_MASTERED = 0.9
_UNRIPE = 0.4


class Choice(NamedTuple):
    """One chosen prompt: its row, its position and environment, its propensity, weight (mean 1) and reason."""

    row: int
    position: int
    code: int
    propensity: float
    weight: float
    reason: Reason


class Plan(NamedTuple):
    """What an ask draws, in random order, and the shares (E,) of the environments that it went by."""

    choices: list[Choice]
    shares: Floats


class Strata(NamedTuple):
    """Draws among the candidates of each environment, visited and not: R = 2 E rows, in that order.

    Attributes:
        counts_R: Draws.
        expected_R: What they are on average; whole numbers of draws stand for it.
        chances: For each row, the probability of each of its candidates to be drawn, given the count.
        evens: For each row, what part of that is spread by chance.
    """

    counts_R: Ints
    expected_R: Floats
    chances: list[Floats]
    evens: list[Floats]


class Planner:
    """Chooses prompts in two phases, so that the probability of each is known exactly.

    In each environment, candidates are sampled among the visited prompts and among those never visited (`Scout`).
    They are scored by expected signal plus `optimism` times its standard deviation, per token. An environment's draws
    are split between the two kinds: those never visited get what their scores earn them beside the visited ones, and
    at least the part `explore`, or what part of the prompts they are if that is less. In each kind, draws are made
    with inclusion probabilities that follow the scores softly; a fraction `probe` is spread by chance, so that nothing
    is absorbed: mastered and hopeless prompts come back, as do unvisited ones that look poor.

    The propensity is the probability to be a candidate times that among the candidates, times the expected over the
    actual number of draws of the kind. It is conditional on how many draws the environment got.
    """

    def __init__(self, pool: PromptPool, config: SelectionConfig) -> None:
        self.pool, self.config = pool, config
        self.scout = Scout(pool, config)
        self.least = 1.0  # smallest propensity that a candidate of the last ask had
        self._schedule = Schedule(config.schedule)
        self._holds = holds_back(config.filters)

    def plan(
        self,
        count: int,
        group_size: int,
        shares: Floats,
        windows: Windows,
        tickets: Tickets,
        learner: Learner,
        drawn: int,
        rng: np.random.Generator,
    ) -> Plan:
        """Choose `count` prompts.

        Args:
            count: How many.
            group_size: Rollouts per group.
            shares: Shape (E,), of sum 1.
            windows: What is eligible.
            tickets: What is in flight.
            learner: What is believed of pass rates and costs.
            drawn: Draws made before this ask.
            rng: The only source of randomness.
        """
        candidates = self.scout.look(count, shares, windows, tickets, learner, rng)
        choices: list[Choice] = []
        if candidates.rows.size:
            means, scores = self.score(candidates.rows, group_size, learner, drawn)
            if learner.mixer.compete:
                shares = learner.mixer.win(self._won(candidates, scores, count, learner))
            strata = self._split(candidates, scores, count, shares, drawn, rng)
            choices = self._draw(candidates, means, strata, windows, tickets, rng)
        if (missing := count - len(choices)) > 0:
            choices += self._repeat(allocate(shares, missing, rng), windows.spans, rng)
        # Hosts split a batch over ranks and micro-batches: no part of it should hold one environment only.
        return Plan([choices[place] for place in rng.permutation(count).tolist()], shares)

    def chances(
        self,
        asked: Ints,
        count: int,
        group_size: int,
        shares: Floats,
        windows: Windows,
        tickets: Tickets,
        learner: Learner,
        drawn: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Probability that an ask would draw each of these rows (R,); one sample of candidates, nothing is drawn.

        A row that is no candidate of the sample takes the place of one that is; its probability is then right given
        the others. Rows that are not eligible have 0. The other arguments are those of `plan`.
        """
        candidates = self.scout.look(count, shares, windows, tickets, learner, rng)
        _, scores = self.score(candidates.rows, group_size, learner, drawn)
        if learner.mixer.compete:
            shares = learner.mixer.win(self._won(candidates, scores, count, learner))
        strata = self._split(candidates, scores, count, shares, drawn, rng, asked=True)
        _, own = self.score(asked, group_size, learner, drawn)
        kinds = 2 * self.pool.codes[asked].astype(np.int64) + ~learner.beliefs.seen(asked)
        positions = self.pool.positions(asked)
        starts = np.concatenate([[0], candidates.sizes_E2.reshape(-1).cumsum()])
        reach_R = candidates.reach_E2.reshape(-1)
        result = np.zeros(asked.size)
        for place, (kind, position) in enumerate(zip(kinds.tolist(), positions.tolist(), strict=True)):
            start, stop = windows.spans[kind // 2]
            inside = start <= position < stop and position not in tickets.taken(start, stop)
            expected = float(strata.expected_R[kind])
            if not inside or expected <= 0.0 or starts[kind] == starts[kind + 1]:
                continue
            held = candidates.positions[starts[kind] : starts[kind + 1]]
            at = np.flatnonzero(held == position)
            if at.size:
                chance = float(strata.chances[kind][at[0]])
            else:
                row_scores = scores[starts[kind] : starts[kind + 1]].copy()
                row_scores[0] = own[place]
                chance = float(self._chances(row_scores[None], strata.counts_R[[kind]])[0][0, 0])
            result[place] = min(1.0, float(reach_R[kind]) * chance * expected / float(strata.counts_R[kind]))
        return result

    def score(self, rows: Ints, group_size: int, learner: Learner, drawn: int) -> tuple[Floats, Floats]:
        """Expected pass rates of rows (M,), and what they are worth as candidates; -r where held back at rate r."""
        objective = self.config.objective
        found = learner.beliefs.assess(rows, group_size, objective.normaliser)
        held = self._held_back(rows, group_size, found, learner)
        scores = found.signals + self.config.optimism * found.spreads
        if objective.type == "uniform":
            scores = np.ones(rows.size)
        elif learner.rule.mode == "informative":
            scores = found.means
        scores = scores * self._schedule.factor(found.means, drawn)
        if self._schedule.even(drawn):
            scores = np.ones(rows.size)
        elif objective.type == "signal_per_token":
            scores = scores / learner.costs.prompts(rows)
        if held is not None:
            scores = np.where(held < 1.0, -held, scores)
        return found.means, scores

    def _held_back(self, rows: Ints, group_size: int, found: Assessment, learner: Learner) -> Floats | None:
        """Rate at which each prompt is drawn by chance, shape (M,), 1 where it is not held back; None where none is."""
        if not self._holds:
            return None
        if learner.rule.mode == "informative":
            # What is believed is the chance of an informative group; there is no pass rate to cap.
            return chance_rates(np.zeros(rows.size), found.means, self.config.filters)
        signals = found.signals
        if self.config.objective.normaliser != "group":
            signals = learner.beliefs.assess(rows, group_size, "group").signals
        return chance_rates(found.means, signals, self.config.filters)

    def _won(self, candidates: Candidates, scores: Floats, count: int, learner: Learner) -> Floats:
        """Shares (E,) that environments win where all candidates compete for the draws by score times worth."""
        sizes_E = candidates.sizes_E2.sum(axis=1)
        worth = np.repeat(learner.mixer.worth(), sizes_E)
        value = np.where(scores > 0.0, scores * worth, 0.0)
        best = np.argpartition(-value, min(count, value.size) - 1)[:count]
        return np.bincount(np.repeat(np.arange(len(sizes_E)), sizes_E)[best], minlength=len(sizes_E)) / max(
            best.size, 1
        )

    def _split(
        self,
        candidates: Candidates,
        scores: Floats,
        count: int,
        shares: Floats,
        drawn: int,
        rng: np.random.Generator,
        asked: bool = False,
    ) -> Strata:
        """How many draws each kind of each environment gets, and with which probabilities; `asked`: at least one."""
        sizes_E2 = candidates.sizes_E2
        sizes_E = sizes_E2.sum(axis=1)
        if asked:
            counts_E = np.minimum(np.maximum(np.rint(shares * count), 1), sizes_E).astype(np.int64)
            mean_E = np.minimum(shares * count, sizes_E)
        else:
            counts_E = settle(allocate(shares, count, rng), sizes_E, shares, rng)
            mean_E = counts_E.astype(np.float64)
        if self.config.objective.type == "uniform":
            unseen_E = counts_E * candidates.unseen_E
        else:
            # The oftener the prompts were passed over, the longer a run is likely to go on, and knowledge to pay.
            ripe = max(_UNRIPE, 1.0 - float(np.exp(-drawn / len(self.pool))))
            unseen_E = counts_E * np.minimum(self.config.explore * ripe, candidates.unseen_E)
            earned_E = _unseen_among_best(scores, sizes_E2, counts_E)
            unseen_E = np.maximum(unseen_E, earned_E)
        unseen_E = np.clip(unseen_E, counts_E - sizes_E2[:, 0], np.minimum(sizes_E2[:, 1], counts_E))
        # Whole numbers that are right on average; both bounds are whole.
        fresh_E = np.floor(unseen_E + rng.random(len(unseen_E))).astype(np.int64)
        counts_R = np.stack([counts_E - fresh_E, fresh_E], axis=1).reshape(-1)
        expected_R = np.stack([counts_E - unseen_E, unseen_E], axis=1)
        expected_R *= (mean_E / np.maximum(counts_E, 1))[:, None]
        if asked:
            counts_R = np.clip(np.maximum(counts_R, 1), 0, sizes_E2.reshape(-1))
        sizes_R = sizes_E2.reshape(-1)
        chances: list[Floats] = [np.zeros(0)] * sizes_R.size
        evens: list[Floats] = [np.zeros(0)] * sizes_R.size
        starts = sizes_R.cumsum() - sizes_R
        live = np.flatnonzero(counts_R > 0)
        for part in alike(sizes_R[live]) if live.size else []:
            rows = live[part]
            size_P = sizes_R[rows]
            held = np.arange(int(size_P.max())) < size_P[:, None]
            padded = np.full(held.shape, PADDING)
            padded[held] = np.concatenate([scores[starts[row] : starts[row] + sizes_R[row]] for row in rows.tolist()])
            chance, even = self._chances(padded, counts_R[rows])
            for place, row in enumerate(rows.tolist()):
                chances[row], evens[row] = chance[place, : sizes_R[row]], even[place, : sizes_R[row]]
        return Strata(counts_R, expected_R.reshape(-1), chances, evens)

    def _chances(self, scores_RM: Floats, counts_R: Ints) -> tuple[Floats, Floats]:
        """Probability of each candidate, and the part of it that is spread by chance, shape (R, M) each."""
        probe = self.config.probe
        sizes_R = (scores_RM > PADDING).sum(axis=1)
        even_RM = even_parts(scores_RM, counts_R, sizes_R, probe)
        weights = draw_weights(scores_RM, counts_R, self.config.temperature)
        chance = inclusion_probabilities(weights, counts_R, sizes_R, probe, even_RM)
        rate = np.broadcast_to((probe * counts_R / sizes_R)[:, None], chance.shape)
        return chance, rate if even_RM is None else rate * even_RM

    def _draw(
        self,
        candidates: Candidates,
        means: Floats,
        strata: Strata,
        windows: Windows,
        tickets: Tickets,
        rng: np.random.Generator,
    ) -> list[Choice]:
        counts_R, sizes_R = strata.counts_R, candidates.sizes_E2.reshape(-1)
        live = np.flatnonzero(counts_R > 0)
        if not live.size:
            return []
        count_L, size_L = counts_R[live], sizes_R[live]
        # Rows laid end to end: each takes up as much room as it has draws.
        chance = np.concatenate([strata.chances[row] for row in live.tolist()])
        even = np.concatenate([strata.evens[row] for row in live.tolist()])
        drawn = systematic(chance, size_L, count_L, rng)
        starts = (sizes_R.cumsum() - sizes_R)[live]
        row = np.repeat(np.arange(live.size), count_L)
        place = drawn - (size_L.cumsum() - size_L)[row] + starts[row]
        # Which part of its probability a draw came from is a coin of exactly that bias.
        evenly = rng.random(drawn.size) * chance[drawn] < even[drawn]
        factor_L = candidates.reach_E2.reshape(-1)[live] * strata.expected_R[live] / count_L
        propensity = np.minimum(factor_L[row] * chance[drawn], 1.0)
        self.least = float(min(1.0, (np.minimum.reduceat(chance, size_L.cumsum() - size_L) * factor_L).min()))
        codes = live[row] // 2
        free_E = np.array([stop - start - tickets.taken(start, stop).size for start, stop in windows.spans])
        drawn_E = counts_R.reshape(-1, 2).sum(axis=1)
        weight = (drawn_E / np.maximum(free_E, 1))[codes] / propensity
        reasons = zip((live[row] % 2 == 1).tolist(), evenly.tolist(), (means[place] > _MASTERED).tolist(), strict=True)
        columns = (
            candidates.rows[place].tolist(),
            candidates.positions[place].tolist(),
            codes.tolist(),
            propensity.tolist(),
            weight.tolist(),
            [_reason(*flags) for flags in reasons],
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


def _unseen_among_best(scores: Floats, sizes_E2: Ints, counts_E: Ints) -> Floats:
    """How many of the `count` best candidates of each environment were never visited, shape (E,)."""
    result = np.zeros(len(counts_E))
    start = 0
    for code, ((known, new), count) in enumerate(zip(sizes_E2.tolist(), counts_E.tolist(), strict=True)):
        size = known + new
        if new and 0 < count < size:
            best = np.argpartition(-scores[start : start + size], count - 1)[:count]
            result[code] = (best >= known).sum()
        start += size
    return result


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
