"""Classes and parameters of the user's own: what cannot be is refused in one line that names it."""

import logging
import sys
import textwrap

import numpy as np
import pytest

from curricula import (
    CheckpointError,
    ConfigError,
    CurriculaRuntimeError,
    CurriculaValueError,
    Curriculum,
    GroupOutcome,
    PromptPool,
)
from curricula.config import PredictorConfig
from curricula.predictors import Estimator, Features, HashedText, Kernel, Ridge, Stack, build_predictor
from curricula.predictors.vectors import Columns
from curricula.stateful import Reader

POOL = PromptPool(["a", "b"] * 40, texts=[f"word {i}" for i in range(80)], features=np.arange(160.0).reshape(80, 2))
OWN = """
import numpy as np

class Even:
    def __init__(self, arms): self.arms = arms
    def shares(self, costs, rng): return np.full(self.arms, 1 / self.arms)
    def update(self, codes, rewards, shares): pass
    def state_dict(self): return {}
    def load(self, state): pass

class Broken(Even):
    def __init__(self, arms): raise RuntimeError("a\\nb")

class Raises(Even):
    def shares(self, costs, rng): raise RuntimeError("a\\nb")

class Deaf(Even):
    def update(self, codes, rewards, shares): raise KeyError("x")

class Returns(Even):
    def __init__(self, arms, what): self.what = what
    def shares(self, costs, rng): return eval(self.what)

class Quits:
    def __init__(self): raise RuntimeError("a\\nb")
    def partial_fit(self, x, y): pass
    def predict(self, x): pass

class Mute:
    def partial_fit(self, x, y): pass

class MuteOne:
    def learn_one(self, x, y): pass

class Predicts:
    def __init__(self, what): self.what = what
    def partial_fit(self, x, y): pass
    def predict(self, x): return eval(self.what)

class Unfit(Predicts):
    def partial_fit(self, x, y): raise RuntimeError("no\\nfit")
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    sources = {"own_code": OWN, "own_zero": "1 / 0", "own_syntax": "def (", "own_exit": "raise SystemExit(3)"}
    for name, text in sources.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in sources:
        sys.modules.pop(name, None)


def refused(kind, said, make):
    with pytest.raises(kind, match=said) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("buckets", [0, -1, (1 << 22) + 1, 1.5, True, "x", None]),
        ("penalty", [0, -1.0, float("nan"), float("inf"), 1e308, 10**400, "x", None, [1], True]),
        ("memory", [0, -1, 1.5, True, "x", None]),
    ],
)
def test_numbers_of_hashed_text_are_checked(name, values):
    for value in values:
        config = PredictorConfig(type="hashed_text", params={name: value})
        said = rf"curriculum\.predictor\.params\.{name}: expected a .*number .*; got .*; change it"
        refused(ConfigError, said, lambda config=config: build_predictor(config, POOL))


def test_numbers_of_the_other_models_are_checked():
    columns = Columns(POOL)
    for make in (
        lambda: Ridge(columns, penalty=0),
        lambda: Ridge(columns, forgetting=1.5),
        lambda: Kernel(columns, reach=float("nan")),
        lambda: Kernel(columns, memory=0),
        lambda: Estimator(POOL, "own_code:Predicts", {"what": "1"}, memory=0),
    ):
        refused(ConfigError, r"curriculum\.predictor\.params\.\w+: expected", make)
    assert HashedText(POOL, buckets=1, penalty=3, memory=1).penalty == 3.0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("own_zero:X", r"predictor\.type: .* got 'own_zero:X' \(ZeroDivisionError: division by zero"),
        ("own_syntax:X", r"predictor\.type: .* got 'own_syntax:X' \(SyntaxError: "),
        ("own_exit:X", r"predictor\.type: .* got 'own_exit:X' \(SystemExit: 3\)"),
        ("own_code:Quits", r"predictor\.params: own_code:Quits refuses them: RuntimeError: a b"),
        ("own_code:Mute", r"predictor\.type: expected a class with predict; got 'own_code:Mute'"),
        ("own_code:MuteOne", r"predictor\.type: expected a class with predict_one; got 'own_code:MuteOne'"),
    ],
)
def test_estimators_that_cannot_be_made_are_refused(kind, said):
    refused(ConfigError, said, lambda: build_predictor(PredictorConfig(type=kind), POOL))


@pytest.mark.parametrize(
    ("kind", "what", "said"),
    [
        ("Predicts", "np.zeros(3)", r"own_code:Predicts: expected a prediction for each of 9 rows; .* shape \(3,\)"),
        ("Predicts", "np.full(x.shape[0], np.nan)", "own_code:Predicts: expected .* got NaN for each"),
        ("Predicts", "['a'] * x.shape[0]", "own_code:Predicts raised while predicting: ValueError"),
        ("Predicts", "1 / 0", "own_code:Predicts raised while predicting: ZeroDivisionError"),
        ("Unfit", "1", "own_code:Unfit raised while learning: RuntimeError: no fit"),
    ],
)
def test_an_estimator_that_fails_is_named(kind, what, said, caplog):
    estimator = Estimator(POOL, f"own_code:{kind}", {"what": what}, features="columns")
    rows = np.arange(9)

    def use(predictor=estimator):
        predictor.learn(rows, np.ones(9), np.full(9, 4.0), np.zeros(9))
        predictor.predict(rows)

    refused(CurriculaRuntimeError, said, use)
    config = {"type": f"own_code:{kind}", "params": {"what": what}, "features": "columns"}
    background = build_predictor(PredictorConfig.model_validate(config), POOL)
    with caplog.at_level(logging.WARNING, logger="curricula"):
        background.learn(np.arange(32), np.ones(32), np.full(32, 4.0), np.zeros(32))
        background.request(rows)
        background.collect()
    assert said.split(":")[0] in caplog.text
    assert "Stack" not in caplog.text
    assert background.metrics()["predictor/failed"] == 1.0


def test_a_member_of_a_stack_whose_predictions_have_another_shape_is_named():
    class Short:
        def predict(self, rows):
            return np.zeros(1)

    stack = Stack(POOL, [("short", Short()), ("features", Features(POOL))])
    refused(CurriculaRuntimeError, r"short: expected predictions of shape \(4,\)", lambda: stack.predict(np.arange(4)))


def test_accounts_of_a_stack_that_cannot_be_are_refused():
    stack = Stack(POOL, [("features", Features(POOL))])
    stack.learn(np.arange(9), np.arange(9) % 5.0, np.full(9, 4.0), np.zeros(9))
    good = stack.state_dict()
    for name, wrong in (
        ("account", good["account"] * [0, 1, 1]),
        ("account", good["account"] * 0),
        ("levels", good["levels"] * 0),
        ("levels", good["levels"] * [1, -1]),
    ):
        state = Reader({**good, name: wrong}, "state")
        refused(CheckpointError, "account: expected|levels: expected", lambda state=state: stack.load(state))
    stack.load(Reader(good, "state"))
    assert stack.metrics()["predictor/error"] >= 0.0


def curriculum(kind, **params):
    return Curriculum(POOL, {"curriculum": {"bandit": {"type": kind, "params": params}}})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("own_zero:X", r"bandit\.type: .*own_zero:X \(ZeroDivisionError: division by zero"),
        ("own_syntax:X", r"bandit\.type: .*own_syntax:X \(SyntaxError: "),
        ("own_exit:X", r"bandit\.type: .*own_exit:X \(SystemExit: 3\)"),
        ("own_code:Broken", r"bandit\.params: .*own_code:Broken.* \(RuntimeError: a b\)"),
    ],
)
def test_bandits_that_cannot_be_made_are_refused(kind, said):
    refused(ConfigError, said, lambda: curriculum(kind))


@pytest.mark.parametrize(
    ("what", "got"),
    [
        ("None", "got nothing"),
        ("[0.5, 0.5]", r"got \[0\.5, 0\.5\] \(list\)"),
        ("np.ones(1)", r"shape \(1,\)"),
        ("np.ones(3) / 3", r"shape \(3,\)"),
        ("np.full(2, np.nan)", r"got \[nan nan\]"),
        ("np.array([1.5, -0.5])", r"got \[ ?1\.5 -0\.5\]"),
        ("np.full(2, 5.0)", r"got \[5\. 5\.\]"),
        ("np.zeros(2)", r"got \[0\. 0\.\]"),
        ("np.array(['a', 'b'])", "type <U1"),
    ],
)
def test_what_shares_cannot_be_is_refused(what, got):
    said = rf"own_code:Returns\.shares to return an array of 2 shares.*{got}"
    refused(CurriculaValueError, said, lambda: curriculum("own_code:Returns", what=what).ask(4, group_size=2))


def test_a_bandit_that_raises_is_named():
    said = r"own_code:Raises\.shares raised RuntimeError: a b"
    refused(CurriculaRuntimeError, said, lambda: curriculum("own_code:Raises").ask(4, group_size=2))
    made = curriculum("own_code:Deaf")
    outcomes = [GroupOutcome(draw.ticket, [1, 0]) for draw in made.ask(4, group_size=2)]
    refused(CurriculaRuntimeError, r"own_code:Deaf\.update raised KeyError: 'x'", lambda: made.tell(outcomes))
