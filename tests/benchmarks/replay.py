"""Replay of a training history: a rule chooses who is visited, and sees only those visits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rules import Clairvoyant, Hindsight, Rule

from curricula import PromptPool
from curricula.objectives import group_signal

Floats = NDArray[np.float64]

BATCH = 32
GROUP_SIZE = 8


@dataclass(frozen=True, slots=True)
class Replay:
    """What a rule drew in one run.

    Attributes:
        drawn_N: Draws of each prompt.
        informative_N: Those of them that gave a mixed group.
        coverage_V: Share of the prompts visited by the end of each pass.
    """

    drawn_N: Floats
    informative_N: Floats
    coverage_V: Floats

    @property
    def informative_share(self) -> float:
        """Share of the drawn groups that were mixed."""
        return float(self.informative_N.sum() / self.drawn_N.sum())


def read_history(path: str | Path, visits: int) -> Floats:
    """Pass rates (N, V) of the prompts that have at least `visits` visits, in order of the prompts' names.

    Args:
        path: Parquet with columns prompt, visit (0, 1, ...) and pass_rate.
        visits: V; later visits are left out.

    Raises:
        ValueError: A file in which no prompt has so many visits, or a visit is missing.
    """
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path, columns=["prompt", "visit", "pass_rate"])
    visit = table["visit"].to_numpy()
    early = visit < visits
    prompt, visit = table["prompt"].to_numpy()[early], visit[early]
    names, codes, counts = np.unique(prompt, return_inverse=True, return_counts=True)
    whole = counts == visits
    if not whole.any():
        raise ValueError(f"{path}: expected prompts with {visits} visits; got at most {counts.max(initial=0)}")
    rates = np.full((names.size, visits), np.nan)
    rates[codes, visit] = table["pass_rate"].to_numpy()[early]
    rates = rates[whole]
    if np.isnan(rates).any():
        raise ValueError(f"{path}: expected every visit from 0 to {visits - 1} once; some are missing")
    return rates


def groups(rates: Floats) -> Floats:
    """Binary results (K, 8) with as many ones as the pass rates (K,) say."""
    return (np.arange(GROUP_SIZE) < np.rint(rates * GROUP_SIZE)[:, None]).astype(np.float64)


def prompts(size: int) -> PromptPool:
    """A pool of one environment."""
    return PromptPool(np.zeros(size, dtype=np.int64).astype(str))


def replay(rule: Rule, rates_NV: Floats, budget: float) -> Replay:
    """Run one rule over a history.

    A visit of the history is one pass, of `budget` times N draws in batches of 32: each batch is chosen, then seen.
    In a pass a prompt is drawn at most once, since the history has one group of it.

    Args:
        rule: A rule that has seen nothing.
        rates_NV: Shape (N, V), pass rates.
        budget: Draws per pass over N, in (0, 1].
    """
    size, passes = rates_NV.shape
    count = round(budget * size)
    batches = -(-count // BATCH)
    rule.pace = 1.0 / batches
    drawn, informative = np.zeros(size), np.zeros(size)
    coverage = np.zeros(passes)
    others_NV = seen_from_elsewhere(rates_NV) if isinstance(rule, Hindsight) else rates_NV
    for visit in range(passes):
        rates = rates_NV[:, visit]
        mixed = (rates > 0.0) & (rates < 1.0)
        if isinstance(rule, Hindsight):
            rule.reveal(others_NV[:, visit])
        elif isinstance(rule, Clairvoyant):
            rule.reveal(mixed.astype(np.float64))
        taken = np.zeros(0, dtype=np.int64)
        for start in range(0, count, BATCH):
            rows = rule.choose(min(BATCH, count - start), exclude=taken)
            taken = np.concatenate([taken, rows])
            rule.observe(rows, groups(rates[rows]))
        if np.unique(taken).size != count:
            raise AssertionError(
                f"{rule.name}: expected {count} distinct prompts in a pass; got {np.unique(taken).size}"
            )
        drawn[taken] += 1.0
        informative[taken] += mixed[taken]
        coverage[visit] = (drawn > 0.0).mean()
    return Replay(drawn, informative, coverage)


def seen_from_elsewhere(rates_NV: Floats, memory: float = 0.9) -> Floats:
    """Chance of a mixed group at each visit (N, V) by the visits before and after it, the nearer the heavier.

    Beta-binomial from Beta(1, 1) and every other group, weighted by `memory` to the power of its distance: about
    the most that can be known of a pass rate without seeing the group itself.
    """
    places = np.arange(rates_NV.shape[1])
    kernel_VV = memory ** np.abs(places[:, None] - places)
    np.fill_diagonal(kernel_VV, 0.0)
    passed = GROUP_SIZE * (rates_NV @ kernel_VV)
    tried = GROUP_SIZE * kernel_VV.sum(axis=0)
    return np.asarray(group_signal(1.0 + passed, 1.0 + tried - passed, GROUP_SIZE), dtype=np.float64)


def build(kind: Any, size: int, seed: int, **values: Any) -> Rule:
    """A fresh rule over `size` prompts, with its own generator."""
    return kind(prompts(size), GROUP_SIZE, np.random.default_rng(seed), **values)
