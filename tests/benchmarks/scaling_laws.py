"""How well the fits recover curves that are known: error of the extrapolation, coverage and width of the band.

    python tests/benchmarks/scaling_laws.py --curves 1000 --json out.json

A cell draws its curves from a law of its own, none of them the prior of `curricula.scaling.fit`: uniform asymptotes,
exponents and starts over ranges of the cell, or curves that are no sigmoid at all. Points lie between 3% and `observed`
(25-60%) of a horizon; the score is asked at five places from there to the horizon. Every method gets the same points.

Reported for each method and cell: bias and root mean square of the error, the share of true values inside of the 90%
band, the band's width, and the interval score (Gneiting and Raftery, JASA 2007, 102, 359-378: the width and 2/.1 times
what lies outside, so that a wide band does not win). Ratios to the paper's grid are paired, with 95% limits by
bootstrap over curves.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from curricula.scaling import fit
from curricula.scaling.laws import Floats, sigmoid

HORIZON = 16_000.0
FIRST = 0.03
METHODS = ("bayes", "grid", "power_law", "log_linear")
ALPHA = 0.1


@dataclass(frozen=True)
class Curve:
    """One curve and how it is measured."""

    asymptote: float
    exponent: float
    midpoint: float
    r0: float
    noise: float
    points: int
    observed: float
    correlation: float = 0.0
    logarithmic: bool = False
    seeds: int = 1
    transient: float = 0.0
    shape: str = "sigmoid"
    known: bool = False
    start_known: bool = False

    def truth(self, compute: Floats) -> Floats:
        """Scores without noise."""
        relative = np.asarray(compute) / HORIZON
        gain = self.asymptote - self.r0
        if self.shape == "exponential":
            return self.r0 + gain * (1 - np.exp(-np.log(2) * (relative / self.midpoint) ** self.exponent))
        if self.shape == "gompertz":
            log = np.log(relative / self.midpoint)
            return self.r0 + gain * np.exp(-np.log(2) * np.exp(-self.exponent * log))
        if self.shape == "two_waves":
            first = sigmoid(relative, 0.5, 2 * self.exponent, 0.4 * self.midpoint, 0)
            return self.r0 + gain * (first + sigmoid(relative, 0.5, self.exponent, 1.5 * self.midpoint, 0))
        return sigmoid(relative, self.asymptote, self.exponent, self.midpoint, self.r0)


Law = Callable[[np.random.Generator], Curve]


def _paper(rng: np.random.Generator) -> Curve:
    return Curve(
        asymptote=rng.uniform(0.5, 0.75),
        exponent=rng.uniform(1, 2.2),
        midpoint=float(np.exp(rng.uniform(np.log(0.1), np.log(0.6)))),
        r0=rng.uniform(0.1, 0.35),
        noise=0.006,
        points=25,
        observed=rng.uniform(0.25, 0.6),
    )


def _varied(**ranges: Any) -> Law:
    """The paper's law with other values; a pair is a uniform range."""

    def law(rng: np.random.Generator) -> Curve:
        curve = _paper(rng)
        drawn = {name: rng.uniform(*value) if isinstance(value, tuple) else value for name, value in ranges.items()}
        if "midpoint" in drawn:
            low, high = ranges["midpoint"]
            drawn["midpoint"] = float(
                np.exp(np.log(low) + (drawn["midpoint"] - low) / (high - low) * np.log(high / low))
            )
        return replace(curve, **drawn)

    return law


CELLS: dict[str, Law] = {
    "paper": _paper,
    "a quarter seen": _varied(observed=0.25),
    "steep": _varied(exponent=(2.0, 4.0)),
    "shallow": _varied(exponent=(0.6, 1.2)),
    "early": _varied(midpoint=(0.02, 0.1)),
    "late": _varied(midpoint=(0.5, 1.5)),
    "low": _varied(asymptote=(0.15, 0.4), r0=(0.0, 0.1)),
    "high": _varied(asymptote=(0.8, 0.99), r0=(0.2, 0.5)),
    "noisy": _varied(noise=0.02),
    "8 points": _varied(points=8),
    "logarithmic": _varied(logarithmic=True),
    "correlated": _varied(noise=0.012, correlation=0.7),
    "3 seeds": _varied(noise=0.02, seeds=3),
    "noise known": _varied(noise=0.01, known=True),
    "start known": _varied(start_known=True),
    "transient": _varied(transient=(-0.15, 0.15)),
    "exponential": _varied(shape="exponential", exponent=(0.8, 1.5)),
    "gompertz": _varied(shape="gompertz"),
    "two waves": _varied(shape="two_waves"),
    "anything": _varied(
        asymptote=(0.3, 0.95), r0=(0.0, 0.3), exponent=(0.6, 3.5), midpoint=(0.03, 2.0), noise=(0.003, 0.03)
    ),
}


