"""Environments from a mix: reasoning-gym tasks and data sets on disk, as one data set and one reward function."""

from curricula.versions import require

require("envs")

from curricula_envs.mixed import Mixed, load_environments  # noqa: E402  hosts are checked before they are imported
from curricula_envs.sources import DatasetSource, ReasoningGymSource  # noqa: E402

__all__ = ["DatasetSource", "Mixed", "ReasoningGymSource", "load_environments"]
