"""The law of a simulated world: how hard its prompts are, what they cost, and how ability grows with training."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True)
class EnvironmentLaw:
    """What the prompts of one environment are drawn from.

    Attributes:
        name: Of the environment.
        prompts: N, how many there are.
        difficulty: A mixture of normals, (weight, mean, std) each, in logits above the ability at the start.
        unlearnable: Share of prompts whose pass rate is 0 for ever, whatever their difficulty.
        correlation: Of the feature of a prompt with its difficulty.
        tokens: Mean tokens of a rollout.
        tokens_spread: Standard deviation, between prompts, of the logarithm of a prompt's mean tokens.
        rate: Ability gained, in logits, per unit of signal in a batch.
        weight: In the base mix; None takes the number of prompts.
    """

    name: str
    prompts: int = 1000
    difficulty: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 1.5),)
    unlearnable: float = 0.0
    correlation: float = 0.5
    tokens: float = 200.0
    tokens_spread: float = 0.0
    rate: float = 0.1
    weight: float | None = None

    def __post_init__(self) -> None:
        total = sum(weight for weight, _, _ in self.difficulty)
        sound = (
            self.prompts >= 1
            and abs(total - 1.0) < 1e-6
            and all(weight >= 0 and std > 0 for weight, _, std in self.difficulty)
            and 0 <= self.unlearnable < 1
            and abs(self.correlation) < 1
            and self.tokens > 0
            and self.tokens_spread >= 0
            and self.rate >= 0
        )
        if not sound:
            raise CurriculaValueError(
                "EnvironmentLaw: expected prompts >= 1, difficulty weights that sum to 1 with positive spreads, "
                f"unlearnable in [0, 1), correlation in (-1, 1), positive tokens and a rate >= 0; got {self}"
            )

    @cached_property
    def centre(self) -> float:
        """Mean difficulty."""
        return sum(weight * mean for weight, mean, _ in self.difficulty)

    @cached_property
    def scale(self) -> float:
        """Standard deviation of difficulty."""
        second = sum(weight * (std**2 + mean**2) for weight, mean, std in self.difficulty)
        return float(np.sqrt(second - self.centre**2))

    def expect(self, function: str, ability: float, wander: float = 0.0) -> float:
        """Expected "success" p or "signal" p(1-p) of a prompt at an ability, by Gauss-Hermite quadrature.

        Args:
            function: Which of the two.
            ability: In logits.
            wander: Variance that drift has added to each difficulty.
        """
        total = 0.0
        for weight, mean, std in self.difficulty:
            rate = sigmoid(ability - mean - np.sqrt(std * std + wander) * _NODES)
            value = rate if function == "success" else rate * (1.0 - rate)
            total += weight * float(value @ _WEIGHTS) / float(_WEIGHTS.sum())
        return (1.0 - self.unlearnable) * total


@dataclass(frozen=True)
class Regression:
    """A sudden fall of one environment's ability: by `amount` logits, before step `step`."""

    environment: int
    step: int
    amount: float


@dataclass(frozen=True)
class Prerequisite:
    """Ability of `environment` grows by the factor sigmoid(slope * (ability of `needs` - threshold))."""

    environment: int
    needs: int
    threshold: float = 1.0
    slope: float = 2.0


