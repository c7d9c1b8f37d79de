"""No-positive-resampling alone."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule


class NoPositive(Rule):
    """Uniform draws among prompts that never reached a pass rate of 0.9.

    ScaleRL, arXiv 2510.13786: prompts with pass rate >= 0.9 are removed for good. Where fewer are left than asked
    for, removed ones fill the batch.
    """

    name = "no_positive"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.removed = np.zeros(len(pool), dtype=np.bool_)

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.top(n, free, -self.removed[free].astype(np.float64))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        self.removed[rows] |= passed >= 0.9 * tried
