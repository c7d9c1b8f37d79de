"""The mean size of the advantages as the reward."""

from typing import Any

import numpy as np

from curricula.bandits.base import Floats
from curricula.scored import Scored
from curricula.stateful import Reader


class MeanAdvantage:
    """Mean |A| over a group's rollouts, with A = (r - mean r) / std r as GRPO has it; 0 where results do not differ.

    It is at most 1, as a mean of |A| cannot exceed the root of the mean of A^2. With successes of 0 and 1 at the rate
    q it is 2 sqrt(q (1 - q)): greatest at one half. Advantages are no measure of what is learned from them
    (arXiv 2510.19178: between environments their size differs 15 to 33 times and does not track the gain).

    Args:
        arms: E.

    References:
        Chen et al., Self-evolving curriculum for LLM reasoning, arXiv 2505.14970 (SEC, equation 3).
    """

    def __init__(self, arms: int) -> None:
        self._worth_E: Floats = np.ones(arms)

    def observe(self, groups: Scored, rated: bool) -> Floats:
        """Mean |A| of each group, shape (K,), in [0, 1]."""
        live_KG = ~np.isnan(groups.results_KG)
        members_K = np.maximum(groups.members_K, 1)
        centred_KG = np.where(live_KG, groups.results_KG - groups.value_K[:, None], 0.0)
        # Scaled by the largest first: squares of rewards of 1e100 and more would overflow.
        size_KG = np.abs(centred_KG)
        largest_K = size_KG.max(axis=1)
        size_KG /= np.where(largest_K > 0.0, largest_K, 1.0)[:, None]
        std_K = np.sqrt((size_KG**2).sum(axis=1) / members_K)
        mean_K = size_KG.sum(axis=1) / members_K
        return np.where(groups.mixed_K & (std_K > 0.0), np.minimum(mean_K / np.maximum(std_K, 1e-12), 1.0), 0.0)

    def worth(self) -> Floats:
        """The same everywhere."""
        return self._worth_E

    def ceiling(self) -> Floats:
        """The same everywhere."""
        return self.worth()

    def clear(self) -> None:
        """Nothing is kept that depends on what success is."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load(self, state: Reader) -> None:
        """Nothing to take over."""
