"""Prompts' texts as sparse counts of hashed words."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.columns import texts_of
from curricula.errors import CurriculaValueError
from curricula.pool import PromptPool

Rows = NDArray[np.int64]

_MOST_CHARACTERS = 16_384
_MOST_CACHED = 1 << 23


class HashedTexts:
    """Rows of the pool as a sparse matrix: words and pairs of words, hashed into buckets, each row of length 1.

    A word that comes c times counts log(1 + c), so that long prompts are not made of "the".

    Hashing takes about a tenth of a millisecond a prompt, so it is done for the rows that are asked for, once: their
    entries are cached, the oldest leaving when there are more than 8 million of them (64 MiB).
    """

    def __init__(self, pool: PromptPool, buckets: int) -> None:
        if pool.texts is None:
            raise CurriculaValueError("predictor: expected a pool with texts, to hash them; got one without")
        self._texts = pool.texts
        self.buckets = buckets
        self._cache: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}
        self._cached = 0
        self._vectorizer: Any = None

    def matrix(self, rows: Rows) -> Any:
        """CSR matrix of rows (M,), shape (M, buckets), float32."""
        from scipy.sparse import csr_matrix  # pyright: ignore[reportMissingTypeStubs]

        wanted: list[int] = rows.tolist()
        missing = [row for row in dict.fromkeys(wanted) if row not in self._cache]
        fresh = self._hash(missing)
        parts = [fresh[row] if row in fresh else self._cache[row] for row in wanted]
        indptr = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(indices) for indices, _ in parts], out=indptr[1:])
        none = (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
        indices, data = (np.concatenate([part[place] for part in [none, *parts]]) for place in (0, 1))
        result = csr_matrix((data, indices, indptr), shape=(len(parts), self.buckets))
        self._remember(fresh)
        return result

    def _hash(self, rows: list[int]) -> dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]]:
        if not rows:
            return {}
        if self._vectorizer is None:
            from sklearn.feature_extraction import text  # pyright: ignore[reportMissingTypeStubs]

            make = cast(Any, text).HashingVectorizer
            self._vectorizer = make(n_features=self.buckets, ngram_range=(1, 2), norm=None, dtype=np.float32)
        texts = read_texts(self._texts, rows)
        hashed = self._vectorizer.transform(texts)
        data = np.sign(hashed.data) * np.log1p(np.abs(hashed.data))
        places = np.repeat(np.arange(len(texts)), np.diff(hashed.indptr))
        lengths = np.sqrt(np.bincount(places, weights=data * data, minlength=len(texts)))
        data = (data / lengths[places]).astype(np.float32)
        starts = cast("list[int]", hashed.indptr.tolist())
        # Copies: a view would keep the whole batch alive for one row of it.
        return {
            row: (hashed.indices[start:stop].astype(np.int32), data[start:stop].copy())
            for row, start, stop in zip(rows, starts[:-1], starts[1:], strict=True)
        }

    def _remember(self, fresh: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]]) -> None:
        self._cache |= fresh
        self._cached += sum(len(indices) for indices, _ in fresh.values())
        while self._cached > _MOST_CACHED:
            oldest = next(iter(self._cache))
            self._cached -= len(self._cache.pop(oldest)[0])


def read_texts(column: object, rows: Sequence[int]) -> list[str]:
    """Texts of some rows of a column, at once where it can; of a longer text the first 16,384 characters.

    >>> read_texts(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    if hasattr(column, "take"):
        found = cast(Any, column).take(np.asarray(rows, dtype=np.int64))
        texts = texts_of(found, 0, len(found))
    else:
        texts = [texts_of(column, row, row + 1)[0] for row in rows]
    return [text[:_MOST_CHARACTERS] for text in texts]
