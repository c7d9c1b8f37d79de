"""Ridge regression on dense vectors, online."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.predictors.params import positive
from curricula.predictors.targets import logits
from curricula.predictors.vectors import Vectors
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_WIDEST = 1024
_MOST = 1e15


class Ridge:
    """Ridge regression of logit pass rates on vectors x, from running sums: each visit is read once.

    With x and the logits y centred at their weighted means, the coefficients are (S + P v I)^-1 X' W y, with
    S = X' W X, v the mean squared length of x and P the penalty. Vectors of more than 1,024 numbers are projected onto
    that many random directions, the same in every run.

    Args:
        vectors: Where x comes from.
        penalty: Prior precision of the coefficients, relative to that of a target.
        forgetting: What the past counts at each visit; below 1 where what x means changes.

    Raises:
        ConfigError: A number out of bounds.

    References:
        Hoerl and Kennard, Ridge regression, Technometrics 1970; Achlioptas, Database-friendly random projections,
        JCSS 2003.
    """

    def __init__(self, vectors: Vectors, penalty: float = 30.0, forgetting: float = 1.0) -> None:
        self._vectors, self._penalty = vectors, positive("penalty", penalty)
        self._forgetting = positive("forgetting", forgetting, high=1.0)
        self._projection: NDArray[np.float32] | None = None
        # Columns: x, then 1. The sums of w z z' and of w z y, with z = (x, 1).
        self._squares_ZZ: Floats = np.zeros((0, 0))
        self._products_Z: Floats = np.zeros(0)
        self._mean_D: Floats = np.zeros(0)
        self._slopes_D: Floats = np.zeros(0)

    def predict(self, rows: Rows) -> Floats:
        """Predicted logits of rows (M,), relative to the mean of what was learned."""
        if self._slopes_D.size == 0 or rows.size == 0:
            return np.zeros(rows.size)
        return (self._read(rows) - self._mean_D) @ self._slopes_D

    def learn(self, rows: Rows, passed: Floats, tried: Floats, offsets: Floats) -> None:
        """Add K first visits to the sums, and solve for the coefficients."""
        if rows.size == 0:
            return
        vectors_KD = self._read(rows)
        targets, weights = logits(passed, tried, offsets)
        z: Floats = np.concatenate([vectors_KD, np.ones((rows.size, 1))], axis=1)
        if self._products_Z.size == 0:
            width = int(z.shape[1])
            self._squares_ZZ, self._products_Z = np.zeros((width, width)), np.zeros(width)
        fade = self._forgetting**rows.size
        self._squares_ZZ = fade * self._squares_ZZ + z.T @ (z * weights[:, None])
        self._products_Z = fade * self._products_Z + np.asarray(z.T @ (weights * targets), np.float64)
        self._solve()

    def state_dict(self) -> dict[str, Any]:
        """The sums; coefficients follow from them."""
        return {"type": "ridge", "squares": self._squares_ZZ.copy(), "products": self._products_Z.copy()}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        state.ensure("type", "ridge", state.text("type") == "ridge")
        products = state.array("products", np.float64, (None,), low=-_MOST, high=_MOST)
        squares = state.array("squares", np.float64, (products.size, products.size), low=-_MOST, high=_MOST)
        if products.size:
            state.ensure("squares", "a positive weight", bool(squares[-1, -1] > 0.0))
        self._squares_ZZ, self._products_Z = squares, products
        self._mean_D, self._slopes_D = np.zeros(0), np.zeros(0)
        if products.size:
            self._solve()

    def _solve(self) -> None:
        weight = self._squares_ZZ[-1, -1]
        mean, level = self._squares_ZZ[:-1, -1] / weight, self._products_Z[-1] / weight
        matrix = self._squares_ZZ[:-1, :-1] - weight * np.outer(mean, mean)
        diagonal = np.maximum(matrix.diagonal(), 0.0)
        # Where no column varies, any penalty gives zeros.
        matrix.flat[:: len(matrix) + 1] = diagonal + (self._penalty * diagonal.sum() / weight or 1.0)
        self._mean_D = mean
        self._slopes_D = np.asarray(np.linalg.solve(matrix, self._products_Z[:-1] - weight * level * mean), np.float64)

    def _read(self, rows: Rows) -> Floats:
        vectors = self._vectors.matrix(rows)
        width = vectors.shape[1]
        if width <= _WIDEST:
            return vectors
        if self._projection is None:
            signs = np.random.Generator(np.random.PCG64(width)).integers(0, 2, (width, _WIDEST), dtype=np.int8)
            self._projection = (signs * 2.0 - 1.0).astype(np.float32) / np.float32(np.sqrt(_WIDEST))
        return (vectors.astype(np.float32) @ self._projection).astype(np.float64)
