"""Rollouts that rules need in simulated worlds, against uniform, with an oracle and an informed filter beside them.

    python tests/benchmarks/simulated.py --seeds 20 --json out.json

The gain of a rule is what uniform needed for its final held-out success over what the rule needed for the same: in
rollouts, in tokens where costs differ. Gains are geometric means over paired seeds (same prompts, same drift) with
95% limits from Student's t on their logarithms; a share of the informed filter's gain is (g - 1) / (g_informed - 1),
with limits from a bootstrap over seeds. The references with "worth" are told what signal in an environment adds to
held-out success as well: they show what is to be gained between environments, which p(1-p) does not see.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from intervals import Interval, interval
from rules import PEERS
from rules.environments import environment_rules

from curricula.config import load_mix
from curricula.simulation import (
    WORLDS,
    CurriculumRule,
    InformedFilter,
    Law,
    Oracle,
    Rule,
    Uniform,
    World,
    gain,
    random_law,
    simulate,
)
from curricula.simulation.run import Budget

STEPS, GROUPS, GROUP_SIZE = 150, 32, 8
BASE = "shuffled"
"""What gains are measured against: shuffled passes, as a trainer makes them."""

Maker = Callable[[World, Budget, int], Rule]


def makers(mixes: Sequence[str]) -> dict[str, Maker]:
    """Every rule by its name; `mixes` are files of further curricula."""

    def peer(kind: Any) -> Maker:
        return lambda world, budget, seed: kind(world.pool(texts=False), GROUP_SIZE, np.random.default_rng(seed))

    def curriculum(config: Mapping[str, Any]) -> Maker:
        return lambda world, budget, seed: CurriculumRule(
            world.pool(), GROUP_SIZE, weighed(world, config), seed, tokens=budget == "tokens"
        )

    rules: dict[str, Maker] = {
        "oracle": lambda world, budget, seed: Oracle(world, budget == "tokens"),
        "informed": lambda world, budget, seed: InformedFilter(world, budget == "tokens"),
        "oracle_worth": lambda world, budget, seed: Oracle(world, budget == "tokens", worth=True),
        "informed_worth": lambda world, budget, seed: InformedFilter(world, budget == "tokens", worth=True),
        "curriculum": curriculum({}),
    }
    rules |= {Path(mix).stem: curriculum(load_mix(mix).model_dump(exclude_unset=True)) for mix in mixes}
    return rules | {kind.name: peer(kind) for kind in (*PEERS, *environment_rules())}


def weighed(world: World, config: Mapping[str, Any]) -> dict[str, Any]:
    """The mix with the base weights of the world, where those are not the sizes."""
    weights = {environment.name: environment.weight for environment in world.law.environments}
    given = dict(config.get("environments", {}))
    if any(weights.values()):
        given = {name: {"weight": weight} | given.get(name, {}) for name, weight in weights.items()}
    return {**config, "environments": given}


def law_of(world: str) -> Law:
    """A named world, or random-N."""
    if world.startswith("random-"):
        return random_law(np.random.default_rng(int(world.removeprefix("random-"))), STEPS)
    return WORLDS[world]


def budget_of(law: Law) -> Budget:
    """Tokens where costs differ."""
    return "tokens" if law.costs_differ else "rollouts"


def run(world: str, seed: int, names: Sequence[str], mixes: Sequence[str], steps: int) -> dict[str, dict[str, float]]:
    """Gain, shares and seconds of each rule on one sample of a world."""
    law = law_of(world)
    budget = budget_of(law)
    base_world = World(law, seed)
    base = simulate(base_world, Uniform(base_world, np.random.default_rng(seed)), steps, GROUPS, GROUP_SIZE, seed)
    rules = makers(mixes)
    results: dict[str, dict[str, float]] = {
        BASE: {"gain": 1.0, "kept": float(base.kept_TE.sum() / base.drawn_TE.sum()), "visited": float(base.visited)}
    }
    for name in names:
        start = time.perf_counter()
        here = World(law, seed)
        rule = rules[name](here, budget, seed)
        refill = bool(getattr(rule, "refill", False))
        curve = simulate(here, rule, 2 * steps, GROUPS, GROUP_SIZE, seed + 1, target=base.final, refill=refill)
        results[name] = {
            "gain": gain(curve, base, budget),
            "kept": float(curve.kept_TE.sum() / curve.drawn_TE.sum()),
            "visited": float(curve.visited),
            "seconds": time.perf_counter() - start,
        }
    return results


def geometric(gains_S: Sequence[float]) -> Interval:
    """Geometric mean with 95% limits from Student's t on the logarithms."""
    from scipy.stats import t

    logs = np.log(gains_S)
    mean, count = float(logs.mean()), len(logs)
    half = float(t.ppf(0.975, count - 1) * logs.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    return Interval(*(float(np.exp(value)) for value in (mean, mean - half, mean + half)))


def share(gains_S: Sequence[float], informed_S: Sequence[float], rng: np.random.Generator) -> Interval:
    """Share of the informed filter's gain, with limits from a paired bootstrap over seeds."""
    logs, informed = np.log(gains_S), np.log(informed_S)
    picks = rng.integers(len(logs), size=(2000, len(logs)))

    def ratio(a: Any, b: Any) -> Any:
        return np.expm1(a) / np.maximum(np.expm1(b), 1e-9)

    value = float(ratio(logs.mean(), informed.mean()))
    return interval(value, ratio(logs[picks].mean(axis=1), informed[picks].mean(axis=1)))


def summarise(results: Mapping[str, Sequence[dict[str, dict[str, float]]]]) -> dict[str, Any]:
    """Per world and rule: gain and share of the informed filter's, with limits, and means of the rest."""
    rng = np.random.default_rng(0)
    report: dict[str, Any] = {}
    for world, runs in results.items():
        informed = [run["informed"]["gain"] for run in runs] if "informed" in runs[0] else None
        rules: dict[str, Any] = {}
        for name in runs[0]:
            gains = [run[name]["gain"] for run in runs]
            entry: dict[str, Any] = {"gain": geometric(gains)._asdict(), "gains": gains}
            if informed is not None and name not in (BASE, "informed", "oracle", "oracle_worth"):
                entry["share"] = share(gains, informed, rng)._asdict()
            for figure in ("kept", "visited", "seconds"):
                entry[figure] = float(np.mean([run[name].get(figure, 0.0) for run in runs]))
            rules[name] = entry
        report[world] = {"budget": budget_of(law_of(world)), "rules": rules}
    return report


def table(report: Mapping[str, Any]) -> str:
    """Rules by worlds: gain [limits], then the share of the informed filter's gain."""
    worlds = list(report)
    names = list(next(iter(report.values()))["rules"])
    lines: list[str] = []
    for figure, title in (("gain", "gain over shuffled passes"), ("share", "share of the informed filter's gain")):
        lines.append(f"{title:<20}"[:40])
        lines.append(" " * 14 + "".join(f"{world:>20}" for world in worlds))
        for name in names:
            cells: list[str] = []
            for world in worlds:
                value = report[world]["rules"][name].get(figure)
                cells.append(f"{value['value']:.2f} [{value['low']:.2f}, {value['high']:.2f}]" if value else "")
            if any(cells):
                lines.append(f"{name:<14}" + "".join(f"{cell:>20}" for cell in cells))
        lines.append("")
    budgets = ", ".join(f"{world}: {report[world]['budget']}" for world in worlds)
    return "\n".join([*lines, f"budget: {budgets}"])


def goals(report: Mapping[str, Any], rule: str = "curriculum") -> list[str]:
    """What is asked of the default curriculum: .95 of the informed filter's gain where that is above 5%, no loss."""
    lines: list[str] = []
    for world, entry in report.items():
        rules = entry["rules"]
        if rule not in rules or "informed" not in rules:
            continue
        gained, part = rules[rule]["gain"], rules[rule]["share"]["value"]
        above = rules["informed"]["gain"]["value"] > 1.05
        met = gained["low"] >= 0.98 and (part >= 0.95 or not above)
        lines.append(f"{world}: {part:.2f} of the informed filter's gain, {'met' if met else 'not met'}")
    return lines


def benchmark(
    worlds: Sequence[str], names: Sequence[str], seeds: Sequence[int], mixes: Sequence[str], steps: int, workers: int
) -> dict[str, Any]:
    """Run everything; one job is one world and one seed."""
    jobs = [(world, seed) for world in worlds for seed in seeds]
    columns = ([world for world, _ in jobs], [seed for _, seed in jobs])
    fixed = ([names] * len(jobs), [mixes] * len(jobs), [steps] * len(jobs))
    if workers > 1:
        with ProcessPoolExecutor(workers) as pool:
            runs = list(pool.map(run, *columns, *fixed))
    else:
        runs = list(map(run, *columns, *fixed))
    return summarise({w: [r for (x, _), r in zip(jobs, runs, strict=True) if x == w] for w in worlds})


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="paired seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), help="names, or random-0, random-1, ...")
    parser.add_argument("--rules", nargs="+", help="names; every rule where left out")
    parser.add_argument("--mix", nargs="*", default=[], help="YAML files of further curricula, named by their stem")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names = arguments.rules or list(makers(arguments.mix))
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    start = time.perf_counter()
    report = benchmark(arguments.worlds, names, seeds, arguments.mix, arguments.steps, arguments.workers)
    print(table(report))
    print(
        f"{arguments.seeds} seeds, {arguments.steps} steps of {GROUPS} x {GROUP_SIZE}: "
        f"{time.perf_counter() - start:.0f} s"
    )
    print(
        "\n".join(["goal (share >= 0.95 where the filter gains 5%, lower limit of the gain >= 0.98)", *goals(report)])
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
