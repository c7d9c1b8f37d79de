"""Feature columns of the pool as dense vectors of comparable scale."""

from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from curricula.columns import is_array
from curricula.errors import CurriculaValueError
from curricula.pool import PromptPool

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_SAMPLE = 1024
_MOST = 100.0


class Vectors(Protocol):
    """Where a model of dense vectors gets them."""

    def matrix(self, rows: Rows) -> Floats:
        """Vectors of rows (M,), shape (M, D), finite."""
        ...


class Columns:
    """The columns `PromptPool(features=...)` of the rows that are asked for, standardised.

    Mean and deviation of each column are those of up to 1,024 rows spread evenly over the pool. What is not a finite
    number counts as the column's mean, and nothing is more than 100 deviations from it.

    >>> columns = Columns(PromptPool(["a"] * 4, features=[[0, 5], [2, 5], [0, 5], [2, 5]]))
    >>> columns.matrix(np.array([0, 1]))
    array([[-1.,  0.], [ 1.,  0.]])
    """

    def __init__(self, pool: PromptPool) -> None:
        if pool.features is None:
            raise CurriculaValueError("predictor: expected a pool with features; got one without")
        self._features = cast(Any, pool.features)
        self._width: int | None = None
        sample = self._read(np.unique(np.linspace(0, len(pool) - 1, _SAMPLE).astype(np.int64)))
        self._width = sample.shape[1]
        finite = np.isfinite(sample)
        count = np.maximum(finite.sum(axis=0), 1)
        self._mean = np.where(finite, sample, 0.0).sum(axis=0) / count
        deviation = np.sqrt((np.where(finite, sample - self._mean, 0.0) ** 2).sum(axis=0) / count)
        self._scale = np.where(deviation > 1e-12 * np.abs(self._mean), deviation, 0.0)

    def matrix(self, rows: Rows) -> Floats:
        """Standardised columns of rows (M,), shape (M, D); a column that does not vary is zero."""
        scale = np.where(self._scale > 0.0, self._scale, 1.0)
        values = (self._read(rows) - self._mean) / scale
        return np.where(np.isfinite(values) & (self._scale > 0.0), np.clip(values, -_MOST, _MOST), 0.0)

    def _read(self, rows: Rows) -> Floats:
        features = self._features
        part: Any
        if is_array(features):
            part = features[rows]
        elif hasattr(features, "to_pylist"):
            part = features.take(rows).to_pylist()
        else:
            part = [features[row] for row in rows.tolist()]
        try:
            values = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty((0, 0, 0))
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[0] != rows.size or (self._width or values.shape[1]) != values.shape[1]:
            expected = "D numbers" if self._width is None else f"{self._width} numbers"
            raise CurriculaValueError(f"features: expected {expected} for each prompt; got others")
        return values
