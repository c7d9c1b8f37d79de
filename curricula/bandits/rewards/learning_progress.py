"""Learning progress as the reward: informative groups, worth what was learned from such groups before."""

import logging
from typing import Any

import numpy as np

from curricula.bandits.base import Floats
from curricula.bandits.rewards.trend import Trends
from curricula.scored import Scored
from curricula.stateful import Reader

_SPREAD = 0.6
_ROUNDS = 4
_LOGISTIC = 1.702  # a logistic variable of this scale is nearly normal of variance 1
_logger = logging.getLogger("curricula")


class LearningProgress:
    """What a group adds to success under the base mix: P(informative) * gain per informative group * base weight.

    A group gives 1 where its results differ, else 0: a group without variance teaches nothing, and an environment
    whose groups have none is not called for. What an informative group of environment e is worth is w_e y_e, with w
    the base mix and y the gain in success per informative group that was trained on. It is measured as the slope b
    of the corrected success rate over such groups, with its standard error s, by discounted weighted least squares
    (`Trends`); differences of raw batches are noise. One environment alone is often too noisy to tell, so they learn
    from one another: with m the mean slope over environments, weighted by 1 / (s^2 + (0.6 m)^2), and s_m its standard
    error, scaled slopes b' = b / (|m| + s_m), s' alike, have the prior N(1, 0.6^2):

        y_e | b'_e, s'_e ~ N(v (1 / 0.36 + b'_e / s'_e^2), v),    v = 1 / (1 / 0.36 + 1 / s'_e^2)

    The worth is w_e E[max(y_e, 0)]. So as long as nothing is known of slopes, and for an environment that is young,
    it is the signal and the base mix that count. One that is informative and learns nothing (its rewards are noise,
    or it is at its end) loses its worth as that becomes certain; one that has become worse keeps a little, from its
    uncertainty. Slopes per trained token rank environments no differently: tokens per group cancel.

    Where rewards are no success rates there is no rate to take slopes of: the worth is then the base mix, and the log
    says so once.

    Args:
        base: Shape (E,), the base mix.
        memory: Groups of an environment after which one counts for 1/e in its slope.

    References:
        Learning progress as a reward: Oudeyer, Kaplan and Hafner, Intrinsic motivation systems for autonomous mental
        development, IEEE TEC 2007; Graves et al., Automated curriculum learning for neural networks, arXiv
        1704.03003. Partial pooling: DerSimonian and Laird, Meta-analysis in clinical trials, 1986.
    """

    def __init__(self, base: Floats, memory: float = 1000.0) -> None:
        self.base = base
        self.trends = Trends(len(base), memory)
        self.unseen = Trends(len(base), memory)
        self._said = False

    def observe(self, groups: Scored, rated: bool) -> Floats:
        """Whether each group is informative, shape (K,); those that this run drew enter the slopes."""
        if rated:
            seen = groups.drawn_K & (groups.members_K > 0) & (groups.weight_K > 0.0)
            self.trends.observe(
                groups.codes_K[seen],
                groups.corrected_K[seen],
                groups.weight_K[seen],
                groups.kept_K[seen] & groups.mixed_K[seen],
            )
            self.unseen.observe(
                groups.codes_K[seen],
                groups.value_K[seen],
                np.where(groups.first_K, groups.weight_K, 0.0)[seen],
                groups.kept_K[seen] & groups.mixed_K[seen],
            )
        elif not self._said:
            self._said = True
            _logger.info(
                "learning progress is measured on success rates, and these rewards are none: environments are valued "
                "by their informative groups; tell successes, or set success.threshold or success.range"
            )
        return groups.mixed_K.astype(np.float64)

    def gains(self, trends: Trends | None = None) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of each environment's gain per informative group, shape (E,) each.

        The unit is what an environment is expected to gain before its own slope is looked at.
        """
        slope_E, error_E = (trends or self.trends).slopes()
        known = np.isfinite(error_E)
        if not known.any():
            return np.ones(len(slope_E)), np.full(len(slope_E), _SPREAD)
        slope, variance = slope_E[known], error_E[known] ** 2
        mean, trust = 0.0, 1.0 / variance
        for _ in range(_ROUNDS):
            trust = 1.0 / (variance + (_SPREAD * mean) ** 2)
            mean = float(trust @ slope / trust.sum())
        unit = abs(mean) + 1.0 / np.sqrt(trust.sum())
        precision_E, centre_E = np.zeros(len(slope_E)), np.zeros(len(slope_E))
        precision_E[known], centre_E[known] = unit * unit / variance, slope / unit
        prior = 1.0 / _SPREAD**2
        mean_E = (prior + precision_E * centre_E) / (prior + precision_E)
        return mean_E, 1.0 / np.sqrt(prior + precision_E)

    def worth(self) -> Floats:
        """The base mix times the expected positive part of each environment's gain, shape (E,)."""
        mean_E, std_E = self.gains()
        scale_E = std_E / _LOGISTIC
        return self.base * np.maximum(scale_E * np.logaddexp(0.0, mean_E / scale_E), 1e-9)

    def ceiling(self) -> Floats:
        """The upper limit of each environment's gain, two standard deviations above its mean, where it is below 1.

        So a competition by signal is left alone as long as an environment may learn as environments do, and one whose
        groups are informative and teach nothing falls back once that is certain. Slopes are those of first visits
        here: prompts that are drawn again and again may be learned by heart, and only success on new ones is learning.
        Groups that are no first visits have weight 0 in them, and the certainty of the slopes falls with each
        (`Trends`): se^2 grows by the factor (1 - 1 / memory)^-i over i of them. An environment that looked flat is
        therefore back at 1, without any first visit, after at most memory * ln(n / 10) of its groups; n, the first
        visits that its slope rests on, is 2 * memory at most.
        """
        mean_E, std_E = self.gains(self.unseen)
        return np.clip(mean_E + 2.0 * std_E, 0.01, 1.0)

    def clear(self) -> None:
        """Forget the slopes."""
        self.trends.clear()
        self.unseen.clear()

    def state_dict(self) -> dict[str, Any]:
        """The sums of the regressions."""
        return {"trends": self.trends.state_dict(), "unseen": self.unseen.state_dict()}

    def load(self, state: Reader) -> None:
        """Take over sums."""
        self.trends.load(state.section("trends"))
        self.unseen.load(state.section("unseen"))
