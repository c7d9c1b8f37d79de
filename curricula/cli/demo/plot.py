"""The demo's picture: learning curves, success per environment, shares over time."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from curricula.cli.demo.results import Comparison
from curricula.cli.style import CURRICULUM, ENVIRONMENTS, FAINT, STYLE, UNIFORM, apart, few_ticks, finish, thousands

_ARMS = {"uniform": UNIFORM, "curriculum": CURRICULUM}
_SPAN, _FIRST = 15, 5


def draw(comparison: Comparison, out: Path) -> list[Path]:
    """Draws the comparison into a folder.

    Args:
        comparison: The runs.
        out: Folder of the pictures.

    Returns:
        The files written: demo.png and demo.svg.
    """
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(11, 7.2), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
        curves, dots = top.subplots(1, 2, width_ratios=(1.7, 1))
        left, right, informative = bottom.subplots(1, 3)
        _draw_curves(curves, comparison)
        _draw_success(dots, comparison)
        for axes, arm in zip((left, right), comparison.runs, strict=True):
            _draw_shares(axes, comparison, arm)
        _draw_informative(informative, comparison)
        seeds = comparison.summary()["seeds"]
        title = (
            f"Same model, same rollouts: uniform draws and a curriculum ({seeds} {'seed' if seeds == 1 else 'seeds'})"
        )
        return finish(figure, title, out, "demo")


def _draw_curves(axes: Any, comparison: Comparison) -> None:
    """Held-out accuracy on the frontier against rollouts: the mean over seeds in the range of them."""
    rollouts = comparison.rollouts()
    ends: list[tuple[float, str]] = []
    for arm in comparison.runs:
        accuracy_SE = comparison.accuracy(arm, "frontier")
        mean = accuracy_SE.mean(0)
        axes.fill_between(rollouts, accuracy_SE.min(0), accuracy_SE.max(0), color=_ARMS[arm], alpha=0.15, linewidth=0)
        axes.plot(rollouts, mean, color=_ARMS[arm], linewidth=2.4, linestyle="-" if arm == "curriculum" else "--")
        ends.append((float(mean[-1]), arm))
    for (value, arm), place in zip(sorted(ends), apart(sorted(v for v, _ in ends), 0.07), strict=True):
        label = f" {arm} {value:.2f}"
        axes.text(rollouts[-1], place, label, color=_ARMS[arm], fontweight="bold", va="center")
    axes.set(title="Frontier: held-out accuracy, mean and range over seeds", xlabel="rollouts", ylim=(0, 1.02))
    axes.set_xlim(0, max(float(rollouts[-1]), 1) * 1.2)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= rollouts[-1]])
    thousands(axes)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def _draw_success(axes: Any, comparison: Comparison) -> None:
    """Held-out accuracy per environment: before, and after either arm, seeds as small dots."""
    names = comparison.environments
    before = [comparison.accuracy(next(iter(comparison.runs)), name)[:, 0].mean() for name in names]
    rows = np.arange(len(names))
    axes.scatter(before, rows, marker="|", s=220, color="#555555", linewidth=2, label="before", zorder=3)
    for arm, shift in zip(comparison.runs, (-0.16, 0.16), strict=True):
        for row, name in zip(rows, names, strict=True):
            final = comparison.accuracy(arm, name)[:, -1]
            axes.plot([before[row], final.mean()], [row + shift] * 2, color=_ARMS[arm], alpha=0.35, linewidth=3)
            axes.scatter(final, [row + shift] * len(final), s=9, color=_ARMS[arm], alpha=0.55, zorder=3)
            axes.scatter(
                final.mean(),
                row + shift,
                s=64,
                marker="o" if arm == "curriculum" else "s",
                color=_ARMS[arm],
                label=arm if row == 0 else None,
                zorder=4,
            )
    axes.set(title="Success per environment", xlabel="held-out accuracy", xlim=(-0.04, 1.04))
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def _draw_shares(axes: Any, comparison: Comparison, arm: str) -> None:
    """Shares of the groups drawn, over rollouts, as stacked areas with their names inside."""
    drawn_RE = comparison.groups(arm, "drawn").mean(0)
    rollouts, smooth_RE = _smooth(drawn_RE, _rollouts_a_round(comparison, arm))
    shares_ER = (smooth_RE / smooth_RE.sum(1, keepdims=True)).T
    axes.stackplot(rollouts, shares_ER, colors=ENVIRONMENTS[: len(shares_ER)], edgecolor="white", linewidth=0.8)
    # Named at the right edge, where each ends, as thin ones have no room inside.
    middles = np.cumsum(shares_ER[:, -1]) - shares_ER[:, -1] / 2
    for name, place in zip(comparison.environments, apart(list(map(float, middles)), 0.075), strict=True):
        axes.annotate(name, (1.02, place), xycoords="axes fraction", va="center", fontsize=9, annotation_clip=False)
    axes.set(title=f"Shares drawn: {arm}", xlabel="rollouts", ylim=(0, 1), xlim=(0, rollouts[-1]))
    few_ticks(axes)


def _draw_informative(axes: Any, comparison: Comparison) -> None:
    """Fraction of the groups whose rewards differ, over rollouts."""
    for arm in comparison.runs:
        rollouts_a_round = _rollouts_a_round(comparison, arm)
        rollouts, drawn = _smooth(comparison.groups(arm, "drawn").sum(2).T, rollouts_a_round)
        _, informative = _smooth(comparison.groups(arm, "informative").sum(2).T, rollouts_a_round)
        fraction_RS = informative / drawn
        style = "-" if arm == "curriculum" else "--"
        axes.fill_between(rollouts, fraction_RS.min(1), fraction_RS.max(1), color=_ARMS[arm], alpha=0.15, linewidth=0)
        axes.plot(rollouts, fraction_RS.mean(1), color=_ARMS[arm], linewidth=2, linestyle=style, label=arm)
    axes.set(title="Informative groups", xlabel="rollouts", ylim=(0, 1), xlim=(0, max(axes.lines[0].get_xdata())))
    few_ticks(axes)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.legend(loc="upper right", frameon=False, fontsize=9)


def _rollouts_a_round(comparison: Comparison, arm: str) -> float:
    run = comparison.runs[arm][0]
    return run["rollouts"] / max(len(run["rounds"]), 1)


def _smooth(values_RX: NDArray[np.float64], rollouts_a_round: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Moving means over up to `_SPAN` rounds, and the rollouts at which each ends."""
    sums = np.cumsum(np.vstack([np.zeros_like(values_RX[:1]), values_RX]), axis=0)
    ends = np.arange(min(_FIRST, len(values_RX)), len(values_RX) + 1)
    starts = np.maximum(ends - _SPAN, 0)
    means: NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)[:, None]
    return np.multiply(ends, rollouts_a_round, dtype=np.float64), means
