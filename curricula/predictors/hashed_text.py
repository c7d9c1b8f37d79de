"""Ridge regression on the hashed words of a prompt."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.pool import PromptPool
from curricula.predictors.params import positive, whole
from curricula.predictors.targets import logits
from curricula.predictors.texts import HashedTexts
from curricula.predictors.visits import Visits
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_STEPS = 64
_CLOSE = 1e-4
_MOST = 1e6
_MOST_BUCKETS = 1 << 22


class HashedText:
    """Ridge regression of logit pass rates on hashed words and pairs of words.

    With x the words of a prompt (length 1), r its logit less the weighted mean of all, w its weight and P the penalty,
    the coefficients minimise sum of w (r - b x)^2 + P b^2. They are found anew at each `learn` from the last `memory`
    first visits, in the dual form b = X' a with (X X' + P / w) a = r, by conjugate gradients from zero: exact up to
    one part in ten thousand, without a learning rate, and in a time that is linear in the number of words.

    Args:
        pool: With texts.
        buckets: Of the hash, up to 4,194,304.
        penalty: Prior precision of the coefficients, relative to that of a target; tuned on maths prompts.
        memory: First visits that are kept.

    Raises:
        ConfigError: A number out of bounds.
        CurriculaValueError: A pool without texts.

    References:
        Hoerl and Kennard, Ridge regression, Technometrics 1970; Weinberger et al., Feature hashing for large scale
        multitask learning, ICML 2009; Hestenes and Stiefel, Methods of conjugate gradients, 1952.

    >>> pool = PromptPool(["a"] * 4, texts=["easy sum", "hard proof", "easy product", "hard integral"])
    >>> predictor = HashedText(pool)
    >>> predictor.learn(np.array([0, 1]), np.array([4.0, 0.0]), np.array([4.0, 4.0]), np.zeros(2))
    >>> predictor.predict(np.array([2, 3])).round(1)
    array([ 0.1, -0.1])
    """

    def __init__(self, pool: PromptPool, buckets: int = 1 << 18, penalty: float = 3.0, memory: int = 16_384) -> None:
        self.penalty = positive("penalty", penalty)
        self._prompts = len(pool)
        self._texts = HashedTexts(pool, whole("buckets", buckets, high=_MOST_BUCKETS))
        self._visits = Visits(whole("memory", memory))
        self._slopes = np.zeros(buckets)

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,), relative to the mean of what was learned."""
        if len(self._visits) == 0 or rows.size == 0:
            return np.zeros(rows.size)
        return np.asarray(self._texts.matrix(rows) @ self._slopes)

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Fit to K more first visits and those in memory."""
        self._visits.extend(rows, passed, tried, offsets)
        kept = self._visits
        if len(kept) == 0:
            return
        targets, weights = logits(*kept.values_L3.T)
        words = self._texts.matrix(kept.rows).astype(np.float64)
        residuals = targets - np.average(targets, weights=weights)
        self._slopes = words.T @ _solve(words, self.penalty / weights, residuals)

    def state_dict(self) -> dict[str, Any]:
        """The visits in memory, and the coefficients that are not zero."""
        buckets = np.flatnonzero(self._slopes)
        return {
            "type": "hashed_text",
            "size": self._slopes.size,
            "visits": self._visits.state_dict(),
            "buckets": buckets,
            "slopes": self._slopes[buckets],
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        state.ensure("type", "hashed_text", state.text("type") == "hashed_text")
        state.integer("size", low=self._slopes.size, high=self._slopes.size)
        buckets = state.rows("buckets", self._slopes.size)
        slopes = state.array("slopes", np.float64, buckets.shape, low=-_MOST, high=_MOST)
        self._visits.load(state.section("visits"), self._prompts)
        self._slopes = np.zeros(self._slopes.size)
        self._slopes[buckets] = slopes


def _solve(words: Any, diagonal: Floats, right: Floats) -> Floats:
    """Solve (X X' + diag(d)) a = r for a (L,), with X sparse, by conjugate gradients preconditioned by 1 + d."""
    scale = 1.0 / (1.0 + diagonal)
    solution, residual = np.zeros(right.size), right.copy()
    direction = scale * residual
    size = float(residual @ direction)
    wanted = _CLOSE**2 * size
    for _ in range(_STEPS):
        if size <= wanted:
            break
        image = words @ (words.T @ direction) + diagonal * direction
        step = size / float(direction @ image)
        solution += step * direction
        residual -= step * image
        before, size = size, float(residual @ (scale * residual))
        direction = scale * residual + (size / before) * direction
    return solution
