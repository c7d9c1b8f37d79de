"""The picture of fits: points, curve, band, ceiling, and where the data end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from curricula.cli.scaling.fitting import Fitted
from curricula.cli.scaling.looks import COLOURS, compute_axis, name_ends, plain, save, short
from curricula.cli.scaling.report import amount
from curricula.cli.style import INK, STYLE

GREY = "#555555"
_AHEAD = 4.0


def draw(
    fits: Sequence[Fitted], path: Path, *, reach: float | None = None, overtakes: Sequence[tuple[float, str]] = ()
) -> Path:
    """Draw fits into a file, and return it.

    Args:
        fits: Side by side in one picture.
        path: Where to; its ending says in which format.
        reach: How far the curves go on; four times the data where it is left out.
        overtakes: Compute at which one overtakes another, and what to write there.
    """
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(9.5, 5), layout="constrained")
        axes: Any = figure.subplots()
        end = max(reach or 0.0, max(one.last for one in fits) * _AHEAD)
        start = min(float(one.series.compute[one.series.compute > 0].min()) for one in fits) / 1.3
        ends: list[tuple[float, str, str]] = []
        # Where all end at one place, the line there is nobody's own.
        together = max(one.last for one in fits) <= 1.01 * min(one.last for one in fits)
        if together:
            axes.axvline(fits[0].last, color=GREY, linewidth=1, linestyle=":")
        for number, one in enumerate(fits):
            colour = COLOURS[number % len(COLOURS)]
            ends.append((_draw_one(axes, one, colour, (start, end), 0.85 ** max(len(fits) - 2, 0)), colour, one.label))
            if not together:
                axes.axvline(one.last, color=colour, linewidth=1, linestyle=":")
            # Beside one another at the right edge.
            _draw_ceiling(axes, one, colour, 0.99 - 0.014 * number, lines=len(fits) <= 3)
        limits = axes.get_ylim()
        compute_axis(axes, fits[0].series.axis)
        axes.set(xlim=(start, end), ylim=limits, ylabel=plain(fits[0].series.measure))
        for place, text in overtakes:
            if start < place < end:
                axes.axvline(place, color=INK, linewidth=1, linestyle="-.")
                axes.annotate(
                    plain(f" {text} at {amount(place)}"),
                    (place, limits[0]),
                    va="bottom",
                    fontsize=8,
                    rotation=90,
                    ha="right",
                )
        name_ends(axes, ends, limits)
        title = fits[0].label if len(fits) == 1 else f"{len(fits)} recipes"
        _legend(
            figure,
            axes,
            left_out=any(one.fit.start > 0 for one in fits),
            noise=any(one.series.noise is not None for one in fits),
        )
        return save(figure, f"{short(title, 50)}: {fits[0].series.measure} against {fits[0].series.axis}", path)


def _draw_one(axes: Any, one: Fitted, colour: str, ends: tuple[float, float], strength: float) -> float:
    """Draw a fit; returns where its curve ends, as a score."""
    fit, series = one.fit, one.series
    grid = np.geomspace(*ends, 240)
    mean, low, high = fit.predict(grid)
    axes.fill_between(grid, low, high, color=colour, alpha=0.16 * strength, linewidth=0)
    seen = grid <= one.last
    axes.plot(grid[seen], mean[seen], color=colour, linewidth=2)
    axes.plot(grid[~seen], mean[~seen], color=colour, linewidth=2, linestyle=(0, (4, 2)))
    compute, score = series.compute.ravel(), series.score.ravel()
    fitted = compute >= fit.start
    if series.noise is not None:
        size = series.noise.ravel()
        axes.errorbar(compute, score, yerr=size, color=colour, fmt="none", elinewidth=0.8, alpha=0.5 * strength)
    axes.plot(compute[fitted], score[fitted], "o", color=colour, markersize=4, alpha=0.75, linestyle="none")
    axes.plot(compute[~fitted], score[~fitted], "x", color=colour, markersize=5, alpha=0.75, linestyle="none")
    return float(mean[-1])


def _draw_ceiling(axes: Any, one: Fitted, colour: str, place: float, *, lines: bool) -> None:
    """Draw the asymptote and its interval, at a place along the axis in parts of it; a straight line has none."""
    value, (bottom, top) = one.fit.asymptote, one.fit.interval("asymptote")
    if not np.isfinite(bottom):
        return
    if lines:
        axes.axhline(value, color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.errorbar(
        [place],
        [value],
        yerr=[[max(value - bottom, 0)], [max(top - value, 0)]],
        transform=axes.get_yaxis_transform(),
        color=colour,
        capsize=4,
        linewidth=1.5,
        marker="D",
        markersize=4,
    )


def _legend(figure: Any, axes: Any, *, left_out: bool, noise: bool) -> None:
    """Below the picture, where it lies on nothing that is drawn."""
    lines: list[Any] = []
    for label, style in (
        ("points, ± standard error" if noise else "points", {"marker": "o", "linestyle": "none", "markersize": 4}),
        ("left out", {"marker": "x", "linestyle": "none", "markersize": 5}),
        ("fit", {"linewidth": 2}),
        # The mean takes in laws that bend otherwise and a straight line, so it may end above the sigmoid's ceiling.
        ("forecast: mean of all laws", {"linewidth": 2, "linestyle": (0, (4, 2))}),
        ("the data end", {"linewidth": 1, "linestyle": ":"}),
        ("ceiling of the sigmoid, 90%", {"marker": "D", "linewidth": 1, "linestyle": (0, (1, 2)), "markersize": 4}),
    ):
        if left_out or label != "left out":
            lines += axes.plot([], [], color=GREY, label=label, **style)
    figure.legend(handles=lines, frameon=False, fontsize=8, loc="outside lower center", ncols=len(lines))
