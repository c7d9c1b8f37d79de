"""The picture of an allocation: each environment's curve from where it is to where its share takes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from curricula.allocation import Allocation
from curricula.cli.scaling.fitting import Fitted
from curricula.cli.scaling.looks import COLOURS, compute_axis, name_ends, plain, save, short
from curricula.cli.scaling.report import amount
from curricula.cli.style import INK, STYLE


def draw_plan(fits: Sequence[Fitted], plan: Allocation, path: Path) -> Path:
    """Draw the shares, and what they are expected to gain; returns the file."""
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(10.5, max(3.6, 1.8 + 0.45 * len(fits))), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
        places = np.arange(len(fits))
        colours = [COLOURS[number % len(COLOURS)] for number in range(len(fits))]
        # What is left of a rounding is nothing.
        shares = [round(plan.shares[one.label], 6) for one in fits]
        left.barh(places, shares, color=colours, height=0.6)
        for place, share in zip(places, shares, strict=True):
            left.annotate(f" {share:.0%}, {amount(share * plan.budget)}", (share, place), va="center", fontsize=9)
        left.axvline(1 / len(fits), color=INK, linewidth=1, linestyle=":")
        left.set_yticks(places, [plain(short(one.label, 25)) for one in fits])
        left.set_xticks([tick for tick in (0, 0.25, 0.5, 0.75, 1) if tick <= max(shares)])
        left.set(
            title="Share of the budget (dotted: equal)", xlim=(0, max(shares) * 1.45), ylim=(len(fits) - 0.5, -0.5)
        )
        ends = [
            (_draw_rise(right, one, plan, colours[number]), colours[number], one.label)
            for number, one in enumerate(fits)
        ]
        limits = right.get_ylim()
        right.set(title="Score, from so far to the end of its share", ylabel=plain(fits[0].series.measure), ylim=limits)
        compute_axis(right, fits[0].series.axis)
        name_ends(right, ends, limits)
        _legend(figure, right)
        return save(figure, f"{amount(plan.budget)} {fits[0].series.axis} split among {len(fits)}", path)


def _draw_rise(axes: Any, one: Fitted, plan: Allocation, colour: str) -> float:
    """Draw a curve and its share; returns where it ends, as a score."""
    spent = plan.spent[one.label]
    unit = plan.compute[one.label]
    end = spent + unit
    first = float(one.series.compute[one.series.compute > 0].min())
    grid = np.geomspace(min(first, max(spent, first)), max(end, spent, first) * 1.5, 160)
    mean, low, high = one.fit.predict(grid)
    axes.plot(one.series.compute.ravel(), one.series.score.ravel(), ".", color=colour, markersize=4, alpha=0.5)
    axes.plot(grid, mean, color=colour, linewidth=1, alpha=0.6)
    inside = (grid >= spent) & (grid <= end)
    axes.fill_between(grid, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(grid[inside], mean[inside], color=colour, linewidth=3)
    ends = [max(spent, grid[0]), end]
    axes.plot(ends, one.fit.predict(ends)[0], "o", color=colour, markersize=6)
    return float(mean[-1])


def _legend(figure: Any, axes: Any) -> None:
    """Below the picture: what is thick, thin and a dot."""
    lines: list[Any] = []
    for label, style in (
        ("points", {"marker": ".", "linestyle": "none", "markersize": 4}),
        ("fit, with its band", {"linewidth": 1}),
        ("what its share buys", {"linewidth": 3, "marker": "o", "markersize": 6}),
    ):
        lines += axes.plot([], [], color="#555555", label=label, **style)
    figure.legend(handles=lines, frameon=False, fontsize=8, loc="outside lower center", ncols=len(lines))
