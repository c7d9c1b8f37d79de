"""Where groups go in windows of a fixed length, one for each environment: rings whose oldest group gives way."""

import numpy as np
from numpy.typing import NDArray


def in_windows(
    codes_K: NDArray[np.int64], told_E: NDArray[np.int64], window: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where groups go in the windows of their environments, of which `told_E` groups were told before.

    Returns:
        The groups that are entered (of more than fill its window, an environment keeps the last), the environment of
        each, its slot there; and how many groups each environment was told now, entered or not.

    >>> [part.tolist() for part in in_windows(np.array([1, 0, 1, 1]), np.array([0, 1]), 2)]
    [[1, 2, 3], [0, 1, 1], [0, 0, 1], [1, 3]]
    """
    counts_E = np.bincount(codes_K, minlength=len(told_E))
    # Group by group of an environment, in the order they were told: its k-th goes k places on.
    order = codes_K.argsort(kind="stable")
    grouped = codes_K[order]
    rank = np.arange(grouped.size) - (counts_E.cumsum() - counts_E)[grouped]
    last = rank >= counts_E[grouped] - window
    slots = (told_E[grouped] + rank) % window
    return order[last], grouped[last], slots[last], counts_E
