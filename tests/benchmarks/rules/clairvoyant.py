"""Upper references that are told what a group of a visited prompt is worth."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule


class Clairvoyant(Rule):
    """Visits every prompt once, in random order; then the prompts whose groups are worth most at present.

    It is told the worth of every group before it chooses.
    """

    name = "clairvoyant"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.worth = np.zeros(len(pool))

    def reveal(self, worth: Floats) -> None:
        """Be told the worth (N,) of a group of each prompt, until the next call."""
        self.worth = worth

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.top(n, free, np.where(self.seen[free], self.worth[free], np.inf))

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        return


class Hindsight(Clairvoyant):
    """As clairvoyant, but the worth it is told comes from the groups before and after the present one."""

    name = "hindsight"
