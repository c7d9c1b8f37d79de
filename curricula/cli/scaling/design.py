"""`curricula scaling design`: how long a pilot must be for a wanted band."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from curricula.cli.progress import progress
from curricula.cli.scaling import options, report
from curricula.cli.scaling.fitting import fit_all
from curricula.cli.scaling.report import amount
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.errors import CurriculaValueError
from curricula.scaling import ScalingFit
from curricula.scaling.bands import LEVEL
from curricula.scaling.pilots import SURE, Design, design, lengths_at_most
from curricula.versions import require


def command(
    spacing: Annotated[float, typer.Option(help="Compute between two evaluations.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Argument(help="Points so far, as other commands read them; else a guess.", show_default=False),
    ] = None,
    asymptote: Annotated[float | None, typer.Option(help="Guessed ceiling.", show_default=False)] = None,
    midpoint: Annotated[float | None, typer.Option(help="Guessed midpoint.", show_default=False)] = None,
    exponent: Annotated[float | None, typer.Option(help="Guessed steepness.", show_default="1.5")] = None,
    r0: Annotated[
        float | None,
        typer.Option(
            "--r0", help="Guessed score at no compute; with points: known.", show_default="0; with points: estimated"
        ),
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Standard error of an evaluation.", show_default=False)] = None,
    prompts: options.Prompts = None,
    samples: options.Samples = None,
    horizon: Annotated[float | None, typer.Option(help="Compute to forecast at.", show_default="the ceiling")] = None,
    width: Annotated[
        float | None,
        typer.Option(help="Half of the 90% band's width that is wanted.", show_default="0.02, or 2 with --percent"),
    ] = None,
    longest: Annotated[
        float | None, typer.Option(help="The longest pilot.", show_default="the horizon, or 20 midpoints")
    ] = None,
    pilots: Annotated[int, typer.Option(min=5, max=2000, help="Simulated pilots of each length.")] = 40,
    draw: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
    compute: options.Compute = None,
    score: options.Score = None,
    percent: options.Percent = False,
    bins: Annotated[
        int | None, typer.Option(min=4, max=400, help="Points of an outcome log, at most.", show_default="40")
    ] = None,
    tracking_uri: options.TrackingUri = None,
    plot: options.Plot = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how long a pilot must be: the shortest whose 90% band is as narrow as wanted in 80% of simulated pilots.

    Example: curricula scaling design --asymptote .6 --midpoint 2500 --spacing 100 --prompts 1000 --samples 16
    """
    require("cli")
    options.check_plot(plot)
    guessed = asymptote is not None and midpoint is not None
    if guessed == (source is not None) or (asymptote is None) != (midpoint is None):
        raise CurriculaValueError(
            "design: expected points so far, or a guess of both --asymptote and --midpoint; got "
            + (
                "points and a guess"
                if source is not None
                else "half a guess"
                if (asymptote, midpoint) != (None, None)
                else "neither"
            )
        )
    if source is not None and exponent is not None:
        raise CurriculaValueError("--exponent: expected it with a guess; got points, which say it; leave it out")
    for option, value in (("--score", score), ("--bins", bins), ("--tracking-uri", tracking_uri)):
        if source is None and value is not None:
            raise CurriculaValueError(f"{option}: expected it with points so far; got a guess; leave it out")
    scales = 100 if percent else 1
    if source is not None:
        asked = Asked(compute, score, None, None, tracking_uri, bins or 40)
        found = read_series([source], asked, Scale(percent))
        if len(found) > 1:
            raise CurriculaValueError(f"{source}: expected points of one curve; got {len(found)}")
        (one,) = fit_all(found, method="bayes", r0=r0, skip="auto", percent=percent)
        curve, axis = one.fit, one.series.axis
    else:
        steepness = 1.5 if exponent is None else exponent
        curve, axis = _guess(asymptote or 0.0, steepness, midpoint or 0.0, r0 or 0.0, scales), compute or "compute"
    # Not among the results: it shows that something is done, for a minute or two.
    console = Console(stderr=True)
    with progress(console) as bars:
        bar = bars.add_task("pilots", total=lengths_at_most() * pilots)
        fitted: Counter[float] = Counter()

        def on_pilot(length: float) -> None:
            if not fitted:
                lengths = f"up to {lengths_at_most()} lengths, the longest first"
                console.print(f"fitting {pilots} pilots of each of {lengths}", highlight=False)
            fitted[length] += 1
            bars.advance(bar)
            if fitted[length] == pilots and not console.is_terminal:
                console.print(f"pilots of {amount(length)}: done", highlight=False)

        made = design(
            curve,
            spacing=spacing,
            noise=None if noise is None else noise / scales,
            prompts=prompts,
            samples=samples or 1,
            horizon=horizon,
            width=0.02 if width is None else width / scales,
            longest=longest,
            simulations=pilots,
            seed=draw,
            on_pilot=on_pilot,
        )
        bars.update(bar, completed=lengths_at_most() * pilots)
    if as_json:
        typer.echo(json.dumps({"axis": axis, **made.to_dict()}, allow_nan=False))
    else:
        _show(report.console(), made, axis)
    _draw(made, axis, plot, as_json)


