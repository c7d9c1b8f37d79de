"""Fits and forecasts as tables."""

import math
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from curricula.cli.scaling.fitting import Fitted
from curricula.scaling.bands import LEVEL, tails

Forecast = list[tuple[float, float, float, float]]
"""Compute, mean, low and high of each place."""


def console() -> Console:
    """Standard output, for tables with names that are no markup."""
    return Console(markup=False, emoji=False)


def fits_table(fits: Sequence[Fitted]) -> Table:
    """Parameters with their intervals, a few rows for each curve."""
    axis, measure = fits[0].series.axis, fits[0].series.measure
    low, high = (f"{end:.0%}" for end in tails())
    made = table(f"{measure} against {axis}, {fits[0].fit.method}", ("estimate", low, high), ("curve", ""))
    for one in fits:
        fit = one.fit
        about = [one.label, counted(len(fit.observed), "point"), f"up to {amount(one.last)}", "", "", ""]
        rows = [
            ("ceiling A", figure(fit.asymptote), *map(figure, fit.interval("asymptote"))),
            ("exponent B", figure(fit.exponent, 2), *(figure(end, 2) for end in fit.interval("exponent"))),
            ("midpoint", amount(fit.midpoint), *map(amount, fit.interval("midpoint"))),
            ("R0", figure(fit.r0), *map(figure, fit.interval("r0"))),
        ]
        if fit.method == "bayes":
            rows.append(("probability of a bend", f"{fit.bounded:.2f}", "", ""))
        # One place tells nothing of a curve: all figures would be what was believed before.
        rows = [(row[0], "-", "-", "-") for row in rows] if fit.blank else [row for row in rows if row[1] != "-"]
        if math.isfinite(fit.noise) and not fit.blank:
            rows.append(("noise of a point", figure(fit.noise), "", ""))
        for label, row in zip(about, rows, strict=False):
            made.add_row(label, *row)
        made.add_section()
    return made


def forecast_table(fits: Sequence[Fitted], forecasts: Sequence[Forecast]) -> Table:
    """What each curve comes to at the places asked about."""
    made = table(
        f"{fits[0].series.measure} to be expected, with the {LEVEL:.0%} band of the curve",
        (fits[0].series.axis, "times the last", "mean", "low", "high"),
        ("curve",),
    )
    for one, forecast in zip(fits, forecasts, strict=True):
        for compute, mean, low, high in forecast:
            said = ("-",) * 3 if one.fit.blank else tuple(f"{v:.3f}" for v in (mean, low, high))
            made.add_row(one.label, amount(compute), f"{compute / one.last:.3g}", *said)
    return made


def table(title: str, headings: Sequence[str], names: Sequence[str]) -> Table:
    """An empty table with columns of names and others of numbers."""
    made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
    for name in names:
        made.add_column(name, overflow="fold")
    for heading in headings:
        made.add_column(heading, justify="right", no_wrap=True)
    return made


def show_notes(console: Console, fits: Sequence[Fitted]) -> None:
    """A line for each thing that the points do not tell, after the name of its curve where that is not all of them."""
    common = [note for note in fits[0].notes if all(note in one.notes for one in fits)]
    lines = common + [f"{one.label}: {note}" for one in fits for note in one.notes if note not in common]
    for line in lines:
        console.print(f"note: {line}", highlight=False, markup=False, soft_wrap=True)


def dictionary(one: Fitted, forecast: Forecast | None = None) -> dict[str, Any]:
    """A fit as JSON."""
    found = {"axis": one.series.axis, "score": one.series.measure, **one.fit.to_dict()}
    found["notes"] = [*one.series.notes, *one.fit.notes]
    if forecast is not None:
        found["forecast"] = [dict(zip(("compute", "mean", "low", "high"), row, strict=True)) for row in forecast]
    return found


def counted(number: int, what: str) -> str:
    """A count in words.

    >>> counted(1, "point"), counted(2, "point")
    ('1 point', '2 points')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def amount(value: float) -> str:
    """A compute, readable.

    >>> amount(1234567.0), amount(12.345), amount(0.00321), amount(3e12), amount(float("inf"))
    ('1,234,567', '12.3', '0.00321', '3e+12', '-')
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.3g}"


def figure(value: float, digits: int = 3) -> str:
    """A number of so many digits, or a dash for one that does not exist.

    >>> figure(0.61234), figure(float("nan"))
    ('0.612', '-')
    """
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"
