"""How the pictures of the command line look.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; every line is also named
beside itself.
"""

from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator

UNIFORM, CURRICULUM = "#D55E00", "#0072B2"
ENVIRONMENTS = ("#56B4E9", "#009E73", "#F0E442", "#BBBBBB", "#CC79A7", "#E69F00")
INK, FAINT = "#222222", "#DDDDDD"
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "text.color": INK,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "svg.hashsalt": "curricula",
}


def apart(values: list[float], gap: float) -> list[float]:
    """Moves ascending places in [0, 1] until they are `gap` apart, up first, then down from the top.

    >>> apart([0.5, 0.6, 1.0], 0.25)
    [0.5, 0.75, 1.0]
    >>> apart([0.8, 0.9], 0.25)
    [0.75, 1.0]
    """
    placed: list[float] = []
    for value in values:
        placed.append(max(value, placed[-1] + gap) if placed else value)
    highest = 1.0
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], highest)
        highest = placed[i] - gap
    return placed


def thousands(axes: Any) -> None:
    """Whole numbers with commas along the horizontal axis."""
    axes.xaxis.set_major_formatter(_with_comma)


def few_ticks(axes: Any) -> None:
    """At most four of them."""
    axes.xaxis.set_major_locator(MaxNLocator(4))
    thousands(axes)


def finish(figure: Any, title: str, out: Path, name: str) -> list[Path]:
    """Puts a title over a figure and saves it as NAME.png and NAME.svg in a folder; returns the files."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    files = [out / f"{name}.png", out / f"{name}.svg"]
    for file in files:
        # Without a date the same runs give the same file.
        metadata = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, dpi=150, metadata=metadata, facecolor="white")
    return files


def _with_comma(value: float, _: int) -> str:
    return f"{value:,.0f}"
