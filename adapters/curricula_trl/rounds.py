"""One round of generation: what it was for, what TRL made of it, and what was decided about its groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula import Draw, GroupOutcome
from curricula_trl.texts import tokenizer_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NO_TICKET = -1
"""Ticket of a prompt that was picked, not drawn: its outcome is told by its row."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A round; all but `output` is alike on every rank.

    Attributes:
        output: What TRL's generation returned on this rank.
        draws: One for each of N groups, in global order.
        verdicts: Whether each is trained on, and why.
        values: Shape (N * G,), what TRL divides advantages by the spread of; None where that is no matter of the
            whole batch.
    """

    output: dict[str, Any]
    draws: list[Draw]
    verdicts: list[tuple[bool, str]]
    values: Floats | None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What came of B rollouts in global order.

    Attributes:
        columns: Shape (B, functions), rewards; NaN where a function gave none.
        tokens: Shape (B,), tokens generated.
        trainable: Shape (B,), whether there is a token to train on.
        truncated: Shape (B,), whether it was cut off at the limit.
        interrupted: Shape (B,), whether the thinking was ended by force; None where that is never done.
    """

    columns: Floats
    tokens: NDArray[np.int64]
    trainable: Flags
    truncated: Flags
    interrupted: Flags | None


def outcomes(trainer: Any, draws: Sequence[Draw], scores: Scores, success: int | None) -> list[GroupOutcome]:
    """The outcome of each group.

    Args:
        trainer: The trainer, for its weights of reward functions.
        draws: N draws.
        scores: Of N * G rollouts.
        success: Column of the reward function that is success, where one is.
    """
    size = trainer.num_generations
    weights = _weights(trainer)
    rewards = _sum(scores.columns, weights)
    if clip := getattr(trainer, "reward_clip_range", None):
        rewards = rewards.clip(*clip)
    by_function = one_by_one(trainer) and (weights != 0.0).sum() > 1
    parts = scores.columns[:, weights != 0.0] if by_function else None
    # Converted here at once, not group by group.
    tokens, truncated, trainable = (
        column.astype(np.float64) for column in (scores.tokens, scores.truncated, scores.trainable)
    )
    told: list[GroupOutcome] = []
    for group, draw in enumerate(draws):
        rows = slice(group * size, (group + 1) * size)
        told.append(
            GroupOutcome(
                ticket=None if draw.ticket == NO_TICKET else draw.ticket,
                rewards=rewards[rows],
                successes=None if success is None else scores.columns[rows, success],
                tokens=tokens[rows],
                policy_version=draw.policy_version,
                index=draw.index,
                truncated=truncated[rows],
                interrupted=None if scores.interrupted is None else scores.interrupted[rows],
                trainable=trainable[rows],
                components=None if parts is None else parts[rows],
            )
        )
    return told


def truncated(trainer: Any, completion_ids: Sequence[Sequence[int]], full: Sequence[bool]) -> list[bool]:
    """Which rollouts were cut off at their limit of tokens.

    TRL takes every rollout for truncated whose last token is neither an end nor padding. One that a `stop` string
    ended, or a part of a text, is none that wanted more tokens.

    Args:
        trainer: The trainer.
        completion_ids: The rollouts.
        full: Which had all the tokens that they may have.
    """
    tokenizer = tokenizer_of(trainer)
    stops = trainer.eos_token_ids if hasattr(trainer, "eos_token_ids") else [tokenizer.eos_token_id]
    ends = {*stops, tokenizer.pad_token_id}
    return [
        whole and len(ids) > 0 and int(ids[-1]) not in ends for ids, whole in zip(completion_ids, full, strict=True)
    ]


def batch_values(trainer: Any, columns: Floats) -> Floats | None:
    """What advantages are divided by the spread of, where the spread is that of the whole batch, shape (B,)."""
    weights = _weights(trainer)
    if one_by_one(trainer):
        groups = columns.reshape(-1, trainer.num_generations, columns.shape[1])
        live = ~np.isnan(groups)
        members = live.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(live, groups, 0.0).sum(axis=1, keepdims=True) / members
            squares = np.where(live, (groups - means) ** 2, 0.0).sum(axis=1, keepdims=True)
            spread = np.sqrt(squares / (members - 1))
        return _sum(((groups - means) / (spread + 1e-4)).reshape(columns.shape), weights)
    return _sum(columns, weights) if getattr(trainer, "scale_rewards", None) == "batch" else None


def compared(trainer: Any, columns: Floats) -> Floats:
    """What advantages are made of; NaN where there is none.

    Shape (B,), weighted sums of rewards, or (B, parts), the values of each function that counts.
    """
    weights = _weights(trainer)
    return columns[:, weights != 0.0] if one_by_one(trainer) else _sum(columns, weights)


def one_by_one(trainer: Any) -> bool:
    """Whether reward functions are normalised each by itself, before they are summed."""
    return getattr(trainer, "multi_objective_aggregation", None) == "normalize_then_sum"


def _weights(trainer: Any) -> Floats:
    return np.array(trainer.reward_weights.detach().to("cpu").tolist(), dtype=np.float64)


def _sum(columns: Floats, weights: Floats) -> Floats:
    missing = np.isnan(columns)
    total = np.where(missing, 0.0, columns) @ weights
    total[missing.all(axis=1)] = np.nan
    return total
