"""A batch put together from the step's own round and from groups that fill its holes."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from curricula_trl.merge import Part, by_row, count_items, gathered, picked
from curricula_trl.ranks import Ranks
from curricula_trl.rounds import Floats, Round
from curricula_trl.texts import tokenizer_of

_EPSILON = 1e-4  # TRL's own, beside the spread of rewards


class Fill(NamedTuple):
    """A group to train on, alike on every rank.

    Attributes:
        columns: Its rows.
        values: Shape (G,), what its round's advantages were divided by the spread of; empty where it was not.
        spread: That spread, and TRL's epsilon.
    """

    columns: Part
    values: list[float]
    spread: float

    def saved(self) -> dict[str, Any]:
        """As a part of a block, to be saved."""
        return {**self.columns, "values": self.values, "spread": self.spread}

    @classmethod
    def read(cls, part: dict[str, Any]) -> "Fill":
        """What `saved` gave."""
        columns = {name: value for name, value in part.items() if isinstance(value, torch.Tensor)}
        return cls(columns, part["values"], part["spread"])


def fills(trainer: Any, ranks: Ranks, played: Round) -> list[Fill]:
    """The groups of a round that are to be trained on, gathered from all ranks."""
    size = trainer.num_generations
    local = len(played.draws) * size // ranks.world_size
    columns = gathered(ranks, by_row(played.output, local), _pads(trainer))
    groups: list[Fill] = []
    for group, (keep, _) in enumerate(played.verdicts):
        if keep:
            rows = slice(group * size, (group + 1) * size)
            values = [] if played.values is None else played.values[rows].tolist()
            groups.append(
                Fill({name: column[rows] for name, column in columns.items()}, values, _spread(played.values))
            )
    return groups


def assemble(trainer: Any, ranks: Ranks, first: Round, found: Mapping[int, Fill], batch: str) -> dict[str, Any]:
    """This rank's part of the batch.

    Args:
        trainer: The trainer.
        ranks: Of it; each has the same number of rows.
        first: The step's own round.
        found: What fills its holes, by place.
        batch: "constant": groups that are not trained on and not replaced stay. "variable": they are left out as far
            as the rest divides evenly over ranks and micro-batches.
    """
    size, total = trainer.num_generations, len(first.draws)
    keep = [place in found or first.verdicts[place][0] for place in range(total)]
    own = by_row(first.output, total * size // ranks.world_size)
    start = ranks.rank * total * size // ranks.world_size
    places = list(range(total))
    if batch == "variable":
        places = _divisible(keep, ranks.world_size * trainer.args.steps_per_generation, size)
    if len(places) < total:
        own, start = gathered(ranks, own, _pads(trainer)), 0
    count = len(places) * size // ranks.world_size
    numbers = {place: number for number, place in enumerate(found, start=1)}
    rows: list[tuple[int, int]] = []
    chosen: list[tuple[int, int]] = []
    for position in range(ranks.rank * count, (ranks.rank + 1) * count):
        place, member = places[position // size], position % size
        chosen.append((place, member))
        rows.append((numbers[place], member) if place in found else (0, place * size + member - start))
    columns = picked([own, *(fill.columns for fill in found.values())], rows, _pads(trainer))
    if first.values is not None:
        factors = _rescaled(first, found, [place for place in places if keep[place]], size)
        scale = torch.tensor([factors.get(place, 1.0) for place, _ in chosen]).to(columns["advantages"])
        advantages = columns["advantages"]
        columns["advantages"] = advantages * (scale if advantages.dim() == 1 else scale[:, None])
    output: dict[str, Any] = {name: columns[name] for name in first.output if name in columns}
    if "num_items_in_batch" in first.output:
        output["num_items_in_batch"] = count_items(ranks, columns)
    return output


def _divisible(keep: list[bool], parts: int, size: int) -> list[int]:
    """Places to train on, and of the others as few as make the rollouts divide into equal parts."""
    unit = parts // math.gcd(parts, size)
    count = min(max(1, -(-sum(keep) // unit)) * unit, len(keep))
    spare = count - sum(keep)
    chosen: list[int] = []
    for place, kept in enumerate(keep):
        if kept or spare > 0:
            chosen.append(place)
            spare -= not kept
    return chosen


def _rescaled(first: Round, found: Mapping[int, Fill], places: list[int], size: int) -> dict[int, float]:
    """By what to multiply advantages, so that all of the batch are divided by the spread of its own rewards."""
    values = [
        found[place].values if place in found else first.values[place * size : (place + 1) * size].tolist()
        for place in places
        if first.values is not None
    ]
    spread = _spread(np.array(values).ravel())
    own = _spread(first.values)
    return {place: (found[place].spread if place in found else own) / spread for place in places}


def _spread(values: Floats | None) -> float:
    known = np.zeros(0) if values is None else values[~np.isnan(values)]
    return float(known.std(ddof=1)) + _EPSILON if known.size > 1 else 1.0


def _pads(trainer: Any) -> dict[str, int]:
    tokenizer = tokenizer_of(trainer)
    pad = tokenizer.pad_token_id or 0
    return {"prompt_ids": pad, "completion_ids": pad, "tool_mask": 1, "importance_sampling_ratio": 1}
