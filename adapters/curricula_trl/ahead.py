"""Asks for the next round while the trainer trains on this one, so that no step waits for the choice.

The ask comes after everything of this round was told, so it knows no less than one made at the last moment, and
nothing happens to the curriculum in between: the draws are the same, only earlier on the clock.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from curricula import CheckpointError, Curriculum, Draw

Fields = list[Any]


class Ahead:
    """At most one round of draws that were asked for early.

    While `start` is at work, the curriculum belongs to it: every other use goes through `settled`.
    """

    def __init__(self, curriculum: Curriculum) -> None:
        self._curriculum = curriculum
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="curricula")
        self._working: Future[list[Draw]] | None = None
        self._failure: BaseException | None = None
        self._draws: list[Draw] = []

    def settled(self) -> Curriculum:
        """The curriculum, once nothing is at work on it. What an early ask raised is kept for `take`."""
        if self._working is not None:
            working, self._working = self._working, None
            self._failure = working.exception()
            self._draws = [] if self._failure is not None else working.result()
        return self._curriculum

    def start(self, groups: int, group_size: int, policy_version: int) -> None:
        """Asks in the background; the draws wait for `take`."""
        ask: Callable[[], list[Draw]] = lambda: self._curriculum.ask(  # noqa: E731
            groups, group_size=group_size, policy_version=policy_version
        )
        self._working = self._executor.submit(ask)

    def take(self, groups: int, group_size: int, policy_version: int) -> list[Draw]:
        """The draws of a round: those asked for early, where they are as many as wanted, else fresh ones.

        Raises:
            Exception: What the early ask raised: here, where all ranks listen for it.
        """
        curriculum = self.settled()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if len(self._draws) != groups:
            self.cancel()
            return curriculum.ask(groups, group_size=group_size, policy_version=policy_version)
        draws, self._draws = self._draws, []
        return [replace(draw, policy_version=policy_version) for draw in draws]

    def cancel(self) -> None:
        """Returns prompts that were drawn early and will not be used."""
        curriculum = self.settled()
        if self._draws:
            curriculum.cancel([draw.ticket for draw in self._draws])
            self._draws = []

    def close(self) -> None:
        """Cancels what waits and ends the thread."""
        self.cancel()
        self._executor.shutdown()

    def state(self) -> list[Fields]:
        """What waits, for a checkpoint that also holds the curriculum's state."""
        self.settled()
        return [
            [draw.ticket, draw.index, draw.key, draw.environment, draw.propensity, draw.reason] for draw in self._draws
        ]

    def load(self, rows: Sequence[Any]) -> None:
        """Takes over what `state` gave.

        Raises:
            CheckpointError: The draws are damaged.
        """
        self.settled()
        size, names = len(self._curriculum.pool), self._curriculum.pool.environments
        draws: list[Draw] = []
        for row in rows:
            match row:
                case [int(ticket), int(index), str(key), str(name), float(propensity), str(reason)] if (
                    0 <= index < size and name in names and 0 < propensity <= 1
                ):
                    draws.append(Draw(ticket, index, key, name, propensity, 0, reason))  # type: ignore[arg-type]
                case _:
                    raise CheckpointError(
                        f"ahead: expected a draw of this pool; got {row!r}. Resume from another checkpoint"
                    )
        self._draws = draws
