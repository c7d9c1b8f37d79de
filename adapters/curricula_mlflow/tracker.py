"""The tracker for MLflow."""

import atexit
import contextlib
import contextvars
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping

import mlflow
from mlflow.entities import Metric

from curricula.tracking import metric_name

ARTIFACT = "curricula/mix.yaml"
_BATCH = 1000  # MLflow's limit for one call
_LONGEST = 250  # and for a name
_PENDING = 4096  # calls that may wait for a slow server; later ones are dropped

_logger = logging.getLogger("curricula")


class MLflowTracker:
    """Writes to the active MLflow run from a thread of its own.

    It never starts a run: TRL's `MLflowCallback`, or the user, has one. The run's id and the tracking
    address are kept at `start`, so logging goes on after the fluent run has ended. MLflow repeats a failed
    call for minutes; here that happens beside training, with MLflow's settings as the user has them, and a
    failure costs one warning and the values concerned.

    Args:
        patience: Seconds that `finish` waits at most.

    Example:
        >>> MLflowTracker().start("environments: {}", step=0)  # no run is active
        False
    """

    name = "mlflow"

    def __init__(self, patience: float = 10.0) -> None:
        self._patience = patience
        self._run_id: str | None = None
        self._client: mlflow.MlflowClient | None = None
        self._calls: queue.Queue[Callable[[], object] | None] = queue.Queue(_PENDING)
        self._thread: threading.Thread | None = None
        self._warned = False

    def start(self, resolved: str, step: int) -> bool:
        """Joins the active run, else the run joined before; logs the mix as artifact `curricula/mix.yaml`."""
        active = mlflow.active_run()
        if active is not None:
            self._run_id = active.info.run_id
            self._client = mlflow.MlflowClient(mlflow.get_tracking_uri())
        if self._run_id is None:
            return False
        run_id, client = self._run_id, self._client
        assert client is not None
        self._put(lambda: client.log_text(run_id, resolved, ARTIFACT))
        return True

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Queues metrics for the joined run; nothing happens where there is none."""
        run_id, client = self._run_id, self._client
        if run_id is None or client is None:
            return
        now = int(time.time() * 1000)
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        rows = [Metric(metric_name(name, _LONGEST), value, now, step) for name, value in finite.items()]
        for first in range(0, len(rows), _BATCH):
            batch = rows[first : first + _BATCH]
            self._put(lambda batch=batch: client.log_batch(run_id, metrics=batch))

    def finish(self) -> None:
        """Waits until everything is written, for at most `patience` seconds; later logs start anew."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        atexit.unregister(self.finish)
        deadline = time.monotonic() + self._patience
        with contextlib.suppress(queue.Full):
            self._calls.put(None, timeout=self._patience)
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            self._warn(f"the server did not answer within {self._patience:g} s")
            # The old thread keeps its queue: what is still in it may be written yet, or end with the process.
            self._calls = queue.Queue(_PENDING)

    def _put(self, call: Callable[[], object]) -> None:
        if self._thread is None:
            # The context carries MLflow's own thread-bound settings (its workspace) over to the thread.
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._work, self._calls), name="curricula-mlflow", daemon=True
            )
            self._thread.start()
            atexit.register(self.finish)
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            self._warn("the server is too slow")

    def _work(self, calls: "queue.Queue[Callable[[], object] | None]") -> None:
        while (call := calls.get()) is not None:
            try:
                call()
            except Exception as error:  # whatever a tracking server does, training goes on
                self._warn(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            _logger.warning("MLflow run %s: values are lost, training goes on (said once): %s", self._run_id, why)
