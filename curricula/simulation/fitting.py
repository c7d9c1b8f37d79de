"""A world's law, spread over the environments of a mix."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curricula.simulation.law import EnvironmentLaw, Law


def fit_law(law: Law, names: Sequence[str], sizes: Sequence[int], weights: Sequence[float | None]) -> Law:
    """The law with other environments: n of a mix instead of the m of the world.

    Environment i behaves as environments i, i + n, i + 2n, ... of the world do together; with more than m
    environments, as i modulo m. Prerequisites and regressions of environments beyond n fall away; where a world has
    prerequisites at all, they go on to the last environment.

    Args:
        law: Of the world.
        names: Shape (n,).
        sizes: Shape (n,), prompts of each.
        weights: Shape (n,), in the base mix.

    >>> law = Law((EnvironmentLaw("easy", rate=0.1), EnvironmentLaw("hard", rate=0.3)), transfer=0.5)
    >>> [(e.name, e.prompts, e.rate) for e in fit_law(law, ["sums"], [50], [None]).environments]
    [('sums', 50, 0.2)]
    """
    count, parts = len(names), law.environments
    environments: list[EnvironmentLaw] = []
    for code, (name, size, weight) in enumerate(zip(names, sizes, weights, strict=True)):
        own = parts[code::count] or (parts[code % len(parts)],)
        environments.append(replace(_together(own), name=name, prompts=size, weight=weight))
    prerequisites = tuple(rule for rule in law.prerequisites if max(rule.environment, rule.needs) < count)
    if law.prerequisites:
        last = law.prerequisites[-1]
        further = range(len(parts), count)
        prerequisites += tuple(replace(last, environment=code, needs=code - 1) for code in further)
    regressions = tuple(fall for fall in law.regressions if fall.environment < count)
    return replace(law, environments=tuple(environments), prerequisites=prerequisites, regressions=regressions)


def _together(parts: Sequence[EnvironmentLaw]) -> EnvironmentLaw:
    """Environments of equal size as one."""
    if len(parts) == 1:
        return parts[0]
    share = 1.0 / len(parts)
    difficulty = tuple((share * weight, mean, std) for part in parts for weight, mean, std in part.difficulty)

    def mean(values: Sequence[float]) -> float:
        return round(float(np.mean(values)), 9)

    return EnvironmentLaw(
        parts[0].name,
        difficulty=difficulty,
        unlearnable=mean([part.unlearnable for part in parts]),
        correlation=mean([part.correlation for part in parts]),
        tokens=mean([part.tokens for part in parts]),
        tokens_spread=mean([part.tokens_spread for part in parts]),
        rate=mean([part.rate for part in parts]),
    )
