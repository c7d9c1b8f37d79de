"""What the command and its processes have to agree on. It imports nothing, since both sides import it."""

from typing import Literal

Arm = Literal["uniform", "curriculum"]

ARMS: tuple[Arm, ...] = ("uniform", "curriculum")
GROUPS = 8
"""Prompts in a step."""
GROUP_SIZE = 8
"""Rollouts of a prompt."""
ROLLOUTS = GROUPS * GROUP_SIZE
"""Rollouts in a step."""
