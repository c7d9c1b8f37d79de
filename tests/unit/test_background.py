"""Learning beside the steps: the same result whatever the threads do."""

import copy
import os
import pickle
import sys
import threading
import time

import numpy as np
import pytest

from curricula import CheckpointError, load_state, save_state
from curricula.config import PredictorConfig
from curricula.predictors import Background, Features, HashedText, Stack, build_predictor
from curricula.predictors.worker import Worker
from curricula.stateful import Reader
from curricula.testing.predictor import planted_pool

POOL, DIFFICULTY = planted_pool()
CHANCE = 1.0 / (1.0 + np.exp(DIFFICULTY))


class Slow:
    """Counts what it is told, and takes its time."""

    def __init__(self, seconds=0.0, fails=None, foreground=False):
        self.seconds, self.fails, self.foreground = seconds, fails, foreground
        self.total, self.batches, self.threads = 0.0, [], set()

    def predict(self, rows):
        self.threads.add(threading.get_ident())
        return np.full(rows.size, self.total)

    def learn(self, rows, passed, tried, offsets):
        time.sleep(self.seconds)
        if self.fails is not None:
            raise self.fails
        self.total += passed.sum()
        self.batches.append(rows.size)

    def state_dict(self):
        return {"total": np.array([self.total])}

    def load(self, state):
        self.total = float(state.array("total", np.float64, (1,))[0])


def visits(rows, passed=None):
    rows = np.asarray(rows)
    return rows, np.ones(rows.size) if passed is None else passed, np.full(rows.size, 8.0), np.zeros(rows.size)


def stack():
    return Stack(POOL, [("hashed_text", HashedText(POOL, buckets=1 << 12)), ("features", Features(POOL))])


def test_fits_come_at_fixed_counts_however_visits_are_told():
    for sizes in ([1] * 700, [700], [33, 600, 67]):
        slow = Slow()
        background = Background(slow, len(POOL))
        for size in sizes:
            background.learn(*visits(np.arange(size) % 600))
        background.wait()
        assert slow.batches == [32, 32, 64, 128, 256]
        assert background.metrics()["predictor/visits"] == 512.0


def test_predictions_are_those_of_the_time_of_the_request():
    for seconds in (0.0, 0.05):
        background = Background(Slow(seconds), len(POOL))
        background.request(np.arange(3))
        background.learn(*visits(np.arange(32)))
        assert background.collect()[1].tolist() == [0.0, 0.0, 0.0]
        background.request(np.arange(2))
        background.learn(*visits(np.arange(32)))
        rows, predictions = background.collect()
        assert (rows.tolist(), predictions.tolist()) == ([0, 1], [32.0, 32.0])
        assert background.collect()[0].size == 0


def test_nothing_is_asked_of_a_predictor_that_knows_nothing():
    background = Background(Slow(fails=ValueError("asked")), len(POOL))
    background.request(np.arange(5))
    assert background.collect()[1].tolist() == [0.0] * 5


def test_work_is_done_in_no_daemon_and_threads_end():
    slow = Slow(0.05)
    background = Background(slow, len(POOL))
    background.learn(*visits(np.arange(32)))
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "curricula-predictor"]
    assert not thread.daemon
    background.wait()
    assert not thread.is_alive()
    assert not [thread for thread in threading.enumerate() if thread.name == "curricula-predictor"]


def test_a_predictor_may_ask_for_the_thread_of_the_caller():
    slow = Slow(foreground=True)
    background = Background(slow, len(POOL))
    background.learn(*visits(np.arange(32)))
    background.request(np.arange(2))
    assert slow.threads == {threading.get_ident()}
    assert background.collect()[1].tolist() == [32.0, 32.0]


def off(background):
    rows, predictions = background.collect()
    return rows.size == predictions.size == 0 and background.metrics()["predictor/failed"] == 1.0


@pytest.mark.parametrize(
    ("foreground", "fails"),
    [(False, KeyError("some\nthing")), (True, KeyError("some\nthing")), (False, SystemExit("gone"))],
)
def test_a_failure_is_logged_once_and_the_predictor_is_off(foreground, fails, caplog):
    slow = Slow(fails=fails, foreground=foreground)
    background = Background(slow, len(POOL), "slow")
    for _ in range(20):
        background.learn(*visits(np.arange(32)))
        background.request(np.arange(2))
        assert off(background)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "the predictor (slow) failed with" in record.message
    assert "type: none" in record.message
    assert "\n" not in record.message
    assert slow.total == 0.0
    assert background.state_dict() == {"kind": "slow", "failed": True}
    assert off(pickle.loads(pickle.dumps(background)))
    background.clear()
    slow.fails = None
    background.learn(*visits(np.arange(32)))
    background.request(np.arange(2))
    assert background.collect()[1].tolist() == [32.0, 32.0]
    assert background.metrics()["predictor/failed"] == 0.0


def test_a_resumed_run_starts_what_failed_afresh(tmp_path, caplog):
    failed, resumed = Background(Slow(fails=ValueError("no")), len(POOL)), Background(Slow(), len(POOL))
    failed.learn(*visits(np.arange(40)))
    save_state(tmp_path / "state", failed.state_dict())
    resumed.learn(*visits(np.arange(40)))
    resumed.load(Reader(load_state(tmp_path / "state"), "state"))
    assert "(Slow) failed in the saved run: it starts afresh" in caplog.text
    assert resumed.metrics() == {"predictor/visits": 0.0, "predictor/failed": 0.0}
    resumed.learn(*visits(np.arange(32)))
    resumed.request(np.arange(1))
    assert resumed.collect()[1].tolist() == [32.0]
    with pytest.raises(CheckpointError, match=r"state\.failed: expected true or false"):
        resumed.load(Reader({"kind": "", "failed": 1}, "state"))


