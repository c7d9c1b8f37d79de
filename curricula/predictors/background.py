"""Learning and predicting beside the steps of a run, with the same result whatever the threads do."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CheckpointError, CurriculaError
from curricula.predictors import worker
from curricula.predictors.base import Predictor
from curricula.predictors.visits import Visits, next_count
from curricula.predictors.worker import Measured, Worker
from curricula.stateful import MOST, Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_logger = logging.getLogger("curricula")

_MOST_LOGIT = 1e12


class Background:
    """Runs one predictor off the path of a step.

    First visits wait in a queue. When their number reaches the next of a fixed row of counts, the predictor learns
    them in a thread. `request` starts predicting in a thread, and `collect` waits for it. Work is done one piece at a
    time in the order of the calls, so predictions are made with what was learned by the time of their request: what
    comes out is a function of the calls alone. A fit that is still running when the next one is due is waited for.

    There is no thread while there is no work, and none is a daemon: a process that ends finishes its work. A fork
    waits for it, and so does pickling or copying. `wait` may be called from any thread, all else from one at a time.

    A predictor that raises does not stop the run. The next call that waits logs one line, and it is off: nothing is
    predicted or learned, and the saved state holds only that it failed. A resumed run starts it afresh, as it may have
    been mended; so does `clear`.

    A predictor with a true attribute `foreground` runs in the caller's thread: what it reads, such as the weights of
    the policy, may change beside it.

    Args:
        predictor: What learns; nobody else may touch it.
        prompts: How many the pool has.
        kind: What it is, in words; the saved state of another kind is not taken over.
    """

    def __init__(self, predictor: Predictor, prompts: int, kind: str = "") -> None:
        self.predictor, self.kind, self._prompts = predictor, kind, prompts
        self._blank = predictor.state_dict()
        self._waiting, self._learned = Visits(), 0
        self._rows: Rows = np.zeros(0, dtype=np.int64)
        self._predictions: Floats = np.zeros(0)
        self._failed = False
        self._thread: Worker | None = None
        self._measured: Measured = self._measure()
        worker.register(self)

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Queue K first visits, as `Predictor.learn` takes them, and start a fit where one is due."""
        if self._failed:
            return
        self._waiting.extend(rows, passed, tried, offsets)
        while len(self._waiting) >= (due := next_count(self._learned) - self._learned):
            self.wait()  # no more than one fit waits, however many visits come at once
            visits = self._waiting.take(due)
            self._learned += due

            def fit(visits: tuple[Rows, Floats, Floats, Floats] = visits) -> None:
                self.predictor.learn(*visits)

            self._start(fit)

    def request(self, rows: Rows) -> None:
        """Start predicting rows (M,) with what is learned by now; predictions that were not collected are dropped."""
        if self._failed:
            return
        rows = rows.copy()

        def predict() -> None:
            self._rows, self._predictions = rows, _finite(self.predictor.predict(rows), rows.size)

        if self._learned == 0:
            self._rows, self._predictions = rows, np.zeros(rows.size)
        else:
            self._start(predict)

    def collect(self) -> tuple[Rows, Floats]:
        """Rows (M,) of the last request and their predictions (M,); both empty where there are none to collect."""
        self.wait()
        rows, predictions = self._rows, self._predictions
        self._rows, self._predictions = rows[:0], predictions[:0]
        return (self._rows, self._predictions) if self._failed else (rows, predictions)

    @property
    def foreground(self) -> bool:
        """Whether the predictor runs in the caller's thread, and must not be called while the policy is at work."""
        return bool(getattr(self.predictor, "foreground", False))

    def bind(self, model: Any, tokenizer: Any) -> None:
        """Give the policy and its tokenizer to a predictor that reads it; others have no use for it."""
        if (bind := getattr(self.predictor, "bind", None)) is not None:
            bind(model, tokenizer)

    def metrics(self) -> dict[str, float]:
        """First visits learned, whether it failed and what it measures of itself; as of when it was last waited for."""
        own = {} if self._failed else self._measured
        return {"predictor/visits": float(self._learned), "predictor/failed": float(self._failed), **own}

    @property
    def busy(self) -> bool:
        """Whether a thread was started that was not waited for."""
        return self._thread is not None

    def wait(self) -> None:
        """Wait until there is no work; from any thread."""
        if (thread := self._thread) is None or worker.is_worker():
            return
        thread.join()
        with worker.lock:
            # Another thread may have been quicker to take what came of it.
            if self._thread is not thread:
                return
            self._thread, self._measured = None, thread.measured
            self._failed = thread.failure is not None
        self._warn(thread.failure)

    def clear(self) -> None:
        """Forget everything, and any failure."""
        self.wait()
        self._waiting, self._learned, self._failed = Visits(), 0, False
        self._rows, self._predictions = self._rows[:0], self._predictions[:0]
        self._try(lambda: self.predictor.load(Reader(self._blank, "state")))

    def state_dict(self) -> dict[str, Any]:
        """The predictor's state, visits that wait, and predictions that wait; what is running is waited for.

        Of a predictor that failed, only that it did.
        """
        self.wait()
        own: dict[str, Any] = {}
        if not self._failed:
            self._try(lambda: own.update(self.predictor.state_dict()))
        if self._failed:
            return {"kind": self.kind, "failed": True}
        return {
            "kind": self.kind,
            "learned": self._learned,
            "waiting": self._waiting.state_dict(),
            "rows": self._rows.copy(),
            "predictions": self._predictions.copy(),
            "predictor": own,
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; that of another kind, or of one that failed, is left, and the log says so.

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
        if "failed" in state.state and state.flag("failed"):
            _logger.warning("the predictor (%s) failed in the saved run: it starts afresh", self._name())
            self.clear()
            return
        learned, waiting = state.integer("learned", high=MOST), Visits()
        waiting.load(state.section("waiting"), self._prompts)
        rows = state.array("rows", np.int64, (None,), high=self._prompts - 1)
        predictions = state.array("predictions", np.float64, rows.shape, low=-_MOST_LOGIT, high=_MOST_LOGIT)
        section = state.section("predictor")
        self._failed = False
        # What an estimator raises while it learns again what it was told is no fault of the state.
        self._try(lambda: self.predictor.load(section))
        self._learned, self._waiting, self._rows, self._predictions = learned, waiting, rows, predictions

    def __getstate__(self) -> dict[str, Any]:
        """Attributes, for copies; the thread is waited for and left out."""
        self.wait()
        return {**self.__dict__, "_thread": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        worker.register(self)

    def _start(self, work: Callable[[], None]) -> None:
        """Do a piece of work, unless any before it failed."""
        if self.foreground or not self._beside(work):
            self.wait()
            if not self._failed:
                self._try(work)

    def _beside(self, work: Callable[[], None]) -> bool:
        """Start a thread for a piece of work; False where the system gives none."""

        def run() -> Measured:
            work()
            return self._measure()

        with worker.lock:
            thread = Worker(run, self._thread)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def _try(self, work: Callable[[], None]) -> None:
        """Do something with the predictor in the caller's thread; what it raises turns it off."""
        try:
            work()
            self._measured = self._measure()
        except CheckpointError:
            raise
        except Exception as error:
            self._failed = True
            self._warn(error)

    def _measure(self) -> Measured:
        return getattr(self.predictor, "metrics", dict)()

    def _name(self) -> str:
        return (self.kind or type(self.predictor).__name__)[:200]

    def _warn(self, error: BaseException | None) -> None:
        if error is None:
            return
        text = " ".join(str(error).split())[:300]
        _logger.warning(
            "the predictor (%s) failed with %s; the run goes on without predictions; mend it and resume, or choose "
            "curriculum.predictor: {type: none}",
            self._name(),
            text if isinstance(error, CurriculaError) else f"{type(error).__name__}: {text}",
        )


def _finite(predictions: Floats, count: int) -> Floats:
    values = np.asarray(predictions, dtype=np.float64)
    if values.shape != (count,):
        raise ValueError(f"expected predictions of shape ({count},); got {values.shape}")
    return np.clip(np.nan_to_num(values), -_MOST_LOGIT, _MOST_LOGIT)
