"""Running a rule in a world, and what is read from the run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.simulation.law import Floats
from curricula.simulation.rules import Rule
from curricula.simulation.world import World

Budget = Literal["rollouts", "tokens"]

_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Curve:
    """What came of a run of T steps.

    Attributes:
        base_E: Shape (E,), the base mix.
        rollouts_T: Shape (T + 1,), spent before each step and at the end.
        tokens_T: Shape (T + 1,), likewise.
        success_TE: Shape (T + 1, E), expected held-out success.
        ability_TE: Shape (T + 1, E).
        drawn_TE: Shape (T, E), groups drawn.
        kept_TE: Shape (T, E), groups whose results differed.
        visited: Prompts that were drawn at least once.
    """

    base_E: Floats
    rollouts_T: Floats
    tokens_T: Floats
    success_TE: Floats
    ability_TE: Floats
    drawn_TE: Floats
    kept_TE: Floats
    visited: int

    @cached_property
    def success_T(self) -> Floats:
        """Expected held-out success under the base mix, shape (T + 1,)."""
        return self.success_TE @ self.base_E

    @property
    def final(self) -> float:
        """Held-out success at the end."""
        return float(self.success_T[-1])

    def spent(self, budget: Budget) -> Floats:
        """What was spent, shape (T + 1,)."""
        return self.rollouts_T if budget == "rollouts" else self.tokens_T

    def reach(self, target: float, budget: Budget = "rollouts") -> float:
        """What was spent when held-out success first reached a target, interpolated; infinity where it did not."""
        above = np.flatnonzero(self.success_T >= target)
        if not above.size:
            return float("inf")
        at, spent = int(above[0]), self.spent(budget)
        if at == 0:
            return 0.0
        low, high = self.success_T[at - 1 : at + 1]
        return float(spent[at - 1] + (spent[at] - spent[at - 1]) * (target - low) / (high - low))

    def rollouts_to(self, target: float) -> float:
        """Rollouts spent when held-out success first reached a target; infinity where it did not."""
        return self.reach(target)


def simulate(
    world: World,
    rule: Rule,
    steps: int,
    groups: int = 32,
    group_size: int = 8,
    seed: int = 0,
    *,
    target: float | None = None,
    least: int = 0,
    refill: bool = False,
    on_step: Callable[[int], None] | None = None,
) -> Curve:
    """Train a simulated learner on what a rule chooses.

    Args:
        world: A fresh world; it is changed.
        rule: What chooses.
        steps: At most so many.
        groups: B, groups of a batch.
        group_size: G, rollouts of a group.
        seed: Of the rollouts.
        target: Held-out success at which to stop.
        least: Steps to make even where the target is reached.
        refill: Draw again until `groups` groups have results that differ, at most 20 times, and train on those
            (dynamic sampling of DAPO, arXiv 2503.14476); groups beyond are thrown away.
        on_step: Called with the number of steps made, after each.
    """
    if len(world) < groups:
        raise CurriculaValueError(f"simulate: expected groups <= {len(world)}, the prompts of the world; got {groups}")
    rng, law = np.random.Generator(np.random.PCG64(seed)), world.law
    count = len(law.environments)
    rollouts, tokens = [0.0], [0.0]
    success, ability = [world.held_out()], [world.ability_E.copy()]
    drawn: list[Floats] = []
    kept: list[Floats] = []
    seen = np.zeros(len(world), dtype=np.bool_)
    for step in range(steps):
        if target is not None and step >= least and float(success[-1] @ law.base_E) >= target:
            break
        used, spent = 0, 0.0
        drawn_E, kept_E = np.zeros(count), np.zeros(count)
        rows_R: list[np.ndarray] = []
        results_R: list[np.ndarray] = []
        for _ in range(_MOST_ROUNDS if refill else 1):
            rows_K = rule.choose(groups)
            successes_KG, tokens_KG = world.rollouts(rows_K, group_size, rng)
            rule.observe(rows_K, successes_KG, tokens_KG)
            mixed_K = successes_KG.min(axis=1) < successes_KG.max(axis=1)
            seen[rows_K] = True
            used, spent = used + successes_KG.size, spent + float(tokens_KG.sum())
            drawn_E += np.bincount(world.codes_N[rows_K], minlength=count)
            kept_E += np.bincount(world.codes_N[rows_K[mixed_K]], minlength=count)
            rows_R.append(rows_K[mixed_K])
            results_R.append(successes_KG[mixed_K])
            if sum(map(len, rows_R)) >= groups:
                break
        world.train(np.concatenate(rows_R)[:groups], np.concatenate(results_R)[:groups], groups)
        rollouts.append(rollouts[-1] + used)
        tokens.append(tokens[-1] + spent)
        success.append(world.held_out())
        ability.append(world.ability_E.copy())
        drawn.append(drawn_E)
        kept.append(kept_E)
        if on_step is not None:
            on_step(step + 1)
    return Curve(
        law.base_E,
        np.array(rollouts),
        np.array(tokens),
        np.array(success),
        np.array(ability),
        np.array(drawn).reshape(-1, count),
        np.array(kept).reshape(-1, count),
        int(seen.sum()),
    )


def gain(curve: Curve, uniform: Curve, budget: Budget = "rollouts", most: float = 2.0) -> float:
    """What uniform needed for its final held-out success over what this run needed for the same.

    A run that did not get there, or needed more than `most` times what uniform spent in all, counts as `most` times;
    nothing counts as less than one rollout or token.
    """
    target, limit = uniform.final, most * float(uniform.spent(budget)[-1])
    return max(uniform.reach(target, budget), 1.0) / max(min(curve.reach(target, budget), limit), 1.0)
