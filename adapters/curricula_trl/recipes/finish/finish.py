"""Puts a recipe's parts onto a batch, in the order in which they depend on one another."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curricula import CurriculaValueError
from curricula.config import RecipeConfig
from curricula.config.schema import TOLERANCE
from curricula.filters.base import spread
from curricula_trl.losses import loss_of
from curricula_trl.ranks import Ranks
from curricula_trl.recipes.finish.advantages import batch_deviation, prompt_weights, row_mean_weight
from curricula_trl.recipes.finish.groups import UNSCORED, Groups

Floats = NDArray[np.float64]


class Finish:
    """What is done to the output of TRL's generation before TRL splits it into micro-batches.

    Args:
        config: The recipe.
        ranks: Of the trainer.
        tolerance: Rewards of a group that differ by no more are alike; the curriculum's own.
    """

    def __init__(self, config: RecipeConfig, ranks: Ranks, tolerance: float = TOLERANCE) -> None:
        self.config = config
        self._ranks, self._tolerance = ranks, tolerance

    @property
    def marks(self) -> bool:
        """Whether `mark` has anything to say."""
        return self.config.zero_variance == "mask" or self.config.normaliser == "batch"

    def mark(self, output: dict[str, Any], values: Floats, size: int) -> None:
        """Says of a round what its advantages do not: which rollouts have no reward, and which groups no variance.

        Args:
            output: Of this rank.
            values: Shape (B,) or (B, parts), of all ranks, what TRL makes advantages of: the weighted sums of rewards,
                or each function's by itself; NaN where a rollout has none.
            size: Rollouts in a group.
        """
        advantages = output["advantages"]
        first = self._ranks.rank * len(advantages)
        values = values.reshape(len(values), -1)
        if self.config.normaliser == "batch":
            missing = np.isnan(values[first : first + len(advantages)]).all(axis=1)
            output[UNSCORED] = torch.from_numpy(missing).long().to(advantages.device)
        # Eight times .1 have a mean that is not .1: what is left of them is rounding, and trains on nothing.
        apart = spread(values.reshape(-1, size, values.shape[1])).max(axis=1)
        flat = apart <= self._tolerance
        mine = np.repeat(flat, size)[first : first + len(advantages)]
        advantages[torch.from_numpy(mine).to(advantages.device)] = 0.0

    def complete(self, trainer: Any, output: dict[str, Any]) -> dict[str, Any]:
        """The batch to train on; `output` is this rank's part of it, and is changed.

        Raises:
            CurriculaValueError: Advantages of a shape that the recipe is not defined for.
        """
        finished = self._finished(trainer, output)
        finished.pop(UNSCORED, None)
        return finished

    def _finished(self, trainer: Any, output: dict[str, Any]) -> dict[str, Any]:
        config = self.config
        if config.ratio == "generator":
            _against_generator(output)
        if (config.aggregation, config.normaliser, config.zero_variance) == ("trainer", "trainer", "keep"):
            return output
        advantages = output["advantages"]
        if config.normaliser == "batch" and advantages.dim() != 1:
            raise CurriculaValueError(
                f"recipe.normaliser: batch is of one advantage a rollout; got advantages of shape "
                f"{tuple(advantages.shape)}; set it to trainer"
            )
        groups = Groups.of(output, self._ranks, trainer.num_generations)
        count = len(advantages)
        factors = torch.ones(len(groups.trained), dtype=torch.float64)
        if config.normaliser == "batch":
            factors = factors / batch_deviation(groups)
        if config.zero_variance == "mask":
            _mask_out(output, groups.rows(groups.trained, count))
            output["num_items_in_batch"] = groups.tokens[groups.trained].sum().to(output["num_items_in_batch"])
            if loss_of(trainer.loss_type).row_mean:
                factors = factors * row_mean_weight(groups)
        if config.aggregation == "prompt":
            counted = groups.trained if config.zero_variance == "mask" else torch.ones_like(groups.trained)
            factors = factors * prompt_weights(groups, counted)
        scale = groups.rows(factors, count).to(advantages)
        output["advantages"] = advantages * (scale if advantages.dim() == 1 else scale[:, None])
        return output


def _against_generator(output: dict[str, Any]) -> None:
    """Ratios against the log-probabilities that the generator gave as it sampled, and no other correction.

    Where it gave none for a token, the trainer's own stand. Without a generator of its own the trainer generated, and
    its log-probabilities are the generator's.
    """
    sampled = output.get("sampling_per_token_logps")
    if sampled is None:
        return
    if sampled.isnan().any():
        sampled = torch.where(sampled.isnan(), output["old_per_token_logps"], sampled)
    output["old_per_token_logps"] = sampled
    if "importance_sampling_ratio" in output:
        output["importance_sampling_ratio"] = torch.ones_like(output["importance_sampling_ratio"])


def _mask_out(output: dict[str, Any], keep: torch.Tensor) -> None:
    """Takes rows out of the loss: by `tool_mask`, since `completion_mask` is the attention mask too."""
    mask = output.get("tool_mask")
    if mask is None:
        mask = torch.ones_like(output["completion_mask"])
    output["tool_mask"] = mask * keep.to(mask)[:, None]