@dataclass(frozen=True)
class Law:
    """How a world's abilities move.

    All abilities start at 0. The pass rate of prompt i of environment e is sigmoid(A_e - d_i), or 0 where it is
    unlearnable. A batch of B groups with observed success rates q gives every environment the signal
    s_e = sum over its groups of q(1-q) / B, the mean squared advantage under a batch-level normaliser, and

        A_e += rate_e * factor_e * sum_f transfer_ef s_f - forgetting * max(A_e, 0) * exp(-kept_e) + drift noise

    where factor_e is that of its prerequisites, and kept_e counts its groups whose results differed.

    Attributes:
        environments: Their laws.
        transfer: Share of another environment's signal that counts for an environment as well.
        onward: The same, from each environment to the next one only, added to `transfer`.
        forgetting: Share of the ability gained that is lost in a step without any group of an environment.
        prerequisites: What must be learned first.
        regressions: Sudden falls.
        drift: Standard deviation of the random step of each ability.
        prompt_drift: Standard deviation of the random step of each prompt's difficulty.
        memorisation: Logits that a prompt becomes easier by being trained on, at most; half of them at the first time.
    """

    environments: tuple[EnvironmentLaw, ...]
    transfer: float = 0.0
    onward: float = 0.0
    forgetting: float = 0.0
    prerequisites: tuple[Prerequisite, ...] = ()
    regressions: tuple[Regression, ...] = ()
    drift: float = 0.0
    prompt_drift: float = 0.0
    memorisation: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the environments, in order."""
        return tuple(environment.name for environment in self.environments)

    @property
    def costs_differ(self) -> bool:
        """Whether some prompts cost more tokens than others, so that a budget is one of tokens."""
        costs = {environment.tokens for environment in self.environments}
        return len(costs) > 1 or any(environment.tokens_spread > 0.0 for environment in self.environments)

    @cached_property
    def base_E(self) -> Floats:
        """The base mix, shape (E,), of sum 1: declared weights (1 where none is), else sizes."""
        declared = [environment.weight for environment in self.environments]
        if all(weight is None for weight in declared):
            weights = np.array([environment.prompts for environment in self.environments], dtype=np.float64)
        else:
            weights = np.array([1.0 if weight is None else weight for weight in declared])
        return weights / weights.sum()

    @cached_property
    def transfer_EE(self) -> Floats:
        """What an environment (row) takes from the signal of each (column)."""
        count = len(self.environments)
        return np.eye(count) + self.transfer * (1.0 - np.eye(count)) + self.onward * np.eye(count, k=-1)

    def factors(self, ability_E: Floats) -> Floats:
        """What prerequisites leave of each environment's growth, shape (E,), in (0, 1]."""
        factor_E = np.ones(len(self.environments))
        for rule in self.prerequisites:
            logit = rule.slope * (float(ability_E[rule.needs]) - rule.threshold)
            factor_E[rule.environment] *= 0.5 * (1.0 + math.tanh(0.5 * logit))
        return factor_E

    def grow(self, ability_E: Floats, signal_E: Floats, kept_E: Floats | Counts) -> Floats:
        """Abilities after one batch, without drift and regressions.

        Args:
            ability_E: Shape (E,), before.
            signal_E: Shape (E,), s above.
            kept_E: Shape (E,), groups whose results differed.
        """
        rate_E = np.array([environment.rate for environment in self.environments])
        gained = rate_E * self.factors(ability_E) * (self.transfer_EE @ signal_E)
        return ability_E + gained - self.forgetting * np.maximum(ability_E, 0.0) * np.exp(-kept_E)

    def worth(self, ability_E: Floats) -> Floats:
        """What a unit of signal in each environment adds to held-out success under the base mix, shape (E,).

        d success_e / d A_e is the expected p(1-p) of the environment, so f is worth
        sum over e of base_e E_e[p(1-p)] rate_e factor_e transfer_ef.
        """
        rate_E = np.array([environment.rate for environment in self.environments])
        gained_E = self.base_E * self.expect("signal", ability_E) * rate_E * self.factors(ability_E)
        return gained_E @ self.transfer_EE

    def bonus(self, visits: NDArray[np.int64]) -> Floats:
        """Logits of memorisation after so many visits: memorisation * (1 - 2^-visits)."""
        return self.memorisation * (1.0 - np.exp2(-visits.astype(np.float64)))

    def expect(self, function: str, ability_E: Floats, wander: float = 0.0) -> Floats:
        """Expected "success" or "signal" of prompts never trained on, per environment, shape (E,)."""
        pairs = zip(self.environments, ability_E.tolist(), strict=True)
        return np.array([environment.expect(function, ability, wander) for environment, ability in pairs])


def sigmoid(logit: Floats) -> Floats:
    """1 / (1 + exp(-logit)), without overflow."""
    half: Floats = np.tanh(0.5 * logit)
    return 0.5 * (1.0 + half)
