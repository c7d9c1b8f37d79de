"""Tokens that the policy did not choose, kept out of the loss."""

from collections.abc import Sequence
from typing import Any

import torch

from curricula import CurriculaRuntimeError
from curricula_trl.interruption.rollouts import Forced


def mask_forced(output: dict[str, Any], forced: Sequence[Forced | None]) -> None:
    """Masks what was put in, and gives it log-probabilities that are numbers: NaN times a mask is NaN still.

    The mask is `tool_mask`, which TRL multiplies with that of the completion; the latter is the attention mask as
    well, and later tokens have to see what was put in.

    Args:
        output: Of TRL's generation, changed in place.
        forced: For each row, what was put in.

    Raises:
        CurriculaRuntimeError: The rows are not those that were generated.
    """
    ids = output["completion_ids"]
    mask = output.get("tool_mask")
    mask = torch.ones_like(output["completion_mask"]) if mask is None else mask.clone()
    hidden = torch.zeros_like(ids, dtype=torch.bool)
    if len(forced) != len(ids):
        raise CurriculaRuntimeError(
            f"interruption: expected {len(forced)} rollouts, as generated; got {len(ids)}; keep TRL's rows in your "
            "subclass, or leave interruption out of the mix"
        )
    for row, part in enumerate(forced):
        if part is None:
            continue
        span = slice(part.start, part.start + len(part.tokens))
        if ids[row, span].tolist() != list(part.tokens):
            raise CurriculaRuntimeError(
                "interruption: rollouts were moved or changed after they were generated, so what was put in cannot be "
                "masked; keep TRL's rows in your subclass, or leave interruption out of the mix"
            )
        hidden[row, span] = True
    output["tool_mask"] = mask.masked_fill(hidden, 0)
    if (sampled := output.get("sampling_per_token_logps")) is not None:
        known = output.get("old_per_token_logps")
        output["sampling_per_token_logps"] = torch.where(
            hidden, torch.zeros_like(sampled) if known is None else known.to(sampled.dtype), sampled
        )
