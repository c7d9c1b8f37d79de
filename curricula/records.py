"""The frozen records that pass between the parts: what was drawn, what came of it, and what to do with it."""

import operator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curricula.errors import CurriculaValueError

Reason = Literal["signal", "explore", "probe", "review", "repeat"]
REASONS: tuple[Reason, ...] = ("signal", "explore", "probe", "review", "repeat")
Status = Literal["ok", "error", "stale", "cancelled"]
STATUSES: tuple[Status, ...] = ("ok", "error", "stale", "cancelled")


@dataclass(frozen=True, slots=True)
class Draw:
    """A prompt chosen for one group of rollouts.

    Attributes:
        ticket: Names this draw in `tell` and `cancel`; unique within a curriculum.
        index: Row of the prompt in the pool.
        key: Stable identity of the prompt: its uid, else a hash of its content.
        environment: Name of the prompt's environment.
        propensity: Inclusion probability in (0, 1] of this ask in two phases: that the prompt became a candidate,
            times that it was drawn as one of these candidates; given how many draws each environment got.
        policy_version: Version of the policy that the rollouts were asked for.
        reason: Why it was drawn: for its signal, to explore, as a random probe, to review a mastered
            prompt, or as a repeat because nothing else was eligible.
    """

    ticket: int
    index: int
    key: str
    environment: str
    propensity: float
    policy_version: int
    reason: Reason


@dataclass(frozen=True, slots=True, eq=False)
class GroupOutcome:
    """What came of one draw: the group's rewards, and how it ended.

    Attributes:
        ticket: The draw's ticket; None for outcomes from elsewhere (a log), which are taken by `index`.
        rewards: Shape (G,); NaN where a rollout could not be scored; infinite ones are taken as NaN.
        successes: Shape (G,), the raw result of the task where `rewards` are shaped, read as the mix's `success`
            section says (values in [0, 1] as they are); NaN as above. Where all are NaN, the group is filtered on its
            rewards, and teaches nothing of pass rates.
        tokens: Shape (G,), tokens generated per rollout.
        status: "ok", or what went wrong. Only ok outcomes teach.
        policy_version: Version that generated the group; None takes the draw's. Recorded for rules about staleness;
            no rule of this version reads it.
        interrupted: Shape (G,), True where generation was cut short on purpose.
        index: Row in the pool, for outcomes without a ticket.
        truncated: Shape (G,), True where a rollout was cut off at the limit of tokens.
        trainable: Shape (G,), False where a rollout has no token to train on: it is no member of its group then.
        components: Shape (G, C), rewards by component, where the trainer normalises each by itself (and only then);
            NaN as above.

    Raises:
        CurriculaValueError: A shape, a status or a value that cannot be.
    """

    ticket: int | None
    rewards: ArrayLike
    successes: ArrayLike | None = None
    tokens: ArrayLike | None = None
    status: Status = "ok"
    policy_version: int | None = None
    interrupted: ArrayLike | None = None
    index: int | None = None
    truncated: ArrayLike | None = None
    trainable: ArrayLike | None = None
    components: ArrayLike | None = None

    def __post_init__(self) -> None:
        rewards = _column("rewards", self.rewards, None)
        object.__setattr__(self, "rewards", rewards)
        for name in ("successes", "tokens", "interrupted", "truncated", "trainable"):
            value = getattr(self, name)
            if value is not None and (column := _column(name, value, rewards.shape)) is not value:
                object.__setattr__(self, name, column)
        if self.components is not None:
            object.__setattr__(self, "components", _components(self.components, len(rewards)))
        if self.status not in STATUSES:
            raise CurriculaValueError(
                f"GroupOutcome.status: expected one of {', '.join(STATUSES)}; got {self.status!r}"
            )
        if self.ticket is None and self.index is None:
            raise CurriculaValueError("GroupOutcome: expected a ticket, or the index of the prompt; got neither")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a group should be trained on, and why (not)."""

    keep: bool
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Posterior of prompts' pass rates: mean and standard deviation, shape (M,) each."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]


def _components(value: ArrayLike, members: int) -> NDArray[np.float64]:
    try:
        components = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CurriculaValueError(f"GroupOutcome.components: expected numbers; got {value!r}") from error
    if components.ndim != 2 or len(components) != members or components.shape[1] == 0:
        raise CurriculaValueError(
            f"GroupOutcome.components: expected shape ({members}, C) with C >= 1; got {components.shape}"
        )
    return components


def _column(name: str, value: ArrayLike, shape: tuple[int, ...] | None) -> NDArray[np.float64]:
    try:
        column = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CurriculaValueError(
            f"GroupOutcome.{name}: expected numbers, NaN where unscorable; got {value!r}"
        ) from error
    if column.ndim != 1 or column.size == 0 or (shape is not None and column.shape != shape):
        expected = "(G,) with G >= 1" if shape is None else str(shape)
        raise CurriculaValueError(f"GroupOutcome.{name}: expected shape {expected}; got {column.shape}")
    return column


def whole(caller: str, name: str, value: int, low: int = 1) -> int:
    """An integer of at most 62 bits, from any integer type; CurriculaValueError for anything else."""
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = low - 1
    if not low <= number < 1 << 62:
        raise CurriculaValueError(f"{caller}: expected {name} to be an integer >= {low}; got {value!r}")
    return number
