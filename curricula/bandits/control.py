"""Control of the mix that is trained on, through the draws."""

from typing import Any

import numpy as np

from curricula.bandits.base import Codes, Floats, by_environment
from curricula.bandits.bounds import bounded_shares
from curricula.stateful import Reader

_MEMORY = 256.0  # groups of an environment after which one counts for 1/e in its keep rate
_PRIOR_GROUPS = 4.0
_MOST = 1e15


class TrainedShares:
    """Draws for the shares that are to be trained: filters drop groups, more in one environment than in another.

    Of environment e's groups a part k_e is trained on: its groups kept over its groups told, discounted at each of
    its own groups (so an outage changes nothing, and nothing winds up), shrunk to the rate of all by 4 groups. Draws
    in proportion to t_e / k_e train the shares t. What that may cost is bounded by `most`, or an environment of which
    nothing is ever kept would absorb the run: no environment is drawn more than `most` times its share, and the draws
    per trained group are at most `most` times those without control. Where the shares would take R > most times as
    many, they are out of reach, and less is spent on them the further off they are: most^2 / R times.

    Args:
        arms: E.
        most: At least 1; 1 leaves draws as they are.

    >>> control = TrainedShares(arms=2, most=4.0)
    >>> told = np.array([0, 1] * 2000)
    >>> control.observe(told, (told == 0) | (np.arange(4000) % 20 == 1))
    >>> control.keep_rates().round(2), control.draws(np.full(2, 0.5)).round(2)
    (array([0.99, 0.11]), array([0.1, 0.9]))
    """

    def __init__(self, arms: int, most: float = 4.0) -> None:
        self.most = most
        self.discount = 1.0 - 1.0 / _MEMORY
        self.told_E: Floats = np.zeros(arms)
        self.kept_E: Floats = np.zeros(arms)

    def observe(self, codes: Codes, kept: Any) -> None:
        """Count K groups that came back, in the order they were told: environments (K,), trained on or not (K,)."""
        if not len(codes):
            return
        arms = len(self.told_E)
        order = by_environment(codes, arms)
        code = codes[order]
        count_E = np.bincount(code, minlength=arms)
        start_E = np.cumsum(count_E) - count_E
        fade = np.exp(np.log(self.discount) * (count_E[code] - 1.0 - (np.arange(len(code)) - start_E[code])))
        decay_E = self.discount**count_E
        self.told_E = self.told_E * decay_E + np.bincount(code, fade, arms)
        self.kept_E = self.kept_E * decay_E + np.bincount(code, fade * kept[order], arms)

    def keep_rates(self) -> Floats:
        """Part of each environment's groups that is trained on, shape (E,), in (0, 1)."""
        overall = (self.kept_E.sum() + 1.0) / (self.told_E.sum() + 2.0)
        return (self.kept_E + _PRIOR_GROUPS * overall) / (self.told_E + _PRIOR_GROUPS)

    def draws(self, targets: Floats) -> Floats:
        """Shares of the draws, shape (E,), for trained shares (E,) of sum 1."""
        return self._bounded(targets, targets)

    def within(self, draws: Floats, floors: Floats, caps: Floats) -> Floats:
        """Shares of the draws, changed only where what is trained would leave its bounds.

        Args:
            draws: Shape (E,), of sum 1.
            floors: Shape (E,), of the trained shares.
            caps: Shape (E,), likewise.
        """
        trained = draws * self.keep_rates()
        trained /= trained.sum()
        if self.most <= 1.0 or ((trained >= floors - 1e-12) & (trained <= caps + 1e-12)).all():
            return draws
        return self._bounded(draws, bounded_shares(trained, floors, caps))

    def _bounded(self, draws: Floats, targets: Floats) -> Floats:
        """Draws that train the targets, as far as the bounds let them go from `draws`."""
        if self.most <= 1.0:
            return draws
        keep_E = self.keep_rates()
        full_E = targets / keep_E
        full_E /= full_E.sum()
        before = float(draws @ keep_E)
        dearer = before / float(full_E @ keep_E)
        allowed = self.most if dearer <= self.most else max(self.most**2 / dearer, 1.0)
        limit_E = np.minimum(self.most * np.maximum(targets, draws), 1.0)
        if (full_E > limit_E).any():
            full_E = bounded_shares(full_E, np.zeros(len(full_E)), limit_E)
        # What is kept of a draw is linear on the way from one to the other.
        after, least = float(full_E @ keep_E), before / allowed
        way = 1.0 if after >= least else (before - least) / (before - after)
        return draws + way * (full_E - draws)

    def state_dict(self) -> dict[str, Any]:
        """The discounted counts."""
        return {"told": self.told_E.copy(), "kept": self.kept_E.copy()}

    def load(self, state: Reader) -> None:
        """Take over counts."""
        told_E = state.array("told", np.float64, self.told_E.shape, high=_MOST)
        kept_E = state.array("kept", np.float64, self.kept_E.shape, high=_MOST)
        state.ensure("kept", "no more groups kept than told", bool((kept_E <= told_E * (1.0 + 1e-9)).all()))
        self.told_E, self.kept_E = told_E, kept_E
