"""river's online models."""

import inspect
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.predictors.targets import classes, rollouts

Floats = NDArray[np.float64]

_LEAST = 1e-6


class River:
    """A model with `learn_one`, which sees a row as a mapping from the number of a column to its value."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.classifies = hasattr(model, "predict_proba_one")
        parameters = inspect.signature(model.learn_one).parameters
        # A pipeline passes further arguments on to its last step.
        self._weighs = "w" in parameters

    def fit(self, features: Any, targets: Floats, weights: Floats) -> None:
        """Learn numbers (K,) with weights (K,), which a model may not take."""
        for row, target, weight in zip(_mappings(features), targets.tolist(), weights.tolist(), strict=True):
            self._learn(row, target, weight)

    def fit_rates(self, features: Any, passed: Floats, tried: Floats) -> None:
        """Learn successes (K,) of rollouts (K,) as classes False and True."""
        rows = list(_mappings(features))
        made = (classes if self._weighs else rollouts)(passed, tried)
        for place, group in enumerate(made.groups):
            self._learn(rows[int(group)], bool(made.labels[place]), float(made.weights[place]))

    def predict(self, features: Any) -> Floats:
        """Numbers, or logits of the chance of success, shape (M,)."""
        if self.classifies:
            return np.array([_logit(self._model.predict_proba_one(row)) for row in _mappings(features)])
        return np.array([float(self._model.predict_one(row) or 0.0) for row in _mappings(features)])

    def _learn(self, row: dict[int, float], target: Any, weight: float) -> None:
        if self._weighs:
            self._model.learn_one(row, target, w=weight)
        else:
            self._model.learn_one(row, target)


def _logit(chances: dict[Any, float]) -> float:
    # Before a class was seen there is no entry for it.
    chance = min(max(chances.get(True, 1.0 - chances.get(False, 0.5)), _LEAST), 1.0 - _LEAST)
    return math.log(chance / (1.0 - chance))


def _mappings(features: Any) -> Iterator[dict[int, float]]:
    """Rows of a dense or CSR matrix as mappings."""
    if isinstance(features, np.ndarray):
        for row in cast("list[list[float]]", features.tolist()):
            yield dict(enumerate(row))
        return
    indices, data, starts = (part.tolist() for part in (features.indices, features.data, features.indptr))
    for start, stop in pairwise(starts):
        yield dict(zip(indices[start:stop], data[start:stop], strict=True))
