"""Which levels of each environment are eligible: state of one curriculum, over a pool that never changes."""

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError
from curricula.pool import PromptPool
from curricula.records import whole
from curricula.stateful import MOST


class Windows:
    """Eligible levels per environment; all of them at first.

    Attributes:
        blocks_E2: Shape (E, 2), the range of the pool's blocks that is eligible.
        spans: The range of positions that those blocks cover, per environment.

    >>> windows = Windows(PromptPool(["a"] * 4, levels=[0, 1, 1, 2]))
    >>> windows.set("a", 1, 9)
    >>> windows.get("a"), windows.spans
    ((1, 2), [(1, 4)])
    """

    def __init__(self, pool: PromptPool) -> None:
        self.pool = pool
        self.blocks_E2: NDArray[np.int64] = pool.block_ranges_E2.copy()
        self.spans: list[tuple[int, int]] = [(int(a), int(b)) for a, b in pool.edges[self.blocks_E2]]

    def get(self, environment: str) -> tuple[int, int]:
        """Lowest and highest eligible level that has prompts; (0, 0) where the pool has no levels."""
        low, high = self.blocks_E2[self.pool.code(environment)]
        return int(self.pool.block_levels[low]), int(self.pool.block_levels[high - 1])

    def set(self, environment: str, low: int, high: int) -> None:
        """Make levels low to high (both included) the eligible ones.

        Raises:
            CurriculaValueError: An unknown environment, a pool without levels, or a window that holds no prompt.
        """
        code = self.pool.code(environment)
        place = f"environments.{environment}.levels"
        low, high = (whole(place, name, level, low=-MOST) for name, level in (("low", low), ("high", high)))
        if not self.pool.has_levels:
            raise CurriculaValueError(
                f"{place}: expected prompts that have levels, to draw levels {low} to {high} of; got data that has no "
                "`level` column; add one, or leave levels out"
            )
        self.restore(code, self.pool.find_window(environment, low, high))

    def copy(self, other: "Windows", code: int) -> None:
        """Take over what another, of the same pool, has for an environment."""
        self.blocks_E2[code], self.spans[code] = other.blocks_E2[code], other.spans[code]

    def restore(self, code: int, blocks: tuple[int, int]) -> None:
        """Make a range of blocks of an environment the eligible one."""
        self.blocks_E2[code] = blocks
        self.spans[code] = int(self.pool.edges[blocks[0]]), int(self.pool.edges[blocks[1]])
