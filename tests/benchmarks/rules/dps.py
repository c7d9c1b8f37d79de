"""DPS: a hidden Markov model of each prompt's progress."""

import numpy as np

from curricula import PromptPool
from rules.base import Floats, Rows, Rule

_UNSOLVED, _PARTIAL, _SOLVED = 0, 1, 2


class Dps(Rule):
    """The prompts most likely in the state "partially solved" of a three-state chain.

    Dynamics-Predictive Sampling, arXiv 2603.10887. A group all wrong, mixed or all right is an observation of the
    state without noise. The transition matrix of each prompt has Dirichlet columns A, Dirichlet(1, 1, 1) at first;
    P = A / column sums. Where a prompt is observed in state s after the distribution q one unit of time before:
    A <- 0.7 A + 0.3 + X with X = (e_s q') * P over its sum. Where it is not: A <- 0.7 A + 0.3. The next prediction is
    P e_s, or P applied to the last prediction. The batch is the n highest predictions of "partially solved".
    """

    name = "dps"

    def __init__(self, pool: PromptPool, group_size: int, rng: np.random.Generator, decay: float = 0.7) -> None:
        super().__init__(pool, group_size, rng)
        self.decay = decay
        self.counts = np.ones((len(pool), 3, 3))
        self.before = np.full((len(pool), 3), 1.0 / 3.0)
        self.predicted = np.full((len(pool), 3), 1.0 / 3.0)
        self._fresh = np.zeros(len(pool), dtype=np.bool_)
        # What a solved share of a partially solved prompt is, for forecasts of the pass rate.
        self._partial_sums = np.array([0.5, 1.0])

    def _choose(self, n: int, free: Rows) -> Rows:
        return self.top(n, free, self.predicted[free, _PARTIAL])

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        state = np.where(passed == 0.0, _UNSOLVED, np.where(passed == tried, _SOLVED, _PARTIAL))
        each = np.arange(rows.size)
        # X has one row that is not 0: the one of the observed state.
        counted = self.before[rows] * _columns(self.counts[rows])[each, state]
        counts = self.decay * self.counts[rows] + (1.0 - self.decay)
        counts[each, state] += counted / counted.sum(axis=1, keepdims=True)
        self.counts[rows] = counts
        self.before[rows] = np.eye(3)[state]
        self.predicted[rows] = _columns(counts)[each, :, state]
        self._fresh[rows] = True
        mixed = state == _PARTIAL
        self._partial_sums += ((passed / tried)[mixed].sum(), mixed.sum())

    def _step(self) -> None:
        rows = np.flatnonzero(~self._fresh)
        self.counts[rows] = self.decay * self.counts[rows] + (1.0 - self.decay)
        self.before[rows] = self.predicted[rows]
        self.predicted[rows] = np.einsum("kij,kj->ki", _columns(self.counts[rows]), self.predicted[rows])
        self._fresh[:] = False

    def forecast(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,)."""
        partial = self.predicted[rows, _PARTIAL]
        typical = self._partial_sums[0] / self._partial_sums[1]
        return self.predicted[rows, _SOLVED] + typical * partial, partial


def _columns(counts: Floats) -> Floats:
    return counts / counts.sum(axis=1, keepdims=True)
