"""Upper confidence bounds over a sliding window."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats
from curricula.stateful import Reader

_PULLS = 64.0  # draws that shares look ahead
_STEPS = 50
_LEAST_GAP = 1e-9


class SlidingWindowUCB:
    """Shares in which the environments' upper bounds would be used up.

    Over the last `window` told groups, environment e has n_e groups of mean reward m_e. Its bound per cost is
    (m_e + sqrt(xi ln(t) / n_e)) / c_e with t the groups in the window. A batch of the one greatest bound would not
    mix; the shares are those of the next 64 draws if each went to the greatest bound, with n_e grown by the draws
    before it. They are found at once: the level L to which the bounds sink has

        n_e(L) = xi ln(t) / (L c_e - m_e)^2     and     sum of max(0, n_e(L) - n_e) = 64.

    Args:
        arms: E.
        window: Groups that are remembered; what is older is forgotten, whichever environment it was of.
        exploration: xi > 0; 0.5 and more has the published guarantee, less explores less.

    References:
        Garivier and Moulines, On upper-confidence bound policies for switching bandit problems, ALT 2011,
        arXiv 0805.3415 (SW-UCB).

    >>> bandit = SlidingWindowUCB(arms=2, window=100, exploration=0.1)
    >>> bandit.update(np.array([0, 1] * 40), np.array([1.0, 0.0] * 40), np.full(80, 0.5))
    >>> bandit.shares(np.ones(2), np.random.default_rng(0))
    array([1., 0.])
    """

    def __init__(self, arms: int, window: int = 1000, exploration: float = 0.5) -> None:
        self.window, self.exploration = window, exploration
        self.sums_E2: Floats = np.zeros((arms, 2))
        self.codes_W: Codes = np.zeros(window, dtype=np.int64)
        self.rewards_W: Floats = np.zeros(window)
        self.told = 0

    def shares(self, costs: Floats, rng: np.random.Generator) -> Floats:
        """Shares of the next draws by the rule above, shape (E,); nothing is drawn."""
        known_E, total_E = self.sums_E2[:, 0], self.sums_E2[:, 1]
        mean_E = total_E / np.maximum(known_E, 1.0)
        width = self.exploration * np.log(max(known_E.sum(), 2.0))
        costs = costs / costs.min()

        # The bounds sink below this level only if one environment alone takes more than all pulls. The sum of pulls is
        # convex and falls with the level, so Newton's steps from here never pass the level where it is 64.
        level = float(((mean_E + np.sqrt(width / (known_E + _PULLS))) / costs).max())
        taken_E = np.zeros(len(costs))
        for _ in range(_STEPS):
            gap_E = np.maximum(level * costs - mean_E, _LEAST_GAP)
            taken_E = np.maximum(width / gap_E**2 - known_E, 0.0)
            over = taken_E.sum() - _PULLS
            if over <= 1e-6 * _PULLS:
                break
            level += over / float((2.0 * width * costs / gap_E**3)[taken_E > 0.0].sum())
        return taken_E / taken_E.sum()

    def update(self, codes: Codes, rewards: Floats, shares: Floats) -> None:
        """Enter K groups, and let as many leave as the window cannot hold."""
        codes, rewards = codes[-self.window :], rewards[-self.window :]
        places = (self.told + np.arange(len(codes))) % self.window
        self.codes_W[places], self.rewards_W[places] = codes, rewards
        self.told += len(codes)
        # Added up anew: sums that are only ever added to and taken from drift.
        self.sums_E2 = self._sums(len(self.sums_E2))

    def state_dict(self) -> dict[str, Any]:
        """The window."""
        return {
            "arms": len(self.sums_E2),
            "codes": self.codes_W.copy(),
            "rewards": self.rewards_W.copy(),
            "told": self.told,
        }

    def load(self, state: Reader) -> None:
        """Take over a window; of one of another length, the latest groups."""
        arms = len(self.sums_E2)
        state.integer("arms", low=arms, high=arms)
        codes = state.array("codes", np.int64, (None,), high=arms - 1)
        rewards = state.array("rewards", np.float64, codes.shape, high=1.0)
        told = state.integer("told")
        state.ensure("codes", "a window of one group or more", codes.size > 0)
        if codes.size == self.window:
            self.codes_W, self.rewards_W, self.told = codes, rewards, told
            self.sums_E2 = self._sums(arms)
            return
        order = (told + np.arange(codes.size)) % codes.size if told > codes.size else np.arange(told)
        self.codes_W, self.rewards_W = np.zeros(self.window, dtype=np.int64), np.zeros(self.window)
        self.told = 0
        self.update(codes[order], rewards[order], np.ones(order.size))

    def _sums(self, arms: int) -> Floats:
        held = slice(0, min(self.told, self.window))
        codes = self.codes_W[held]
        sums = [np.bincount(codes, minlength=arms), np.bincount(codes, self.rewards_W[held], arms)]
        return np.stack(sums, axis=1).astype(np.float64)
