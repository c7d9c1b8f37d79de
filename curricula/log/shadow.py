"""A curriculum that follows a log: told what was told there, it draws nothing itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curricula.choosing.drawing import weigh
from curricula.config import CurriculumConfig
from curricula.curriculum import Curriculum
from curricula.errors import CurriculaValueError
from curricula.log.arrow import arrow
from curricula.log.runs import Run
from curricula.pool import PromptPool
from curricula.records import GroupOutcome
from curricula.tickets import Ticket

Floats = NDArray[np.float64]

_SAMPLES = 8


class Foresight(NamedTuple):
    """What a curriculum would do if it were asked.

    Attributes:
        probabilities: Shape (R,), that it would draw each of the rows asked about.
        shares: Shape (E,), of its draws.
        drawn: Rows that it draws in one such ask, at random.
        won: Shape (E,), shares that environments win in its competition; None where there is none.
    """

    probabilities: Floats
    shares: Floats
    drawn: list[int]
    won: Floats | None


class Shadow(Curriculum):
    """A curriculum on the pool of a log.

    Prompts are known by row, environment and level; there are no texts and no features, so that predictors which need
    them say nothing.

    Args:
        run: The run whose log it follows.
        rows: The log's rows.
        config: The mix it goes by.
    """

    def __init__(self, run: Run, rows: Sequence[dict[str, Any]], config: CurriculumConfig) -> None:
        super().__init__(_pool(run, rows), config)
        # What ended rollouts is of the run that was logged, which was warned of it.
        self._learner.monitor.endings.quiet = True
        self._chance = np.random.Generator(np.random.PCG64(self.seed))

    def begin(self) -> None:
        """Begin an ask, as every ask begins.

        What has been out for too long expires, evidence is an ask older, and the bandit shares out the draws.
        """
        self._begin()
        self._shares = self._compute_shares(self._chance)

    def foresee(self, rows: Sequence[int], n: int, group_size: int) -> Foresight:
        """What the ask that was begun would draw, for n groups; nothing changes by it."""
        now = self._situation(n, group_size, self._shares)
        asked = np.asarray(rows, dtype=np.int64)
        found = [self._planner.chances(asked, now, self._chance) for _ in range(_SAMPLES)]
        plan = self._planner.plan(now, self._chance)
        return Foresight(np.mean(found, axis=0), plan.shares, [choice.row for choice in plan.choices], plan.won)

    def adopt(
        self,
        rows: Sequence[int],
        propensities: Sequence[float],
        shares: Sequence[float],
        repeats: Sequence[bool],
        won: Floats | None,
    ) -> list[int]:
        """Take draws that were made elsewhere as those of the ask that was begun.

        Args:
            rows: What was drawn.
            propensities: Of each draw.
            shares: Of each draw's environment, that it was made by.
            repeats: Whether each was drawn though it may have been in flight.
            won: What environments won in this curriculum's own competition.

        Returns:
            Their tickets.
        """
        if won is not None:
            self._learner.mixer.win(won)
        codes = self.pool.codes[np.asarray(rows, dtype=np.int64)]
        free_E = np.array([b - a - self._tickets.taken(a, b).size for a, b in self._windows.spans])
        weights = weigh(codes, np.asarray(propensities, dtype=np.float64), np.asarray(repeats, dtype=np.bool_), free_E)
        tickets = [
            Ticket(
                row=row,
                position=self.pool.position(row),
                code=code,
                weight=weight,
                share=share,
                ask=self._counts["asks"],
            )
            for row, code, weight, share in zip(rows, codes.tolist(), weights.tolist(), shares, strict=True)
        ]
        numbers = list(self._tickets.issue(tickets))
        self._learner.monitor.drawn.extend(codes.tolist())
        self._counts["draws"] += len(rows)
        return numbers

    def results(self, outcome: GroupOutcome) -> Floats:
        """An outcome's results as this curriculum reads them: successes where rewards are rates; NaN left out."""
        given = outcome.rewards if outcome.successes is None else outcome.successes
        values = np.asarray(given, dtype=np.float64)
        values = values[np.isfinite(values)]
        return self._learner.rule.read(values) if values.size else values


def _pool(run: Run, rows: Sequence[dict[str, Any]]) -> PromptPool:
    """A pool of the run's size: rows that were drawn are what they were, others fill up environments and levels."""
    names = run.environments
    blocks = {(name, level): number for number, (name, level, _) in enumerate(run.blocks)}
    sizes = np.array([size for _, _, size in run.blocks], dtype=np.int64)
    block_of = np.full(int(sizes.sum()), -1, dtype=np.int64)
    for row in rows:
        place, index = blocks.get((row["environment"], row["level"])), row["index"]
        if index is None or row["asked_at"] is None:
            continue
        if place is None or not 0 <= index < block_of.size:
            raise CurriculaValueError(
                f"run {run.number} of the log: expected draws of its own pool; got row {index} of "
                f"{row['environment']!r}, which it does not have; the log is damaged"
            )
        block_of[index] = place
    left = sizes - np.bincount(block_of[block_of >= 0], minlength=sizes.size)
    if (left < 0).any():
        raise CurriculaValueError(f"run {run.number} of the log: expected draws of its own pool; the log is damaged")
    block_of[block_of < 0] = np.repeat(np.arange(sizes.size), left)
    code_of = np.array([names.index(name) for name, _, _ in run.blocks], dtype=np.int32)
    column = arrow().DictionaryArray.from_arrays(code_of[block_of], names)
    if any(level is None for _, level, _ in run.blocks):
        return PromptPool(column)
    levels = np.array([level for _, level, _ in run.blocks], dtype=np.int64)
    return PromptPool(column, levels=levels[block_of])
