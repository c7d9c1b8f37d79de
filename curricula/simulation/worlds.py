"""Named worlds, and worlds of the kind with random parameters."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.simulation.law import EnvironmentLaw, Floats, Law, Prerequisite, Regression

SKEWED = Law(
    environments=(
        EnvironmentLaw("easy", 1200, ((0.65, -4.0, 1.0), (0.35, -0.3, 1.4)), 0.02, correlation=0.7, rate=0.2),
        EnvironmentLaw(
            "mixed", 1200, ((0.25, -4.0, 1.0), (0.50, 0.5, 1.4), (0.25, 5.0, 1.0)), 0.1, correlation=0.7, rate=0.2
        ),
        EnvironmentLaw("hard", 1200, ((0.45, 1.0, 1.4), (0.55, 5.0, 1.2)), 0.25, correlation=0.7, rate=0.2),
    ),
    transfer=0.5,
    drift=0.005,
    memorisation=1.0,
)
"""Few prompts at the frontier, among many that are mastered, hopeless for now, or unlearnable."""

BALANCED = Law(
    environments=(
        EnvironmentLaw("sums", 1000, ((1.0, -0.3, 1.1),), correlation=0.5, rate=0.06),
        EnvironmentLaw("words", 1000, ((1.0, 0.0, 1.1),), correlation=0.5, rate=0.06),
        EnvironmentLaw("logic", 1000, ((1.0, 0.3, 1.1),), correlation=0.5, rate=0.06),
    ),
    transfer=0.2,
    drift=0.005,
    memorisation=1.0,
)
"""Most prompts are at the frontier: there is little to gain."""

CHAINS = Law(
    environments=(
        EnvironmentLaw("count", 800, ((1.0, -0.5, 1.2),), correlation=0.5, rate=0.6),
        EnvironmentLaw("add", 800, ((1.0, 1.5, 1.2),), correlation=0.5, rate=0.6),
        EnvironmentLaw("multiply", 800, ((1.0, 3.0, 1.2),), 0.05, correlation=0.5, rate=0.6),
        EnvironmentLaw("solve", 800, ((1.0, 4.0, 1.2),), 0.1, correlation=0.5, rate=0.6),
        EnvironmentLaw("prove", 800, ((1.0, 5.0, 1.5),), 0.2, correlation=0.5, rate=0.6),
    ),
    onward=0.5,
    prerequisites=tuple(Prerequisite(code, code - 1, threshold=0.8) for code in range(1, 5)),
    drift=0.005,
    memorisation=1.0,
)
"""Each environment can be learned only once the one before it is."""

REGRESSION = Law(
    environments=(
        EnvironmentLaw("easy", 1200, ((0.75, -2.5, 1.0), (0.25, 0.5, 1.4)), 0.02, correlation=0.6, rate=0.3),
        EnvironmentLaw("mixed", 1200, ((0.30, -3.5, 1.0), (0.70, 1.0, 1.5)), 0.1, correlation=0.6, rate=0.3),
        EnvironmentLaw("hard", 1200, ((0.40, 1.0, 1.4), (0.60, 5.0, 1.2)), 0.3, correlation=0.6, rate=0.3),
    ),
    transfer=0.5,
    forgetting=0.002,
    regressions=(Regression(0, 15, 2.0),),
    drift=0.01,
    prompt_drift=0.01,
    memorisation=1.0,
)
"""An environment that was nearly mastered suddenly fails; abilities and prompts drift more than elsewhere."""

STEEP = Law(
    environments=(
        EnvironmentLaw("near", 1500, ((1.0, 1.0, 2.5),), 0.05, correlation=0.6, rate=0.6),
        EnvironmentLaw("far", 1500, ((1.0, 4.0, 2.5),), 0.1, correlation=0.6, rate=0.6),
    ),
    transfer=0.7,
    drift=0.02,
    memorisation=1.0,
)
"""Pass rates move fast: what was learned of a prompt is old after a few steps."""

UNEVEN = Law(
    environments=(
        EnvironmentLaw("arithmetic", 2400, ((0.75, -3.5, 1.0), (0.25, 0.0, 1.2)), 0.02, 0.5, 120.0, 0.3, 0.1, 1.0),
        EnvironmentLaw("chat", 1200, ((1.0, -1.0, 1.5),), 0.0, 0.3, 240.0, 0.3, 0.1, 1.0),
        EnvironmentLaw("code", 600, ((0.6, 0.5, 1.2), (0.4, 4.5, 1.0)), 0.15, 0.6, 700.0, 0.3, 0.5, 1.0),
        EnvironmentLaw("proofs", 200, ((0.4, 0.0, 1.2), (0.6, 5.0, 1.0)), 0.3, 0.5, 1200.0, 0.3, 0.5, 1.0),
    ),
    transfer=0.1,
    drift=0.005,
    memorisation=1.0,
)
"""Environments of 200 to 2,400 prompts, whose rollouts cost 120 to 1,200 tokens, and weigh alike."""

WORLDS: Mapping[str, Law] = {
    "skewed": SKEWED,
    "balanced": BALANCED,
    "chains": CHAINS,
    "regression": REGRESSION,
    "steep": STEEP,
    "uneven": UNEVEN,
}


def named_law(name: str) -> Law:
    """The law of a named world.

    Raises:
        CurriculaValueError: No such world.
    """
    try:
        return WORLDS[name]
    except KeyError:
        raise CurriculaValueError(f"expected a world of {', '.join(WORLDS)}; got {name!r}") from None


def random_law(rng: np.random.Generator, steps: int = 150) -> Law:
    """A world with parameters drawn at random: 1 to 6 environments, 2,000 to 6,000 prompts in all.

    Rates are set so that under the base mix the mean environment gains 0.6 to 2.5 logits in so many steps, as far as
    the signal at the start goes.
    """
    count = int(rng.integers(1, 7))
    sizes = rng.dirichlet(np.full(count, 2.0)) * rng.uniform(2000, 6000)
    skew, correlation = rng.uniform(0.0, 0.8), rng.uniform(0.0, 0.8)
    dearest = rng.choice([1.0, 1.0, 10.0])
    environments: list[EnvironmentLaw] = []
    for code in range(count):
        frontier, *ends = rng.dirichlet([4.0 * (1 - skew), 2.0 * skew + 0.1, 2.0 * skew + 0.1]).tolist()
        weights = [0.1 + 0.9 * frontier, *(0.9 * end for end in ends)]
        means = (float(rng.normal(0.3, 0.8)), float(rng.uniform(-6, -3)), float(rng.uniform(3, 6)))
        difficulty = tuple(
            (weight, mean, float(rng.uniform(0.7, 1.8))) for weight, mean in zip(weights, means, strict=True)
        )
        environments.append(
            EnvironmentLaw(
                f"e{code}",
                max(100, int(sizes[code])),
                difficulty,
                unlearnable=float(rng.uniform(0, 0.3)),
                correlation=float(correlation),
                tokens=100.0 * float(dearest ** rng.uniform(0.0, 1.0)),
                tokens_spread=float(rng.uniform(0.0, 0.5)) if dearest > 1.0 else 0.0,
            )
        )
    chained = count > 1 and rng.random() < 0.25
    law = Law(
        tuple(environments),
        transfer=float(rng.uniform(0, 0.4)),
        onward=0.4 if chained else 0.0,
        forgetting=float(rng.choice([0.0, 0.003])),
        prerequisites=tuple(Prerequisite(code, code - 1, 0.5) for code in range(1, count)) if chained else (),
        regressions=(Regression(int(rng.integers(count)), steps // 5, 2.0),) if rng.random() < 0.2 else (),
        drift=float(rng.uniform(0, 0.02)),
        prompt_drift=float(rng.choice([0.0, 0.01])),
        memorisation=float(rng.choice([0.0, 0.5])),
    )
    signal_E: Floats = law.transfer_EE @ (law.base_E * law.expect("signal", np.zeros(count)))
    rate = rng.uniform(0.6, 2.5) / (steps * float(law.base_E @ signal_E))
    return replace(law, environments=tuple(replace(environment, rate=float(rate)) for environment in environments))
