"""Prompts of one pool found again in another, by the digests of their keys."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CheckpointError
from curricula.pool import PromptPool

Ints = NDArray[np.int64]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Remap:
    """From the rows and environments of the saved pool to those of today's; -1 where they are gone.

    Attributes:
        pool: Today's.
        rows_V: Rows of the saved pool that the state speaks of, ascending.
        found_V: Rows of today's pool with the same keys.
        names: Environments of the saved pool.
        codes: Today's code of each.
        renamed: New name of environments whose prompts are all in one that has another name.
    """

    pool: PromptPool
    rows_V: Ints
    found_V: Ints
    names: list[str]
    codes: Ints
    renamed: dict[str, str]

    @property
    def moves(self) -> bool:
        """Whether codes mean other environments than before."""
        return len(self.names) != len(self.pool.environments) or bool((self.codes != np.arange(len(self.names))).any())

    def row(self, rows: Ints, place: str) -> Ints:
        """Today's rows of saved ones."""
        at = np.minimum(self.rows_V.searchsorted(rows), self.rows_V.size - 1)
        if (self.rows_V[at] != rows).any():
            raise CheckpointError(f"{place}: expected rows that state.keys names; got others")
        return self.found_V[at]


def find_digests(digests: NDArray[np.uint64], pool: PromptPool) -> Ints:
    """Row of a pool for each digest of a key, shape (V,); -1 where there is none."""
    order = np.argsort(digests, kind="stable")
    ranked, found = digests[order], np.full(digests.size, -1, dtype=np.int64)
    for start in range(0, len(pool) if digests.size else 0, _CHUNK):
        part = pool.key_digests(np.arange(start, min(start + _CHUNK, len(pool))))
        at = np.minimum(ranked.searchsorted(part), ranked.size - 1)
        hits = np.flatnonzero(ranked[at] == part)
        found[order[at[hits]]] = start + hits
    return found


def find_renamed(names: list[str], before: Ints, now: Ints, pool: PromptPool) -> dict[str, str]:
    """New name of each environment that is gone where all of its prompts that are found are in one that is new."""
    renamed: dict[str, str] = {}
    for code, name in enumerate(names):
        homes = np.unique(now[before == code])
        if name not in pool.environments and homes.size == 1:
            home = pool.environments[int(homes[0])]
            if home not in names and home not in renamed.values():
                renamed[name] = home
    return renamed
