"""Means over ranges of blocks without a pass over prompts, and outcomes of one prompt taken in order."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def window_sums(columns_CB: Floats, windows_E2: Rows) -> Floats:
    """Sums of columns over each environment's range of blocks, as differences of running sums.

    Args:
        columns_CB: Shape (C, B).
        windows_E2: Shape (E, 2), first block and one past the last.

    Returns:
        Shape (C, E).

    >>> window_sums(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 2], [2, 3]]))
    array([[3., 4.]])
    """
    running = np.concatenate([np.zeros((len(columns_CB), 1)), columns_CB.cumsum(axis=1)], axis=1)
    return running[:, windows_E2[:, 1]] - running[:, windows_E2[:, 0]]


def rounds(rows: Rows) -> Iterator[Rows]:
    """Places of rows (K,) in rounds: within one, rows are distinct; a row's n-th place is in the n-th round.

    >>> [places.tolist() for places in rounds(np.array([7, 5, 7, 7]))]
    [[0, 1], [2], [3]]
    """
    places = np.arange(rows.size)
    while places.size:
        left = rows[places]
        if len(set(left.tolist())) == left.size:
            yield places
            return
        _, first = np.unique(left, return_index=True)
        first.sort()
        yield places[first]
        places = np.delete(places, first)
