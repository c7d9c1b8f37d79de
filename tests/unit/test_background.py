"""Learning beside the steps: the same result whatever the threads do."""

import copy
import os
import pickle
import threading
import time

import numpy as np
import pytest

from curricula import CheckpointError, CurriculaRuntimeError, load_state, save_state
from curricula.config import PredictorConfig
from curricula.predictors import Background, Features, HashedText, Stack, build_predictor
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


@pytest.mark.parametrize("foreground", [False, True])
def test_a_failure_is_raised_in_one_line_by_the_next_call(foreground):
    background = Background(Slow(fails=KeyError("some\nthing"), foreground=foreground), len(POOL))

    def use():
        background.learn(*visits(np.arange(32)))
        background.request(np.arange(2))
        background.collect()

    with pytest.raises(CurriculaRuntimeError, match=r"predictor: Slow failed with KeyError: .*type: none") as caught:
        use()
    assert "\n" not in str(caught.value)
    for call in (background.state_dict, background.collect, lambda: background.request(np.arange(2))):
        with pytest.raises(CurriculaRuntimeError):
            call()


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
