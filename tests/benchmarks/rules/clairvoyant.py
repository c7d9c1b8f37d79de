"""An upper reference that sees what a group of a visited prompt would give."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule


class Clairvoyant(Rule):
    """Sees the worth of a group of each prompt at present once the prompt was visited, and must visit each once.

    A share `first_visits` of the draws goes to unseen prompts at random at the least; the rest goes to the prompts
    of highest worth, an unseen one being worth the mean of the pool, ties at random.
    """

    name = "clairvoyant"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        super().__init__(pool, group_size, rng)
        self.worth = np.zeros(len(pool))
        self.first_visits = 0.0
        self._owed = 0.0

    def reveal(self, worth: Floats) -> None:
        """Be told the worth (N,) of a group of each prompt, until the next call."""
        self.worth = worth

    def _choose(self, n: int, free: Rows) -> Rows:
        unseen = ~self.seen[free]
        count = int(min(max(self._owed + n * self.first_visits, 0.0), n, unseen.sum()))
        first = self.rng.choice(free[unseen], count, replace=False)
        rest = np.setdiff1d(free, first, assume_unique=True)
        worth = np.where(self.seen[rest], self.worth[rest], self.worth.mean())
        chosen = np.concatenate([first, self.top(n - count, rest, worth)])
        # First visits beyond the share are paid in advance.
        self._owed += n * self.first_visits - float((~self.seen[chosen]).sum())
        return chosen

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        return
