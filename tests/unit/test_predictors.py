"""Predictors of difficulty: what all of them are asked, and what each is for."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from curricula import CheckpointError, ConfigError, CurriculaValueError, PromptPool
from curricula.config import PredictorConfig
from curricula.config.predictors import OWN
from curricula.predictors import Estimator, Features, HashedText, Kernel, Ridge, Stack, build, build_predictor, texts
from curricula.predictors.targets import logits
from curricula.predictors.vectors import Columns
from curricula.stateful import Reader
from curricula.testing import check_predictor
from curricula.testing.predictor import planted_pool


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


def test_names_that_a_mix_may_have_are_those_that_are_built():
    assert {"auto", "none", "stack"} | set(build._OWN) == set(OWN)


def pool(**columns):
    return PromptPool(["a"] * 4, keys=np.arange(4), **columns)


TEXTS, VECTORS = ["a b", "b c", "c d", "d e"], np.eye(4)


@pytest.mark.parametrize(
    ("columns", "members"),
    [
        ({}, None),
        ({"texts": TEXTS}, ["hashed_text"]),
        ({"features": VECTORS}, ["features"]),
        ({"texts": TEXTS, "features": VECTORS}, ["hashed_text", "features"]),
    ],
)
def test_auto_takes_what_the_pool_has(columns, members):
    made = build_predictor(PredictorConfig(), pool(**columns))
    assert (None if made is None else made.predictor.names) == members
    assert build_predictor(PredictorConfig(type="none"), pool(**columns)) is None


def test_stacks_are_built_from_their_members():
    config = {
        "type": "stack",
        "members": [
            {"type": "hashed_text", "params": {"buckets": 64}},
            {"type": "sklearn.linear_model:SGDRegressor", "features": "columns"},
        ],
    }
    made = build_predictor(PredictorConfig.model_validate(config), pool(texts=TEXTS, features=VECTORS))
    assert made.predictor.names == ["hashed_text", "sklearn.linear_model:SGDRegressor"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"type": "hashed_text", "params": {"bukets": 9}}, r"predictor\.params: .*got 'bukets'; did you mean buckets"),
        ({"type": "features", "params": {"x": 1}}, r"predictor\.params: expected none with features; got 'x'"),
        (
            {"type": "nothing:Here"},
            r"predictor\.type: expected module:Class of .*; got 'nothing:Here'",
        ),
        ({"type": "sklearn.linear_model:Ridge"}, r"partial_fit .* which has neither"),
        ({"type": "sklearn.linear_model:SGDRegressor", "params": {"alfa": 1}}, r"predictor\.params: .*alfa"),
        ({"type": "stack", "members": [{"type": "sums"}]}, r"predictor\.members\[0\]\.type: .* got 'sums'"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(config, said):
    with pytest.raises(ConfigError, match=said) as caught:
        build_predictor(PredictorConfig.model_validate(config), pool(texts=TEXTS, features=VECTORS))
    assert "\n" not in str(caught.value)


def test_columns_that_are_asked_for_must_be_there():
    for kind in ("hashed_text", "features"):
        with pytest.raises(CurriculaValueError, match="expected a pool with"):
            build_predictor(PredictorConfig(type=kind), pool())


def brute_kernel(vectors, targets, weights, query, reach, spread):
    kernel = weights * np.exp(-((vectors - query) ** 2).sum(axis=1) / (2.0 * reach * spread))
    return kernel @ (targets - np.average(targets, weights=weights)) / (kernel.sum() + 0.1)


def test_models_are_what_their_equations_say():
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((60, 3))
    prompts = PromptPool(
        ["a"] * 60, keys=np.arange(60), texts=[f"w{n % 7} v{n % 5}" for n in range(60)], features=vectors
    )
    rows, tried, offsets = np.arange(40), np.full(40, 8.0), rng.standard_normal(40)
    passed = rng.binomial(8, 0.4, 40).astype(np.float64)
    targets, weights = logits(passed, tried, offsets)
    x = Columns(prompts).matrix(np.arange(60))
    center = np.average(x[:40], axis=0, weights=weights)
    residual = targets - np.average(targets, weights=weights)

    ridge = Ridge(Columns(prompts), penalty=5.0)
    for part in (slice(0, 7), slice(7, 40)):
        ridge.learn(rows[part], passed[part], tried[part], offsets[part])
    z = x[:40] - center
    scatter = (z * weights[:, None]).T @ z
    slopes = np.linalg.solve(scatter + 5.0 * np.trace(scatter) / weights.sum() * np.eye(3), z.T @ (weights * residual))
    assert ridge.predict(np.arange(60)) == pytest.approx((x - center) @ slopes)

    kernel = Kernel(Columns(prompts), reach=0.1)
    kernel.learn(rows, passed, tried, offsets)
    spread = np.mean([((a - b) ** 2).sum() for a in x[:40] for b in x[:40]])
    expected = [brute_kernel(x[:40], targets, weights, query, 0.1, spread) for query in x]
    assert kernel.predict(np.arange(60)) == pytest.approx(np.array(expected), rel=1e-3, abs=1e-5)

    words = HashedText(prompts, buckets=256, penalty=2.0)
    words.learn(rows, passed, tried, offsets)
    matrix = words._texts.matrix(np.arange(60)).toarray().astype(np.float64)
    seen = matrix[:40]
    slopes = np.linalg.solve(seen.T @ (seen * weights[:, None]) + 2.0 * np.eye(256), seen.T @ (weights * residual))
    assert words.predict(np.arange(60)) == pytest.approx(matrix @ slopes, abs=1e-3)


def test_a_stack_trusts_who_is_right_and_measures_itself_before_the_outcome():
    prompts, difficulty = planted_pool()
    rng = np.random.default_rng(0)

    class Noise:
        def predict(self, rows):
            return 3.0 * rng.standard_normal(rows.size)

        def learn(self, *visit):
            pass

    stack = Stack(prompts, [("text", HashedText(prompts)), ("noise", Noise())])
    for start in range(0, 600, 50):
        rows = np.arange(start, start + 50)
        passed = rng.binomial(8, 1.0 / (1.0 + np.exp(difficulty[rows]))).astype(np.float64)
        stack.learn(rows, passed, np.full(50, 8.0), np.zeros(50))
    measured = stack.metrics()
    assert measured["predictor/text/weight"] > 0.7
    assert measured["predictor/noise/weight"] < 0.1
    assert 0.4 < measured["predictor/skill"] < 1.0


def test_a_useless_predictor_is_given_no_weight():
    prompts = PromptPool(
        ["a"] * 2000, keys=np.arange(2000), features=np.random.default_rng(1).standard_normal((2000, 4))
    )
    rng = np.random.default_rng(2)
    made = Stack(prompts, [("features", Features(prompts))])
    for start in range(0, 1500, 100):
        rows = np.arange(start, start + 100)
        passed = rng.binomial(8, rng.choice([0.02, 0.5, 0.98], 100)).astype(np.float64)
        made.learn(rows, passed, np.full(100, 8.0), np.zeros(100))
    assert np.abs(made.predict(np.arange(1500, 2000))).max() < 0.3
    assert made.metrics()["predictor/skill"] > -0.02


def test_environments_differ_and_predictions_do_not_say_so():
    prompts = PromptPool(["easy", "hard"] * 100, keys=np.arange(200), texts=["same words"] * 200)
    made = Stack(prompts, [("text", HashedText(prompts))])
    rows = np.arange(160)
    for part in (rows[:80], rows[80:]):
        made.learn(part, np.where(part % 2 == 0, 8.0, 0.0), np.full(80, 8.0), np.zeros(80))
    assert np.abs(made.predict(np.arange(160, 200))).max() < 0.2


def test_an_estimator_starts_anew_with_its_newer_half():
    prompts, _ = planted_pool()
    made = Estimator(prompts, "river.linear_model:LinearRegression", features="columns", memory=100)
    other = Estimator(prompts, "river.linear_model:LinearRegression", features="columns", memory=100)
    visits = [(rows, rows % 9.0, np.full(25, 8.0), np.zeros(25)) for rows in np.arange(125).reshape(5, 25)]
    for visit in visits:
        made.learn(*visit)
    for visit in visits[2:]:
        other.learn(*visit)
    assert np.array_equal(made.predict(np.arange(300)), other.predict(np.arange(300)))


def test_hashed_rows_are_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(texts, "_MOST_CACHED", 10)
    source = texts.HashedTexts(pool(texts=TEXTS), 64)
    first = source.matrix(np.arange(4)).toarray()
    assert source._cached <= 10
    assert np.array_equal(source.matrix(np.array([3, 0, 0, 2])).toarray(), first[[3, 0, 0, 2]])
    assert source.matrix(np.array([], dtype=np.int64)).shape == (0, 64)


@pytest.mark.parametrize(
    ("column", "width"), [(VECTORS, 4), (VECTORS.tolist(), 4), (pa.array(VECTORS.tolist()), 4), ([1, 2, 3, 4], 1)]
)
def test_feature_columns_may_lie_in_any_form(column, width):
    assert Columns(pool(features=column)).matrix(np.array([0, 3])).shape == (2, width)


def test_features_that_are_no_numbers_are_refused_or_passed_over():
    with pytest.raises(CurriculaValueError, match="features: expected D numbers for each prompt"):
        Columns(pool(features=["a", "b", "c", "d"]))
    with pytest.raises(CurriculaValueError, match="features: expected D numbers"):
        Columns(pool(features=[[1], [1, 2], [1], [1]]))
    matrix = Columns(pool(features=[[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [np.inf, 5.0]])).matrix(np.arange(4))
    assert matrix.tolist() == [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_the_weights_of_a_stack_are_the_least_of_all_that_are_not_negative():
    """Against every subset of members: the least value of the sum among those whose solution is not negative."""
    rng, pool = np.random.default_rng(0), PromptPool(["a"] * 4)
    dropped_rightly = 0
    for _ in range(200):
        stack = Stack(pool, [(str(place), Hash()) for place in range(4)])
        f = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4)) * 3.0
        stack._products_JJ, stack._fits_J = f.T @ f, f.T @ rng.normal(size=50) * 5.0
        matrix, right = stack._products_JJ + 10.0 * np.eye(4), stack._fits_J + 10.0 / 4
        best, found = np.inf, np.zeros(4)
        for chosen in itertools.product([False, True], repeat=4):
            held, a = np.flatnonzero(chosen), np.zeros(4)
            a[held] = np.linalg.solve(matrix[np.ix_(held, held)], right[held])
            value = a @ matrix @ a - 2 * right @ a
            if (a >= 0).all() and value < best:
                best, found = value, a
        np.testing.assert_allclose(stack.weights(), found, atol=1e-8)
        dropped_rightly += (found == 0).any()
    assert dropped_rightly > 50


def test_a_stack_whose_sums_cannot_be_is_refused():
    stack = Stack(PromptPool(["a"] * 4), [("x", Hash()), ("y", Hash())])
    for wrong in (np.array([[0.0, 5.0], [0.0, 0.0]]), np.diag([1.0, -11.0])):
        with pytest.raises(CheckpointError, match="products: expected sums of products"):
            stack.load(Reader({**stack.state_dict(), "products": wrong}, "state"))


class Hash:
    def predict(self, rows):
        return np.zeros(len(rows))

    def state_dict(self):
        return {}

    def load(self, state):
        pass
