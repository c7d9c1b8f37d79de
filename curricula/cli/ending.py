"""The end of a command: what it printed has arrived, or one line says that it has not."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from curricula.errors import CurriculaRuntimeError

# Of a stream: a disk or a quota that is full, a device that fails, a file grown too large.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


@contextmanager
def ended() -> Generator[None]:
    """Writes out standard output before the exit.

    Raises:
        CurriculaRuntimeError: It cannot be written.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None where it was closed before the start  # pyright: ignore
                sys.stdout.flush()
    except OSError as error:
        # Errors about files of the user's have their names.
        if error.errno not in _FULL or error.filename is not None:
            raise
        _dropped()
        raise CurriculaRuntimeError(
            f"standard output: expected room to write; got {error.strerror}; free some, or write elsewhere"
        ) from error


def _dropped() -> None:
    """What is left in the buffer goes nowhere: the interpreter would fail on it again."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
