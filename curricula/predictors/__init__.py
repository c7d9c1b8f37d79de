"""Predictors of the difficulty of prompts that were never visited."""

from curricula.predictors.background import Background
from curricula.predictors.base import Predictor
from curricula.predictors.build import build_predictor
from curricula.predictors.dense import Dense, Features
from curricula.predictors.estimator import Estimator
from curricula.predictors.hashed_text import HashedText
from curricula.predictors.kernel import Kernel
from curricula.predictors.ridge import Ridge
from curricula.predictors.stack import Stack
from curricula.predictors.vectors import Vectors

__all__ = [
    "Background",
    "Dense",
    "Estimator",
    "Features",
    "HashedText",
    "Kernel",
    "Predictor",
    "Ridge",
    "Stack",
    "Vectors",
    "build_predictor",
]
