"""Learns from this round, and asks for the next, while the trainer trains on this one: no step waits for either.

The ask comes after everything of this round was told, so it knows no less than one made at the last moment, and
nothing happens to the curriculum in between: the draws are the same, only earlier on the clock.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from curricula import CheckpointError, Curriculum, Draw
from curricula.records import REASONS

Fields = list[Any]

logger = logging.getLogger("curricula")


class Ahead:
    """At most one round of draws that were asked for early.

    While `start` is at work, the curriculum belongs to it: every other use goes through `settled`, and a reference
    that `settled` gave is good until the next `start`.

    Args:
        curriculum: Whom to ask.
        prepare: Called with draws that were asked for early, beside the step too.
    """

    def __init__(self, curriculum: Curriculum, prepare: Callable[[list[Draw]], object] = lambda _: None) -> None:
        self._curriculum, self._prepare = curriculum, prepare
        curriculum.lazy = True
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="curricula")
        self._working: Future[list[Draw]] | None = None
        self._failure: BaseException | None = None
        self._draws: list[Draw] = []
        self._metrics: dict[str, float] | None = None

    def settled(self) -> Curriculum:
        """The curriculum, once nothing is at work on it and it knows all it was told.

        What that raised, or an early ask, is kept for `take`: there all ranks listen for it.
        """
        self._wait()
        try:
            self._curriculum.settle()
        except Exception as error:
            self._failure = self._failure or error
        return self._curriculum

    def _wait(self) -> None:
        if self._working is not None:
            working, self._working = self._working, None
            failure = working.exception()
            self._failure = self._failure or failure
            self._draws = [] if failure is not None else working.result()

    def start(self, groups: int, group_size: int, policy_version: int) -> None:
        """Learns and asks in the background; the draws wait for `take`."""
        self._wait()

        def ask() -> list[Draw]:
            self._curriculum.settle()
            # What is reported meanwhile is the round that is trained on, not the one that is drawn for.
            self._metrics = self._curriculum.metrics()
            draws = self._curriculum.ask(groups, group_size=group_size, policy_version=policy_version)
            self._prepare(draws)
            return draws

        self._working = self._executor.submit(ask)

    def metrics(self) -> dict[str, float]:
        """The curriculum's metrics as they were before it was asked for a round that has not begun."""
        curriculum = self.settled()
        return curriculum.metrics() if self._metrics is None else dict(self._metrics)

    def take(self, groups: int, group_size: int, policy_version: int) -> list[Draw]:
        """The draws of a round: those asked for early, where they are as many as wanted, else fresh ones.

        Raises:
            Exception: What the early ask raised: here, where all ranks listen for it.
        """
        curriculum = self.settled()
        self._metrics = None
        self._raise_failure()
        if len(self._draws) != groups:
            self.cancel()
            return curriculum.ask(groups, group_size=group_size, policy_version=policy_version)
        draws, self._draws = self._draws, []
        return [
            Draw(draw.ticket, draw.index, draw.key, draw.environment, draw.propensity, policy_version, draw.reason)
            for draw in draws
        ]

    def cancel(self) -> None:
        """Returns prompts that were drawn early and will not be used; there may be no `take` after it."""
        curriculum = self.settled()
        if self._failure is not None:
            logger.error("the curriculum failed after its last round: %s", self._failure)
        if self._draws:
            curriculum.cancel([draw.ticket for draw in self._draws])
        self._draws, self._failure, self._metrics = [], None, None

    def close(self) -> None:
        """Cancels what waits and ends the thread."""
        self.cancel()
        self._curriculum.lazy = False
        self._executor.shutdown()

    def state(self) -> list[Fields]:
        """What waits, for a checkpoint that also holds the curriculum's state.

        Raises:
            Exception: What the early ask raised: its half-made round is not saved.
        """
        self.settled()
        self._raise_failure()
        return [[d.ticket, d.index, d.key, d.environment, d.propensity, d.reason] for d in self._draws]

    def load(self, curriculum_state: Mapping[str, Any], rows: Sequence[Any]) -> None:
        """Takes over a curriculum's state and what `state` gave; both or neither.

        Raises:
            CheckpointError: One of them is damaged, or is that of another data set.
        """
        curriculum = self.settled()
        moved = curriculum_state.get("fingerprint") != curriculum.pool.fingerprint
        draws = [self._read(row, moved) for row in rows]
        before = curriculum.state_dict()
        curriculum.load_state_dict(curriculum_state)
        flying = curriculum.in_flight()
        if moved:
            # The data set changed: what was drawn of the old one is drawn again.
            curriculum.cancel([draw.ticket for draw in draws if draw.ticket in flying])
            draws = []
        if stray := [draw for draw in draws if flying.get(draw.ticket) != draw.index]:
            curriculum.load_state_dict(before)
            raise CheckpointError(f"ahead: expected draws in flight; got ticket {stray[0].ticket}, which is not")
        self._draws, self._failure, self._metrics = draws, None, None

    def _read(self, row: Any, moved: bool) -> Draw:
        match row:
            case [int(ticket), int(index), str(key), str(name), float(propensity), str(reason)] if (
                (moved or self._is_row(index, key, name)) and 0 < propensity <= 1 and reason in REASONS
            ):
                return Draw(ticket, index, key, name, propensity, 0, reason)  # type: ignore[arg-type]
        raise CheckpointError(f"ahead: expected a draw of this pool; got {row!r}; resume from an older checkpoint")

    def _is_row(self, index: int, key: str, name: str) -> bool:
        pool = self._curriculum.pool
        return 0 <= index < len(pool) and key == pool.key(index) and name == pool.environments[pool.codes[index]]

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
