"""Whether P(higher ceiling) is reliable: of pairs given .7, seven in ten have the higher asymptote.

    python tests/benchmarks/scaling_pairs.py --pairs 500 --json out.json

A pair is two sigmoids whose asymptotes differ by up to .1, either way, measured at the same places up to a part of a
horizon. Exponents, midpoints and starts are drawn for each by itself and uniformly, not by the prior of the fit.
In "runs differ" each run's asymptote lies about its recipe's, and it is asked which recipe's is higher.
Reported for each regime and over all: of the pairs in each tenth of P, the mean P and how often it was so, with 95%
limits (Wilson); the expected calibration error, beside the one that a method without any error has at so many pairs;
the Brier score, beside that of the paper's rule taken as certain; and how often the rule is right.
"""

import argparse
import json
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from curricula.scaling import compare, fit
from curricula.scaling.laws import Floats, sigmoid

HORIZON = 16_000.0
FIRST = 0.03
# Noise, points, part of the horizon that is observed: (low, high) each.
REGIMES = {
    "mixed": ((0.004, 0.02), (12, 40), (0.25, 0.6)),
    "clean and long": ((0.004, 0.006), (30, 40), (0.5, 0.6)),
    "clean and short": ((0.004, 0.006), (12, 20), (0.25, 0.35)),
    "noisy and long": ((0.015, 0.02), (30, 40), (0.5, 0.6)),
    "noisy and short": ((0.015, 0.02), (12, 20), (0.25, 0.35)),
    "runs differ": ((0.004, 0.006), (30, 40), (0.5, 0.6)),
}
# Standard deviation of a ceiling between runs of one recipe; none in the others, where these very runs are asked about.
BETWEEN = {"runs differ": 0.01}


def drawn(regime: str, number: int) -> tuple[list[tuple[Floats, Floats]], bool]:
    """Two measured curves, and whether the first tends to more."""
    rng = np.random.default_rng([list(REGIMES).index(regime), number])
    (least, most), points, observed = REGIMES[regime]
    noise, count = np.exp(rng.uniform(np.log(least), np.log(most))), int(rng.integers(points[0], points[1] + 1))
    middle, apart = rng.uniform(0.45, 0.8), rng.uniform(0, 0.1) * rng.choice([-1, 1])
    compute = np.linspace(FIRST, rng.uniform(*observed), count) * HORIZON
    curves: list[tuple[Floats, Floats]] = []
    for asymptote in (middle + apart / 2, middle - apart / 2):
        exponent, midpoint = rng.uniform(0.9, 2.6), HORIZON * np.exp(rng.uniform(np.log(0.08), np.log(0.5)))
        ceiling = asymptote + BETWEEN[regime] * rng.normal() if regime in BETWEEN else asymptote
        truth = sigmoid(compute, ceiling, exponent, midpoint, rng.uniform(0.05, 0.3))
        curves.append((compute, np.clip(truth + noise * rng.normal(size=count), 0, 1)))
    return curves, apart > 0


def judged(case: tuple[str, int], spread: float | None = None) -> tuple[float, float, bool]:
    """P(the first is higher), what the paper's rule says of it, and whether it is."""
    (first, second), higher = drawn(*case)
    found = compare(fit(*first), fit(*second), run_spread=BETWEEN.get(case[0], 0.0) if spread is None else spread)
    return found.higher[0], {"a": 1.0, "b": 0.0, None: 0.5}[found.winner], higher


def wilson(hits: float, of: float) -> tuple[float, float]:
    """95% limits of a proportion."""
    rate, z = hits / of, 1.96
    centre = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * np.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of))
    return float(max(centre - half, 0)), float(min(centre + half, 1))


def calibration_error(said: Floats, so: Floats) -> float:
    """Mean gap between what is said and how often it is so, over tenths of what is said, weighed by their size."""
    place = np.minimum((said * 10).astype(int), 9)
    gaps = [abs(said[place == k].sum() - so[place == k].sum()) for k in range(10)]
    return float(sum(gaps) / len(said))


def figures(said: Floats, rule: Floats, so: Floats) -> dict[str, Any]:
    """What is reported, of pairs (n,)."""
    place = np.minimum((said * 10).astype(int), 9)
    rng = np.random.default_rng(0)
    by_chance = [calibration_error(said, (rng.random(len(said)) < said).astype(float)) for _ in range(400)]
    return {
        "pairs": len(said),
        "tenths": [
            {
                "pairs": int((place == k).sum()),
                "said": float(said[place == k].mean()),
                "so": float(so[place == k].mean()),
                "limits": wilson(float(so[place == k].sum()), float((place == k).sum())),
            }
            for k in range(10)
            if (place == k).any()
        ],
        "calibration_error": calibration_error(said, so),
        "calibration_error_by_chance": [float(q) for q in np.quantile(by_chance, [0.5, 0.95])],
        "brier": float(((said - so) ** 2).mean()),
        "brier_rule": float(((rule - so) ** 2).mean()),
        "rule_right": float((rule == so).mean()),
        "likelier_right": float(((said > 0.5) == so).mean()),
    }


def run(pairs: int, regimes: list[str], workers: int = 1) -> dict[str, Any]:
    """Figures of each regime, and over all where there are several."""
    cases = [(regime, number) for regime in regimes for number in range(pairs)]
    if workers > 1:
        with get_context("spawn").Pool(workers) as pool:
            results = pool.map(judged, cases, chunksize=16)
    else:
        results = [judged(case) for case in cases]
    table = np.array(results, float)
    found = {name: figures(*table[index * pairs :][:pairs].T) for index, name in enumerate(regimes)}
    return found | ({"all": figures(*table.T)} if len(regimes) > 1 else {})


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500, help="of each regime")
    parser.add_argument("--regimes", nargs="+", choices=list(REGIMES), default=list(REGIMES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = run(given.pairs, given.regimes, given.workers)
    for name, part in found.items():
        chance = part["calibration_error_by_chance"]
        print(
            f"{name}: {part['pairs']} pairs, off by {part['calibration_error']:.3f} (by chance {chance[0]:.3f},"
            f" up to {chance[1]:.3f}), Brier {part['brier']:.3f} (rule {part['brier_rule']:.3f}), right "
            f"{part['likelier_right']:.3f} (rule {part['rule_right']:.3f})"
        )
        for tenth in part["tenths"]:
            low, high = tenth["limits"]
            print(f"  said {tenth['said']:.3f}  so {tenth['so']:.3f} [{low:.3f}, {high:.3f}]  of {tenth['pairs']}")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
