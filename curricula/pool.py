"""The prompts of a run: who they are, which environment they belong to, and random access to them."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curricula.columns import Codes, count_codes, encode_names, length_of, narrowed, unwrapped
from curricula.errors import CurriculaValueError
from curricula.identities import identify, packed
from curricula.levels import split_by_level

_CHUNK = 1 << 20


class PromptPool:
    """Columns of N prompts, grouped so that drawing from an environment costs the same at any N.

    Rows are ordered by (environment, level); the eligible levels of an environment are then one contiguous
    span of positions, and candidates are integers in that span. A pool never changes: which levels are eligible is
    state of each `Curriculum` on it.

    Columns may be memory-mapped: numpy arrays, pyarrow arrays and columns of Hugging Face data sets are read where
    they are. At 20 million prompts, environments as a dictionary and keys of 16 bytes are what takes least.

    Args:
        environments: Shape (N,), names; dictionary-encoded pyarrow arrays are taken without expansion.
        keys: Shape (N,), stable identities: text, numbers, or 16 bytes each (numpy's `S16` and `V16`, Arrow's
            `binary(16)`), which are written as hexadecimal digits. Duplicates get an ordinal. None hashes `texts`,
            else counts rows.
        texts: Shape (N,), the prompts as text.
        features: Shape (N, D), anything that predicts difficulty; read by the predictors that take features.
        levels: Shape (N,), integers, the difficulty of procedural prompts.

    Raises:
        CurriculaValueError: Columns of different length, no prompt at all, or entries of the wrong kind.

    >>> pool = PromptPool(["sums", "maths", "sums"], keys=["a", "b", "a"])
    >>> len(pool), pool.environments, pool.sizes, pool.key(2)
    (3, ('maths', 'sums'), {'maths': 1, 'sums': 2}, 'a#2')
    """

    def __init__(
        self,
        environments: object,
        keys: object | None = None,
        texts: object | None = None,
        features: object | None = None,
        levels: object | None = None,
    ) -> None:
        environments, keys, levels = unwrapped(environments), unwrapped(keys), unwrapped(levels)
        self.environments, self.codes = encode_names(environments, "environments")
        size = len(self.codes)
        for name, column in (("keys", keys), ("texts", texts), ("features", features), ("levels", levels)):
            if column is not None and (length := length_of(column, name)) != size:
                raise CurriculaValueError(f"{name}: expected {size} entries, one per environment entry; got {length}")
        self.texts, self.features = texts, features
        self._keys = identify(keys, texts, self.environments, self.codes)
        self._fingerprint: str | None = None
        count = len(self.environments)
        self.has_levels = levels is not None
        if levels is None:
            self.blocks: Codes = self.codes
            self.block_codes: NDArray[np.int64] = np.arange(count)
            self.block_levels: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        else:
            self.blocks, self.block_codes, self.block_levels = split_by_level(self.codes, count, levels)
        self.block_sizes = count_codes(self.blocks, len(self.block_codes))
        self.edges = np.concatenate([[0], np.cumsum(self.block_sizes)])
        self._order = _grouped(self.blocks)
        # Blocks are sorted by environment, so each environment is a range of blocks: shape (E, 2).
        first_block = np.searchsorted(self.block_codes, np.arange(count + 1))
        self.block_ranges_E2: NDArray[np.int64] = np.stack([first_block[:-1], first_block[1:]], axis=1)
        self._code = {name: code for code, name in enumerate(self.environments)}

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sizes(self) -> dict[str, int]:
        """Prompts per environment, eligible or not."""
        starts, stops = self.edges[self.block_ranges_E2.T]
        return {name: int(stops[code] - starts[code]) for name, code in self._code.items()}

    @property
    def fingerprint(self) -> str:
        """Hash of environments and keys in order; a state of a pool with another one is matched to this by keys."""
        if self._fingerprint is None:
            digest = hashlib.blake2b(packed(self.environments), digest_size=16)
            for start in range(0, len(self), _CHUNK):
                digest.update(self.codes[start : start + _CHUNK].astype("<i4").tobytes())
            for chunk in self._keys.chunks():
                digest.update(chunk)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def key(self, index: int) -> str:
        """Stable identity of the prompt in row `index`."""
        if not 0 <= index < len(self):
            raise CurriculaValueError(f"PromptPool.key: expected a row in [0, {len(self)}); got {index}")
        return self._keys.texts([index])[0]

    def keys_of(self, rows: Sequence[int]) -> list[str]:
        """Stable identities of the prompts in these rows."""
        return self._keys.texts(rows)

    def key_digests(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Eight bytes of each key's digest, shape (M,): what saved state names a prompt by."""
        return self._keys.digests(rows)

    def code(self, environment: str) -> int:
        """Code of an environment, or CurriculaValueError naming those that exist."""
        try:
            return self._code[environment]
        except KeyError:
            names = ", ".join(self.environments)
            raise CurriculaValueError(f"expected an environment of the pool ({names}); got {environment!r}") from None

    def find_window(self, environment: str, low: int, high: int) -> tuple[int, int]:
        """Range of blocks of levels low to high; CurriculaValueError where it holds no prompt."""
        first, last = self.block_ranges_E2[self.code(environment)].tolist()
        levels = self.block_levels[first:last]
        start, stop = np.searchsorted(levels, low, side="left"), np.searchsorted(levels, high, side="right")
        if start >= stop:
            raise CurriculaValueError(
                f"environments.{environment}.levels: expected a window that holds prompts, within {levels[0]} to "
                f"{levels[-1]}; got {low} to {high}"
            )
        return first + int(start), first + int(stop)

    def rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows at these positions of the grouped order."""
        return positions if self._order is None else self._order[positions].astype(np.int64)

    def position(self, row: int) -> int:
        """Position of a row in the grouped order."""
        if self._order is None:
            return row
        block = int(self.blocks[row])
        start, stop = self.edges[block], self.edges[block + 1]
        # A wider integer than the array's would make searchsorted copy the array.
        return int(start + np.searchsorted(self._order[start:stop], self._order.dtype.type(row)))

    def checked(self, where: str, indices: ArrayLike) -> NDArray[np.int64]:
        """Indices that were given, checked to be rows of the pool, shape (M,).

        Raises:
            CurriculaValueError: Others; the message begins with `where`.
        """
        rows = np.asarray(indices)
        if rows.size == 0:
            rows = rows.astype(np.int64)
        inside = not rows.size or (rows.dtype.kind in "iu" and 0 <= rows.min() <= rows.max() < len(self))
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not inside:
            raise CurriculaValueError(f"{where}: expected indices of shape (M,) in [0, {len(self)}); got {indices!r}")
        return rows.astype(np.int64)

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of rows (M,) in the grouped order, shape (M,)."""
        order = self._order
        if order is None:
            return rows
        # Rows ascend within a block, so all are searched by halves together.
        blocks = self.blocks[rows]
        low, high = self.edges[blocks], self.edges[blocks + np.int64(1)]
        while bool((low < high - 1).any()):
            middle = (low + high) >> 1
            below = order[middle] <= rows
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return low


def _grouped(blocks: Codes) -> NDArray[np.int32] | NDArray[np.int64] | None:
    """Row order by block, or None where rows are already grouped."""
    if blocks.size < 2 or bool((blocks[1:] >= blocks[:-1]).all()):
        return None
    # Two-byte integers are sorted by radix: linear in N, where four bytes would be N log N.
    order = np.argsort(narrowed(blocks, int(blocks.max()) + 1), kind="stable")
    return order.astype(np.int32) if blocks.size < 1 << 31 else order
