"""Blocks of prompts of one environment and level."""

import numpy as np
from numpy.typing import NDArray

from curricula.columns import Codes, narrowed, whole_numbers
from curricula.errors import CurriculaValueError

Ints = NDArray[np.int64]

_CHUNK = 1 << 20
_MOST_LEVELS = 1 << 31
_MOST_COUNTED = 1 << 24


def split_by_level(codes: Codes, environments: int, levels: object) -> tuple[Codes, Ints, Ints]:
    """Blocks of prompts of one environment and level, sorted by both.

    Args:
        codes: Shape (N,), codes of environments.
        environments: How many there are.
        levels: Shape (N,), integers.

    Returns:
        The block of each prompt, shape (N,), and the environment and level of each block, shape (B,) each.

    Raises:
        CurriculaValueError: Levels that are no integers, or too far apart.
    """
    level = whole_numbers(levels, "levels", len(codes))
    lowest, reach = int(level.min()), int(level.max()) - int(level.min()) + 1
    if reach > _MOST_LEVELS:
        raise CurriculaValueError(f"levels: expected a range of at most {_MOST_LEVELS}; got {reach}")
    if environments * reach > _MOST_COUNTED:
        pairs, blocks = np.unique(codes * np.int64(reach) + (level - np.int64(lowest)), return_inverse=True)
        return narrowed(blocks.reshape(-1), len(pairs)), pairs // reach, pairs % reach + lowest
    spans = [slice(start, start + _CHUNK) for start in range(0, len(codes), _CHUNK)]

    def joint(span: slice) -> Ints:
        return codes[span] * np.int64(reach) + (level[span].astype(np.int64) - lowest)

    present = np.zeros(environments * reach, dtype=np.bool_)
    for span in spans:
        present[joint(span)] = True
    pairs = np.flatnonzero(present)
    table = narrowed(present.cumsum() - 1, len(pairs))
    blocks = np.empty(len(codes), dtype=table.dtype)
    for span in spans:
        blocks[span] = table[joint(span)]
    return blocks, pairs // reach, pairs % reach + lowest
