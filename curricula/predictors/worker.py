"""Threads that do one piece of work each, in the order they were started, and what a fork waits for."""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

Measured = dict[str, float]


class Works(Protocol):
    """What starts threads: it is waited for before a fork."""

    @property
    def busy(self) -> bool:
        """Whether a thread was started that was not waited for."""
        ...

    def wait(self) -> None:
        """Wait until there is no work."""
        ...


class Worker(threading.Thread):
    """Does a piece of work when the one before it is done; where that failed, nothing is done.

    Args:
        work: What is to do; returns what is measured then.
        before: The thread before it, if it was not waited for.

    Attributes:
        failure: What the work raised, or any before it.
        measured: What it returned.
    """

    def __init__(self, work: Callable[[], Measured], before: "Worker | None") -> None:
        super().__init__(name="curricula-predictor", daemon=False)
        self._work, self._before = work, before
        self.failure: BaseException | None = None
        self.measured: Measured = {}

    def run(self) -> None:
        """Do the work."""
        before, self._before = self._before, None
        if before is not None:
            before.join()
            self.failure = before.failure
        if self.failure is None:
            try:
                self.measured = self._work()
            # Also what ends a thread without a word, such as SystemExit.
            except BaseException as error:
                self.failure = error


# Reading and replacing the thread of any that works. It is held for moments: never while a thread is waited for, and
# by no thread that works. A fork holds it too, so that no child inherits it as taken by a thread that it does not have.
lock = threading.RLock()
_alive: "weakref.WeakSet[Works]" = weakref.WeakSet()


def register(works: Works) -> None:
    """From now on a fork waits for it, as long as it is alive."""
    _alive.add(works)


def is_worker() -> bool:
    """Whether the caller runs in such a thread, which cannot wait for itself, nor for those that wait for it."""
    return isinstance(threading.current_thread(), Worker)


def _before_fork() -> None:
    while True:
        for works in list(_alive):
            works.wait()
        lock.acquire()
        # Another thread may have given work since.
        if is_worker() or not any(works.busy for works in list(_alive)):
            return
        lock.release()


# A child process would inherit the half-done work of a thread that it does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=lock.release, after_in_child=lock.release)
