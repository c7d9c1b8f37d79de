"""Shares that follow scaling curves (`shares: {from: scaling}`) in simulated worlds, against uniform and the default.

    python tests/benchmarks/planned.py --seeds 10 --json out.json

Every arm trains for the same steps on the same sample of a world. Reported: held-out success at the end under the base
mix, its difference to the default mix, paired over seeds with 95% limits from Student's t; the gain as in
`simulated.py`, what uniform needed for its final success over what the arm needed for the same; and the part of the
draws that plans decided on.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t
from simulated import GROUP_SIZE, GROUPS, STEPS, budget_of, law_of, weighed

from curricula.simulation import WORLDS, CurriculumRule, Uniform, World, gain, simulate

ARMS: dict[str, dict[str, Any]] = {
    "default": {},
    "planned": {"curriculum": {"shares": "scaling"}},
    "planned, one draw": {"curriculum": {"shares": {"from": "scaling", "method": "thompson"}}},
}


def run(case: tuple[str, int], steps: int) -> dict[str, tuple[float, float, float]]:
    """Final success, gain and planned part of each arm in one sample of a world."""
    world, seed = case
    law, here = law_of(world), World(law_of(world), seed)
    base = simulate(here, Uniform(here, np.random.default_rng(seed)), steps, GROUPS, GROUP_SIZE, seed)
    found = {"uniform": (base.final, 1.0, 0.0)}
    for name, config in ARMS.items():
        here = World(law, seed)
        rule = CurriculumRule(here.pool(), GROUP_SIZE, weighed(here, config), seed)
        parts: list[float] = []

        def look(step: int, rule: CurriculumRule = rule, parts: list[float] = parts) -> None:
            figures, shares = rule.curriculum.metrics(), rule.curriculum.shares()
            planned = [shares[one] for one in shares if f"{one}/plan_share" in figures]
            if step <= steps:
                parts.append(sum(planned))

        curve = simulate(
            here, rule, 2 * steps, GROUPS, GROUP_SIZE, seed + 1, target=base.final, least=steps, on_step=look
        )
        found[name] = float(curve.success_T[steps]), gain(curve, base, budget_of(law)), float(np.mean(parts))
    return found


def limits(values: np.ndarray) -> tuple[float, float]:
    """95% limits of a mean, from Student's t."""
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean() - half), float(values.mean() + half)


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {}
    with ProcessPoolExecutor(given.workers) as pool:
        for world in given.worlds:
            cases = [(world, seed) for seed in range(given.seeds)]
            runs = list(pool.map(partial(run, steps=given.steps), cases))
            results[world] = {}
            for name in runs[0]:
                table = np.array([found[name] for found in runs])
                ahead = table[:, 0] - np.array([found["default"][0] for found in runs])
                low, high = limits(ahead)
                results[world][name] = {
                    "final": float(table[:, 0].mean()),
                    "difference": [float(ahead.mean()), low, high],
                    "gain": float(np.exp(np.log(table[:, 1]).mean())),
                    "planned": float(table[:, 2].mean()),
                }
                part = results[world][name]
                print(
                    f"{world:11} {name:18} final {part['final']:.4f}, {ahead.mean():+.4f} [{low:+.4f}, {high:+.4f}] "
                    f"to the default; gain {part['gain']:.2f}; planned {part['planned']:.0%}",
                    flush=True,
                )
    if given.json is not None:
        given.json.write_text(json.dumps({"steps": given.steps, "seeds": given.seeds, "worlds": results}, indent=1))


if __name__ == "__main__":
    main()
