"""What candidates are worth."""

import numpy as np
from numpy.typing import NDArray

from curricula.beliefs import Assessment
from curricula.choosing.schedule import Schedule
from curricula.choosing.situation import Situation
from curricula.config import SelectionConfig
from curricula.filters import chance_rates, holds_back
from curricula.learner import Learner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scorer:
    """Scores candidates by expected signal plus `optimism` times its standard deviation, per token.

    The objective `uniform`, and the warm-up of a schedule, score all alike.
    """

    def __init__(self, config: SelectionConfig) -> None:
        self.config = config
        self._schedule = Schedule(config.schedule)
        self._holds = holds_back(config.filters)

    def alike(self, drawn: int) -> bool:
        """Whether all prompts count alike when so many draws were made, so that there is nothing to compete by."""
        return self.config.objective.type == "uniform" or self._schedule.even(drawn)

    def score(self, rows: Ints, now: Situation) -> tuple[Floats, Floats]:
        """Expected pass rates of rows (M,), and what they are worth as candidates; -r where held back at rate r."""
        objective, learner, group_size, drawn = self.config.objective, now.learner, now.group_size, now.drawn
        found = learner.beliefs.assess(rows, group_size, objective.normaliser)
        held = self._held_back(rows, group_size, found, learner)
        scores = found.signals + self.config.optimism * found.spreads
        if objective.type == "uniform":
            scores = np.ones(rows.size)
        elif learner.rule.mode == "informative":
            scores = found.means
        scores = scores * self._schedule.factor(found.means, drawn)
        if self._schedule.even(drawn):
            scores = np.ones(rows.size)
        elif objective.type == "signal_per_token":
            scores = scores / learner.costs.prompts(rows)
        if held is not None:
            scores = np.where(held < 1.0, -held, scores)
        return found.means, scores

    def _held_back(self, rows: Ints, group_size: int, found: Assessment, learner: Learner) -> Floats | None:
        """Rate at which each prompt is drawn by chance, shape (M,), 1 where it is not held back; None where none is."""
        if not self._holds:
            return None
        if learner.rule.mode == "informative":
            # What is believed is the chance of an informative group; there is no pass rate to cap.
            return chance_rates(np.zeros(rows.size), found.means, self.config.filters)
        signals = found.signals
        if self.config.objective.normaliser != "group":
            signals = learner.beliefs.assess(rows, group_size, "group").signals
        return chance_rates(found.means, signals, self.config.filters)
