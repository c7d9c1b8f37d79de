"""Discounted Thompson sampling over environments."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.stateful import Reader

_SAMPLES = 64


class DiscountedThompson:
    """Shares in proportion to the probability that an environment gives the most informative groups per token.

    The chance that a group of environment e is informative has the posterior Beta(1 + informative_e, 1 + not_e),
    with counts that are discounted at every told group of any environment: an outage empties them, it does not
    wind them up. The share is the frequency with which theta_e / tokens_e is the largest among samples.

    References:
        Raj and Kalyani, Taming non-stationary bandits: a Bayesian approach, arXiv 1707.09727.

    >>> bandit = DiscountedThompson(arms=2, discount=0.99)
    >>> bandit.update(np.array([0] * 40 + [1] * 40), np.array([True] * 40 + [False] * 40))
    >>> bool(bandit.shares(np.ones(2), np.random.default_rng(0))[0] > 0.99)
    True
    """

    def __init__(self, arms: int, discount: float) -> None:
        self.discount = discount
        self.counts_E2: NDArray[np.float64] = np.zeros((arms, 2))

    def shares(self, costs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """How often each environment has the largest theta / cost among posterior samples; shape (E,), sum 1."""
        arms = len(self.counts_E2)
        if arms == 1:
            return np.ones(1)
        theta = rng.beta(self.counts_E2[:, 1] + 1.0, self.counts_E2[:, 0] + 1.0, size=(_SAMPLES, arms))
        return np.bincount(np.argmax(theta / costs, axis=1), minlength=arms) / _SAMPLES

    def update(self, codes: NDArray[np.int64], informative: NDArray[np.bool_]) -> None:
        """Count K groups, told in this order: each discounts all that came before it."""
        told = len(codes)
        ages = self.discount ** np.arange(told - 1, -1, -1)
        self.counts_E2 *= self.discount**told
        np.add.at(self.counts_E2, (codes, informative.astype(np.int64)), ages)

    def state_dict(self) -> dict[str, Any]:
        """The discounted counts."""
        return {"type": "discounted_thompson", "counts": self.counts_E2.copy()}

    def load(self, state: Reader) -> None:
        """Take over counts; another rule's state starts afresh."""
        if state.text("type") == "discounted_thompson":
            self.counts_E2 = state.array("counts", np.float64, self.counts_E2.shape)
