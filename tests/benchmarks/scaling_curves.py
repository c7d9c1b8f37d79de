"""Real curves: fit the first half, forecast the second.

    python tests/benchmarks/scaling_curves.py --curve curve.csv --percent
    python tests/benchmarks/scaling_curves.py --recipes recipes.json

`--curve` takes a CSV whose first column is compute and whose other columns are one curve each. Data of the same kind
as the one looked at: figures behind plots of papers, as THUDM/TreeRL publishes them. `--recipes` takes what
`tests/benchmarks/recipes.py --json` writes: one curve a recipe with a series a seed.

For every curve: the error of the second half's points (the mean over seeds where there are several), by method; the
share of them in the 90% band widened by their own noise; and A and B with intervals from the whole curve.
"""

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curricula.scaling import evaluation_noise, fit
from curricula.scaling.laws import Floats

METHODS = ("bayes", "grid", "power_law", "log_linear")


@dataclass(frozen=True)
class Real:
    """One curve: compute (n,), score (n,) or (seeds, n), standard errors of the evaluation where they are known."""

    name: str
    compute: Floats
    score: Floats
    noise: Floats | None = None


def from_csv(path: Path, percent: bool) -> list[Real]:
    """A curve for each column but the first."""
    with path.open() as file:
        names, *rows = list(csv.reader(file))
    table = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
    return [
        Real(f"{path.stem} {name}", table[:, 0], table[:, place] / (100 if percent else 1))
        for place, name in enumerate(names[1:], start=1)
    ]


def from_recipes(path: Path) -> list[Real]:
    """A curve for each recipe, with a row a seed."""
    points = json.loads(path.read_text())["points"]
    found: list[Real] = []
    for recipe in dict.fromkeys(point["recipe"] for point in points):
        mine = [point for point in points if point["recipe"] == recipe]
        compute = np.array(sorted({point["compute"] for point in mine}), float)
        seeds = sorted({point["seed"] for point in mine})
        score = np.full((len(seeds), len(compute)), np.nan)
        for point in mine:
            score[seeds.index(point["seed"]), np.searchsorted(compute, point["compute"])] = point["score"]
        noise = evaluation_noise(score, mine[0]["prompts"], mine[0]["samples"])
        found.append(Real(recipe, compute, score, noise))
    return found


def forecast(real: Real) -> dict[str, Any]:
    """Errors and coverage on the second half, by method, and the law of the whole."""
    half = (len(real.compute) + 1) // 2
    early, late = real.compute[:half], real.compute[half:]
    score = np.atleast_2d(real.score)
    truth = np.nanmean(score[:, half:], axis=0)
    figures: dict[str, Any] = {}
    for method in METHODS:
        noise = None if real.noise is None else real.noise[..., :half]
        found = fit(early, real.score[..., :half], noise=noise, method=method)  # pyright: ignore[reportArgumentType]
        mean, low, high = found.predict(late)
        # A point lies about the curve: the band of the curve is widened by the noise of a mean over the seeds.
        around = 1.645 * np.nan_to_num(found.noise) / np.sqrt(len(score))
        wide_low = mean - np.hypot(mean - low, around)
        wide_high = mean + np.hypot(high - mean, around)
        figures[method] = {
            "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
            "last": float(mean[-1] - truth[-1]),
            "coverage": float(np.mean((wide_low <= truth) & (truth <= wide_high))),
            "width": float(np.mean(high - low)),
            "reasons": list(found.reasons),
        }
    whole = fit(real.compute, real.score, noise=real.noise)
    law = {name: [getattr(whole, name), *whole.interval(name)] for name in ("asymptote", "exponent")}
    return {"methods": figures, "law": law, "reasons": whole.reasons}


def main() -> None:
    """Print a block for each curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curve", type=Path)
    parser.add_argument("--percent", action="store_true")
    parser.add_argument("--recipes", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    curves = from_csv(arguments.curve, arguments.percent) if arguments.curve else []
    curves += from_recipes(arguments.recipes) if arguments.recipes else []
    found = {real.name: forecast(real) for real in curves}
    for name, figures in found.items():
        print(name)
        for method, row in figures["methods"].items():
            print(
                f"  {method:10} rmse {row['rmse']:.4f} last {row['last']:+.4f} coverage {row['coverage']:.2f} "
                f"width {row['width']:.4f} {' '.join(row['reasons'])}"
            )
        for parameter, (value, low, high) in figures["law"].items():
            print(f"  {parameter} {value:.3f} [{low:.3f}, {high:.3f}]")
        print(f"  whole curve: {', '.join(figures['reasons']) or 'a law that is told'}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
