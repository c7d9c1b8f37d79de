"""What the pictures of `curricula scaling` share: colours, an axis of compute, where they go."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator

from curricula.cli.scaling.report import amount
from curricula.cli.style import CURRICULUM, FAINT, UNIFORM, apart
from curricula.errors import CurriculaValueError

COLOURS = (CURRICULUM, UNIFORM, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
_LINES = 24
_FAR = 300.0
"""An axis over more than such a factor has powers of ten alone."""


def compute_axis(axes: Any, name: str) -> None:
    """Compute along a logarithmic axis, in numbers that can be read."""
    axes.set(xscale="log", xlabel=plain(name))
    low, high = axes.get_xlim()
    near = low > 0 and high < _FAR * low
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if near else (1,), numticks=None if near else 8))
    axes.xaxis.set_major_formatter(_amount)
    axes.minorticks_off()
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def name_ends(axes: Any, ends: Sequence[tuple[float, str, str]], limits: tuple[float, float]) -> None:
    """Names at the right edge, where each curve ends, moved apart."""
    ordered = sorted(ends)[:_LINES]
    heights = [(value - limits[0]) / (limits[1] - limits[0]) for value, _, _ in ordered]
    for (_, colour, label), place in zip(ordered, apart(heights, 0.05), strict=True):
        axes.annotate(
            plain(short(label, 26)),
            (1.02, place),
            xycoords="axes fraction",
            va="center",
            fontsize=9,
            color=colour,
            annotation_clip=False,
        )


def save(figure: Any, title: str, path: Path) -> Path:
    """Put a title over a figure and save it; the same points give the same file."""
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize=13, fontweight="bold")
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # boxes in the picture say so
            figure.savefig(path, dpi=150, facecolor="white", metadata=metadata)
    except OSError as error:
        raise CurriculaValueError(
            f"--plot: expected a file that can be written; got {path}: {error.strerror}"
        ) from error
    return path


def plain(text: str) -> str:
    r"""Text that is no formula to matplotlib.

    >>> plain("costs $5")
    'costs \\$5'
    """
    return text.replace("$", r"\$")


def short(name: str, most: int) -> str:
    """A name of at most so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _amount(value: float, _: int) -> str:
    return amount(value)
