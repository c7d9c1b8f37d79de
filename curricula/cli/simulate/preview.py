"""The runs of a preview, and the figures that are read from them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.cli.simulate.left_out import simulable
from curricula.config import CurriculumConfig
from curricula.simulation import CurriculumRule, Curve, Law, Uniform, World, gain, simulate
from curricula.simulation.run import Budget

Floats = NDArray[np.float64]
Arm = str
ARMS: tuple[Arm, ...] = ("uniform", "mix")

# Student's t at 97.5% for 1 to 30 degrees of freedom.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: a law, the levels of its prompts, and how long for."""

    law: Law
    levels: tuple[tuple[int, int], ...]
    steps: int
    groups: int
    group_size: int

    def world(self, seed: int) -> World:
        """A fresh sample of the law."""
        return World(self.law, seed)


def run_uniform(plan: Plan, seed: int, on_step: Callable[[int], None]) -> Curve:
    """Shuffled passes over all prompts."""
    world = plan.world(seed)
    rule = Uniform(world, np.random.Generator(np.random.PCG64(seed)))
    return simulate(world, rule, plan.steps, plan.groups, plan.group_size, seed, on_step=on_step)


def run_mix(plan: Plan, config: CurriculumConfig, seed: int, target: float, on_step: Callable[[int], None]) -> Curve:
    """The mix, for twice as long where it needs that to reach the target."""
    world = plan.world(seed)
    levels_N = world.levels(plan.levels) if any(high for _, high in plan.levels) else None
    rule = CurriculumRule(world.pool(levels=levels_N), plan.group_size, simulable(config), seed)
    return simulate(
        world,
        rule,
        2 * plan.steps,
        plan.groups,
        plan.group_size,
        seed + 1,
        target=target,
        least=plan.steps,
        on_step=lambda step: on_step(min(step, plan.steps)),
    )


@dataclass(frozen=True, slots=True)
class Preview:
    """The runs of both arms, one of each for every seed."""

    plan: Plan
    runs: dict[Arm, list[Curve]]

    def success(self, arm: Arm) -> Floats:
        """Held-out success within the planned steps, shape (seeds, steps + 1, environments)."""
        return np.array([curve.success_TE[: self.plan.steps + 1] for curve in self.runs[arm]])

    def overall(self, arm: Arm) -> Floats:
        """The same under the base mix, shape (seeds, steps + 1)."""
        return self.success(arm) @ self.plan.law.base_E

    def groups(self, arm: Arm, which: str) -> Floats:
        """Groups "drawn" or "kept" (informative), shape (seeds, steps, environments)."""
        drawn = which == "drawn"
        steps = self.plan.steps
        return np.array([(curve.drawn_TE if drawn else curve.kept_TE)[:steps] for curve in self.runs[arm]])

    def rollouts(self) -> Floats:
        """Rollouts spent before each step and at the end, shape (steps + 1,)."""
        return np.arange(self.plan.steps + 1, dtype=np.float64) * (self.plan.groups * self.plan.group_size)

    def needed(self, arm: Arm, budget: Budget) -> Floats:
        """What each seed spent until uniform's final success, at most twice what uniform spent, shape (seeds,)."""
        pairs = zip(self.runs[arm], self.runs["uniform"], strict=True)
        return np.array([min(curve.reach(base.final, budget), 2.0 * base.spent(budget)[-1]) for curve, base in pairs])

    def late(self, budget: Budget) -> int:
        """Seeds in which the mix did not reach uniform's final success with twice what uniform spent."""
        limit = 2.0 * np.array([base.spent(budget)[-1] for base in self.runs["uniform"]])
        return int((self.needed("mix", budget) >= limit).sum())

    def gain(self, budget: Budget) -> tuple[float, float | None, float | None]:
        """How many times less the mix needed: geometric mean over paired seeds, with 95% limits unless it is one."""
        pairs = zip(self.runs["mix"], self.runs["uniform"], strict=True)
        logs = np.log([gain(curve, base, budget) for curve, base in pairs])
        mean, count = float(logs.mean()), len(logs)
        if count == 1:
            return float(np.exp(mean)), None, None
        half = (_T[count - 2] if count - 2 < len(_T) else 1.96) * float(logs.std(ddof=1)) / np.sqrt(count)
        return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))

    def summary(self) -> dict[str, Any]:
        """Every figure, as JSON."""
        names = self.plan.law.names
        environments: dict[str, Any] = {}
        shares = {(arm, which): _shares(self.groups(arm, which)) for arm in ARMS for which in ("drawn", "kept")}
        for code, name in enumerate(names):
            environments[name] = {
                "prompts": self.plan.law.environments[code].prompts,
                "start": _figure(self.success("uniform")[:, 0, code]),
                **{arm: _figure(self.success(arm)[:, -1, code]) for arm in ARMS},
                "share_drawn": {arm: round(float(shares[arm, "drawn"][code]), 4) for arm in ARMS},
                "share_trained": {arm: round(float(shares[arm, "kept"][code]), 4) for arm in ARMS},
                "informative": {
                    arm: _ratio(self._sum(arm, "kept")[code], self._sum(arm, "drawn")[code]) for arm in ARMS
                },
            }
        budgets: tuple[Budget, ...] = ("rollouts", "tokens")
        return {
            "seeds": len(self.runs["mix"]),
            "rollouts": int(self.rollouts()[-1]),
            "environments": environments,
            "base_mix": {
                "start": _figure(self.overall("uniform")[:, 0]),
                **{arm: _figure(self.overall(arm)[:, -1]) for arm in ARMS},
                "informative": {
                    arm: _ratio(self._sum(arm, "kept").sum(), self._sum(arm, "drawn").sum()) for arm in ARMS
                },
            },
            "to_uniforms_final": {
                budget: {
                    **{arm: round(float(self.needed(arm, budget).mean())) for arm in ARMS},
                    "gain": dict(zip(("value", "low", "high"), self.gain(budget), strict=True)),
                    "not_reached": self.late(budget),
                }
                for budget in budgets
            },
            "law": asdict(self.plan.law),
        }

    def _sum(self, arm: Arm, which: str) -> Floats:
        return self.groups(arm, which).sum((0, 1))


def _shares(groups_STE: Floats) -> Floats:
    totals = groups_STE.sum((0, 1))
    return totals / max(float(totals.sum()), 1.0)


def _figure(values_S: Floats) -> dict[str, Any]:
    return {"mean": round(float(values_S.mean()), 4), "seeds": [round(float(value), 4) for value in values_S]}


def _ratio(part: float, whole: float) -> float:
    return round(float(part / whole), 4) if whole else 0.0