class Wrong(Slow):
    """Fails wherever it is told to."""

    def __init__(self, where):
        super().__init__()
        self.where, self.used = where, False

    def predict(self, rows):
        self.fail("predict")
        return np.zeros((rows.size, 1)) if self.where == "shape" else super().predict(rows)

    def metrics(self):
        self.fail("metrics")
        return {}

    def state_dict(self):
        self.fail("state_dict")
        return super().state_dict()

    def load(self, state):
        self.fail("load")
        super().load(state)

    def learn(self, *visit):
        super().learn(*visit)
        self.used = True

    def fail(self, name):
        if self.where == name and self.used:
            raise ZeroDivisionError(name)


@pytest.mark.parametrize("where", ["predict", "shape", "metrics", "state_dict", "load"])
def test_whatever_fails_the_run_goes_on_and_can_be_saved(where, caplog):
    background = Background(Wrong(where), len(POOL))
    background.learn(*visits(np.arange(32)))
    background.request(np.arange(3))
    state = background.state_dict()
    if where == "load":
        background.load(Reader(state, "state"))
    assert background.state_dict() == {"kind": "", "failed": True}
    assert off(background)
    assert len(caplog.records) == 1


def test_where_there_are_no_threads_the_caller_works(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Worker, "start", refuse)
    slow = Slow()
    background = Background(slow, len(POOL))
    background.learn(*visits(np.arange(32)))
    background.request(np.arange(2))
    assert background.collect()[1].tolist() == [32.0, 32.0]
    assert slow.threads == {threading.get_ident()}


def test_any_thread_may_wait_while_another_asks():
    background, raised, done = Background(Slow(), len(POOL)), [], threading.Event()

    def hammer():
        while not done.is_set():
            try:
                background.wait()
            except BaseException as error:
                raised.append(error)

    hammers = [threading.Thread(target=hammer) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in hammers:
            thread.start()
        background.learn(*visits(np.arange(32)))
        for number in range(500):
            background.request(np.array([number]))
            rows, predictions = background.collect()
            assert (rows.tolist(), predictions.tolist()) == ([number], [32.0])
    finally:
        done.set()
        for thread in hammers:
            thread.join()
        sys.setswitchinterval(interval)
    assert not raised
    assert not background.busy


def run(background, rng, steps):
    trace = []
    for _ in range(steps):
        rows = rng.choice(600, size=30, replace=False)
        background.request(rng.choice(600, size=80))
        trace.append(background.collect()[1])
        background.learn(*visits(rows, rng.binomial(8, CHANCE[rows]).astype(float)))
        background.request(rows)
    return trace


def test_a_run_that_is_saved_anywhere_goes_on_exactly(tmp_path):
    rng = np.random.default_rng(5)
    whole = Background(stack(), len(POOL))
    for cut in range(8):
        whole.request(np.arange(100))
        save_state(tmp_path / str(cut), whole.state_dict())
        resumed = Background(stack(), len(POOL))
        resumed.load(Reader(load_state(tmp_path / str(cut)), "state"))
        ahead = copy.deepcopy(rng)
        assert np.array_equal(whole.collect()[1], resumed.collect()[1])
        # The one that was saved is the one that goes on.
        left, right = run(whole, rng, 3), run(resumed, ahead, 3)
        assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
        assert whole.metrics() == resumed.metrics()


def test_a_damaged_state_is_refused():
    background = Background(stack(), len(POOL))
    run(background, np.random.default_rng(1), 5)
    for name, value in (("learned", -1), ("rows", np.array([600])), ("predictions", np.zeros(3)), ("predictor", {})):
        with pytest.raises(CheckpointError, match=r"state\."):
            Background(stack(), len(POOL)).load(Reader({**background.state_dict(), name: value}, "state"))


def test_a_state_of_another_kind_is_left(caplog):
    config = PredictorConfig(type="hashed_text")
    saved, other = build_predictor(PredictorConfig(), POOL), build_predictor(config, POOL)
    run(saved, np.random.default_rng(1), 5)
    other.load(Reader(saved.state_dict(), "state"))
    assert "hashed_text, features in the saved run and is by {" in caplog.text
    other.request(np.arange(3))
    assert other.collect()[1].tolist() == [0.0] * 3


def test_what_is_cleared_is_as_new():
    used, fresh = Background(stack(), len(POOL)), Background(stack(), len(POOL))
    run(used, np.random.default_rng(1), 7)
    used.request(np.arange(5))
    used.clear()
    assert used.collect()[0].size == 0
    left, right = run(used, np.random.default_rng(2), 7), run(fresh, np.random.default_rng(2), 7)
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_copies_wait_for_the_work():
    background = Background(Slow(0.05), len(POOL))
    background.learn(*visits(np.arange(32)))
    for twin in (copy.deepcopy(background), pickle.loads(pickle.dumps(background))):
        assert twin.predictor.total == 32.0
        twin.learn(*visits(np.arange(32)))
        twin.wait()
        assert twin.predictor.total == 64.0
    assert background.predictor.total == 32.0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_work():
    background = Background(Slow(0.2), len(POOL))
    background.learn(*visits(np.arange(32)))
    child = os.fork()
    if child == 0:
        background.request(np.arange(1))
        os._exit(0 if background.collect()[1].tolist() == [32.0] else 1)
    assert os.waitpid(child, 0)[1] == 0
