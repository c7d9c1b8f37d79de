"""`curricula replay`: what another mix would have chosen where a logged run chose."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from curricula.cli import import_beside
from curricula.config import load_mix
from curricula.errors import CurriculaRuntimeError
from curricula.log.counterfactual import Replay, Side, replay
from curricula.log.estimate import LEAST, Estimate


def command(
    log: Annotated[Path, typer.Argument(help="The folder of an outcome log.", show_default=False)],
    other: Annotated[Path, typer.Option("--with", help="The mix to ask, a YAML file.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Say what another mix would have chosen at each step of a logged run, and what that would have brought.

    The other curriculum is told what the log was told, and asked before each step how probable each prompt that was
    drawn would have been. Estimates weigh the logged groups by that; they are about one step at a time, not about what
    the policy would have become. Below an effective 100 groups there is none, and the exit code is 1.

    Example: curricula replay runs/log --with other.yaml
    """
    import_beside(other)
    found = replay(log, load_mix(other))
    if as_json:
        typer.echo(json.dumps(asdict(found), allow_nan=False))
    else:
        typer.echo("\n".join(_lines(found)))
    effective = found.whole.other.effective
    if effective < LEAST:
        raise CurriculaRuntimeError(
            f"replay: expected an effective sample size of {LEAST:.0f} or more for an estimate; got {effective:.1f} "
            f"from {found.whole.other.draws:,} groups; the two mixes choose too differently, or the log is too short"
        )


def _lines(found: Replay) -> list[str]:
    rate = "success" if found.rates else "mean reward"
    heads = (
        "environment",
        "share",
        "informative",
        rate,
        "tokens/informative",
        "effective",
        "unsupported",
        "never drawn",
    )
    rows = [_cells(name, side) for name, side in found.environments.items()]
    rows.append(_cells("all", found.whole))
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [
        f"{found.asks:,} asks, {found.whole.other.draws:,} groups told"
        + (f", {found.repeats:,} repeats left out" if found.repeats else "")
        + "; each figure as logged > with the other mix (± its standard error)"
    ]
    lines += [f"note: {note}" for note in found.notes]
    for row in [heads, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    whole = found.whole.other
    lines.append(
        f"weights: mean {whole.mean_weight:.3g}, the largest is {whole.largest:.1%} of their sum; none is clipped"
    )
    return lines


def _cells(name: str, side: Side) -> tuple[str, ...]:
    before, after = side.logged, side.other
    return (
        name if len(name) <= 40 else f"{name[:39]}…",
        f"{side.logged_share:.3f} > {side.share:.3f}",
        f"{_number(before.informative)} > {_number(after.informative, after.informative_error)}",
        f"{_number(before.success)} > {_number(after.success, after.success_error)}",
        f"{_tokens(before)} > {_tokens(after)}",
        f"{after.effective:,.0f} of {after.draws:,}",
        f"{side.unsupported:.1%}",
        f"{side.unseen:.1%}",
    )


def _number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _tokens(side: Estimate) -> str:
    return "-" if side.tokens is None else f"{side.tokens:,.0f}"
