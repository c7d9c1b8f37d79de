"""Recipes: presets of TRL's losses, and what TRL's losses lack."""

from curricula_trl.recipes.agree import check_arguments, check_trainer_arguments
from curricula_trl.recipes.finish import Finish
from curricula_trl.recipes.presets import arguments_of, recipe

__all__ = ["Finish", "arguments_of", "check_arguments", "check_trainer_arguments", "recipe"]
