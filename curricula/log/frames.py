"""The journal: events appended to a file one frame each, so that what was written before a crash can be read.

A frame is a head (kind, moment, length, checksum) and a payload. A file that a crash cut short ends with a frame
that is not whole; it is left out. Where whole frames lie behind a damaged one, they are read, and a warning says so.
"""

import json
import logging
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError

_logger = logging.getLogger("curricula")

START = b"curricula journal 1\n"
_HEAD = struct.Struct("<BQII")
_LENGTH = struct.Struct("<I")
_KINDS = (1, 2, 3)
_LEAST = _LENGTH.size + len('{"columns":[]}')  # shortest payload: zeros are no frame, though their checksum fits


class Frame(NamedTuple):
    """One event: its kind, when it came in the order of all events, named values, and named columns."""

    kind: int
    moment: int
    values: dict[str, Any]
    columns: dict[str, NDArray[Any]]


def encode(kind: int, moment: int, values: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> bytes:
    """An event as the bytes of a frame.

    >>> frame = encode(1, 7, {"ask": 3}, {"row": np.array([4, 5])})
    >>> [(f.kind, f.moment, f.values["ask"], f.columns["row"].tolist()) for f in frames(START + frame + b"torn")]
    [(1, 7, 3, [4, 5])]
    """
    shapes = [[name, column.dtype.str, column.size] for name, column in columns.items()]
    head = json.dumps({**values, "columns": shapes}, separators=(",", ":")).encode()
    payload = b"".join([_LENGTH.pack(len(head)), head, *[column.data for column in columns.values() if column.size]])
    return _HEAD.pack(kind, moment, len(payload), zlib.crc32(payload)) + payload


def frames(content: bytes, path: Path | None = None) -> Iterator[Frame]:
    """The whole frames of a journal's content; one warning, naming `path`, where damaged ones lie between them.

    What is not whole at the end is what a crash or a write under way leaves, and nothing is said of it.
    """
    place, last, lost = len(START), None, 0
    while place + _HEAD.size <= len(content):
        if not _whole(content, place):
            behind = _behind(content, place, last or 0)
            if behind is None:
                break
            lost += _between(content, place, behind, last)
            place = behind
        kind, last, length, _ = _HEAD.unpack_from(content, place)
        place += _HEAD.size + length
        yield _decode(kind, last, memoryview(content)[place - length : place])
    if lost:
        _logger.warning(
            "%s: damaged; about %d events in the middle of it cannot be read and are left out, the rest is read",
            path or "a journal",
            lost,
        )


def read_journal(path: Path) -> bytes:
    """A journal's content; CurriculaValueError where the file is none. One that was only begun is empty."""
    content = path.read_bytes()
    if content[: len(START)] != START[: len(content)]:
        raise CurriculaValueError(f"{path}: expected a journal of an outcome log; got other content; move it away")
    return content


class Journal:
    """A file that frames are appended to; each append is one write to the system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0))
        self.append(START)

    def append(self, content: bytes) -> None:
        """Append; what was handed to the system survives the end of the process, however it comes.

        Raises:
            OSError: The system does not take it.
        """
        view = memoryview(content)
        while view:
            view = view[os.write(self._file, view) :]

    def flush(self) -> None:
        """Flush to disk, so that it survives the end of the machine too."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close. What it holds is flushed to disk with the part that it becomes."""
        os.close(self._file)


def _whole(content: bytes, place: int) -> bool:
    if place + _HEAD.size > len(content):
        return False
    kind, _, length, checksum = _HEAD.unpack_from(content, place)
    start = place + _HEAD.size
    if kind not in _KINDS or length < _LEAST or start + length > len(content):
        return False
    return zlib.crc32(memoryview(content)[start : start + length]) == checksum


def _behind(content: bytes, place: int, last: int) -> int | None:
    """Where the next whole frame begins behind a damaged one; None where there is none.

    It is where the damaged frame's length says or, where that is damaged too, at the first place that begins like a
    frame of a later moment and has the checksum of one.
    """
    following = place + _HEAD.size + _HEAD.unpack_from(content, place)[2]
    if _whole(content, following) and _HEAD.unpack_from(content, following)[1] > last:
        return following
    count = len(content) - place - _HEAD.size
    if count <= 0:
        return None
    octets = np.frombuffer(content, dtype=np.uint8, offset=place + 1)
    # No run has 2^40 events: the upper bytes of a moment are 0, which few other places share.
    likely = np.isin(octets[:count], np.array(_KINDS, dtype=np.uint8))
    for ahead in (6, 7, 8):
        likely &= octets[ahead : ahead + count] == 0
    for offset in np.flatnonzero(likely).tolist():
        found = place + 1 + offset
        if last < _HEAD.unpack_from(content, found)[1] and _whole(content, found):
            return found
    return None


def _between(content: bytes, place: int, behind: int, last: int | None) -> int:
    """How many frames were lost between two places: moments count them, as far as so many fit in."""
    before = _HEAD.unpack_from(content, place)[1] - 1 if last is None else last
    missing = _HEAD.unpack_from(content, behind)[1] - before - 1
    return missing if 1 <= missing <= 1 + (behind - place) // (_HEAD.size + _LEAST) else 1


def _decode(kind: int, moment: int, payload: memoryview) -> Frame:
    (length,) = _LENGTH.unpack_from(payload, 0)
    place = _LENGTH.size + length
    values = cast(dict[str, Any], json.loads(bytes(payload[_LENGTH.size : place])))
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype, size in values.pop("columns"):
        columns[name] = np.frombuffer(payload, dtype=np.dtype(dtype), count=size, offset=place) if size else np.empty(0)
        place += columns[name].nbytes if size else 0
    return Frame(kind, moment, values, columns)
