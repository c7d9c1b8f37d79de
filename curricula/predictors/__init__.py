"""Predictors of the difficulty of prompts that were never visited."""

from curricula.predictors.background import Background
from curricula.predictors.base import Predictor
from curricula.predictors.build import build_predictor, predictor_names
from curricula.predictors.hashed_text import HashedText
from curricula.predictors.stack import Stack

__all__ = ["Background", "HashedText", "Predictor", "Stack", "build_predictor", "predictor_names"]
