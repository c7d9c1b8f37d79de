"""Puts a recipe's parts onto a batch, in the order in which they depend on one another."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curricula import CurriculaValueError
from curricula.config import RecipeConfig
from curricula_trl.ranks import Ranks
from curricula_trl.recipes.finish.advantages import batch_deviation, prompt_weights, row_mean_weight
from curricula_trl.recipes.finish.groups import UNSCORED, Groups

Floats = NDArray[np.float64]

_ROUNDING = 1e-6
_ROW_MEANS = ("grpo", "sapo", "dr_grpo", "luspo")


class Finish:
    """What is done to the output of TRL's generation before TRL splits it into micro-batches.

    Args:
        config: The recipe.
        ranks: Of the trainer.
    """

    def __init__(self, config: RecipeConfig, ranks: Ranks) -> None:
        self.config = config
        self._ranks = ranks

    def mark(self, output: dict[str, Any], rewards: Floats, size: int) -> None:
        """Says of a round what its advantages do not: which rollouts have no reward, and which groups no variance.

        Args:
            output: Of this rank.
            rewards: Shape (B,), weighted sums of all ranks; NaN where a rollout has none.
            size: Rollouts in a group.
        """
        advantages = output["advantages"]
        first = self._ranks.rank * len(advantages)
        if self.config.normaliser == "batch":
            missing = np.isnan(rewards[first : first + len(advantages)])
            output[UNSCORED] = torch.from_numpy(missing).long().to(advantages.device)
        if self.config.zero_variance == "mask":
            # Eight times .1 have a mean that is not .1: what is left of them is rounding.
            groups = rewards.reshape(-1, size)
            spread = np.nanmax(groups, axis=1, initial=-np.inf) - np.nanmin(groups, axis=1, initial=np.inf)
            flat = spread <= _ROUNDING * np.maximum(np.nanmax(np.abs(groups), axis=1, initial=0.0), 1.0)
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
            if trainer.loss_type in _ROW_MEANS:
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
