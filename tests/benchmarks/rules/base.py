"""What every selection rule is to a benchmark: it chooses prompts, and sees what came of those it chose."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from curricula import PromptPool

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Rule(ABC):
    """A selection rule over the prompts of a pool.

    A rule sees nothing but `observe`. Rules with a clock count units of time: a unit is one training step where
    `pace` is 1; a benchmark in which the policy moves more slowly sets a smaller `pace`, the units that go by with
    each call of `observe`.

    Args:
        pool: The prompts.
        group_size: Rollouts per group.
        rng: The rule's only source of randomness; ties are broken with it.
    """

    name: ClassVar[str]
    refill: ClassVar[bool] = False
    """Whether the host draws on until it has n informative groups; every draw counts as a cost."""

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator) -> None:
        self.pool, self.group_size, self.rng = pool, group_size, rng
        self.seen = np.zeros(len(pool), dtype=np.bool_)
        self.pace = 1.0
        self._time = 0.0

    def choose(self, n: int, exclude: Rows | None = None) -> Rows:
        """Rows of n distinct prompts, none of them in `exclude`."""
        free = np.ones(len(self.pool), dtype=np.bool_)
        if exclude is not None:
            free[exclude] = False
        rows = np.flatnonzero(free)
        if n > rows.size:
            raise ValueError(f"{self.name}: expected to choose at most {rows.size} prompts; got n = {n}")
        return self._choose(n, rows)

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats | None = None) -> None:
        """See the results of groups: successes (K, G) in [0, 1], NaN where a rollout is missing, at rows (K,)."""
        live = ~np.isnan(successes_KG)
        self._learn(rows, np.where(live, successes_KG, 0.0).sum(axis=1), live.sum(axis=1).astype(np.float64))
        self.seen[rows] = True
        self._time += self.pace
        while self._time >= 1.0 - 1e-9:
            self._time -= 1.0
            self._step()

    @abstractmethod
    def _choose(self, n: int, free: Rows) -> Rows:
        """Choose n of the rows (M,) that are free."""

    @abstractmethod
    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        """Learn successes (K,) of rollouts (K,) at distinct rows (K,)."""

    def _step(self) -> None:
        """One unit of time went by for every prompt."""
        return

    def top(self, n: int, free: Rows, scores: Floats) -> Rows:
        """The n rows of highest score (M,), ties at random."""
        return free[np.lexsort((self.rng.random(free.size), -scores))[:n]]

    def weighted(self, n: int, free: Rows, weights: Floats) -> Rows:
        """Draw n rows one after the other in proportion to their positive weights (M,), without replacement.

        Exponential races: the n smallest of Exp(1) / weight are such a draw (Efraimidis and Spirakis 2006).
        """
        return free[np.argsort(self.rng.exponential(size=free.size) / weights)[:n]]
