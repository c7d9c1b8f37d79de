"""A predictor that is shown noise costs next to nothing against none."""

import numpy as np
import pytest
from scipy.stats import t

from curricula import PromptPool
from curricula.simulation import CurriculumRule, World, named_law, simulate

SEEDS, STEPS, GROUPS, GROUP_SIZE, NOISE_COLUMNS = 20, 150, 32, 8, 8


def informative(seed: int, predictor: str) -> float:
    """Share of informative groups in a run in the skewed world, with features that say nothing."""
    world = World(named_law("skewed"), seed)
    noise = np.random.default_rng(1000 + seed).standard_normal((len(world), NOISE_COLUMNS)).astype(np.float32)
    names = np.array(world.law.names)[world.codes_N]
    pool = PromptPool(names, keys=np.arange(len(world)), features=noise)
    config = {"curriculum": {"predictor": {"type": predictor}}}
    rule = CurriculumRule(pool, GROUP_SIZE, config, seed, tokens=False)
    curve = simulate(world, rule, STEPS, GROUPS, GROUP_SIZE, seed + 1)
    return float(curve.kept_TE.sum() / curve.drawn_TE.sum())


@pytest.mark.slow
def test_a_predictor_of_noise_costs_less_than_two_per_cent_of_yield() -> None:
    cost_S = np.array([1.0 - informative(seed, "features") / informative(seed, "none") for seed in range(SEEDS)])
    half = float(t.ppf(0.975, SEEDS - 1)) * cost_S.std(ddof=1) / np.sqrt(SEEDS)
    print(f"cost of a predictor of noise: {cost_S.mean():.2%} [{cost_S.mean() - half:.2%}, {cost_S.mean() + half:.2%}]")
    assert cost_S.mean() + half < 0.02
