"""What the demo's runs have shown: figures per arm, over seeds, and the table of them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs of every arm, one per seed.

    Attributes:
        runs: Per arm, what its runs reported; the first arm is the one compared with.
        environments: Names of the environments, in the order of the mix.
    """

    runs: dict[str, list[Run]]
    environments: tuple[str, ...]

    @classmethod
    def read(cls, files: Sequence[Path]) -> "Comparison":
        """Reads the files that the runs wrote."""
        runs: defaultdict[str, list[Run]] = defaultdict(list)
        for file in files:
            run: Run = json.loads(file.read_text(encoding="utf-8"))
            runs[str(run["arm"])].append(run)
        first = next(iter(runs.values()))[0]
        return cls(dict(runs), tuple(first["prompts"]))

    def accuracy(self, arm: str, environment: str) -> NDArray[np.float64]:
        """Held-out accuracy, shape (seeds, evaluations)."""
        return np.array([[e["accuracy"][environment] for e in run["evaluations"]] for run in self.runs[arm]])

    def rollouts(self) -> NDArray[np.int64]:
        """Rollouts spent at each evaluation, shape (evaluations,)."""
        return np.array([e["rollouts"] for e in next(iter(self.runs.values()))[0]["evaluations"]])

    def groups(self, arm: str, count: str) -> NDArray[np.float64]:
        """Groups "drawn" or "informative", shape (seeds, rounds, environments)."""
        return np.array(
            [[[r[count].get(e, 0) for e in self.environments] for r in run["rounds"]] for run in self.runs[arm]],
            dtype=np.float64,
        )

    def informative(self, arm: str) -> NDArray[np.float64]:
        """Fraction of the groups whose rewards differ, shape (seeds,)."""
        return self.groups(arm, "informative").sum((1, 2)) / self.groups(arm, "drawn").sum((1, 2))

    def summary(self) -> dict[str, Any]:
        """Every figure of the table, as JSON."""
        return {
            "seeds": len(next(iter(self.runs.values()))),
            "rollouts": int(self.rollouts()[-1]),
            "held_out_accuracy": {
                environment: {
                    "before": _figure(self.accuracy(next(iter(self.runs)), environment)[:, 0]),
                    **{arm: _figure(self.accuracy(arm, environment)[:, -1]) for arm in self.runs},
                }
                for environment in self.environments
            },
            "informative_fraction": {arm: _figure(self.informative(arm)) for arm in self.runs},
            "share_drawn": {
                arm: dict(zip(self.environments, map(float, _shares(self.groups(arm, "drawn")).round(4)), strict=True))
                for arm in self.runs
            },
        }

    def table(self) -> Table:
        """The one table that the demo prints: mean and range over seeds."""
        summary = self.summary()
        arms = tuple(self.runs)
        seeds = summary["seeds"]
        table = Table(
            title=f"Held-out accuracy after {summary['rollouts']:,} rollouts, mean of {seeds} "
            f"{'seed' if seeds == 1 else 'seeds (range)'}",
            box=box.SIMPLE_HEAD,
            title_justify="left",
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("environment", no_wrap=True)
        for heading in ("prompts", "before", *arms, "gain"):
            table.add_column(heading, justify="right", no_wrap=True)
        prompts = self.runs[arms[0]][0]["prompts"]
        for environment, figures in summary["held_out_accuracy"].items():
            table.add_row(
                environment,
                f"{prompts[environment]:,}",
                f"{figures['before']['mean']:.2f}",
                *(_text(figures[arm]) for arm in arms),
                _gain(figures[arms[0]]["mean"], figures[arms[1]]["mean"]),
            )
        table.add_section()
        informative = summary["informative_fraction"]
        table.add_row(
            "informative groups",
            "",
            "",
            *(_text(informative[arm]) for arm in arms),
            _gain(informative[arms[0]]["mean"], informative[arms[1]]["mean"]),
        )
        table.add_row("rollouts a run", "", "", *(f"{summary['rollouts']:,}" for _ in arms), "")
        for environment in self.environments:
            shares = [summary["share_drawn"][arm][environment] for arm in arms]
            table.add_row(f"share: {environment}", "", "", *(f"{s:.2f}" for s in shares), _gain(*shares))
        return table


def _shares(groups_SRE: NDArray[np.float64]) -> NDArray[np.float64]:
    totals = groups_SRE.sum((0, 1))
    return totals / totals.sum()


def _figure(values_S: NDArray[np.float64]) -> dict[str, Any]:
    return {"mean": round(float(values_S.mean()), 4), "seeds": [round(float(value), 4) for value in values_S]}


def _gain(before: float, after: float) -> str:
    # Adding zero makes a negative zero positive.
    return f"{round(after - before, 2) + 0.0:+.2f}"


def _text(figure: dict[str, Any]) -> str:
    seeds: list[float] = figure["seeds"]
    return f"{figure['mean']:.2f}" + (f" ({min(seeds):.2f}–{max(seeds):.2f})" if len(seeds) > 1 else "")
