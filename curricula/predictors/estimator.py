"""Any estimator of scikit-learn (`partial_fit`) or river (`learn_one`), by its import path."""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaRuntimeError, described
from curricula.pool import PromptPool
from curricula.predictors.params import Unfit, whole
from curricula.predictors.river import River
from curricula.predictors.sklearn import Sklearn
from curricula.predictors.targets import logits
from curricula.predictors.texts import HashedTexts
from curricula.predictors.vectors import Columns
from curricula.predictors.visits import Visits
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Source = Literal["hashed_text", "columns"]

_BUCKETS = 1 << 16


class Model(Protocol):
    """What is asked of an estimator's wrapper.

    Attributes:
        classifies: Whether it learns classes, not numbers.
    """

    classifies: bool

    def fit(self, features: Any, targets: Floats, weights: Floats) -> None:
        """Learn numbers (K,) with weights (K,) from rows of features (K, D)."""
        ...

    def fit_rates(self, features: Any, passed: Floats, tried: Floats) -> None:
        """Learn successes (K,) of rollouts (K,) as classes."""
        ...

    def predict(self, features: Any) -> Floats:
        """Numbers, or logits of the chance of success, shape (M,)."""
        ...


class Estimator:
    """A foreign estimator as a predictor.

    A regressor is given logit pass rates relative to the environment's ability, with their weights; a classifier two
    weighted rows for each group, a success and a failure, or where it takes no weights a row for each rollout; its
    logits are then taken relative to that of all rollouts it learned.

    Its state is what it was told, not what it is: a saved run holds the visits in the batches in which they were
    learned, and loading gives them to a new estimator in the same order. That is exact for whatever is deterministic
    and carries no code; an estimator that takes a `random_state` or a `seed` and is given none is given 0. So that it
    stays bounded, an estimator that has learned `memory` visits is started anew with the newer half of them.

    Args:
        pool: With the texts or features that are asked for.
        path: `module:Class`.
        params: Arguments of the class.
        features: What it sees: hashed words (sparse, 65,536 buckets) or the pool's feature columns, standardised;
            None takes the words where the pool has texts.
        memory: First visits after which it starts anew.

    Raises:
        ConfigError: No such class, arguments that it refuses, or a class of neither kind.
    """

    def __init__(
        self,
        pool: PromptPool,
        path: str,
        params: Mapping[str, Any] | None = None,
        features: Source | None = None,
        memory: int = 16_384,
    ) -> None:
        self._path, self._params, self._memory = path, dict(params or {}), whole("memory", memory)
        self._prompts = len(pool)
        chosen = features or ("columns" if pool.texts is None else "hashed_text")
        self._source = Columns(pool) if chosen == "columns" else HashedTexts(pool, _BUCKETS)
        self._class = _find(path)
        self._restart()

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,).

        Raises:
            CurriculaRuntimeError: The class raised, or gave no number for each row.
        """
        if len(self._visits) == 0 or rows.size == 0:
            return np.zeros(rows.size)
        features = self._source.matrix(rows)
        with np.errstate(all="ignore"):
            try:
                predictions = self._model.predict(features)
            except Exception as error:
                raise CurriculaRuntimeError(f"{self._path} raised while predicting: {described(error)}") from error
        got = f"an array of shape {predictions.shape}" if predictions.shape != rows.shape else ""
        # Naive Bayes gives NaN where it knows too little of a class, which is no fault; a regressor has diverged.
        if not got and np.isnan(predictions).all() and not self._model.classifies:
            got = "NaN for each"
        if got:
            raise CurriculaRuntimeError(f"{self._path}: expected a prediction for each of {rows.size} rows; got {got}")
        return np.nan_to_num(predictions - self._level() if self._model.classifies else predictions)

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Learn K first visits in one batch."""
        if rows.size == 0:
            return
        if len(self._visits) + rows.size > self._memory and len(self._visits) > 0:
            self._replay(*_newest(self._visits, self._batches, self._memory // 2))
        self._fit(rows, passed, tried, offsets)

    def state_dict(self) -> dict[str, Any]:
        """The visits since the last start, and the sizes of their batches."""
        return {
            "type": self._path,
            "visits": self._visits.state_dict(),
            "batches": np.array(self._batches, dtype=np.int64),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state by learning it again; raises CheckpointError where it cannot be right."""
        state.ensure("type", self._path, state.text("type") == self._path)
        visits = Visits()
        visits.load(state.section("visits"), self._prompts)
        batches = state.array("batches", np.int64, (None,), low=1)
        state.ensure("batches", "the sizes of all batches", int(batches.sum()) == len(visits))
        self._replay(visits, batches.tolist())

    def _restart(self) -> None:
        self._model = _wrap(self._class, self._path, self._params)
        self._visits, self._batches = Visits(), list[int]()
        self._totals = np.zeros(2)

    def _replay(self, visits: Visits, batches: list[int]) -> None:
        self._restart()
        for size in batches:
            self._fit(*visits.take(size))

    def _fit(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        self._visits.extend(rows, passed, tried, offsets)
        self._batches.append(rows.size)
        features = self._source.matrix(rows)
        with np.errstate(all="ignore"):
            try:
                if self._model.classifies:
                    self._totals += (passed.sum(), tried.sum())
                    self._model.fit_rates(features, passed, tried)
                else:
                    self._model.fit(features, *logits(passed, tried, offsets))
            except Exception as error:
                raise CurriculaRuntimeError(f"{self._path} raised while learning: {described(error)}") from error

    def _level(self) -> float:
        passed, tried = self._totals.tolist()
        return float(np.log((passed + 0.5) / (tried - passed + 0.5)))


def _newest(visits: Visits, batches: list[int], most: int) -> tuple[Visits, list[int]]:
    """The newest whole batches of at most so many visits."""
    kept = 0
    while kept < len(batches) and sum(batches[len(batches) - kept - 1 :]) <= most:
        kept += 1
    batches = batches[len(batches) - kept :]
    newest = Visits(size=max(sum(batches), 1))
    if batches:
        newest.extend(visits.rows, *visits.values_L3.T)
    return newest, batches


def _find(path: str) -> type:
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    # Its module is run by the import, and may raise anything.
    except (Exception, SystemExit) as error:
        message = f"expected module:Class of an installed package; got {path!r} ({described(error)})"
        raise Unfit(("type",), message) from error
    if not inspect.isclass(found) or not (hasattr(found, "partial_fit") or hasattr(found, "learn_one")):
        raise Unfit(
            ("type",),
            f"expected a class with partial_fit (scikit-learn) or learn_one (river); got {path!r}, which has neither",
        )
    return cast(type, found)


def _wrap(chosen: type, path: str, params: Mapping[str, Any]) -> Model:
    try:
        accepted = inspect.signature(chosen).parameters
        seeds = {name: 0 for name in ("random_state", "seed") if name in accepted}
        estimator = chosen(**(seeds | dict(params)))
        batches = hasattr(estimator, "partial_fit")
        model = Sklearn(estimator) if batches else River(estimator)
    except (Exception, SystemExit) as error:
        raise Unfit(("params",), f"{path} refuses them: {described(error)}") from error
    predict = "predict" if batches else "predict_one"
    if not model.classifies and not callable(getattr(estimator, predict, None)):
        raise Unfit(("type",), f"expected a class with {predict}; got {path!r}, which has none")
    return model
