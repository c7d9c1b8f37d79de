"""EXP3.S: an adversarial bandit that follows switches."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader


class Exp3S:
    """Exponential weights on importance-weighted rewards, with a share of all weights given to every environment.

    With E environments, shares p = (1 - gamma) w / sum of w + gamma / E. A tell of n groups is n plays at the shares
    they were drawn with:

        G_e  = sum over its groups k of e of r_k / max(p_k, gamma / E)
        w_e <- w_e exp(gamma G_e / E) + ((1 + e alpha)^n - 1) / E * sum of w

    With n = 1 that is the published rule. Weights are kept as logarithms, so 10^9 plays do not overflow. Nothing is
    assumed of how rewards come about, and a late tell counts by the share of its own draw. A reward is what it
    gave per cost: r times the least cost over its environment's, as of the last ask.

    Args:
        arms: E.
        exploration: gamma in (0, 1], the part of the draws that is spread evenly.
        switching: alpha > 0, about one over the groups between switches.

    References:
        Auer, Cesa-Bianchi, Freund and Schapire, The nonstochastic multiarmed bandit problem, SIAM J. Comput. 2002,
        section 8. The bound on p_k: Neu, Explore no more, arXiv 1506.03271.

    >>> bandit = Exp3S(arms=2)
    >>> for _ in range(400):
    ...     bandit.update(np.array([0, 1]), np.array([1.0, 0.0]), np.full(2, 0.5))
    >>> bandit.shares(np.ones(2), np.random.default_rng(0)).round(2)
    array([0.93, 0.07])
    """

    def __init__(self, arms: int, exploration: float = 0.1, switching: float = 0.001) -> None:
        self.exploration, self.switching = exploration, switching
        self.logits_E: Floats = np.zeros(arms)
        self.relative_E: Floats = np.ones(arms)

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """The mixed weights, shape (E,); nothing is drawn. Costs count from the next tell on."""
        self.relative_E = costs.min() / costs
        weights_E = np.exp(self.logits_E)
        arms = len(weights_E)
        return (1.0 - self.exploration) * weights_E / weights_E.sum() + self.exploration / arms

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """One round of as many plays as groups were drawn by shares; others have no propensity and teach nothing."""
        drawn = shares > 0.0
        plays, arms = int(drawn.sum()), len(self.logits_E)
        if not plays:
            return
        codes, rewards, shares = codes[drawn], rewards[drawn], shares[drawn]
        seen = rewards * self.relative_E[codes] / np.maximum(shares, self.exploration / arms)
        grown_E = self.logits_E + self.exploration / arms * np.bincount(codes, seen, arms)
        total = np.log(np.exp(self.logits_E).sum())
        # log((1 + x)^n - 1) without overflow.
        power = plays * np.log1p(np.e * self.switching)
        spread = power + np.log(-np.expm1(-power)) - np.log(arms) + total
        self.logits_E = np.logaddexp(grown_E, spread)
        self.logits_E -= self.logits_E.max()

    def state_dict(self) -> dict[str, Any]:
        """Logarithms of the weights, the greatest 0, and the costs they were last shared out at."""
        return {"logits": self.logits_E.copy(), "relative": self.relative_E.copy()}

    def load(self, state: Reader) -> None:
        """Take over weights."""
        shape = self.logits_E.shape
        logits_E = state.array("logits", np.float64, shape, low=-1e6, high=0.0)
        self.relative_E = state.array("relative", np.float64, shape, high=1.0)
        self.logits_E = logits_E
