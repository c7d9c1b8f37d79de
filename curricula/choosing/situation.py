"""What an ask is planned from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curricula.learner import Learner
from curricula.tickets import Tickets
from curricula.windows import Windows


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """An ask, and what there is to know when it is made.

    Attributes:
        count: Draws wanted.
        group_size: Rollouts per group.
        shares: Shape (E,), of sum 1, of the environments, before any competition.
        windows: What is eligible.
        tickets: What is in flight.
        learner: What is believed of pass rates and costs.
        drawn: Draws made before this ask.
    """

    count: int
    group_size: int
    shares: NDArray[np.float64]
    windows: Windows
    tickets: Tickets
    learner: Learner
    drawn: int
