"""Which groups are worth training on, each with a reason."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Judgement = Literal["informative", "zero_variance", "single", "unscorable"]


class ZeroVariance:
    """Tells mixed groups from those without a signal, on the raw result of the rollouts.

    A group is mixed when the live members' largest and smallest value differ by more than `tolerance`. A standard
    deviation is never compared with 0: that of [.1, .1, .1] is 1.4e-17.
    """

    def __init__(self, tolerance: float = 1e-6) -> None:
        self.tolerance = tolerance

    def judge(self, results_KG: NDArray[np.float64]) -> list[Judgement]:
        """Judge K groups of results, NaN where a member is masked or unscorable.

        >>> ZeroVariance().judge(np.array([[1, 1, np.nan], [0, 1, 1], [1, np.nan, np.nan]]))
        ['zero_variance', 'informative', 'single']
        """
        live = ~np.isnan(results_KG)
        highest = np.where(live, results_KG, -np.inf).max(axis=1)
        lowest = np.where(live, results_KG, np.inf).min(axis=1)
        mixed = (highest - lowest > self.tolerance).tolist()
        verdicts: list[Judgement] = []
        for group_mixed, members in zip(mixed, live.sum(axis=1).tolist(), strict=True):
            if members == 0:
                verdicts.append("unscorable")
            elif members == 1:
                verdicts.append("single")
            else:
                verdicts.append("informative" if group_mixed else "zero_variance")
        return verdicts
