"""Keys of a data set's rows, hashed once: a file of 16 bytes a row that later runs map into memory.

The folder is `~/.cache/curricula` (`$XDG_CACHE_HOME/curricula` where that is set); the environment variable
CURRICULA_CACHE names another, and `off` keeps no files. It may be deleted at any time.
"""

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curricula.keys import DIGEST_BYTES

Digests = NDArray[np.uint8]

LEAST_ROWS = 20_000
"""Hashing fewer rows takes less than a second, and leaves no file."""

MOST_BYTES = 4 << 30
"""Bound of the folder: the files that were longest not used go first."""

_CHUNK = 1 << 24
_ABANDONED = 24 * 3600.0
_logger = logging.getLogger("curricula")


def cache_folder() -> Path | None:
    """Where keys are kept; None where that is switched off."""
    chosen = os.environ.get("CURRICULA_CACHE", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "curricula"


def cached_keys(name: str, rows: int, fill: Callable[[Digests], None], check: Callable[[Digests], bool]) -> Digests:
    """Keys of `rows` rows, shape (N, 16): from the cache, else filled in and kept there.

    Several processes may do so at once: a file is made beside its place and renamed, and who comes later replaces it
    by one that says the same.

    Args:
        name: What the keys are of; another name is another file.
        rows: N.
        fill: Writes the keys into an array.
        check: Whether keys from a file are those of the data, by a few of them.
    """
    folder = cache_folder() if rows >= LEAST_ROWS else None
    path = None if folder is None else folder / f"keys-{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}.npy"
    if path is not None and (found := _read(path, rows)) is not None:
        if check(found):
            _logger.info("keys of %d rows come from %s", rows, path)
            return found
        _logger.warning("%s holds the keys of other rows: they are hashed again", path)
    digests = np.empty((rows, DIGEST_BYTES), dtype=np.uint8)
    fill(digests)
    if path is not None:
        try:
            _write(path, digests)
        except OSError as error:
            _logger.warning("keys are not cached: %s (CURRICULA_CACHE names another folder, or is off)", error)
    return digests


def _write(path: Path, digests: Digests) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".keys-", suffix=".tmp", delete=False) as file:
        work = Path(file.name)
        try:
            np.save(file, digests, allow_pickle=False)
            file.flush()
            file.write(_checksum(work, file.tell()))
            file.close()
            work.replace(path)
        except BaseException:
            work.unlink(missing_ok=True)
            raise
    _tidy(path.parent, path)


def _read(path: Path, rows: int) -> Digests | None:
    """The keys in a file, mapped into memory; None where there is none or it is damaged."""
    try:
        size = path.stat().st_size - DIGEST_BYTES
        digests = np.load(path, mmap_mode="r", allow_pickle=False)
        if digests.shape != (rows, DIGEST_BYTES) or digests.dtype != np.uint8 or size != digests.offset + digests.size:
            raise ValueError("it is of another size")
        with path.open("rb") as file:
            file.seek(size)
            if file.read() != _checksum(path, size):
                raise ValueError("its checksum differs")
        os.utime(path)
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever numpy makes of damaged bytes
        _logger.warning("%s is damaged (%s): keys are hashed again", path, error)
        return None
    return digests


def _checksum(path: Path, size: int) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with path.open("rb") as file:
        while size > 0 and (part := file.read(min(_CHUNK, size))):
            digest.update(part)
            size -= len(part)
    return digest.digest()


def _tidy(folder: Path, kept: Path) -> None:
    """Remove what a killed process left, and the files that were longest not used until the rest is within bounds."""
    try:
        for work in folder.glob(".keys-*.tmp"):
            if time.time() - work.stat().st_mtime > _ABANDONED:
                work.unlink()
        files = [(path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("keys-*.npy")]
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total > MOST_BYTES and path != kept:
                path.unlink()
                total -= size
    except OSError:
        return  # another process tidies too
