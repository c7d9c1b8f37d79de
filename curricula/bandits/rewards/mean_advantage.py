"""The mean size of the advantages as the reward."""

import numpy as np

from curricula.bandits.base import Floats
from curricula.bandits.rewards.flat import Flat
from curricula.scored import Scored


class MeanAdvantage(Flat):
    """Mean |A| over a group's rollouts, with A = (r - mean r) / std r as GRPO has it; 0 where results do not differ.

    It is at most 1, as a mean of |A| cannot exceed the root of the mean of A^2. With successes of 0 and 1 at the rate
    q it is 2 sqrt(q (1 - q)): greatest at one half. Advantages are no measure of what is learned from them
    (arXiv 2510.19178: between environments their size differs 15 to 33 times and does not track the gain).

    Args:
        arms: E.

    References:
        Chen et al., Self-evolving curriculum for LLM reasoning, arXiv 2505.14970 (SEC, equation 3).
    """

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
