"""The keys of a pool as a column: 16-byte digests, text or numbers as they were given, or none at all."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from curricula.columns import is_array, texts_of
from curricula.keys import DIGEST_BYTES, stable_keys, text_digest

Digests = NDArray[np.uint64]
Rows = NDArray[np.int64]

_CHUNK = 1 << 16


class Identities(Protocol):
    """Stable identities of N prompts, in order."""

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The keys of these rows."""
        ...

    def digests(self, rows: Rows) -> Digests:
        """Eight bytes of each key's digest, shape (M,): what saved state names a prompt by."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """All keys as bytes, each with its length: what a pool's fingerprint is made of."""
        ...


class DigestKeys:
    """Keys of 16 bytes each, taken without a copy; they are written as 32 hexadecimal digits.

    >>> keys = DigestKeys(np.array([[7] * 16, [8] * 16, [7] * 16], dtype=np.uint8))
    >>> [key[-4:] for key in keys.texts([0, 1, 2])]
    ['0707', '0808', '07#2']
    """

    def __init__(self, digests_N16: NDArray[np.uint8]) -> None:
        self._digests = digests_N16
        self._first = cast(Digests, digests_N16.view("<u8")[:, 0])
        self._ordinals = _ordinals(digests_N16, self._first)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The keys of these rows."""
        digits = self._digests[rows].tobytes().hex()
        width = 2 * DIGEST_BYTES
        texts = [digits[start : start + width] for start in range(0, len(digits), width)]
        if self._ordinals:
            ordinals = [self._ordinals.get(row) for row in rows]
            texts = [f"{text}#{n}" if n else text for text, n in zip(texts, ordinals, strict=True)]
        return texts

    def digests(self, rows: Rows) -> Digests:
        """The first eight bytes of each key; of a repeated one, of its text's digest."""
        digests = self._first[rows]
        if self._ordinals:
            again = np.flatnonzero(np.isin(rows, list(self._ordinals)))
            digests[again] = _short(self.texts(rows[again].tolist()))
        return digests

    def chunks(self) -> Iterator[bytes]:
        """As of the same keys in text."""
        repeated = np.array(sorted(self._ordinals), dtype=np.int64)
        for start in range(0, len(self._digests), _CHUNK):
            stop = min(start + _CHUNK, len(self._digests))
            if repeated.searchsorted(start) < repeated.searchsorted(stop):
                yield packed(self.texts(range(start, stop)))
            else:
                lengths = np.full(stop - start, 2 * DIGEST_BYTES, dtype="<i8")
                yield lengths.tobytes() + self._digests[start:stop].tobytes().hex().encode()


class _Hashed:
    """Digests of keys that are text, made once for each row that is asked for."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: Digests | None = None

    def texts(self, rows: Sequence[int]) -> list[str]:
        raise NotImplementedError

    def digests(self, rows: Rows) -> Digests:
        """Eight bytes of each key's digest."""
        if self._known is None:
            self._known = np.zeros(self._size, dtype=np.uint64)
        fresh = rows[self._known[rows] == 0]
        if fresh.size:
            self._known[fresh] = _short(self.texts(fresh.tolist()))
        return self._known[rows]


class TextKeys(_Hashed):
    """Distinct keys of text or numbers."""

    def __init__(self, column: object) -> None:
        super().__init__(len(cast(Sequence[object], column)))
        self._column = cast(Any, column)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The keys of these rows."""
        if hasattr(self._column, "to_pylist"):
            return [str(self._column[row].as_py()) for row in rows]
        return [str(self._column[row]) for row in rows]

    def chunks(self) -> Iterator[bytes]:
        """All keys."""
        for start in range(0, self._size, _CHUNK):
            yield packed(texts_of(self._column, start, start + _CHUNK))


class NumberedKeys(_Hashed):
    """Prompts known by their environment and row alone."""

    def __init__(self, names: Sequence[str], codes: NDArray[Any]) -> None:
        super().__init__(len(codes))
        self._names, self._codes = names, codes

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The keys of these rows."""
        return [f"{self._names[code]}:{row}" for code, row in zip(self._codes[rows].tolist(), rows, strict=True)]

    def chunks(self) -> Iterator[bytes]:
        """Nothing: environments and their order say all."""
        return iter(())


