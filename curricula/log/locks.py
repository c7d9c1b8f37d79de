"""Which runs of a log are alive: a lock that the system lets go of when its process ends, however it does."""

import contextlib
import os
from pathlib import Path


class Lock:
    """A lock file; None from `take` where another process holds it.

    Where the system has no such locks, a run is taken to be over once its file is gone, and is never recovered while
    it is there.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, new: bool) -> "Lock | None":
        """Take the lock of a new run (FileExistsError where there is one), or of one that may be over."""
        descriptor = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if new else 0))
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (ImportError, OSError):
            if not new:
                os.close(descriptor)
                return None
        return cls(path, descriptor)

    def release(self) -> None:
        """Remove the file and let go."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
