"""Which prompts were visited, so that candidates can be drawn among them alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs import Belief
from curricula.beliefs.sums import window_sums
from curricula.choosing.sampling import sample_range
from curricula.pool import PromptPool
from curricula.stateful import Reader

Ints = NDArray[np.int64]


class Visited:
    """Positions of the visited prompts of each block of the pool, in the order of their first visits.

    >>> visited = Visited(PromptPool(["a"] * 5, levels=[0, 0, 0, 1, 1]))
    >>> visited.add(np.array([3, 1, 4]))
    >>> visited.within(np.array([[0, 1]])), visited.sample((0, 2), 9, np.random.default_rng(0))
    (array([1]), array([4, 1, 3]))
    """

    def __init__(self, pool: PromptPool) -> None:
        self.pool = pool
        self._dtype = np.int32 if len(pool) <= np.iinfo(np.int32).max else np.int64
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._positions: list[NDArray[np.signedinteger[Any]]] = [np.zeros(0, dtype=self._dtype)] * len(
            self.pool.block_sizes
        )
        self._counts_B: Ints = np.zeros(len(self._positions), dtype=np.int64)

    def add(self, rows: Ints) -> None:
        """Enter distinct rows that were not visited before."""
        positions, blocks = self.pool.positions(rows), self.pool.blocks[rows]
        present: list[int] = blocks.tolist()
        for block in set(present):
            here = positions[blocks == block]
            count = int(self._counts_B[block])
            held = self._positions[block]
            if count + here.size > held.size:
                # Growing by half keeps the mean cost of an entry constant.
                most = int(self.pool.block_sizes[block])
                room = np.zeros(min(max(3 * held.size // 2, count + here.size, 64), most), dtype=self._dtype)
                room[:count] = held[:count]
                self._positions[block] = held = room
            held[count : count + here.size] = here
            self._counts_B[block] += here.size

    def within(self, windows_E2: Ints) -> Ints:
        """How many were visited in each environment's range of blocks, shape (E,)."""
        if len(self._counts_B) == len(windows_E2):
            return self._counts_B
        return window_sums(self._counts_B[None].astype(np.float64), windows_E2)[0].astype(np.int64)

    def sample(self, blocks: tuple[int, int], size: int, rng: np.random.Generator) -> Ints:
        """A simple random sample of the positions in a range of blocks, in random order; all of them if no more."""
        counts = self._counts_B[blocks[0] : blocks[1]]
        ends = counts.cumsum()
        total = int(ends[-1])
        ranks = sample_range(0, total, [], min(size, total), rng)
        if counts.size == 1:
            return self._positions[blocks[0]][ranks].astype(np.int64)
        inside = ends.searchsorted(ranks, side="right")
        result = np.empty_like(ranks)
        for place in np.unique(inside).tolist():
            here = inside == place
            result[here] = self._positions[blocks[0] + place][ranks[here] - (ends[place] - counts[place])]
        return result

    def agree(self, state: Reader, beliefs: Belief) -> None:
        """Raise CheckpointError where these are not the prompts that beliefs have evidence of."""
        count = int(self._counts_B.sum())
        known = all(
            beliefs.seen(self.pool.rows(held[: int(size)].astype(np.int64))).all()
            for held, size in zip(self._positions, self._counts_B, strict=True)
        )
        state.ensure("visited", "the prompts that beliefs have evidence of", known and count == beliefs.visited)

    def state_dict(self) -> dict[str, Any]:
        """Rows in the order of their first visits, block by block."""
        parts = [held[: int(count)] for held, count in zip(self._positions, self._counts_B, strict=True)]
        return {"order": self.pool.rows(np.concatenate(parts).astype(np.int64)).astype(np.int64)}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        rows = state.array("order", np.int64, (None,), high=len(self.pool) - 1)
        state.ensure("order", "distinct rows", len(np.unique(rows)) == rows.size)
        self.clear()
        self.add(rows)
