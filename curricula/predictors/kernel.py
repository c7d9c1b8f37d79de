"""Kernel regression on dense vectors: the outcomes of the most alike prompts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.predictors.params import positive, whole
from curricula.predictors.targets import logits
from curricula.predictors.vectors import Vectors
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_SPREAD_FROM = 256
_DOUBT = 0.1
_BLOCK = 256
_MOST_NUMBERS = 1 << 24
_MOST = 1e12


class Kernel:
    """Kernel regression of logit pass rates on vectors x: a mean over visited prompts, the alike counting most.

    With r the logit of a visited prompt z less the weighted mean of all, and w its weight, the prediction for x is
    sum of w k r / (sum of w k + 0.1), with k = exp(-|x - z|^2 / (2 reach s)) and s the mean squared distance of two
    prompts, taken from the first 256 visits. There is nothing to solve: learning is remembering, of the newest
    `memory` visits, or as many as make 16 million numbers.

    Sets of prompts hold families that are alike in wording and in difficulty, and a short reach finds them: on
    embeddings of maths prompts a kernel ridge regression on all visits predicts no better, and one on 1,024 centres
    much worse.

    Args:
        vectors: Where x comes from.
        reach: Squared length scale, relative to s; tuned on embeddings of maths prompts.
        memory: Visits that are kept.

    Raises:
        ConfigError: A number out of bounds.

    References:
        Nadaraya, On estimating regression, 1964; Watson, Smooth regression analysis, 1964.
    """

    def __init__(self, vectors: Vectors, reach: float = 0.05, memory: int = 16_384) -> None:
        self._vectors = vectors
        self._reach, self._memory = positive("reach", reach), whole("memory", memory)
        self._seen = 0
        self._spread = 1.0
        self._visited_LD: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._marks_L2: NDArray[np.float32] = np.zeros((0, 2), dtype=np.float32)

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,), relative to the mean of what was learned."""
        if self._seen == 0 or rows.size == 0:
            return np.zeros(rows.size)
        # In blocks: a kernel between all candidates and all visits would need gigabytes.
        return np.concatenate([self._block(rows[start : start + _BLOCK]) for start in range(0, rows.size, _BLOCK)])

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Remember K first visits."""
        if rows.size == 0:
            return
        vectors_KD = self._vectors.matrix(rows).astype(np.float32)
        targets, weights = logits(passed, tried, offsets)
        marks_K2 = np.stack([targets, weights], axis=1).astype(np.float32)
        kept = min(self._memory, max(1, _MOST_NUMBERS // max(1, vectors_KD.shape[1])))
        known = vectors_KD[:0] if self._seen == 0 else self._visited_LD
        self._visited_LD = np.concatenate([known, vectors_KD])[-kept:]
        self._marks_L2 = np.concatenate([self._marks_L2, marks_K2])[-kept:]
        if self._seen < _SPREAD_FROM:
            # The mean over pairs of |x - z|^2 is twice the variance.
            variances = self._visited_LD[:_SPREAD_FROM].astype(np.float64).var(axis=0)
            self._spread = max(2.0 * float(variances.sum()), 1e-12)
        self._seen += rows.size

    def state_dict(self) -> dict[str, Any]:
        """What is remembered."""
        return {
            "type": "kernel",
            "seen": self._seen,
            "spread": np.array([self._spread]),
            "visited": self._visited_LD.copy(),
            "marks": self._marks_L2.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        state.ensure("type", "kernel", state.text("type") == "kernel")
        seen = state.integer("seen")
        spread = state.array("spread", np.float64, (1,), low=1e-300, high=_MOST)
        visited = state.array("visited", np.float32, (None, None), low=-_MOST, high=_MOST)
        marks = state.array("marks", np.float32, (len(visited), 2), low=-_MOST, high=_MOST)
        state.ensure("seen", f"at least {len(visited)}", seen >= len(visited) and (seen == 0) == (len(visited) == 0))
        if seen:
            width = self._vectors.matrix(np.zeros(1, dtype=np.int64)).shape[1]
            state.ensure("visited", f"vectors of {width} numbers", visited.shape[1] == width)
        self._seen, self._spread, self._visited_LD, self._marks_L2 = seen, float(spread[0]), visited, marks

    def _block(self, rows: Rows) -> Floats:
        vectors_MD = self._vectors.matrix(rows).astype(np.float32)
        targets, weights = self._marks_L2.T
        lengths_L = (self._visited_LD**2).sum(axis=1)
        distances = (vectors_MD**2).sum(axis=1)[:, None] + lengths_L - 2.0 * (vectors_MD @ self._visited_LD.T)
        kernel = np.exp(np.maximum(distances, 0.0) / np.float32(-2.0 * self._reach * self._spread)) * weights
        deviations = targets - (targets * weights).sum() / weights.sum()
        return ((kernel @ deviations) / (kernel.sum(axis=1) + _DOUBT)).astype(np.float64)
