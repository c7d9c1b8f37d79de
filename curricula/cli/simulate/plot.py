"""The picture of a preview: success over rollouts, per environment, shares drawn, informative groups."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from curricula.cli.simulate.preview import ARMS, Arm, Floats, Preview
from curricula.cli.simulate.report import times
from curricula.cli.style import CURRICULUM, ENVIRONMENTS, FAINT, STYLE, UNIFORM, apart, few_ticks, finish, thousands

_COLOURS = {"uniform": UNIFORM, "mix": CURRICULUM}
_LINES = {"uniform": "--", "mix": "-"}
_SPAN, _FIRST = 15, 5


def draw(preview: Preview, world: str, out: Path) -> list[Path]:
    """Draws a preview into a folder.

    Args:
        preview: The runs.
        world: Name of the world, for the title.
        out: Folder of the pictures.

    Returns:
        The files written: simulate.png and simulate.svg.
    """
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(11, 7.2), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
        curves, dots = top.subplots(1, 2, width_ratios=(1.7, 1))
        left, right, informative = bottom.subplots(1, 3)
        _draw_curves(curves, preview)
        _draw_success(dots, preview)
        for axes, arm in zip((left, right), ARMS, strict=True):
            _draw_shares(axes, preview, arm)
        _draw_informative(informative, preview)
        seeds = len(preview.runs["mix"])
        title = (
            f"A simulated learner in the world “{world}”, {seeds} {'seed' if seeds == 1 else 'seeds'}: "
            "an assumption, not a forecast"
        )
        return finish(figure, title, out, "simulate")


def _draw_curves(axes: Any, preview: Preview) -> None:
    """Held-out success under the base mix, mean in the range of the seeds; where the mix reaches uniform's final."""
    rollouts = preview.rollouts()
    ends: list[tuple[float, str]] = []
    everything = np.concatenate([preview.overall(arm) for arm in ARMS])
    low, high = float(everything.min()), float(everything.max())
    for arm in ARMS:
        success_ST = preview.overall(arm)
        mean = success_ST.mean(0)
        colour = _COLOURS[arm]
        axes.fill_between(rollouts, success_ST.min(0), success_ST.max(0), color=colour, alpha=0.15, linewidth=0)
        axes.plot(rollouts, mean, color=colour, linewidth=2.4, linestyle=_LINES[arm])
        ends.append((float(mean[-1]), arm))
    final = float(preview.overall("uniform").mean(0)[-1])
    reached = float(preview.needed("mix", "rollouts").mean())
    if reached < rollouts[-1] * 0.98:
        arrow = {"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=(reached, final), xytext=(rollouts[-1], final), arrowprops=arrow)
    axes.text(
        0.02,
        0.96,
        f"to uniform's final success:\n{times(*preview.gain('rollouts'))} rollouts"
        + (", one seed" if len(preview.runs["mix"]) == 1 else ""),
        transform=axes.transAxes,
        va="top",
        color="#555555",
    )
    room = 0.06 * (high - low) + 1e-3
    axes.set_ylim(low - room, high + room)
    places = apart(sorted((value - low) / (high - low + 1e-9) for value, _ in ends), 0.06)
    for (value, arm), place in zip(sorted(ends), places, strict=True):
        label = f" {arm} {value:.2f}"
        height = low + place * (high - low)
        # Outside of the axes, where the layout leaves room for it.
        axes.annotate(
            label,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            color=_COLOURS[arm],
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )
    axes.set(title="Held-out success under the base mix, mean and range over seeds", xlabel="rollouts")
    axes.set_xlim(0, float(rollouts[-1]))
    thousands(axes)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def _draw_success(axes: Any, preview: Preview) -> None:
    """Held-out success per environment: at the start, and after either arm, seeds as small dots."""
    names = preview.plan.law.names
    before = preview.success("uniform")[:, 0].mean(0)
    rows = np.arange(len(names))
    axes.scatter(before, rows, marker="|", s=220, color="#555555", linewidth=2, label="start", zorder=3)
    for arm, shift in zip(ARMS, (-0.16, 0.16), strict=True):
        final_SE = preview.success(arm)[:, -1]
        for row in rows.tolist():
            final, mean = final_SE[:, row], float(final_SE[:, row].mean())
            axes.plot([before[row], mean], [row + shift] * 2, color=_COLOURS[arm], alpha=0.35, linewidth=3)
            axes.scatter(final, [row + shift] * len(final), s=9, color=_COLOURS[arm], alpha=0.55, zorder=3)
            label = arm if row == 0 else None
            marker = "o" if arm == "mix" else "s"
            axes.scatter(mean, row + shift, s=64, marker=marker, color=_COLOURS[arm], label=label, zorder=4)
    axes.set(title="Success per environment", xlabel="held-out success", xlim=(-0.04, 1.04))
    axes.set_yticks(rows, [_short(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9)


def _draw_shares(axes: Any, preview: Preview, arm: Arm) -> None:
    """Shares of the groups drawn, over rollouts, as stacked areas named where each ends."""
    rollouts, drawn_RE = _smooth(preview, preview.groups(arm, "drawn").mean(0))
    shares_ER = (drawn_RE / drawn_RE.sum(1, keepdims=True)).T
    colours = [ENVIRONMENTS[code % len(ENVIRONMENTS)] for code in range(len(shares_ER))]
    axes.stackplot(rollouts, shares_ER, colors=colours, edgecolor="white", linewidth=0.8)
    middles = np.cumsum(shares_ER[:, -1]) - shares_ER[:, -1] / 2
    for name, place in zip(preview.plan.law.names, apart(list(map(float, middles)), 0.075), strict=True):
        axes.annotate(
            _short(name), (1.02, place), xycoords="axes fraction", va="center", fontsize=9, annotation_clip=False
        )
    axes.set(title=f"Shares drawn: {arm}", xlabel="rollouts", ylim=(0, 1), xlim=(0, rollouts[-1]))
    few_ticks(axes)


def _draw_informative(axes: Any, preview: Preview) -> None:
    """Fraction of the groups whose results differ, over rollouts."""
    for arm in ARMS:
        rollouts, drawn_RS = _smooth(preview, preview.groups(arm, "drawn").sum(2).T)
        _, kept_RS = _smooth(preview, preview.groups(arm, "kept").sum(2).T)
        fraction_RS = kept_RS / drawn_RS
        colour = _COLOURS[arm]
        axes.fill_between(rollouts, fraction_RS.min(1), fraction_RS.max(1), color=colour, alpha=0.15, linewidth=0)
        axes.plot(rollouts, fraction_RS.mean(1), color=colour, linewidth=2, linestyle=_LINES[arm], label=arm)
    axes.set(title="Informative groups", xlabel="rollouts", ylim=(0, 1.02), xlim=(0, max(axes.lines[0].get_xdata())))
    few_ticks(axes)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.legend(loc="lower right", frameon=False, fontsize=9)


def _smooth(preview: Preview, values_TX: Floats) -> tuple[Floats, Floats]:
    """Moving means over up to `_SPAN` steps, and the rollouts at which each ends."""
    sums = np.cumsum(np.concatenate([np.zeros_like(values_TX[:1]), values_TX]), axis=0)
    ends = np.arange(min(_FIRST, len(values_TX)), len(values_TX) + 1)
    starts = np.maximum(ends - _SPAN, 0)
    means: Floats = (sums[ends] - sums[starts]) / (ends - starts)[:, None]
    return preview.rollouts()[ends], means


def _short(name: str) -> str:
    return name if len(name) <= 16 else name[:15] + "…"
