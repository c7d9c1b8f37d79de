"""Which prompts were visited, so that candidates can be drawn among them alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs.sums import window_sums
from curricula.pool import PromptPool
from curricula.sampling import sample_range
from curricula.stateful import Reader

Ints = NDArray[np.int64]


class Visited:
    """Positions of the visited prompts of each environment, in the order of their first visits.

    >>> visited = Visited(PromptPool(["a"] * 5))
    >>> visited.add(np.array([3, 1]))
    >>> visited.sample(0, 9, np.random.default_rng(0)).tolist()
    [3, 1]
    """

    def __init__(self, pool: PromptPool) -> None:
        self.pool = pool
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._positions: list[Ints] = [np.zeros(0, dtype=np.int64) for _ in self.pool.environments]
        self.counts_E: Ints = np.zeros(len(self._positions), dtype=np.int64)
        self._counts_B: Ints = np.zeros(len(self.pool.block_sizes), dtype=np.int64)

    def add(self, rows: Ints) -> None:
        """Enter distinct rows that were not visited before."""
        codes = self.pool.codes[rows]
        for code in set(codes.tolist()):
            here = rows[codes == code]
            count = int(self.counts_E[code])
            held = self._positions[code]
            if count + here.size > held.size:
                # Doubling keeps the mean cost of an entry constant.
                room = np.zeros(max(2 * held.size, count + here.size, 64), dtype=np.int64)
                room[:count] = held[:count]
                self._positions[code] = held = room
            held[count : count + here.size] = self.pool.positions(here)
            self.counts_E[code] += here.size
        np.add.at(self._counts_B, self.pool.blocks[rows], 1)

    def within(self, windows_E2: Ints) -> Ints:
        """How many were visited in each environment's range of blocks, shape (E,)."""
        if len(self._counts_B) == len(self.counts_E):
            return self.counts_E
        return window_sums(self._counts_B[None].astype(np.float64), windows_E2)[0].astype(np.int64)

    def sample(self, code: int, size: int, rng: np.random.Generator) -> Ints:
        """A simple random sample of an environment's positions, or all of them where there are no more than `size`."""
        count = int(self.counts_E[code])
        held = self._positions[code][:count]
        return held if size >= count else held[sample_range(0, count, [], size, rng)]

    def state_dict(self) -> dict[str, Any]:
        """Rows in the order of their first visits, environment by environment."""
        parts = [held[: int(count)] for held, count in zip(self._positions, self.counts_E, strict=True)]
        return {"order": self.pool.rows(np.concatenate(parts)).astype(np.int64)}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        rows = state.array("order", np.int64, (None,), high=len(self.pool) - 1)
        state.ensure("order", "distinct rows", len(np.unique(rows)) == rows.size)
        self.clear()
        self.add(rows)