def identify(keys: object | None, texts: object | None, names: Sequence[str], codes: NDArray[Any]) -> Identities:
    """Take a column of keys, else hash the texts, else number the rows; keys that are not distinct get ordinals."""
    if keys is None and texts is None:
        return NumberedKeys(names, codes)
    if keys is None:
        return DigestKeys(_text_digests(texts, names, codes))
    if (digests := _as_digests(keys)) is not None:
        return DigestKeys(digests)
    if is_array(keys) and keys.dtype.kind in "iu" and _distinct_numbers(keys):
        return TextKeys(keys)
    if hasattr(keys, "to_pylist") and _distinct_arrow(cast(Any, keys)):
        return TextKeys(keys)
    return TextKeys(stable_keys(texts_of(keys, 0, len(cast(Sequence[object], keys)))))


def packed(texts: Sequence[str]) -> bytes:
    """Texts as bytes, their lengths in front, so that no two lists of as many texts are the same bytes."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.array([len(part) for part in parts], dtype="<i8").tobytes() + b"".join(parts)


def _as_digests(keys: object) -> NDArray[np.uint8] | None:
    """Shape (N, 16), where keys are 16 bytes each: numpy's S16 or V16, uint8 of that shape, or Arrow's binary[16]."""
    if hasattr(keys, "type") and str(cast(Any, keys).type) == f"fixed_size_binary[{DIGEST_BYTES}]":
        column = cast(Any, keys)
        if column.null_count:
            return None
        parts = [
            np.frombuffer(chunk.buffers()[1], np.uint8, len(chunk) * DIGEST_BYTES, chunk.offset * DIGEST_BYTES)
            for chunk in getattr(column, "chunks", [column])
            if len(chunk)
        ]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(-1, DIGEST_BYTES)
    if not is_array(keys):
        return None
    if keys.ndim == 1 and keys.dtype.kind in "SV" and keys.dtype.itemsize == DIGEST_BYTES:
        return np.ascontiguousarray(keys).view(np.uint8).reshape(-1, DIGEST_BYTES)
    if keys.dtype == np.uint8 and keys.ndim == 2 and keys.shape[1] == DIGEST_BYTES:
        return np.ascontiguousarray(keys)
    return None


def _ordinals(digests_N16: NDArray[np.uint8], first_N: Digests) -> dict[int, int]:
    """Ordinal, from 2, of each row whose digest an earlier row has."""
    ranked = np.sort(first_N)
    shared = np.unique(ranked[1:][ranked[1:] == ranked[:-1]])
    if not shared.size:
        return {}
    counts: dict[bytes, int] = {}
    ordinals: dict[int, int] = {}
    for start in range(0, len(first_N), _CHUNK):
        part = first_N[start : start + _CHUNK]
        found = shared[np.minimum(shared.searchsorted(part), shared.size - 1)] == part
        for row in (start + np.flatnonzero(found)).tolist():
            digest = digests_N16[row].tobytes()
            if (count := counts.get(digest, 0) + 1) > 1:
                ordinals[row] = count
            counts[digest] = count
    return ordinals


def _text_digests(texts: object, names: Sequence[str], codes: NDArray[Any]) -> NDArray[np.uint8]:
    digests = np.empty((len(codes), DIGEST_BYTES), dtype=np.uint8)
    for start in range(0, len(codes), _CHUNK):
        part = texts_of(texts, start, start + _CHUNK)
        owners: list[int] = codes[start : start + _CHUNK].tolist()
        joined = b"".join(text_digest(text, names[code]) for text, code in zip(part, owners, strict=True))
        digests[start : start + len(part)] = np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_BYTES)
    return digests


def _distinct_numbers(numbers: NDArray[Any]) -> bool:
    if bool((numbers[1:] > numbers[:-1]).all()):
        return True
    ranked = np.sort(numbers)
    return bool((ranked[1:] > ranked[:-1]).all())


def _distinct_arrow(column: Any) -> bool:
    if str(column.type) not in ("string", "large_string", "string_view", "int64", "int32", "uint64", "uint32"):
        return False
    import pyarrow.compute as pc  # pyright: ignore[reportMissingTypeStubs]

    return column.null_count == 0 and cast(Any, pc).count_distinct(column).as_py() == len(column)


def _short(texts: Iterable[str]) -> Digests:
    """Eight bytes that stand for a key: of 32 hexadecimal digits the first, of other text a hash."""
    return np.frombuffer(b"".join(map(_eight, texts)), dtype="<u8").astype(np.uint64)


def _eight(text: str) -> bytes:
    if len(text) == 2 * DIGEST_BYTES:
        try:
            digest = bytes.fromhex(text)
        except ValueError:
            digest = b""
        if digest.hex() == text:
            return digest[:8]
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
