"""What may choose prompts in a simulated world: anything that can say rows and hear what came of them."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from curricula.choosing.sampling import allocate
from curricula.config import CurriculumConfig
from curricula.curriculum import Curriculum
from curricula.pool import PromptPool
from curricula.records import GroupOutcome
from curricula.simulation.law import Floats
from curricula.simulation.world import Rows, World


class Rule(Protocol):
    """Chooses rows, and hears what came of them before it chooses again."""

    def choose(self, n: int) -> Rows:
        """Rows of the next batch, shape (n,)."""
        ...

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats) -> None:
        """The groups of the batch: successes and tokens of each rollout, shape (K, G) each."""
        ...


class Uniform:
    """Shuffled passes over each environment, shared out by the base mix: what a trainer does by itself."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._base_E, self._rng = world.law.base_E, rng
        self._rows = [np.flatnonzero(world.codes_N == code) for code in range(len(self._base_E))]
        self._queues = [rows[:0] for rows in self._rows]

    def choose(self, n: int) -> Rows:
        """The next rows of each environment's pass."""
        parts: list[Rows] = []
        for code, count in enumerate(allocate(self._base_E, n, self._rng).tolist()):
            while len(self._queues[code]) < count:
                self._queues[code] = np.concatenate([self._queues[code], self._rng.permutation(self._rows[code])])
            parts.append(self._queues[code][:count])
            self._queues[code] = self._queues[code][count:]
        return np.concatenate(parts)

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats) -> None:
        """Learns nothing."""


class Oracle:
    """Sees every pass rate and cost as they are, and takes the greatest p(1-p): a bound that no rule can know.

    Args:
        world: The world it looks into.
        per_token: Whether p(1-p) is divided by the prompt's mean tokens.
        worth: Whether it is multiplied by what signal in the prompt's environment adds to held-out success.
    """

    def __init__(self, world: World, per_token: bool = False, worth: bool = False) -> None:
        self._world, self._per_token, self._worth = world, per_token, worth

    def choose(self, n: int) -> Rows:
        """The n best rows."""
        rate = self._world.pass_rates()
        value = rate * (1.0 - rate)
        if self._per_token:
            value = value / self._world.cost_N
        if self._worth:
            value = value * self._world.law.worth(self._world.ability_E)[self._world.codes_N]
        return np.argpartition(-value, n - 1)[:n]

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats) -> None:
        """Knows it all before."""


class CurriculumRule:
    """A `Curriculum` in a simulated world.

    Args:
        pool: The world's prompts.
        group_size: Rollouts per group.
        config: The mix; None takes every default.
        seed: Of the curriculum.
        tokens: Whether it is told what rollouts cost.
    """

    def __init__(
        self,
        pool: PromptPool,
        group_size: int,
        config: CurriculumConfig | Mapping[str, Any] | None = None,
        seed: int = 0,
        *,
        tokens: bool = True,
    ) -> None:
        self.curriculum = Curriculum(pool, config, seed=seed)
        self._tells_tokens = tokens
        self._group_size, self._tickets = group_size, list[int]()

    def choose(self, n: int) -> Rows:
        """Asks."""
        draws = self.curriculum.ask(n, group_size=self._group_size)
        self._tickets = [draw.ticket for draw in draws]
        return np.array([draw.index for draw in draws])

    def observe(self, rows: Rows, successes_KG: Floats, tokens_KG: Floats) -> None:
        """Tells."""
        costs = tokens_KG if self._tells_tokens else [None] * len(rows)
        groups = zip(self._tickets, successes_KG, costs, strict=True)
        self.curriculum.tell([GroupOutcome(ticket, rewards, tokens=cost) for ticket, rewards, cost in groups])