def _guess(asymptote: float, exponent: float, midpoint: float, r0: float, scales: int) -> ScalingFit:
    ceiling, start = asymptote / scales, r0 / scales
    if not 0 <= start < ceiling <= 1:
        raise CurriculaValueError(
            f"design: expected scores with 0 <= r0 < asymptote <= 1; got r0 {start:g} and asymptote {ceiling:g}"
            + ("; give --percent if they are percentages" if ceiling > 1 and scales == 1 else "")
        )
    if not (0 < exponent < 100 and 0 < midpoint < float("inf")):
        raise CurriculaValueError(
            "design: expected a midpoint above 0, finite, and an exponent above 0 and below 100; "
            f"got {midpoint:g} and {exponent:g}"
        )
    return ScalingFit.of_parameters(ceiling, exponent, midpoint, start)


def _show(console: Console, made: Design, axis: str) -> None:
    what = "the ceiling" if made.horizon is None else f"the score at {amount(made.horizon)}"
    heads = ("evaluations", "half-width", f"at most {made.width:g}", "holds the truth", "error", "RMSE")
    title = f"Pilots of {what}, {made.simulations} simulated of each length in {axis}"
    table = report.table(title, ("length", *heads), ())
    for pilot in made.pilots:
        table.add_row(
            amount(pilot.length),
            f"{pilot.points}",
            f"{pilot.half_width:.4f}",
            *(f"{part:.0%}" for part in (pilot.narrow, pilot.coverage)),
            f"{pilot.error:.4f}",
            f"{pilot.rmse:.4f}",
        )
    console.print(table)
    for line in (verdict(made, axis), *warnings_of(made, axis)):
        console.print(line, highlight=False, soft_wrap=True)


def verdict(made: Design, axis: str) -> str:
    """What was found, in a sentence."""
    if made.shortest is None:
        return (
            f"no pilot up to {amount(made.pilots[-1].length)} {axis} gives a band of ±{made.width:g} in {SURE:.0%} of "
            "cases: evaluate on more prompts or more often, allow a wider band, or a longer pilot"
        )
    return (
        f"a pilot of {amount(made.shortest)} {axis}: its band is ±{made.width:g} or narrower in {SURE:.0%} of cases or "
        "more, if the curve is as supposed"
    )


def warnings_of(made: Design, axis: str) -> list[str]:
    """What the sentence does not say: a band that holds the truth too seldom, and pilots that are far off."""
    lines: list[str] = []
    advised = next((pilot for pilot in made.pilots if pilot.length == made.shortest), None)
    if advised is not None and advised.overstated(made.simulations):
        longer = (p for p in made.pilots if p.length > advised.length and not p.overstated(made.simulations))
        honest = next(longer, None)
        remedy = "allow a wider band, or evaluate on more prompts"
        if honest is not None:
            remedy = f"at {amount(honest.length)} {axis} it held it in {honest.coverage:.0%}"
        lines.append(
            f"warning: that {LEVEL:.0%} band held the truth in {advised.coverage:.0%} of these pilots only, so at this "
            f"length it may be narrower than it should be (more --pilots say it more surely); {remedy}"
        )
    far = [pilot for pilot in made.pilots if pilot.left > 0 and pilot.rmse > 3 * pilot.error]
    if far:
        worst = max(far, key=lambda pilot: pilot.rmse)
        lines.append(
            f"note: in {worst.left:.0%} of the pilots of {amount(worst.length)} {axis} the last third seemed to leave "
            f"the law by chance; their forecasts span going on so, and make the RMSE of {worst.rmse:.4f} (half of all "
            f"pilots are off by {worst.error:.4f} or less)"
        )
    return lines


def _draw(made: Design, axis: str, plot: Path | None, as_json: bool) -> None:
    if plot is None:
        return
    from curricula.cli.scaling.plot_design import draw_design  # matplotlib takes a second

    draw_design(made, axis, plot)
    if not as_json:
        print(f"{'plot':9} {plot}")
