"""A declared order of difficulty, for those who want one."""

import numpy as np
from numpy.typing import NDArray

from curricula.config import ScheduleConfig

Floats = NDArray[np.float64]


class Schedule:
    """What a prompt's expected pass rate counts for, beside its signal, while the schedule lasts.

    During the first `warm_up` draws all prompts count alike. Over the `easy_to_hard` draws after them, the favoured
    pass rate falls from `first` to 1/2 in a straight line, and a prompt counts exp(-((mean - favoured) / width)^2 / 2).
    After that the schedule says nothing.

    >>> from curricula.config import ScheduleConfig
    >>> schedule = Schedule(ScheduleConfig(easy_to_hard=100, first=0.9, width=0.1))
    >>> [float(schedule.factor(np.array([0.9]), drawn).round(2)[0]) for drawn in (0, 50, 100)]
    [1.0, 0.14, 1.0]
    """

    def __init__(self, config: ScheduleConfig) -> None:
        self.config = config

    def factor(self, means: Floats, drawn: int) -> Floats:
        """Factors (M,) of expected pass rates (M,) when so many draws were made."""
        config = self.config
        past = drawn - config.warm_up
        if past < 0 or past >= config.easy_to_hard:
            return np.ones(means.shape)
        favoured = config.first + (0.5 - config.first) * past / config.easy_to_hard
        return np.exp(-0.5 * ((means - favoured) / config.width) ** 2)

    def even(self, drawn: int) -> bool:
        """Whether all prompts count alike, whatever their signal."""
        return drawn < self.config.warm_up
