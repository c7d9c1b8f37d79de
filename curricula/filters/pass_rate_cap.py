"""Prompts that the policy solves nearly always are reviewed, not resampled."""

from curricula.filters.base import Flags, Floats


class PassRateCap:
    """Holds back prompts whose pass rate is believed above a cap.

    ScaleRL drops such prompts for good (no-positive-resampling), so that one lucky group ends a prompt and a
    regression is never noticed. Here they are drawn at the rate of a review, and a failed review lowers the belief,
    which brings them back.

    Args:
        above: The cap, a rate in [0, 1].

    References:
        No-positive-resampling in ScaleRL (arXiv 2510.13786).
    """

    def __init__(self, above: float) -> None:
        self.above = above

    def admits(self, means_M: Floats, informative_M: Floats) -> Flags:
        """Prompts believed at or below the cap, shape (M,)."""
        return means_M <= self.above
