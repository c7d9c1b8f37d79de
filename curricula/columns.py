"""Reading the columns of a pool: plain sequences, numpy arrays, and pyarrow arrays without importing pyarrow."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError

Codes = NDArray[np.signedinteger[Any]]

_CHUNK = 1 << 16


def encode_names(column: object, name: str) -> tuple[tuple[str, ...], Codes]:
    """Encode a column of names as sorted distinct names and a code per row.

    Args:
        column: Sequence of str, numpy array of str, or pyarrow array (dictionary-encoded ones are not expanded).
        name: What the column is called, for errors.

    Returns:
        The names in sorted order, and codes of shape (N,): a dictionary's own where they stand in two or four
        bytes each, else in as few as they need.

    Raises:
        CurriculaValueError: An empty column, or an entry that is not a name.

    >>> encode_names(["b", "a", "b"], "environments")
    (('a', 'b'), array([1, 0, 1], dtype=int16))
    """
    if hasattr(column, "dictionary_encode"):
        found, codes = decode_arrow(column)
    elif is_array(column) and column.dtype.kind in "UT":
        found, codes = _encode_texts(column)
    else:
        index: dict[object, int] = {}
        codes: Codes = np.fromiter(
            (index.setdefault(value, len(index)) for value in _iterate(column, name)), dtype=np.int32
        )
        found = list(index)
    if codes.size == 0:
        raise CurriculaValueError(f"{name}: expected at least one prompt; got none")
    used = count_codes(codes, len(found)) > 0
    for code, value in enumerate(found):
        if used[code] and (not isinstance(value, str) or not value):
            row = int(np.argmax(codes == code))
            raise CurriculaValueError(f"{name}: expected a name (str) in row {row}; got {value!r}")
    if (codes < 0).any():
        raise CurriculaValueError(f"{name}: expected a name (str) in row {int(np.argmax(codes < 0))}; got None")
    names = sorted(str(value) for code, value in enumerate(found) if used[code])
    rank = {value: code for code, value in enumerate(names)}
    table = np.array([rank.get(str(value), -1) for value in found], dtype=np.int32)
    if np.array_equal(table, np.arange(len(table))):
        return tuple(names), codes if _is_dictionary(column) else narrowed(codes, len(names))
    return tuple(names), narrowed(table, len(names))[codes]


def narrowed(codes: NDArray[np.integer[Any]], count: int) -> Codes:
    """Codes below `count`, of shape (N,), in two bytes each where these hold them, else in four; a copy only if needed.

    >>> narrowed(np.array([0, 1, 1]), 2).dtype, narrowed(np.array([0, 70000]), 70001).dtype
    (dtype('int16'), dtype('int32'))
    """
    return codes.astype(np.int16 if count <= 1 << 15 else np.int32, copy=False)


def count_codes(codes: Codes, count: int) -> NDArray[np.int64]:
    """Entries of each code, shape (count,); negative ones are left out."""
    counts = np.zeros(count, dtype=np.int64)
    # In parts: bincount makes a copy in eight bytes.
    for start in range(0, len(codes), _CHUNK):
        part = codes[start : start + _CHUNK]
        counts += np.bincount(part[part >= 0], minlength=count)
    return counts


def _encode_texts(column: NDArray[Any]) -> tuple[list[object], NDArray[np.int32]]:
    """Codes and names of a numpy array of str, read in parts: it may be memory-mapped."""
    index: dict[str, int] = {}
    codes = np.empty(len(column), dtype=np.int32)
    for start in range(0, len(column), _CHUNK):
        values, inverse = np.unique(column[start : start + _CHUNK], return_inverse=True)
        table = np.array([index.setdefault(str(value), len(index)) for value in values], dtype=np.int32)
        codes[start : start + _CHUNK] = table[inverse]
    return list(index), codes


def unwrapped(column: object) -> object:
    """The Arrow column behind a column of a Hugging Face data set; anything else as it is."""
    source, name = getattr(column, "source", None), getattr(column, "column_name", None)
    if isinstance(name, str) and hasattr(source, "with_format"):
        return cast(Any, source).select_columns([name]).with_format("arrow")[:][name]
    return column


def is_array(column: object) -> TypeGuard[NDArray[Any]]:
    """Whether a column is a numpy array."""
    return isinstance(column, np.ndarray)


def whole_numbers(column: object, name: str, length: int) -> NDArray[np.integer[Any]]:
    """Read a column of integers of the given length; raise CurriculaValueError for anything else."""
    arrow = hasattr(column, "to_pylist")
    try:
        # What holds a null comes as floats or objects, and is refused with those.
        values = np.asarray(cast(Any, column).to_numpy() if arrow else column)
    except ValueError:
        values = np.empty(0, dtype=object)
    if values.shape != (length,) or values.dtype.kind not in "iu":
        raise CurriculaValueError(
            f"{name}: expected {length} integers, one per prompt; got {values.dtype} of shape {values.shape}"
        )
    return values


def texts_of(column: object, start: int, stop: int) -> list[str]:
    """Rows start to stop of a column as text."""
    part = cast(Any, column)[start:stop]
    if hasattr(part, "to_pylist"):
        part = part.to_pylist()
    return [value if isinstance(value, str) else str(value) for value in part]


def length_of(column: object, name: str) -> int:
    """Length of a column, or CurriculaValueError when it has none."""
    try:
        return len(cast(Sequence[object], column))
    except TypeError as error:
        raise CurriculaValueError(f"{name}: expected a column with a length; got {type(column).__name__}") from error


def _iterate(column: object, name: str) -> Iterable[object]:
    if isinstance(column, (str, bytes)) or not hasattr(column, "__iter__"):
        raise CurriculaValueError(f"{name}: expected one name per prompt; got {column!r}")
    return (_hashable(value, name) for value in cast(Iterable[object], column))


def _hashable(value: object, name: str) -> object:
    try:
        hash(value)
    except TypeError as error:
        raise CurriculaValueError(f"{name}: expected names (str); got {value!r}") from error
    return str(value) if isinstance(value, str) else value


def _is_dictionary(column: object) -> bool:
    return str(getattr(column, "type", "")).startswith("dictionary")


def decode_arrow(column: Any) -> tuple[list[object], Codes]:
    """Codes and dictionary of a pyarrow Array or ChunkedArray; -1 marks nulls."""
    encoded: Any = column
    if not _is_dictionary(column):
        encoded = column.dictionary_encode()
    if hasattr(encoded, "unify_dictionaries"):
        encoded = encoded.unify_dictionaries().combine_chunks()
        if hasattr(encoded, "chunks"):
            encoded = encoded.chunk(0)
    indices: Any = encoded.indices
    codes: NDArray[Any] = (indices.fill_null(-1) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    # An unsigned index type has no room for -1, so nulls are marked after the cast.
    signed = codes if codes.dtype == np.int16 else codes.astype(np.int32, copy=False)
    if indices.null_count:
        signed = np.where(np.asarray(indices.is_null()), signed.dtype.type(-1), signed)
    found: list[object] = encoded.dictionary.to_pylist()
    return found, signed
