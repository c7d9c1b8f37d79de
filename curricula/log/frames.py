"""The journal: events appended to a file one frame each, so that what was written before a crash can be read.

A frame is a head (kind, moment, length, checksum) and a payload. A file that a crash cut short ends with a frame
that is not whole; it and what follows are left out.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError

START = b"curricula journal 1\n"
_HEAD = struct.Struct("<BQII")
_LENGTH = struct.Struct("<I")


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


def frames(content: bytes) -> Iterator[Frame]:
    """The whole frames of a journal's content, up to the first that is not."""
    place = len(START)
    while place + _HEAD.size <= len(content):
        kind, moment, length, checksum = _HEAD.unpack_from(content, place)
        place += _HEAD.size
        payload = memoryview(content)[place : place + length]
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        place += length
        yield _decode(kind, moment, payload)


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


def _decode(kind: int, moment: int, payload: memoryview) -> Frame:
    (length,) = _LENGTH.unpack_from(payload, 0)
    place = _LENGTH.size + length
    values = cast(dict[str, Any], json.loads(bytes(payload[_LENGTH.size : place])))
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype, size in values.pop("columns"):
        columns[name] = np.frombuffer(payload, dtype=np.dtype(dtype), count=size, offset=place) if size else np.empty(0)
        place += columns[name].nbytes if size else 0
    return Frame(kind, moment, values, columns)
