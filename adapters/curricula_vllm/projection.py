"""A head's projection in 32 bits, as the trainer's half of an FP32 head computes it."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


def in_fp32(head: nn.Linear) -> Callable[[torch.Tensor], torch.Tensor]:
    """A forward for a head whose logits are in float32, within autocast too."""

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            bias = None if head.bias is None else head.bias.float()
            return functional.linear(hidden.float(), head.weight.float(), bias)

    return forward
