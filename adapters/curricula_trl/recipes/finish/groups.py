"""What a batch holds, group by group and alike on every rank."""

from dataclasses import dataclass
from typing import Any

import torch

from curricula_trl.merge import loss_mask
from curricula_trl.ranks import Ranks

UNSCORED = "unscored"
"""A column of the batch: 1 for rollouts without any reward, whose advantages of zero say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A batch of N groups of G rollouts, over all ranks.

    Attributes:
        advantages: Shape (N, G), the largest in absolute value where a rollout has one for each token; NaN for a
            rollout without any reward.
        tokens: Shape (N, G), tokens in the loss.
        trained: Shape (N,), groups with an advantage other than zero on any token in the loss.
        first: This rank's first row, counted over all ranks.
    """

    advantages: torch.Tensor
    tokens: torch.Tensor
    trained: torch.Tensor
    first: int

    @classmethod
    def of(cls, output: dict[str, Any], ranks: Ranks, size: int) -> "Groups":
        """Of the output of TRL's generation on this rank, which all ranks gather."""
        advantages = output["advantages"].detach()
        if advantages.dim() == 2:
            highest, lowest = advantages.amax(dim=1), advantages.amin(dim=1)
            advantages = torch.where(highest >= -lowest, highest, lowest)
        advantages = advantages.float()
        if UNSCORED in output:
            advantages = advantages.masked_fill(output[UNSCORED] != 0, torch.nan)
        mine = torch.stack([advantages, loss_mask(output).sum(dim=1).float()], dim=1)
        # 64 bits on the processor: not every device has them.
        table = ranks.gather(mine).cpu().double()
        grouped = table[:, 0].view(-1, size)
        tokens = table[:, 1].view(-1, size)
        moving = (grouped.nan_to_num(nan=0.0) != 0.0) & (tokens > 0)
        return cls(grouped, tokens, moving.any(dim=1), ranks.rank * len(advantages))

    def rows(self, values: torch.Tensor, count: int) -> torch.Tensor:
        """This rank's `count` rows of a value for each group, shape (count,)."""
        return values.repeat_interleave(self.tokens.shape[1])[self.first : self.first + count]
