"""Discounted Thompson sampling over environments."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader

_SAMPLES = 32
_NUMBERS = 1 << 17  # samples are fewer where there are many environments
_MOST = 1e15


class DiscountedThompson:
    """Shares from posterior samples of what a group of each environment gives.

    The mean reward of environment e has the posterior Beta(1 + sum of r, 1 + sum of (1 - r)) over its groups, with
    sums that are discounted at every told group of any environment: an outage empties them, it does not wind them
    up. A reward of 0.25 counts as a quarter of a success and three quarters of a failure. With theta a sample of
    the means and c the costs, the share of e is the mean over samples of

        (theta_e / c_e)^k / sum over f of (theta_f / c_f)^k

    with k the `sharpness`: 1 follows what each gives, large k goes to the best only, as one arm at a time would.

    Args:
        arms: E.
        discount: Of what was seen, per told group.
        sharpness: k; infinity takes the best of each sample.

    References:
        Raj and Kalyani, Taming non-stationary bandits: a Bayesian approach, arXiv 1707.09727.
        Russo et al., A tutorial on Thompson sampling, arXiv 1707.02038.

    >>> bandit = DiscountedThompson(arms=2, discount=0.99)
    >>> bandit.update(np.array([0] * 40 + [1] * 40), np.array([1.0] * 40 + [0.0] * 40), np.full(80, 0.5))
    >>> bool(bandit.shares(np.ones(2), np.random.default_rng(0))[0] > 0.99)
    True
    """

    def __init__(self, arms: int, discount: float = 0.995, sharpness: float = 2.0) -> None:
        self.discount, self.sharpness = discount, sharpness
        self.counts_E2: Floats = np.zeros((arms, 2))

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """Mean over posterior samples of each environment's part of (theta / cost)^sharpness, shape (E,)."""
        arms = len(self.counts_E2)
        samples = int(np.clip(_NUMBERS // arms, 1, _SAMPLES))
        theta_SE = rng.beta(self.counts_E2[:, 1] + 1.0, self.counts_E2[:, 0] + 1.0, size=(samples, arms))
        theta_SE /= costs
        best_S = theta_SE.argmax(axis=1)
        if np.isinf(self.sharpness):
            return np.bincount(best_S, minlength=arms) / samples
        theta_SE /= theta_SE[np.arange(samples), best_S][:, None]
        theta_SE **= self.sharpness
        return (theta_SE / theta_SE.sum(axis=1, keepdims=True)).mean(axis=0)

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """Count K groups, told in this order: each discounts all that came before it."""
        told, arms = len(codes), len(self.counts_E2)
        ages = self.discount ** np.arange(told - 1.0, -1.0, -1.0)
        gained = ages * rewards
        self.counts_E2 *= self.discount**told
        self.counts_E2[:, 1] += np.bincount(codes, gained, arms)
        self.counts_E2[:, 0] += np.bincount(codes, ages - gained, arms)

    def state_dict(self) -> dict[str, Any]:
        """The discounted counts."""
        return {"counts": self.counts_E2.copy()}

    def load(self, state: Reader) -> None:
        """Take over counts."""
        self.counts_E2 = state.array("counts", np.float64, self.counts_E2.shape, high=_MOST)
