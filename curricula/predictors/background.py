"""Learning and predicting beside the steps of a run, with the same result whatever the threads do."""

import logging
import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaError, CurriculaRuntimeError
from curricula.predictors.base import Predictor
from curricula.predictors.visits import Visits
from curricula.stateful import MOST, Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_logger = logging.getLogger("curricula")

_FIRST, _LEAST, _PART = 32, 256, 8
_MOST_LOGIT = 1e12


def next_count(count: int) -> int:
    """First visits at which there is a fit after the one at `count`.

    Powers of two from 32 to 256, then every 256, and from 2,048 on an eighth more each time: all fits together cost
    about nine times the last.

    >>> [next_count(count) for count in (0, 32, 128, 256, 512, 8192)]
    [32, 64, 256, 512, 768, 9216]
    """
    if count < _LEAST:
        return max(_FIRST, 2 * count)
    return count + max(_LEAST, count // _PART)


class Background:
    """Runs one predictor off the path of a step.

    First visits wait in a queue. When their number reaches the next of a fixed row of counts, the predictor learns
    them in a thread. `request` starts predicting in a thread, and `collect` waits for it. Work is done one piece at a
    time in the order of the calls, so predictions are made with what was learned by the time of their request: what
    comes out is a function of the calls alone. A fit that is still running when the next one is due is waited for.

    There is no thread while there is no work, and none is a daemon: a process that ends finishes its work. A fork
    waits for it, and so does pickling or copying. What fails in a thread is raised by the next call.

    A predictor with a true attribute `foreground` runs in the caller's thread: what it reads, such as the weights of
    the policy, may change beside it.

    Args:
        predictor: What learns; nobody else may touch it.
        prompts: How many the pool has.
        kind: What it is, in words; the saved state of another kind is not taken over.
    """

    def __init__(self, predictor: Predictor, prompts: int, kind: str = "") -> None:
        self.predictor, self.kind = predictor, kind
        self._blank = predictor.state_dict()
        self._prompts = prompts
        self._waiting = Visits()
        self._learned = 0
        self._rows: Rows = np.zeros(0, dtype=np.int64)
        self._predictions: Floats = np.zeros(0)
        self._error: str | None = None
        self._thread: threading.Thread | None = None
        self._measured: dict[str, float] = {}
        self._measure()
        _alive.add(self)

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Queue K first visits, as `Predictor.learn` takes them, and start a fit where one is due."""
        self._raise()
        self._waiting.extend(rows, passed, tried, offsets)
        while len(self._waiting) >= (due := next_count(self._learned) - self._learned):
            visits = self._waiting.take(due)
            self._learned += due
            # No more than one fit waits, however many visits come at once.
            self.wait()
            self._start(partial(self.predictor.learn, *visits))

    def request(self, rows: Rows) -> None:
        """Start predicting rows (M,) with what is learned by now; predictions that were not collected are dropped."""
        self._raise()
        rows = rows.copy()

        def predict() -> None:
            self._rows, self._predictions = rows, _finite(self.predictor.predict(rows))

        if self._learned == 0:
            self._rows, self._predictions = rows, np.zeros(rows.size)
        else:
            self._start(predict)

    def collect(self) -> tuple[Rows, Floats]:
        """Rows (M,) of the last request and their predictions (M,); both empty where there was none since the last."""
        self.wait()
        self._raise()
        rows, predictions = self._rows, self._predictions
        self._rows, self._predictions = rows[:0], predictions[:0]
        return rows, predictions

    @property
    def foreground(self) -> bool:
        """Whether the predictor runs in the caller's thread, and must not be called while the policy is at work."""
        return bool(getattr(self.predictor, "foreground", False))

    def bind(self, model: Any, tokenizer: Any) -> None:
        """Give the policy and its tokenizer to a predictor that reads it; others have no use for it."""
        if (bind := getattr(self.predictor, "bind", None)) is not None:
            bind(model, tokenizer)

    def metrics(self) -> dict[str, float]:
        """First visits learned, and what the predictor measures of itself; as of the last time it was waited for."""
        return {"predictor/visits": float(self._learned)} | self._measured

    def wait(self) -> None:
        """Wait until there is no work."""
        if (thread := self._thread) is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None
            self._measure()

    def clear(self) -> None:
        """Forget everything, and any failure."""
        self.wait()
        self.predictor.load(Reader(self._blank, "state"))
        self._waiting, self._learned, self._error = Visits(), 0, None
        self._rows, self._predictions = self._rows[:0], self._predictions[:0]
        self._measure()

    def state_dict(self) -> dict[str, Any]:
        """The predictor's state, visits that wait, and predictions that wait; what is running is waited for."""
        self.wait()
        self._raise()
        return {
            "kind": self.kind,
            "learned": self._learned,
            "waiting": self._waiting.state_dict(),
            "rows": self._rows.copy(),
            "predictions": self._predictions.copy(),
            "predictor": self.predictor.state_dict(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; that of another kind is left, and the log says so.

        Raises:
            CheckpointError: A state that cannot be right.
        """
        self.wait()
        if (kind := state.text("kind")) != self.kind:
            _logger.warning(
                "difficulty was predicted by %s in the saved run and is by %s now: it starts afresh", kind, self.kind
            )
            self.clear()
            return
        learned = state.integer("learned", high=MOST)
        waiting = Visits()
        waiting.load(state.section("waiting"), self._prompts)
        rows = state.array("rows", np.int64, (None,), high=self._prompts - 1)
        predictions = state.array("predictions", np.float64, rows.shape, low=-_MOST_LOGIT, high=_MOST_LOGIT)
        self.predictor.load(state.section("predictor"))
        self._learned, self._waiting, self._rows, self._predictions = learned, waiting, rows, predictions
        self._error = None
        self._measure()

    def __getstate__(self) -> dict[str, Any]:
        """Attributes, for copies; the thread is waited for and left out."""
        self.wait()
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _alive.add(self)

    def _start(self, work: Callable[[], None]) -> None:
        before = self._thread

        def run() -> None:
            if before is not None:
                before.join()
            if self._error is None:
                try:
                    work()
                except Exception as error:
                    self._error = _line(self.predictor, error)

        if self.foreground:
            run()
            self._measure()
            self._raise()
        else:
            self._thread = threading.Thread(target=run, name="curricula-predictor")
            self._thread.start()

    def _measure(self) -> None:
        own: Callable[[], dict[str, float]] = getattr(self.predictor, "metrics", dict)
        self._measured = own()

    def _raise(self) -> None:
        if self._error is not None:
            raise CurriculaRuntimeError(self._error)


_alive: "weakref.WeakSet[Background]" = weakref.WeakSet()


def _wait_for_all() -> None:
    for background in list(_alive):
        background.wait()


# A child process would inherit the half-done work of a thread that it does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_all)


def _finite(predictions: Floats) -> Floats:
    return np.clip(np.nan_to_num(predictions), -_MOST_LOGIT, _MOST_LOGIT)


def _line(predictor: Predictor, error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    if isinstance(error, CurriculaError):
        return text
    return (
        f"predictor: {type(predictor).__name__} failed with {type(error).__name__}: {text}; mend it, or choose "
        "curriculum.predictor: {type: none}"
    )
