"""What predicts from dense vectors: a line through all visits, and the most alike of them."""

from curricula.pool import PromptPool
from curricula.predictors.kernel import Kernel
from curricula.predictors.ridge import Ridge
from curricula.predictors.stack import Stack
from curricula.predictors.vectors import Columns, Vectors


class Dense(Stack):
    """Ridge and kernel regression on the same vectors, weighted by what each was right about."""

    def __init__(self, pool: PromptPool, vectors: Vectors) -> None:
        super().__init__(pool, [("ridge", Ridge(vectors)), ("kernel", Kernel(vectors))])


class Features(Dense):
    """`Dense` on the feature columns of the pool: embeddings, counts, anything that says something of difficulty.

    Args:
        pool: With features.

    >>> import numpy as np
    >>> predictor = Features(PromptPool(["a"] * 5, features=[[0], [1], [4], [5], [0.5]]))
    >>> predictor.learn(np.arange(4), np.array([4.0, 4.0, 0.0, 0.0]), np.full(4, 4.0), np.zeros(4))
    >>> bool(predictor.predict(np.array([4]))[0] > 0.0)
    True
    """

    def __init__(self, pool: PromptPool) -> None:
        super().__init__(pool, Columns(pool))