def measure(curve: Curve, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Compute (n,) and scores (n,) or (seeds, n)."""
    spaced = np.geomspace if curve.logarithmic else np.linspace
    compute = spaced(FIRST * HORIZON, curve.observed * HORIZON, curve.points)
    deviations = rng.normal(size=(curve.seeds, curve.points))
    for index in range(1, curve.points):
        fresh = np.sqrt(1 - curve.correlation**2) * deviations[:, index]
        deviations[:, index] = curve.correlation * deviations[:, index - 1] + fresh
    early = np.where(np.arange(curve.points) < curve.points // 8, curve.transient, 0.0)
    score = np.clip(curve.truth(compute) + early + curve.noise * deviations, 0, 1)
    return compute, score if curve.seeds > 1 else score[0]


def one(job: tuple[str, int]) -> list[list[float]]:
    """Squared error, error, coverage, width and interval score of each method, means over the five places."""
    cell, index = job
    rng = np.random.default_rng([list(CELLS).index(cell), index])
    curve = CELLS[cell](rng)
    compute, score = measure(curve, rng)
    places = np.linspace(curve.observed * HORIZON, HORIZON, 6)[1:]
    truth = curve.truth(places)
    noise = curve.noise if curve.known else None
    r0 = curve.r0 if curve.start_known else None
    rows: list[list[float]] = []
    for method in METHODS:
        mean, low, high = fit(compute, score, noise=noise, r0=r0, method=method).predict(places)  # pyright: ignore[reportArgumentType]
        outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
        inside = (low <= truth) & (truth <= high)
        values = ((mean - truth) ** 2, mean - truth, inside, high - low, high - low + 2 / ALPHA * outside)
        rows.append([float(np.mean(value)) for value in values])
    return rows


def run(cells: list[str], curves: int, workers: int) -> dict[str, Any]:
    """All cells: {cell: {method: figures}}, and the paired ratio of errors to the grid's."""
    found: dict[str, Any] = {}
    with get_context("fork").Pool(workers) as pool:
        for cell in cells:
            rows = np.array(pool.map(one, [(cell, index) for index in range(curves)], chunksize=10))
            found[cell] = {method: _figures(rows[:, place], rows[:, 1]) for place, method in enumerate(METHODS)}
            print(cell, *(_line(method, found[cell][method]) for method in METHODS), sep="\n  ", flush=True)
    return found


def _figures(rows: Floats, grid: Floats) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    picked = rng.integers(0, len(rows), (1000, len(rows)))
    ratios = np.sqrt(rows[picked, 0].mean(1) / grid[picked, 0].mean(1))
    return {
        "rmse": float(np.sqrt(rows[:, 0].mean())),
        "bias": float(rows[:, 1].mean()),
        "coverage": float(rows[:, 2].mean()),
        "width": float(rows[:, 3].mean()),
        "interval_score": float(rows[:, 4].mean()),
        "ratio": float(np.sqrt(rows[:, 0].mean() / grid[:, 0].mean())),
        "ratio_limits": [float(value) for value in np.quantile(ratios, (0.025, 0.975))],
    }


def _line(method: str, figures: dict[str, Any]) -> str:
    low, high = figures["ratio_limits"]
    return (
        f"{method:10} rmse {figures['rmse']:.4f} ({figures['ratio']:.2f} [{low:.2f}, {high:.2f}] of the grid's) "
        f"bias {figures['bias']:+.4f} coverage {figures['coverage']:.3f} width {figures['width']:.4f} "
        f"interval score {figures['interval_score']:.4f}"
    )


def main() -> None:
    """Run cells and write figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=int, default=1000)
    parser.add_argument("--cells", nargs="*", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = run(arguments.cells, arguments.curves, arguments.workers)
    for method in METHODS:
        means = {
            key: np.mean([cell[method][key] for cell in found.values()])
            for key in ("rmse", "coverage", "interval_score")
        }
        print(method, *(f"{key} {value:.4f}" for key, value in means.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
