"""The picture of a design: width, error and coverage against a pilot's length."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from curricula.cli.scaling.looks import compute_axis, save
from curricula.cli.scaling.report import amount
from curricula.cli.style import CURRICULUM, INK, STYLE, UNIFORM
from curricula.scaling.bands import LEVEL
from curricula.scaling.pilots import SURE, Design


def draw_design(made: Design, axis: str, path: Path) -> Path:
    """Draw a design into a file, and return it."""
    lengths = [pilot.length for pilot in made.pilots]
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        figure: Any = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(lengths, [pilot.half_width for pilot in made.pilots], "o-", color=CURRICULUM, label="half-width")
        left.plot(lengths, [pilot.error for pilot in made.pilots], "s--", color=UNIFORM, label="error, median")
        left.plot(lengths, [pilot.rmse for pilot in made.pilots], "^:", color=UNIFORM, label="error, RMSE")
        left.axhline(made.width, color=INK, linewidth=1, linestyle=":", label=f"wanted: {made.width:g}")
        left.set(title="Half of the 90% band, and error of the forecast", yscale="log", ylabel="score")
        right.plot(lengths, [pilot.narrow for pilot in made.pilots], "o-", color=CURRICULUM, label="narrow enough")
        right.plot(
            lengths, [pilot.coverage for pilot in made.pilots], "s--", color=UNIFORM, label="band holds the truth"
        )
        right.axhline(SURE, color=CURRICULUM, linewidth=1, linestyle=":", label=f"wanted of the former: {SURE:g}")
        right.axhline(LEVEL, color=UNIFORM, linewidth=1, linestyle=":", label=f"meant of the latter: {LEVEL:g}")
        right.set(title="Part of the simulated pilots", ylim=(-0.03, 1.03))
        for axes in (left, right):
            compute_axis(axes, f"length of the pilot ({axis})")
            axes.legend(frameon=False, fontsize=9)
            if made.shortest is not None:
                axes.axvline(made.shortest, color=INK, linewidth=1, linestyle="-.")
        found = (
            "No pilot is long enough"
            if made.shortest is None
            else f"A pilot of {amount(made.shortest)} {axis} is long enough"
        )
        advised = next((pilot for pilot in made.pilots if pilot.length == made.shortest), None)
        if advised is not None and advised.overstated(made.simulations):
            found = f"{found} for the width, but its band holds the truth in {advised.coverage:.0%}"
        return save(figure, found, path)
