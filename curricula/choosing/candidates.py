"""Candidates for draws: random samples of the visited and of the unvisited prompts of each environment."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.sampling import sample_range
from curricula.choosing.situation import Situation
from curricula.config import SelectionConfig
from curricula.learner import Learner
from curricula.pool import PromptPool
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_UNSEEN_EACH, _FEW = 32, 4096


class Candidates(NamedTuple):
    """Prompts that may be drawn, environment by environment, in each the visited ones before the others.

    Attributes:
        positions: Shape (M,), in the pool's grouped order.
        rows: Shape (M,), rows of the pool.
        sizes_E2: Shape (E, 2), how many of each environment were visited, and how many not.
        reach_E2: Shape (E, 2), probability with which a prompt of each kind became a candidate.
        unseen_E: Shape (E,), part of the eligible prompts that was never visited.
    """

    positions: Ints
    rows: Ints
    sizes_E2: Ints
    reach_E2: Floats
    unseen_E: Floats


class Scout:
    """Samples candidates, and has those never visited looked at by the predictor before the next ask.

    How many are looked at goes with the draws, not with the pool: at most `candidates` visited ones a draw, in all no
    more than 8,192 or 16 a draw. Unvisited prompts all look alike without a prediction, so a few will do; with one,
    those of the next ask are sampled when this one is done, and predicted beside the step. What was in flight then and
    came back unvisited joins them with the probability that all others had to be sampled.
    """

    def __init__(self, pool: PromptPool, config: SelectionConfig) -> None:
        self.pool, self.config = pool, config
        count = len(pool.environments)
        self._ahead: Ints = np.zeros(0, dtype=np.int64)
        # Unvisited ones that could not be sampled then, because they were in flight; ascending.
        self._out: Ints = np.zeros(0, dtype=np.int64)
        self._sizes_E: Ints = np.zeros(count, dtype=np.int64)
        self._reach_E: Floats = np.zeros(count)
        self._spans_E2: Ints = np.zeros((count, 2), dtype=np.int64)

    def receive(self, learner: Learner) -> None:
        """Take what was predicted since the last ask as what is known of those prompts.

        Where the predictor has forgotten the candidates, so has the learner its visits: they are sampled anew.
        """
        if learner.predictor is None:
            return
        rows, predictions = learner.predictor.collect()
        if predictions.any():
            learner.beliefs.place(rows, predictions)
        if not np.array_equal(rows, self.pool.rows(self._ahead)):
            self._ahead = self._ahead[:0]

    def look(self, now: Situation, rng: np.random.Generator) -> Candidates:
        """Candidates for an ask, of whose draws each environment is expected to get its share.

        Changes nothing but the generator.
        """
        count, windows, learner = now.count, now.windows, now.learner
        environments = len(self.pool.environments)
        seen_E = learner.visited.within(windows.blocks_E2)
        spans = windows.spans
        wide_E = np.array([stop - start for start, stop in spans], dtype=np.int64)
        most = min(self.config.candidates * count, max(8192, 16 * count))
        part_E = np.ceil(most * (0.5 / environments + 0.5 * now.shares)).astype(np.int64)
        fresh_E = self._fresh(now)
        parts: list[Ints] = []
        sizes_E2, reach_E2 = np.zeros((environments, 2), dtype=np.int64), np.ones((environments, 2))
        ahead = self._take(spans) if learner.predictor is not None else None
        for code, span in enumerate(spans):
            taken = now.tickets.taken(*span)
            blocks = (int(windows.blocks_E2[code, 0]), int(windows.blocks_E2[code, 1]))
            known = self._known(blocks, int(part_E[code]), int(seen_E[code]), taken, learner, rng)
            left = int(wide_E[code] - seen_E[code])
            new, reach = np.zeros(0, dtype=np.int64), 1.0
            if left > 0:
                free = left - int((~learner.beliefs.seen(self.pool.rows(taken))).sum())
                # Whether those sampled ahead will do must not depend on which they are: it would change their odds.
                if ahead is not None and 2 * self._reach_E[code] * free >= min(left, int(fresh_E[code])):
                    reach = float(self._reach_E[code])
                    new = self._rejoin(self._free(ahead[code], taken, learner), span, taken, reach, learner, rng)
                else:
                    sample, reach = self._spread(span, int(fresh_E[code]), left, taken, rng)
                    new = self._free(sample, taken[:0], learner)
            parts += [known.positions, new]
            sizes_E2[code] = known.positions.size, new.size
            reach_E2[code] = known.reach, reach
        positions = np.concatenate(parts)
        unseen_E = np.clip(1.0 - seen_E / np.maximum(wide_E, 1), 0.0, 1.0)
        return Candidates(positions, self.pool.rows(positions), sizes_E2, reach_E2, unseen_E)

    def prepare(self, now: Situation, rng: np.random.Generator) -> None:
        """Sample the unvisited candidates of a next ask like this one, and have them predicted beside the step."""
        windows, learner = now.windows, now.learner
        if learner.predictor is None:
            return
        fresh_E = self._fresh(now)
        seen_E = learner.visited.within(windows.blocks_E2)
        parts: list[Ints] = []
        out: list[Ints] = []
        for code, (start, stop) in enumerate(windows.spans):
            part, reach = np.zeros(0, dtype=np.int64), 1.0
            if (left := stop - start - int(seen_E[code])) > 0:
                taken = now.tickets.taken(start, stop)
                part, reach = self._spread((start, stop), int(fresh_E[code]), left, taken, rng)
                part = self._free(part, taken[:0], learner)
                out.append(self._free(taken, taken[:0], learner))
            parts.append(part)
            self._sizes_E[code], self._reach_E[code] = part.size, reach
        self._spans_E2[:] = windows.spans
        self._ahead, self._out = np.concatenate(parts), np.concatenate([self._out[:0], *out])
        learner.predictor.request(self.pool.rows(self._ahead).astype(np.int64))

    def _fresh(self, now: Situation) -> Ints:
        """Unvisited candidates wanted in each environment, shape (E,)."""
        each = _UNSEEN_EACH if now.learner.predictor is not None or self.pool.has_levels else 2
        most = min(each * now.count, max(_FEW, 4 * now.count))
        return np.ceil(most * (0.5 / len(now.shares) + 0.5 * now.shares)).astype(np.int64) + 2

    def _take(self, spans: list[tuple[int, int]]) -> list[Ints] | None:
        """What was sampled for this ask, per environment; None where other prompts are eligible by now."""
        if not self._ahead.size or not np.array_equal(self._spans_E2, spans):
            return None
        return np.split(self._ahead, self._sizes_E.cumsum()[:-1])

    def _rejoin(
        self, sample: Ints, span: tuple[int, int], taken: Ints, reach: float, learner: Learner, rng: np.random.Generator
    ) -> Ints:
        """The sample, and a part `reach` of what was in flight when it was made and is free and unvisited now."""
        first, last = self._out.searchsorted(span)
        back = self._free(self._out[first:last], taken, learner)
        if not back.size:
            return sample
        return rng.permutation(np.concatenate([sample, back[rng.random(back.size) < reach]]))

    def _known(
        self, blocks: tuple[int, int], wanted: int, total: int, taken: Ints, learner: Learner, rng: np.random.Generator
    ) -> "Sample":
        """A simple random sample of the visited prompts in a range of blocks, those in flight left out."""
        if total == 0:
            return Sample(np.zeros(0, dtype=np.int64), 1.0)
        size = wanted
        if taken.size:
            # Those in flight are sampled along: so many more are sampled.
            out = int(learner.beliefs.seen(self.pool.rows(taken)).sum())
            size = -(-wanted * total // max(total - out, 1))
        positions = learner.visited.sample(blocks, size, rng)
        return Sample(_without(positions, taken), min(size / total, 1.0))

    def _spread(
        self, span: tuple[int, int], wanted: int, left: int, taken: Ints, rng: np.random.Generator
    ) -> tuple[Ints, float]:
        """A simple random sample of the eligible prompts that holds about so many unvisited ones, and its fraction."""
        start, stop = span
        free = stop - start - taken.size
        if free <= 0:
            return np.zeros(0, dtype=np.int64), 1.0
        size = min(free, -(-wanted * (stop - start) * 9 // (left * 8)) + 8, max(16 * wanted, _FEW))
        return sample_range(start, stop, taken, size, rng), size / free

    def _free(self, positions: Ints, taken: Ints, learner: Learner) -> Ints:
        positions = _without(positions, taken)
        return positions[~learner.beliefs.seen(self.pool.rows(positions))]

    def state_dict(self) -> dict[str, Any]:
        """The candidates that wait for the next ask."""
        return {
            "rows": self.pool.rows(self._ahead).astype(np.int64),
            "out": self.pool.rows(self._out).astype(np.int64),
            "sizes": self._sizes_E.copy(),
            "reach": self._reach_E.copy(),
            "spans": self._spans_E2.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        most = len(self.pool)
        rows = state.array("rows", np.int64, (None,), high=most - 1)
        out = state.array("out", np.int64, (None,), high=most - 1)
        sizes_E = state.array("sizes", np.int64, self._sizes_E.shape, high=most)
        reach_E = state.array("reach", np.float64, self._reach_E.shape, high=1.0)
        spans_E2 = state.array("spans", np.int64, self._spans_E2.shape, high=most)
        state.ensure("sizes", "as many as there are rows", int(sizes_E.sum()) == rows.size)
        state.ensure("reach", "more than 0 where there are rows", bool((reach_E[sizes_E > 0] > 0.0).all()))
        state.ensure("rows", "distinct rows", np.unique(np.concatenate([rows, out])).size == rows.size + out.size)
        positions, out = self.pool.positions(rows), self.pool.positions(out)
        low, high = np.repeat(spans_E2, sizes_E, axis=0).T
        inside = bool(((low <= positions) & (positions < high)).all())
        state.ensure("rows", "rows within the spans of their environments", inside)
        own_E2 = self.pool.edges[self.pool.block_ranges_E2]
        own = (own_E2[:, 0] <= spans_E2[:, 0]) & (spans_E2[:, 1] <= own_E2[:, 1])
        state.ensure("spans", "ranges of their environments", bool(own[sizes_E > 0].all()))
        state.ensure("out", "rows in the order of the pool's groups", bool((out[1:] > out[:-1]).all()))
        self._ahead, self._out = positions, out
        self._sizes_E, self._reach_E, self._spans_E2 = sizes_E, reach_E, spans_E2


class Sample(NamedTuple):
    """Positions, and the fraction of those eligible that they are expected to be."""

    positions: Ints
    reach: float


def _without(positions: Ints, taken: Ints) -> Ints:
    """Positions (M,) that are not among those taken, which ascend."""
    if not taken.size or not positions.size:
        return positions
    places = np.minimum(taken.searchsorted(positions), taken.size - 1)
    return positions[taken[places] != positions]
