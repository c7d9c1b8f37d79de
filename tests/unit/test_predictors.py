"""Predictors of difficulty: what all of them are asked, and what each is for."""

import numpy as np
import pytest

from curricula.predictors import Estimator, Features, HashedText, Kernel, Ridge, Stack
from curricula.predictors.vectors import Columns
from curricula.testing import check_predictor


def estimator(path, **params):
    def make(pool):
        return Estimator(pool, path, params)

    return make


def on_columns(path, **params):
    def make(pool):
        return Estimator(pool, path, params, features="columns")

    return make


PREDICTORS = {
    "hashed_text": HashedText,
    "features": Features,
    "ridge": lambda pool: Ridge(Columns(pool)),
    "kernel": lambda pool: Kernel(Columns(pool)),
    "stack": lambda pool: Stack(pool, [("a", HashedText(pool)), ("b", Features(pool))]),
    "sgd_regressor": estimator("sklearn.linear_model:SGDRegressor"),
    "sgd_classifier": estimator("sklearn.linear_model:SGDClassifier", loss="log_loss"),
    "naive_bayes": on_columns("sklearn.naive_bayes:GaussianNB"),
    "mlp": on_columns("sklearn.neural_network:MLPRegressor", hidden_layer_sizes=[8], learning_rate_init=0.3),
    "mlp_classifier": on_columns(
        "sklearn.neural_network:MLPClassifier", hidden_layer_sizes=[8], learning_rate_init=0.3
    ),
    "river_linear": estimator("river.linear_model:LinearRegression"),
    "river_logistic": on_columns("river.linear_model:LogisticRegression"),
    "river_tree": on_columns("river.tree:HoeffdingTreeClassifier", grace_period=40),
    "river_forest": on_columns("river.forest:ARFRegressor", n_models=3),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_predictor_keeps_its_promises(name):
    check_predictor(PREDICTORS[name])
