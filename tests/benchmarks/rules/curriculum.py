"""The curriculum of this package, as one rule among the others."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curricula import Curriculum, GroupOutcome, PromptPool
from rules.base import Floats, Rows, Rule


class CurriculumRule(Rule):
    """A real `Curriculum`, asked and told through its public methods; the default mix unless another is given.

    Prompts in `exclude` are kept out as prompts in flight are: the ticket of a told draw is issued again, and
    closed as soon as the prompt may be drawn again.
    """

    name = "curriculum"

    def __init__(
        self,
        pool: PromptPool,
        group_size: int,
        rng: np.random.Generator,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(pool, group_size, rng)
        self.curriculum = Curriculum(pool, config, seed=int(rng.integers(1 << 62)))
        self._asked: dict[int, int] = {}
        self._held: dict[int, int] = {}

    def choose(self, n: int, exclude: Rows | None = None) -> Rows:
        """Ask for n prompts, none of them in `exclude`."""
        excluded = set() if exclude is None else set(exclude.tolist())
        freed = [row for row in self._held if row not in excluded]
        self.curriculum._tickets.close([self._held.pop(row) for row in freed])
        draws = self.curriculum.ask(n, group_size=self.group_size)
        self._asked.update((draw.index, draw.ticket) for draw in draws)
        return np.array([draw.index for draw in draws])

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats | None = None) -> None:
        """Tell what came of draws; rows that were not asked for are told by their index."""
        tickets = self.curriculum._tickets
        outcomes: list[GroupOutcome] = []
        told = [(row, self._asked.pop(row, None)) for row in rows.tolist()]
        known = {row: tickets.in_flight[number] for row, number in told if number is not None}
        for place, (row, number) in enumerate(told):
            tokens = None if tokens_KG is None else tokens_KG[place]
            outcomes.append(GroupOutcome(number, successes_KG[place], tokens=tokens, index=row))
        self.curriculum.tell(outcomes)
        self._held.update(zip(known, tickets.issue(list(known.values())), strict=True))
        self.seen[rows] = True

    def _choose(self, n: int, free: Rows) -> Rows:
        raise AssertionError("the curriculum chooses by itself")

    def _learn(self, rows: Rows, passed: Floats, tried: Floats) -> None:
        raise AssertionError("the curriculum learns by itself")

    def forecast(self, rows: Rows) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,)."""
        believed = self.curriculum._learner.beliefs.assess(rows, self.group_size, "group")
        return believed.means, believed.signals
