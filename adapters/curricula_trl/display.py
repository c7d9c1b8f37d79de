"""Progress of a run on rank 0: a live table on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

_ROWS = 30


class Measured(Protocol):
    """Something with the metrics of a curriculum."""

    def metrics(self) -> Mapping[str, float]:
        """Flat: overall names plain, those of an environment as NAME/metric."""
        ...


def display(sampler: Measured, alone: bool = True) -> "LineDisplay | LiveDisplay":
    """The callback that suits where stdout goes.

    Args:
        sampler: Where the metrics come from.
        alone: Whether nothing else draws tables on the terminal; if something does, lines are used there too.
    """
    return LiveDisplay(sampler) if alone and sys.stdout.isatty() else LineDisplay(sampler)


class LineDisplay(TrainerCallback):
    """One line for the run and one for each environment, whenever the trainer logs."""

    def __init__(self, sampler: Measured) -> None:
        self._sampler = sampler

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Prints the step, the trainer's own figures, and a line for each environment."""
        if logs and "loss" in logs:  # not the summary at the end, nor an evaluation
            print("\n".join(lines(self._sampler.metrics(), state.global_step, state.max_steps, logs)), flush=True)

    def close(self) -> None:
        """Nothing is held."""


class LiveDisplay(TrainerCallback):
    """A table that is redrawn after every step; what else is printed scrolls by above it."""

    def __init__(self, sampler: Measured, console: Console | None = None) -> None:
        self._sampler = sampler
        self._live = Live(console=console, auto_refresh=False)
        self._logs: dict[str, Any] = {}

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Starts the table."""
        self._live.start()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Redraws the table."""
        self._draw(state)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Keeps the trainer's figures for the title."""
        self._logs = {**self._logs, **(logs or {})}
        self._draw(state)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leaves the last table standing."""
        self.close()

    def close(self) -> None:
        """Gives the terminal back; also after an error."""
        self._live.stop()

    def _draw(self, state: TrainerState) -> None:
        self._live.update(table(self._sampler.metrics(), state.global_step, state.max_steps, self._logs), refresh=True)


def lines(metrics: Mapping[str, float], step: int, steps: int, logs: Mapping[str, Any]) -> list[str]:
    """The display as plain lines.

    >>> lines({"informative": 0.5, "sums/success_drawn": 0.25, "sums/share_drawn": 1.0}, 3, 10, {"loss": 0.1})
    ['step 3/10  loss 0.1  informative 50%', '  sums  success 25%  share 100%']
    """
    shown, environments = _environments(metrics)
    width = max((len(name) for name in shown), default=0)
    text = [_title(metrics, step, steps, logs)]
    for name in shown:
        cells = [f"{label} {value}" for label, value in _cells(environments[name])]
        text.append("  ".join([f"  {name:<{width}}", *cells]))
    if len(environments) > len(shown):
        text.append(f"  … and {len(environments) - len(shown)} more")
    return text


def table(metrics: Mapping[str, float], step: int, steps: int, logs: Mapping[str, Any]) -> Table:
    """The display as a table: one row for each environment."""
    shown, environments = _environments(metrics)
    drawn = Table(title=_title(metrics, step, steps, logs), title_justify="left", title_style="bold", box=None)
    labels = list(dict.fromkeys(label for name in shown for label, _ in _cells(environments[name])))
    drawn.add_column("environment", no_wrap=True, overflow="ellipsis")
    for label in labels:
        drawn.add_column(label, justify="right")
    for name in shown:
        cells = dict(_cells(environments[name]))
        drawn.add_row(name, *(cells.get(label, "") for label in labels))
    if len(environments) > len(shown):
        drawn.add_row(f"… and {len(environments) - len(shown)} more")
    return drawn


def _environments(metrics: Mapping[str, float]) -> tuple[list[str], dict[str, dict[str, float]]]:
    environments: dict[str, dict[str, float]] = {}
    for key, value in metrics.items():
        name, _, metric = key.rpartition("/")
        # Figures of other parts have names with a slash too; an environment has a share.
        if name and (f"{name}/share" in metrics or f"{name}/share_drawn" in metrics):
            environments.setdefault(name, {})[metric] = value
    return list(environments)[:_ROWS], environments


def _cells(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    cells: list[tuple[str, str]] = []
    if (success := metrics.get("success_drawn")) is not None:
        cells.append(("success", f"{success:.0%}"))
    elif (reward := metrics.get("mean_reward_drawn")) is not None:
        cells.append(("mean reward", f"{reward:.3g}"))
    if (corrected := metrics.get("success_corrected")) is not None:
        cells.append(("corrected", f"{corrected:.0%}"))
    cells += [
        (label, f"{metrics[name]:.0%}")
        for label, name in (
            ("share", "share_drawn"),
            ("informative", "informative"),
            ("interrupted", "interrupted"),
            ("cut off", "truncated"),
        )
        if name in metrics and (metrics[name] or name not in ("interrupted", "truncated"))
    ]
    return cells


def _title(metrics: Mapping[str, float], step: int, steps: int, logs: Mapping[str, Any]) -> str:
    title = [f"step {step}/{steps}"]
    title += [f"{name} {float(logs[name]):.4g}" for name in ("loss", "reward") if _is_number(logs.get(name))]
    if (informative := metrics.get("informative")) is not None:
        title.append(f"informative {informative:.0%}")
    if (mismatch := metrics.get("mismatch/mean")) is not None:
        title.append(f"mismatch {mismatch:.2g}")
    return "  ".join(title)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
