"""A run whose estimator fails goes on without predictions, and can be saved and resumed."""

import numpy as np
import pytest

from curricula import ConfigError, Curriculum, GroupOutcome, PromptPool, load_state, save_state
from curricula.predictors.estimator import Estimator

TEXTS = [f"add {row % 7} and {row % 5}{' slowly' * (row % 3)}" for row in range(280)]


class _Regressor:
    def partial_fit(self, features, targets, sample_weight=None):
        return self

    def predict(self, features):
        return np.zeros(features.shape[0])


class FailsToFit(_Regressor):
    """Raises in partial_fit."""

    def partial_fit(self, features, targets, sample_weight=None):
        raise MemoryError("no room")


class FailsToPredict(_Regressor):
    """Raises in predict."""

    def predict(self, features):
        raise OSError("gone")


def make(name):
    config = {"curriculum": {"predictor": {"type": f"{__name__}:{name}"}}}
    return Curriculum(PromptPool(["a", "b"] * 140, texts=TEXTS), config, seed=4)


def steps(curriculum, count):
    rng, said = np.random.default_rng(0), []
    for _ in range(count):
        draws = curriculum.ask(16, group_size=4)
        told = [GroupOutcome(draw.ticket, rng.integers(0, 2, 4)) for draw in draws]
        said.append((draws, curriculum.tell(told)))
        assert all(verdict is not None for verdict in said[-1][1])
        assert curriculum.in_flight() == {}
        curriculum.state_dict()
    return said


@pytest.mark.parametrize("foreground", [False, True])
@pytest.mark.parametrize("name", ["FailsToFit", "FailsToPredict"])
def test_the_run_goes_on_and_can_be_saved(name, foreground, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(Estimator, "foreground", foreground, raising=False)
    curriculum = make(name)
    caplog.clear()
    steps(curriculum, 12)
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert f"{__name__}:{name}" in record.message
    assert "the run goes on without predictions" in record.message
    measured = curriculum.metrics()
    assert measured["predictor/failed"] == 1.0
    assert (measured["draws"], measured["told"], measured["in_flight"]) == (192.0, 192.0, 0.0)
    save_state(tmp_path / "state", curriculum.state_dict())
    resumed = make(name)
    resumed.load_state_dict(load_state(tmp_path / "state"))
    assert resumed.metrics()["predictor/failed"] == 0.0
    steps(resumed, 2)


def test_runs_that_fail_are_the_same_whatever_the_threads_do():
    first, second = make("FailsToFit"), make("FailsToFit")
    assert steps(first, 8) == steps(second, 8)
    assert first.metrics() == second.metrics()


def test_a_predictor_beside_a_belief_that_uses_none_is_refused():
    pool = PromptPool(["a"] * 4, texts=["one", "two", "three", "four"])
    for belief in ("decayed_beta", "arcsine_kalman"):
        mix = {"curriculum": {"belief": belief, "predictor": {"type": "hashed_text"}}}
        with pytest.raises(ConfigError, match=f"curriculum.predictor.type.*expected auto or none.*{belief}"):
            Curriculum(pool, mix)
        assert Curriculum(pool, {"curriculum": {"belief": belief}}).predictor is None
