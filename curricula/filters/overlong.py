"""Groups that mostly ran into the limit of tokens say little about their prompt."""

from curricula.filters.base import Flags, Groups, Judgement


class Overlong:
    """Drops a group when more than the fraction `most` of its scored members were cut off.

    A rollout that was cut off is wrong because it is long, not because of what it says. Masking the single rollouts
    is the trainer's part (in TRL `mask_truncated_completions`), and masked ones are no live members of their group;
    this filter decides on whole groups, whose few survivors would be compared with one another only.

    Args:
        most: Fraction in [0, 1]; at 1 nothing is ever dropped.
        interrupted: Whether rollouts that were cut short on purpose count as well.

    References:
        Overlong filtering in DAPO (arXiv 2503.14476), section 3.4.
    """

    reason: Judgement = "overlong"

    def __init__(self, most: float, interrupted: bool = False) -> None:
        self.most, self.interrupted = most, interrupted

    def drops(self, groups: Groups) -> Flags:
        """Groups that were cut off in more members than is allowed, shape (K,).

        >>> import numpy as np
        >>> no = np.zeros((2, 4), dtype=bool)
        >>> cut = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
        >>> Overlong(0.5).drops(Groups(np.ones((2, 4)), None, no[:, 0], ~no, cut, no))
        array([ True, False])
        """
        cut = groups.truncated_KG | groups.interrupted_KG if self.interrupted else groups.truncated_KG
        scored = groups.scored_KG.sum(axis=1)
        return (cut & groups.scored_KG).sum(axis=1) > self.most * scored + 1e-9
