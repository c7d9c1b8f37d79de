"""scikit-learn's estimators that learn in batches."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.predictors.targets import classes, rollouts

Floats = NDArray[np.float64]

_LEAST = 1e-6


class Sklearn:
    """An estimator with `partial_fit`.

    A classifier's decision is its `decision_function`, which is the logit itself under log loss, else the logit of
    its `predict_proba`.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self.classifies = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
        self._weighs = "sample_weight" in inspect.signature(estimator.partial_fit).parameters

    def fit(self, features: Any, targets: Floats, weights: Floats) -> None:
        """Learn numbers (K,) with weights (K,), which an estimator may not take."""
        extra = {"sample_weight": weights} if self._weighs else {}
        self._estimator.partial_fit(features, targets, **extra)

    def fit_rates(self, features: Any, passed: Floats, tried: Floats) -> None:
        """Learn successes (K,) of rollouts (K,) as classes 0 and 1."""
        groups, labels, weights = (classes if self._weighs else rollouts)(passed, tried)
        extra = {"sample_weight": weights} if self._weighs else {}
        self._estimator.partial_fit(features[groups], labels, classes=np.array([0, 1]), **extra)

    def predict(self, features: Any) -> Floats:
        """Numbers, or logits of the chance of success, shape (M,)."""
        if not self.classifies:
            return np.asarray(self._estimator.predict(features), dtype=np.float64).reshape(-1)
        if hasattr(self._estimator, "decision_function"):
            return np.asarray(self._estimator.decision_function(features), dtype=np.float64).reshape(-1)
        chance = np.clip(np.asarray(self._estimator.predict_proba(features))[:, 1], _LEAST, 1.0 - _LEAST)
        return np.log(chance / (1.0 - chance))
