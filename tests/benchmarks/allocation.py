"""What splitting a budget by fits gains over simple splits, when curves are only known from pilot points.

    python tests/benchmarks/allocation.py --problems 200 --json out.json

A problem has 2 to 8 environments of known sigmoids, each measured at 10 to 30 places up to its own part of a horizon,
with noise. A budget is split by `allocate` from the fits of those points, by its fits' Thompson draws, evenly, in
proportion to what was spent, by the slope at the end of the points (a straight line in log compute through the last
half of them), and by `allocate` from the curves themselves. What each split gains is read off the curves, in parts of
what the last one gains. Differences are paired, with 95% limits by bootstrap over problems.
"""

import argparse
import json
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from curricula.allocation import allocate
from curricula.scaling import ScalingFit, fit
from curricula.scaling.laws import Floats

SPLITS = ("expected", "thompson", "equal", "proportional", "slope", "known")
BASELINES = ("equal", "proportional", "slope")


def solved(number: int) -> list[float]:
    """What each of `SPLITS` gains on the true curves of a problem."""
    rng = np.random.default_rng([8, number])
    truth: dict[str, ScalingFit] = {}
    fits: dict[str, ScalingFit] = {}
    slopes: list[float] = []
    for code in range(int(rng.integers(2, 9))):
        midpoint = float(np.exp(rng.uniform(np.log(300), np.log(20_000))))
        r0 = rng.uniform(0, 0.3)
        true = ScalingFit.of_parameters(rng.uniform(r0 + 0.1, 0.95), rng.uniform(0.8, 3), midpoint, r0)
        end = np.exp(rng.uniform(np.log(1000), np.log(8000)))
        places = np.linspace(0.05, 1, int(rng.integers(10, 31))) * end
        noise = np.exp(rng.uniform(np.log(0.005), np.log(0.03)))
        score = np.clip(true.predict(places)[0] + noise * rng.normal(size=len(places)), 0, 1)
        truth[f"e{code}"], fits[f"e{code}"] = true, fit(places, score)
        half = len(places) // 2
        slopes.append(max(float(np.polyfit(np.log(places[half:]), score[half:], 1)[0]) / end, 0.0))
    spent = {name: float(given.observed.compute.max()) for name, given in fits.items()}
    budget = float(rng.choice([0.5, 1, 2, 4])) * sum(spent.values())

    def gained(shares: Floats) -> float:
        parts = zip(truth.items(), shares, strict=True)
        return sum(
            float(true.predict(spent[name] + budget * part)[0] - true.predict(spent[name])[0])
            for (name, true), part in parts
        )

    before = np.array(list(spent.values()))
    steep = np.array(slopes) + 1e-12
    shares = {
        "expected": allocate(fits, budget).shares,
        "thompson": allocate(fits, budget, method="thompson", seed=number).shares,
        "known": allocate(truth, budget, spent=spent).shares,
    }
    by_name = {name: np.array(list(split.values())) for name, split in shares.items()} | {
        "equal": np.full(len(before), 1 / len(before)),
        "proportional": before / before.sum(),
        "slope": steep / steep.sum(),
    }
    return [gained(by_name[name]) for name in SPLITS]


def run(problems: int, workers: int = 1) -> dict[str, Any]:
    """Mean gains in parts of what the curves themselves would have given, and paired differences."""
    if workers > 1:
        with get_context("spawn").Pool(workers) as pool:
            table = np.array(pool.map(solved, range(problems), chunksize=4))
    else:
        table = np.array([solved(number) for number in range(problems)])
    parts = table / table[:, [SPLITS.index("known")]]
    rows = np.random.default_rng(0).integers(problems, size=(2000, problems))

    def limits(values: Floats) -> list[float]:
        return [float(q) for q in np.quantile(values[rows].mean(axis=1), [0.025, 0.975])]

    best = parts[:, SPLITS.index("expected")]
    against: dict[str, Any] = {}
    for name in BASELINES:
        ahead = best - parts[:, SPLITS.index(name)]
        against[name] = {
            "difference": float(ahead.mean()),
            "limits": limits(ahead),
            "behind": float((ahead < -0.001).mean()),
            "ratio": float(table[:, 0].sum() / table[:, SPLITS.index(name)].sum()),
        }
    return {
        "problems": problems,
        "gain": {
            name: {"mean": float(row.mean()), "limits": limits(row)} for name, row in zip(SPLITS, parts.T, strict=True)
        },
        "against": against,
    }


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = run(given.problems, given.workers)
    for name, part in found["gain"].items():
        print(f"{name:13} {part['mean']:.3f} [{part['limits'][0]:.3f}, {part['limits'][1]:.3f}] of what is possible")
    for name, part in found["against"].items():
        low, high = part["limits"]
        print(
            f"expected - {name:13} {part['difference']:+.3f} [{low:+.3f}, {high:+.3f}], {part['ratio']:.2f} in all"
            f", behind in {part['behind']:.0%} of problems"
        )
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
