"""What TRL's losses lack, done on the batch that TRL generated: weights, masks and ratios, never a loss of its own."""

from curricula_trl.recipes.finish.finish import Finish

__all__ = ["Finish"]
