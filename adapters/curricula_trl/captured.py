"""What TRL scored in a round: taken where it computes rewards, checked, and put together over the ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from curricula import CurriculaValueError
from curricula_trl.interruption import Ends
from curricula_trl.ranks import Ranks
from curricula_trl.room import Room
from curricula_trl.rounds import Scores, truncated


class Captured:
    """The rewards of one round, and this rank's completions.

    Args:
        bound: The rows that this rank was given to generate for.
    """

    def __init__(self, bound: list[dict[str, Any]]) -> None:
        self._bound = bound
        self._are_ours = False
        self._rewards: torch.Tensor | None = None
        self._lengths: list[int] = []
        self._completion_ids: Sequence[Sequence[int]] = []
        self._chosen: list[int] | None = None

    def generated(self, found: Any) -> None:
        """Keeps how many tokens of each rollout the policy chose, of what TRL's `_generate` returned.

        Where rollouts have tokens of tools or of an environment, its third part is a mask of those that they have not.
        TRL blanks that mask, too, for rollouts that `mask_truncated_completions` takes out.
        """
        self._chosen = None
        match found:
            case (_, list(rows), list(masks), *_) if len(rows) == len(masks) and all(
                isinstance(mask, list) and len(mask) == len(row) and set(mask) <= {0, 1}
                for row, mask in zip(rows, masks, strict=True)
            ):
                self._chosen = [sum(mask) for mask in masks]
            case _:
                pass

    def take(self, inputs: Sequence[Any], rewards: torch.Tensor, completion_ids: Sequence[Sequence[int]]) -> None:
        """Keeps a round's gathered rewards, shape (B, functions) in global order, and this rank's lengths."""
        self._are_ours = len(inputs) == len(self._bound) and all(
            mine is theirs for mine, theirs in zip(self._bound, inputs, strict=True)
        )
        self._rewards = rewards
        self._lengths = [len(ids) for ids in completion_ids]
        self._completion_ids = completion_ids

    def check(self, trainer: Any, output: dict[str, Any], may_reorder: bool) -> None:
        """Makes sure that what was scored is what was asked for, and is what is returned.

        Raises:
            CurriculaValueError: The trainer generates in a way of its own.
        """
        name = type(trainer).__name__
        if self._rewards is None:
            raise CurriculaValueError(
                f"{name} generated without calling _calculate_rewards; the curriculum learns from its rewards. "
                "Call TRL's method in your subclass, or detach()"
            )
        if not self._are_ours:
            raise CurriculaValueError(
                f"{name} generated for other prompts than the curriculum drew: its _generate_and_score_completions "
                "replaces the rows it is given. Pass them on, or detach()"
            )
        if may_reorder and not _same_rows(output["completion_ids"], self._completion_ids):
            raise CurriculaValueError(
                f"{name}._generate_and_score_completions returns other rows than were scored, or in another order; "
                "the curriculum cannot tell which group they belong to. Keep TRL's rows, or detach()"
            )

    def scores(
        self, trainer: Any, output: dict[str, Any], ranks: Ranks, room: Room, ends: Ends | None = None
    ) -> Scores:
        """What came of the rollouts of all ranks.

        Args:
            trainer: The trainer.
            output: What its generation returned.
            ranks: Of it.
            room: Of its generator.
            ends: How its rollouts ended, where some may have been interrupted.
        """
        assert self._rewards is not None
        rows = len(self._lengths)
        masked = trainer.mask_truncated_completions or "tool_mask" in output
        if ends is None:
            limits = room.limits(trainer, output)
            full = [most is None or count >= most for count, most in zip(self._lengths, limits, strict=True)]
        else:
            full = ends.full
        cut_off = np.array(truncated(trainer, self._completion_ids, full), dtype=np.int64)
        told = [np.array(self._tokens(output, ends)), np.ones(rows, dtype=np.int64), cut_off]
        if masked:
            told[1] = (output["completion_mask"] * output.get("tool_mask", 1)).any(dim=1).long().cpu().numpy()
        if ends is not None:
            told.append(np.array(ends.interrupted, dtype=np.int64))
        table = torch.from_numpy(np.stack(told, axis=1)).to(self._rewards.device)
        told = list(ranks.gather(table).cpu().numpy().T)
        columns = self._rewards.detach().to("cpu", torch.float64).numpy()
        interrupted = told[3] != 0 if ends is not None else None
        return Scores(columns, told[0], told[1] != 0, told[2] != 0, interrupted)

    def _tokens(self, output: dict[str, Any], ends: Ends | None) -> list[int]:
        """Tokens that the policy chose: what was put in, by an interruption or by tools, is not counted."""
        if ends is not None:
            return [count - put_in for count, put_in in zip(self._lengths, ends.put_in.tolist(), strict=True)]
        if self._chosen is not None and len(self._chosen) == len(self._lengths):
            return self._chosen
        if "tool_mask" not in output:
            return self._lengths
        others = ((output["tool_mask"] == 0) & (output["completion_mask"] != 0)).sum(dim=1).tolist()
        return [count - other for count, other in zip(self._lengths, others, strict=True)]


def _same_rows(ids: torch.Tensor, lists: Sequence[Sequence[int]]) -> bool:
    return len(ids) == len(lists) and all(
        row[: len(tokens)] == list(tokens) for row, tokens in zip(ids.tolist(), lists, strict=True)
    )
