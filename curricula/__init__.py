"""Decides which prompts a reinforcement-learning run spends its rollouts on."""

from curricula.checkpoint import load_state, save_state
from curricula.config import CurriculumConfig, load_mix
from curricula.curriculum import Curriculum
from curricula.errors import (
    CheckpointError,
    ConfigError,
    CurriculaError,
    CurriculaRuntimeError,
    CurriculaValueError,
    MissingExtraError,
)
from curricula.keys import row_key, stable_keys
from curricula.log import OutcomeLog, WarmStart, open_log, read_log, warm_start
from curricula.pool import PromptPool
from curricula.records import Beliefs, Draw, GroupOutcome, Verdict

__version__ = "0.1.0"

__all__ = [
    "Beliefs",
    "CheckpointError",
    "ConfigError",
    "CurriculaError",
    "CurriculaRuntimeError",
    "CurriculaValueError",
    "Curriculum",
    "CurriculumConfig",
    "Draw",
    "GroupOutcome",
    "MissingExtraError",
    "OutcomeLog",
    "PromptPool",
    "Verdict",
    "WarmStart",
    "load_mix",
    "load_state",
    "open_log",
    "read_log",
    "row_key",
    "save_state",
    "stable_keys",
    "warm_start",
]
