"""How well beliefs foresee the next group of each prompt, when every group is seen."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from replay import GROUP_SIZE, Floats, build, groups
from rules import Arcus, CurriculumRule, Dps, Greedy, Mopps

from curricula.config import CurriculumConfig


class Smoothed:
    """An exponential mean of pass rates p, read as if it were certain: informative with 1 - p^G - (1 - p)^G."""

    def __init__(self, size: int, rate: float) -> None:
        self.rate, self.mean = rate, np.full(size, np.nan)

    def observe(self, rows: Any, successes_KG: Floats) -> None:
        """Move towards the mean of each group; the first is taken as it is."""
        value = successes_KG.mean(axis=1)
        old = np.where(np.isnan(self.mean[rows]), value, self.mean[rows])
        self.mean[rows] = old + self.rate * (value - old)

    def forecast(self, rows: Any) -> tuple[Floats, Floats]:
        """Expected pass rate (M,) and chance of an informative group (M,); one half before any group."""
        rate = np.where(np.isnan(self.mean[rows]), 0.5, self.mean[rows])
        return rate, 1.0 - rate**GROUP_SIZE - (1.0 - rate) ** GROUP_SIZE


def forecasters(size: int, mixes: Mapping[str, CurriculumConfig]) -> dict[str, Callable[[], Any]]:
    """Everything that forecasts, by name."""
    made: dict[str, Callable[[], Any]] = {
        "latest value": lambda: Smoothed(size, 1.0),
        "exponential mean .2": lambda: Smoothed(size, 0.2),
        "beta, decay 1": lambda: build(Greedy, size, 0, decay=1.0),
        "beta, decay .9": lambda: build(Mopps, size, 0),
        Dps.name: lambda: build(Dps, size, 0),
        Arcus.name: lambda: build(Arcus, size, 0),
        CurriculumRule.name: lambda: build(CurriculumRule, size, 0),
    }
    return made | {name: partial(build, CurriculumRule, size, 0, config=mix) for name, mix in mixes.items()}


def forecast_scores(
    rates_NV: Floats, mixes: Mapping[str, CurriculumConfig] | None = None
) -> dict[str, dict[str, float]]:
    """MAE of the pass rate, Brier and AUC of `informative`, over all visits but the first, by name.

    Before each visit every group is forecast; then all are seen, in one call.
    """
    size, visits = rates_NV.shape
    rows = np.arange(size)
    truth = (rates_NV > 0.0) & (rates_NV < 1.0)
    scores: dict[str, dict[str, float]] = {}
    for name, make in forecasters(size, mixes or {}).items():
        believer = make()
        means, chances = np.zeros((2, size, visits))
        for visit in range(visits):
            means[:, visit], chances[:, visit] = believer.forecast(rows)
            believer.observe(rows, groups(rates_NV[:, visit]))
        chance, mixed = chances[:, 1:].ravel(), truth[:, 1:].ravel()
        scores[name] = {
            "mae": float(np.abs(means[:, 1:] - rates_NV[:, 1:]).mean()),
            "brier": float(((chance - mixed) ** 2).mean()),
            "auc": auc(chance, mixed),
        }
    return scores


def auc(scores: Floats, positive: Any) -> float:
    """Chance that a positive scores above a negative, ties counting half.

    >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    from scipy.stats import rankdata

    ranks, count = rankdata(scores), int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2.0) / (count * (positive.size - count)))
