"""Rounds of generation as one batch: their rows gathered, picked and padded alike.

TRL gives a dict of tensors for a round: one row for each rollout of this rank, and the number of items to divide the
loss by. Prompts are padded on the left, all else on the right.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from curricula import CurriculaRuntimeError
from curricula_trl.ranks import Ranks

Part = Mapping[str, torch.Tensor]

_COUNT = "num_items_in_batch"


def by_row(output: Mapping[str, Any], rows: int) -> dict[str, torch.Tensor]:
    """The tensors of a round that have a row for each rollout.

    Raises:
        CurriculaRuntimeError: Something that cannot be taken apart by rollouts, such as images.
    """
    columns: dict[str, torch.Tensor] = {}
    for name, value in output.items():
        if name == _COUNT or value is None:
            continue
        if not isinstance(value, torch.Tensor) or value.dim() not in (1, 2) or len(value) != rows:
            raise CurriculaRuntimeError(
                f"refill: cannot put rollouts of several rounds into one batch by {name!r}, which has no row of tokens "
                "for each rollout (images?); leave refill out of the mix"
            )
        columns[name] = value
    return columns


def loss_mask(output: Mapping[str, Any]) -> torch.Tensor:
    """Tokens that TRL's losses sum over, shape (B, T)."""
    mask = output["completion_mask"]
    return mask * output["tool_mask"] if "tool_mask" in output else mask


def gathered(ranks: Ranks, columns: Part, pads: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """The rows of all ranks, in global order; `pads` as in `picked`."""
    if ranks.world_size == 1:
        return dict(columns)
    names = sorted(columns)
    widths = torch.tensor([[columns[name].shape[-1] for name in names]], device=columns[names[0]].device)
    widest = ranks.gather(widths).max(dim=0).values.tolist()
    result: dict[str, torch.Tensor] = {}
    for name, width in zip(names, widest, strict=True):
        column = columns[name]
        result[name] = ranks.gather(column if column.dim() == 1 else _padded(name, column, width, pads.get(name, 0)))
    return result


def picked(parts: Sequence[Part], rows: Sequence[tuple[int, int]], pads: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Rows out of several parts, as (part, row), in order.

    Args:
        parts: Columns of the same names.
        rows: Which to take.
        pads: What to pad with, by name; 0 for others.

    Raises:
        CurriculaRuntimeError: Parts of different columns.
    """
    for part in parts:
        if odd := set(part) ^ set(parts[0]):
            raise CurriculaRuntimeError(f"refill: rounds of one step differ in {', '.join(sorted(odd))}")
    starts = [sum(len(before["advantages"]) for before in parts[:number]) for number in range(len(parts))]
    index = [starts[part] + row for part, row in rows]
    result: dict[str, torch.Tensor] = {}
    for name in parts[0]:
        tensors = [part[name] for part in parts]
        if tensors[0].dim() == 2:
            width = max(tensor.shape[1] for tensor in tensors)
            tensors = [_padded(name, tensor, width, pads.get(name, 0)) for tensor in tensors]
        whole = torch.cat(tensors)
        result[name] = whole[torch.tensor(index, device=whole.device, dtype=torch.int64)]
    return result


def count_items(ranks: Ranks, columns: Part) -> torch.Tensor:
    """Tokens of all ranks that the loss is divided by, as TRL counts them."""
    return ranks.gather(loss_mask(columns).sum().reshape(1)).sum()


def _padded(name: str, tensor: torch.Tensor, width: int, value: int) -> torch.Tensor:
    missing = width - tensor.shape[1]
    if missing <= 0:
        return tensor
    sides = (missing, 0) if name.startswith("prompt") else (0, missing)
    return torch.nn.functional.pad(tensor, sides, value=value)
