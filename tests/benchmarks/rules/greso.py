"""GRESO: skipping prompts that were of no use in a row."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule

_STEP, _LOW, _HIGH = 0.01, 0.05, 0.95


class Greso(Rule):
    """A shuffled pass over the pool that skips prompts after consecutive zero-variance groups.

    GRESO, arXiv 2506.02177: a prompt whose last z groups had zero variance is skipped with probability 1 - p^z, with
    p = p_easy where the last group was all right and p_hard where it was all wrong. Both start at 0.5; after every
    batch each moves by 0.01 within [0.05, 0.95], down where the share of such groups in the batch is at least its
    target (25% in all, a third of it easy, two thirds hard), up otherwise. A skipped prompt waits for the next pass.
    """

    name = "greso"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.streak = np.zeros(len(pool), dtype=np.int64)
        self.easy = np.zeros(len(pool), dtype=np.bool_)
        self.explore = {"easy": 0.5, "hard": 0.5}
        self.targets = {"easy": 0.25 / 3.0, "hard": 0.5 / 3.0}
        self._stream = rng.permutation(len(pool))

    def _choose(self, n: int, free: Rows) -> Rows:
        chosen: list[Rows] = []
        eligible = np.zeros(len(self.pool), dtype=np.bool_)
        eligible[free] = True
        missing = n
        while missing:
            if not self._stream.size:
                self._stream = self.rng.permutation(len(self.pool))
            stay = np.where(self.easy[self._stream], self.explore["easy"], self.explore["hard"])
            taken = self.rng.random(self._stream.size) < stay ** self.streak[self._stream]
            places = np.flatnonzero(taken & eligible[self._stream])[:missing]
            rows = self._stream[places]
            # What is busy at the moment stands first in what is left of the pass, as a loader would yield it later.
            end = int(places[-1]) + 1 if places.size == missing else self._stream.size
            busy = self._stream[:end][taken[:end] & ~eligible[self._stream[:end]]]
            self._stream = self._stream[end:] if end == self._stream.size else np.append(busy, self._stream[end:])
            eligible[rows] = False
            missing -= rows.size
            chosen.append(rows)
        return np.concatenate(chosen)

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        easy, hard = passed == tried, passed == 0.0
        self.streak[rows] = np.where(easy | hard, self.streak[rows] + 1, 0)
        self.easy[rows] = easy
        for kind, found in (("easy", easy), ("hard", hard)):
            step = -_STEP if found.mean() >= self.targets[kind] else _STEP
            self.explore[kind] = min(max(self.explore[kind] + step, _LOW), _HIGH)
