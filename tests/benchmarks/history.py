"""Selection rules replayed on the history of a real GRPO run, and beliefs asked to forecast it.

python tests/benchmarks/history.py PATH.parquet [--visits 46] [--budget 0.1 0.25 0.5] [--seeds 20] [--json OUT]
    [--mix MIX.yaml ...] [--rules NAME ...]

PATH has columns prompt, visit (0, 1, ...) and pass_rate in eighths: any GRPO run that logs the mean reward of every
group makes one. Published: acc_step_500.json of https://github.com/ypwang61/One-Shot-RLVR.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from forecasts import forecast_scores
from intervals import Interval, Resamples, interval
from replay import Floats, Replay, build, read_history, replay
from rules import PEERS, Clairvoyant, CurriculumRule, Greedy, Hindsight, Rule, Uniform

from curricula.config import load_mix

DECAYS = (0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
RESAMPLES = 1000
GOALS = {0.1: (0.86, 0.90), 0.25: (0.89, 0.95)}
BRIER_GOAL = 0.122


Entrants = dict[str, tuple[type[Rule], dict[str, Any]]]
"""Rules by name: a class and what it is made with."""


def entrants(mixes: list[Path], names: list[str] | None) -> Entrants:
    """The peers, the curriculum with every default and under each mix, and the references; or those named.

    Uniform, greedy and the default curriculum always take part, as others are compared with them.
    """
    kinds = (*PEERS, CurriculumRule, Hindsight, Clairvoyant)
    found: Entrants = {kind.name: (kind, {}) for kind in kinds}
    always = {Uniform.name, Greedy.name, CurriculumRule.name}
    kept = found if names is None else {name: found[name] for name in found if name in always.union(names)}
    return kept | {mix.stem: (CurriculumRule, {"config": load_mix(mix)}) for mix in mixes}


def runs(kind: type[Rule], rates_NV: Floats, budget: float, seeds: int, **values: Any) -> list[Replay]:
    """One replay for each seed."""
    return [replay(build(kind, len(rates_NV), seed, **values), rates_NV, budget) for seed in range(seeds)]


def tuned_decay(rates_NV: Floats, budget: float, seeds: int) -> float:
    """The decay at which the greedy rule's yield is highest, on this very history: an advantage for it."""
    means = [
        np.mean([run.informative_share for run in runs(Greedy, rates_NV, budget, min(seeds, 5), decay=decay)])
        for decay in DECAYS
    ]
    return DECAYS[int(np.argmax(means))]


def compare(rates_NV: Floats, budget: float, seeds: int, rules: Entrants) -> dict[str, Any]:
    """Every rule at one budget: yield, coverage over time, and paired differences from uniform and from greedy."""
    decay = tuned_decay(rates_NV, budget, seeds)
    found: dict[str, list[Replay]] = {}
    for name, (kind, values) in rules.items():
        tuned = {"decay": decay} if kind is Greedy else {}
        found[name] = runs(kind, rates_NV, budget, seeds, **values, **tuned)
    resamples = Resamples(len(rates_NV), seeds, RESAMPLES, np.random.default_rng(0))
    ratios = {
        name: resamples.ratios(np.stack([r.informative_N for r in made]), np.stack([r.drawn_N for r in made]))
        for name, made in found.items()
    }
    rows: dict[str, Any] = {}
    for name, (value, resampled) in ratios.items():
        rows[name] = {"yield": interval(value, resampled)}
        for other in ("uniform", "greedy"):
            rows[name][f"minus_{other}"] = interval(value - ratios[other][0], resampled - ratios[other][1])
        coverage = np.mean([run.coverage_V for run in found[name]], axis=0)
        rows[name]["coverage"] = [round(float(share), 4) for share in coverage]
    return {"budget": budget, "greedy_decay": decay, "rules": rows}


def verdict(result: dict[str, Any]) -> str:
    """The goal at a budget beside what the curriculum reached."""
    budget, rows = result["budget"], result["rules"]
    own = rows[CurriculumRule.name]
    value, coverage = own["yield"].value, own["coverage"][-1]
    if budget in GOALS:
        least, covered = GOALS[budget]
        reached = value >= least and coverage >= covered
        text = f"yield >= {least} at coverage >= {covered}: {value:.3f} at {coverage:.3f}"
    else:
        greedy = rows[Greedy.name]["yield"].value
        reached, text = value > greedy, f"above greedy ({greedy:.3f}): {value:.3f}"
    return f"goal {'reached' if reached else 'MISSED'}: {text}"


def show(result: dict[str, Any]) -> None:
    """Print one budget's table."""
    print(f"\n{result['budget']:.0%} of the pool per pass (greedy's decay tuned to {result['greedy_decay']})")
    print(f"{'rule':<16}{'yield [95%]':<24}{'- uniform':<27}{'- greedy':<27}coverage after 1/4, 1/2, all")
    for name, row in result["rules"].items():
        curve = row["coverage"]
        at = [curve[max(0, round(share * len(curve)) - 1)] for share in (0.25, 0.5, 1.0)]
        covered = "  ".join(f"{share:.2f}" for share in at)
        print(
            f"{name:<16}{row['yield']!s:<24}{row['minus_uniform'].signed():<27}"
            f"{row['minus_greedy'].signed():<27}{covered}"
        )
    print(verdict(result))


def plain(value: Any) -> Any:
    """The value with intervals as mappings, for JSON."""
    if isinstance(value, Interval):
        return value._asdict()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    """Run, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="Parquet with columns prompt, visit, pass_rate")
    parser.add_argument("--visits", type=int, default=46)
    parser.add_argument("--budget", type=float, nargs="+", default=[0.1, 0.25, 0.5])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--mix", type=Path, nargs="+", default=[], help="mixes to run beside the default")
    parser.add_argument("--rules", nargs="+", help="names; every rule where left out")
    given = parser.parse_args(arguments)
    rates_NV = read_history(given.path, given.visits)
    mixed = float(((rates_NV > 0.0) & (rates_NV < 1.0)).mean())
    print(f"{len(rates_NV)} prompts, {given.visits} visits, {mixed:.3f} of the groups informative, {given.seeds} seeds")
    rules = entrants(given.mix, given.rules)
    budgets: list[dict[str, Any]] = []
    for budget in given.budget:
        budgets.append(compare(rates_NV, budget, given.seeds, rules))
        show(budgets[-1])
    scores = forecast_scores(rates_NV, {name: values["config"] for name, (_, values) in rules.items() if values})
    print("\none step ahead, every group seen: MAE of the pass rate, Brier and AUC of `informative`")
    for name, score in scores.items():
        print(f"{name:<20}{score['mae']:.3f}  {score['brier']:.4f}  {score['auc']:.3f}")
    own, kalman = scores[CurriculumRule.name]["brier"], scores["arcus"]["brier"]
    reached = own <= BRIER_GOAL and own < kalman
    print(f"goal {'reached' if reached else 'MISSED'}: Brier <= {BRIER_GOAL}, below {kalman:.4f}: {own:.4f}")
    if given.json is not None:
        record = {"prompts": len(rates_NV), "visits": given.visits, "seeds": given.seeds, "informative": mixed}
        given.json.write_text(json.dumps(plain({**record, "budgets": budgets, "forecasts": scores}), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
