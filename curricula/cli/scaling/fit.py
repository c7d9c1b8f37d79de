"""`curricula scaling fit`: a curve's ceiling, steepness and midpoint, with what is not known of them."""

import json

import typer

from curricula.cli.scaling import options, report
from curricula.cli.scaling.fitting import Fitted, fit_all
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.versions import require


def command(
    sources: options.Sources,
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
    """Fit a score against compute: the ceiling it tends to, how steep, and how sure that is.

    Example: curricula scaling fit curve.csv --compute Step --score ns64 --percent --plot curve.png
    """
    require("cli")
    options.check_plot(plot)
    asked, scale = Asked(compute, score, by, seed, tracking_uri, bins), Scale(percent, noise, prompts, samples)
    fits = fit_all(read_series(sources, asked, scale), method=method, r0=r0, skip=skip, percent=percent)
    if as_json:
        typer.echo(json.dumps({"fits": {one.label: report.dictionary(one) for one in fits}}, allow_nan=False))
    else:
        console = report.console()
        console.print(report.fits_table(fits))
        report.show_notes(console, fits)
    finish(fits, plot, as_json)


def finish(fits: list[Fitted], plot: options.Plot, as_json: bool, reach: float | None = None) -> None:
    """Draw the picture where one is asked for, and say where it is."""
    if plot is None:
        return
    from curricula.cli.scaling.plot import draw  # matplotlib takes a second, and --help should not wait for it

    draw(fits, plot, reach=reach)
    if not as_json:
        print(f"{'plot':9} {plot}")
