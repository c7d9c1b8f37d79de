"""The picture: KL of every combination, and by position for those with alike sides."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from curricula.cli.style import CURRICULUM, FAINT, STYLE, UNIFORM, apart, finish, thousands

if TYPE_CHECKING:
    from curricula.cli.precision.measure import Measured

_COLOURS = {"bf16": UNIFORM, "fp16": "#009E73", "fp32": CURRICULUM}
_LEAST = 1e-9
"""What is nearer than this is drawn here: float32 against float32 is arithmetic noise."""


def draw(found: "Measured", model: str, out: Path) -> list[Path]:
    """Draws precision.png and precision.svg into a folder, and returns them."""
    rows = [row for row in found.rows if row.figures is not None]
    generators = list(dict.fromkeys(row.generator for row in rows))
    trainers = list(dict.fromkeys(row.trainer for row in rows))
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(11, 2.2 + 0.55 * max(len(generators), 4)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_all(left, rows, generators, trainers)
        _draw_positions(right, rows)
        return finish(figure, f"Trainer against generator: {_short(model)}", out, "precision")


def _draw_all(axes: Any, rows: Any, generators: Any, trainers: Any) -> None:
    """KL a token of every combination, a line for each generator, a mark for each trainer."""
    shifts = dict(zip(trainers, np.linspace(-0.28, 0.28, len(trainers)), strict=True)) if len(trainers) > 1 else {}
    for row in rows:
        place = generators.index(row.generator) + shifts.get(row.trainer, 0.0)
        value, error = max(row.figures.kl, _LEAST), row.figures.error
        colour, full = _COLOURS[row.trainer.dtype], row.trainer.head == "fp32"
        axes.plot([max(value - error, _LEAST), value + error], [place] * 2, color=colour, alpha=0.4, linewidth=2)
        axes.plot(
            value,
            place,
            marker="o" if full else "s",
            markersize=7,
            color=colour,
            markerfacecolor=colour if full else "white",
            linestyle="none",
        )
    for trainer in trainers:
        full = trainer.head == "fp32"
        axes.plot(
            [],
            [],
            marker="o" if full else "s",
            color=_COLOURS[trainer.dtype],
            markerfacecolor=_COLOURS[trainer.dtype] if full else "white",
            linestyle="none",
            label=str(trainer),
        )
    floor = f" (less than {_LEAST:g} drawn there)" if any(row.figures.kl < _LEAST for row in rows) else ""
    axes.set(title="KL a token (nats), by generator and trainer", xlabel=f"KL(generator || trainer){floor}")
    axes.set_xscale("log")
    axes.set_yticks(range(len(generators)), [str(generator) for generator in generators])
    axes.set_ylim(len(generators) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.legend(
        title="trainer",
        loc="upper left",
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        bbox_to_anchor=(0, -0.16),
        ncols=3,
    )


def _draw_positions(axes: Any, rows: Any) -> None:
    """Mean difference by position, of the combinations with both sides alike."""
    alike = [row for row in rows if row.generator == row.trainer] or rows[:1]
    ends: list[tuple[float, Any]] = []
    for row in alike:
        buckets = row.figures.buckets
        middles = [np.sqrt(bucket.first * bucket.last) for bucket in buckets]
        values = [max(bucket.mean, _LEAST) for bucket in buckets]
        style = "-" if row.trainer.head == "fp32" else "--"
        axes.plot(middles, values, color=_COLOURS[row.trainer.dtype], linewidth=2, linestyle=style, marker=".")
        ends.append((values[-1], row))
    axes.set(title="Mean |difference| by position, both sides alike", xlabel="token of the completion")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.margins(y=0.12)
    thousands(axes)
    axes.minorticks_off()
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    # Named at the right edge, where each ends, moved apart in parts of the axis.
    low, high = (np.log(limit) for limit in axes.get_ylim())
    ends.sort(key=lambda end: end[0])
    for (_, row), place in zip(ends, apart([(np.log(v) - low) / (high - low) for v, _ in ends], 0.07), strict=True):
        axes.annotate(
            str(row.trainer),
            (1.02, place),
            xycoords="axes fraction",
            va="center",
            fontsize=9,
            color=_COLOURS[row.trainer.dtype],
            annotation_clip=False,
        )


def _short(name: str) -> str:
    last = name.rstrip("/").rsplit("/", 1)[-1]
    return last if len(last) <= 60 else last[:59] + "…"
