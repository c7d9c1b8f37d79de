"""A prompt that is told several times at once is learned from visit by visit."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def visits(rows_K: Ints) -> Iterator[Ints]:
    """Places of the first visits, of the second ones, and so on: the rows of each pass are distinct.

    Args:
        rows_K: Shape (K,), rows of a pool.

    Yields:
        Ascending places in `rows_K`; at least one pass unless there are no rows.

    >>> [places.tolist() for places in visits(np.array([7, 5, 7, 7]))]
    [[0, 1], [2], [3]]
    """
    left = np.arange(rows_K.size)
    while left.size:
        rows = rows_K[left]
        ranked = np.sort(rows)
        if bool((ranked[1:] > ranked[:-1]).all()):
            yield left
            return
        _, first = np.unique(rows, return_index=True)
        later = np.ones(left.size, dtype=np.bool_)
        later[first] = False
        yield left[~later]
        left = left[later]
