"""Judged groups, as every part that learns sees them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """K groups of at most G rollouts, in the order they were told.

    Attributes:
        rows_K: Row of each prompt in the pool.
        codes_K: Code of its environment.
        drawn_K: Whether this run drew it; else the outcome comes from elsewhere and is no part of the run's account.
        first_K: Whether it is the first visit of its prompt; of several groups in one tell, the first that teaches is.
        results_KG: Results of the rollouts: successes, or rewards where they are no rates; NaN where not live.
        members_K: Live rollouts.
        passed_K: Sum of the results of the live ones.
        value_K: Their mean; 0 where none is live.
        corrected_K: Value, corrected to the mean over all eligible prompts of the environment by what was believed
            before: pool mean + value - belief. Averages of it are weighted by `weight_K`.
        weight_K: Inverse of the probability that the prompt was drawn, relative to an even draw.
        share_K: Share of the draws that its environment had when it was drawn.
        mixed_K: Whether the group is informative.
        kept_K: Whether it is trained on.
        tokens_K: Tokens of the rollouts whose tokens are known.
        counted_K: How many rollouts those are.
    """

    rows_K: NDArray[np.int64]
    codes_K: NDArray[np.int64]
    drawn_K: Flags
    first_K: Flags
    results_KG: Floats
    members_K: NDArray[np.int64]
    passed_K: Floats
    value_K: Floats
    corrected_K: Floats
    weight_K: Floats
    share_K: Floats
    mixed_K: Flags
    kept_K: Flags
    tokens_K: Floats
    counted_K: Floats
