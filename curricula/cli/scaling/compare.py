"""`curricula scaling compare`: which recipe has the higher ceiling, and which is merely faster."""

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated

import typer

from curricula.cli.scaling import options, report
from curricula.cli.scaling.fitting import Fitted, fit_all
from curricula.cli.scaling.report import amount
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.config.explain import nearest
from curricula.errors import CurriculaValueError
from curricula.scaling import Comparison, compare
from curricula.scaling.comparing import RUN_SPREAD
from curricula.versions import require

Pair = tuple[Fitted, Fitted, Comparison]
MOST = 8


def command(
    sources: options.Sources,
    target: Annotated[
        float | None,
        typer.Option(help="A score to get to.", show_default="what all are expected to reach at four times the data"),
    ] = None,
    run_spread: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of a recipe's ceiling between runs, as scores are; 0 asks about these very runs.",
            show_default=f"{RUN_SPREAD}, or {100 * RUN_SPREAD:g} with --percent",
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The curve to compare the others with.", show_default="all pairs")
    ] = None,
    compute: options.Compute = None,
    score: options.Score = None,
    by: options.By = None,
    seed: options.Seed = None,
    percent: options.Percent = False,
    noise: options.Noise = None,
    prompts: options.Prompts = None,
    samples: options.Samples = None,
    r0: options.R0 = None,
    skip: options.Skip = "auto",
    method: options.Method = "bayes",
    bins: options.Bins = 40,
    tracking_uri: options.TrackingUri = None,
    plot: options.Plot = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare recipes: by the paper's rule, and by the probability that each has the higher ceiling or is there first.

    Example: curricula scaling compare recipes.json --compute tokens --plot recipes.png
    """
    require("cli")
    options.check_plot(plot)
    asked, scale = Asked(compute, score, by, seed, tracking_uri, bins), Scale(percent, noise, prompts, samples)
    found = read_series(sources, asked, scale)
    labels = [series.label for series in found]
    if len(found) < 2:
        raise CurriculaValueError(
            f"{sources[0]}: expected two curves or more; got {labels[0]!r} alone; name a column of recipes with --by, "
            + "; ".join(["or another source", *found[0].notes])
        )
    if against is not None and against not in labels:
        raise CurriculaValueError(
            f"--against: expected one of {', '.join(labels)}; got {against!r}{nearest(against, labels)}"
        )
    if against is None and len(found) > MOST:
        raise CurriculaValueError(
            f"{sources[0]}: expected at most {MOST} curves in all pairs; got {len(found)}; name one with --against"
        )
    # A target is a score: a percentage where scores are.
    goal = target / 100 if target is not None and percent else target
    between = RUN_SPREAD if run_spread is None else run_spread / 100 if percent else run_spread
    if not 0 <= between <= 1:
        most = 100 if percent else 1
        raise CurriculaValueError(f"--run-spread: expected a number from 0 to {most}; got {run_spread:g}")
    fits = fit_all(found, method=method, r0=r0, skip=skip, percent=percent)
    pairs: list[Pair] = [
        (a, b, compare(a.fit, b.fit, target=goal, run_spread=between))
        for a, b in combinations(fits, 2)
        if against is None or against in (a.label, b.label)
    ]
    if as_json:
        content = {
            "fits": {one.label: report.dictionary(one) for one in fits},
            "pairs": [{"a": a.label, "b": b.label, **made.to_dict()} for a, b, made in pairs],
        }
        typer.echo(json.dumps(content, allow_nan=False))
    else:
        _show(fits, pairs)
    if plot is not None:
        from curricula.cli.scaling.plot import draw  # matplotlib takes a second, and --help should not wait for it

        draw(fits, plot, reach=_reach(pairs), overtakes=_overtakes(pairs))
        if not as_json:
            print(f"{'plot':9} {plot}")


def _show(fits: Sequence[Fitted], pairs: Sequence[Pair]) -> None:
    console = report.console()
    console.print(report.fits_table(fits))
    for a, b, made in pairs:
        console.print(_table(a, b, made))
        for line in verdict(a.label, b.label, made):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        console.print()
    report.show_notes(console, fits)


def _table(a: Fitted, b: Fitted, made: Comparison) -> report.Table:
    table = report.table(f"{a.label} and {b.label}", (a.label, b.label), ("",))
    rows = (
        ("higher ceiling, probability", made.higher, 2),
        (f"first to {made.target:.3f}, probability", made.first, 2),
        ("ceiling A", made.asymptotes, 3),
        ("exponent B" + (" at one ceiling" if made.by == "exponent" else ""), made.exponents, 2),
    )
    for name, values, digits in rows:
        table.add_row(name, *(report.figure(value, digits) for value in values))
    table.add_row(f"{a.series.axis} to {made.target:.3f}, median", *map(amount, made.reached))
    return table


def verdict(a: str, b: str, made: Comparison) -> list[str]:
    """What the paper's rule says, where one overtakes the other, and what cannot be said."""
    names = {"a": a, "b": b}
    lines: list[str] = []
    if made.winner is None:
        lines.append("by the paper's rule: neither, " + ("they are alike" if made.by == "exponent" else "no ceilings"))
    else:
        why = "the higher ceiling" if made.by == "asymptote" else "ceilings within .02, the larger exponent"
        lines.append(f"by the paper's rule: {names[made.winner]} ({why})")
    if made.overtook is not None:
        side, place, probability = made.overtook
        lines.append(
            f"within the data {names[side]} overtook {names['b' if side == 'a' else 'a']} at about {amount(place)} "
            f"(probability {probability:.2f})"
        )
    cross = made.crossing
    if cross.probability >= 0.05:
        ahead = a if cross.a >= cross.b else b
        low, high = cross.interval
        already = made.overtook is not None and names[made.overtook[0]] == ahead
        when = "only past the data" if already else "past the data"
        lines.append(
            f"{ahead} overtakes {when} with probability {max(cross.a, cross.b):.2f}, then at about "
            f"{amount(cross.compute)} [{amount(low)}, {amount(high)}]"
        )
    else:
        lines.append(f"past the data neither overtakes the other (probability {cross.probability:.2f})")
    return [*lines, *(f"note: {text}" for text in made.reasons.values())]


def _overtakes(pairs: Sequence[Pair]) -> list[tuple[float, str]]:
    """Where one overtook another, or more likely than not will."""
    found: list[tuple[float, str]] = []
    for a, b, made in pairs:
        if made.overtook is not None:
            side, place, _ = made.overtook
            first, second = (a, b) if side == "a" else (b, a)
            found.append((place, f"{first.label} overtook {second.label}"))
        ahead, behind = (a, b) if made.crossing.a >= made.crossing.b else (b, a)
        if max(made.crossing.a, made.crossing.b) >= 0.5:
            found.append((made.crossing.compute, f"{ahead.label} overtakes {behind.label}"))
    return found


def _reach(pairs: Sequence[Pair]) -> float:
    """As far as the crossings that are drawn, within a hundred times the data."""
    last = max(one.last for pair in pairs for one in pair[:2])
    return max([1.5 * place for place, _ in _overtakes(pairs) if place < 100 * last], default=0.0)
