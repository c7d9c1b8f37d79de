"""What every predictor of difficulty is asked: run it on your own in a test."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.pool import PromptPool
from curricula.predictors.base import Predictor
from curricula.stateful import Reader
from curricula.testing.compare import global_generators

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Factory = Callable[[PromptPool], Predictor]

_PROMPTS, _ROLLOUTS = 600, 8.0
_EASY, _HARD = ("add", "count", "double"), ("prove", "integrate", "construct")
_PLAIN = ("the", "numbers", "given", "below", "which", "are", "all", "positive", "and", "whole")


def check_predictor(factory: Factory, *, signal: float = 0.3) -> None:
    """Raise AssertionError where a predictor breaks what `Predictor` promises.

    It predicts 0 before it has learned anything; its predictions are finite, of the right shape, and a function of
    what it learned; it learns a signal that is in texts and features alike, from whole and from fractional successes;
    it bears a single visit, one class only, and offsets that are huge; it restores a saved state exactly and goes on
    alike from there; it leaves numpy's and Python's global generators alone.

    Args:
        factory: Makes a fresh predictor on a pool with texts and features.
        signal: Correlation that predictions for unseen prompts must have with the planted difficulty.

    >>> from curricula.predictors import HashedText
    >>> check_predictor(HashedText)
    """
    pool, difficulty = planted_pool()
    rng = np.random.default_rng(7)
    order = rng.permutation(_PROMPTS)
    seen, unseen = order[:400], order[400:]
    passed = rng.binomial(int(_ROLLOUTS), 1.0 / (1.0 + np.exp(difficulty[seen]))).astype(np.float64)

    assert (_finite(factory(pool).predict(unseen), unseen) == 0.0).all(), "0.0 is predicted while nothing is known"
    predictor = _taught(factory(pool), seen, passed)
    predictions = _finite(predictor.predict(unseen), unseen)
    learned = _correlation(predictions, -difficulty[unseen])
    assert learned >= signal, f"expected a correlation of {signal} with the planted signal; got {learned:.3f}"
    assert np.array_equal(predictions, predictor.predict(unseen)), "predicting changes nothing"
    # Not at the first time: libraries that are imported then may draw.
    before = global_generators()
    again = _taught(factory(pool), seen, passed).predict(unseen)
    assert global_generators() == before, "global random generators are left alone"
    assert np.array_equal(predictions, again), "the same visits give the same predictions"
    fractions = _taught(factory(pool), seen, passed * 0.75 + 0.6).predict(unseen)
    assert _correlation(_finite(fractions, unseen), -difficulty[unseen]) >= signal, "fractional successes teach too"
    assert predictor.predict(unseen[:0]).shape == (0,), "no rows, no predictions"
    predictor.learn(seen[:0], passed[:0], passed[:0], passed[:0])
    assert np.array_equal(predictions, predictor.predict(unseen)), "no visits teach nothing"

    restored = factory(pool)
    restored.load(Reader(predictor.state_dict(), "state"))
    assert np.array_equal(predictions, restored.predict(unseen)), "a restored predictor predicts the same"
    for one in (predictor, restored):
        one.learn(unseen[:50], np.full(50, 2.0), np.full(50, _ROLLOUTS), np.zeros(50))
    assert np.array_equal(predictor.predict(seen), restored.predict(seen)), "a restored predictor goes on alike"

    _bears(factory(pool), unseen, seen[:1], passed[:1], 0.0)
    _bears(factory(pool), unseen, seen[:64], np.zeros(64), 0.0)
    _bears(factory(pool), unseen, seen[:64], np.full(64, _ROLLOUTS), 0.0)
    _bears(factory(pool), unseen, seen[:64], passed[:64], 1e6)
    _bears(factory(pool), unseen, seen[:64], passed[:64], -1e6)


def planted_pool() -> tuple[PromptPool, Floats]:
    """A pool of 600 prompts whose words and features tell their difficulty, and that difficulty in logits (600,)."""
    rng = np.random.default_rng(3)
    hard = rng.random(_PROMPTS) < 0.5
    difficulty = np.where(hard, 1.5, -1.5) + 0.5 * rng.standard_normal(_PROMPTS)
    texts = [
        " ".join([str(rng.choice(_HARD if is_hard else _EASY)), *rng.choice(_PLAIN, size=6).tolist()])
        for is_hard in hard.tolist()
    ]
    features = rng.standard_normal((_PROMPTS, 4))
    features[:, 1] += 1.5 * difficulty
    return PromptPool(["planted"] * _PROMPTS, texts=texts, features=features), difficulty


def _taught(predictor: Predictor, rows: Rows, passed: Floats) -> Predictor:
    for start in range(0, rows.size, 100):
        part = slice(start, start + 100)
        predictor.learn(rows[part], passed[part], np.full(rows[part].size, _ROLLOUTS), np.zeros(rows[part].size))
    return predictor


def _bears(predictor: Predictor, unseen: Rows, rows: Rows, passed: Floats, offset: float) -> None:
    predictor.learn(rows, passed, np.full(rows.size, _ROLLOUTS), np.full(rows.size, offset))
    _finite(predictor.predict(unseen), unseen)


def _finite(predictions: Any, rows: Rows) -> Floats:
    assert isinstance(predictions, np.ndarray), "predictions are a numpy array"
    array = cast(Floats, predictions)
    assert array.shape == rows.shape, f"expected predictions of shape {rows.shape}; got {array.shape}"
    assert np.isfinite(array).all(), "predictions are finite"
    return array


def _correlation(a: Floats, b: Floats) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0.0 else 0.0
