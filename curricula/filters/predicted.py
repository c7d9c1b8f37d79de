"""Prompts whose groups will most likely be all alike are not worth their rollouts."""

from curricula.filters.base import Flags, Floats


class PredictedZeroVariance:
    """Holds back prompts whose groups are expected to be informative with too small a probability.

    Args:
        below: The threshold, a probability in [0, 1].

    References:
        Skipping of prompts by the zero variance of their last visits in GRESO (arXiv 2506.02177); here the
        probability is that of the posterior.
    """

    def __init__(self, below: float) -> None:
        self.below = below

    def admits(self, means_M: Floats, informative_M: Floats) -> Flags:
        """Prompts at or above the threshold, shape (M,)."""
        return informative_M >= self.below
