"""`curricula scaling forecast`: what more compute will buy."""

import json
from typing import Annotated

import typer

from curricula.cli.scaling import options, report
from curricula.cli.scaling.fit import finish
from curricula.cli.scaling.fitting import Fitted, fit_all
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.versions import require

AHEAD = ["2x", "4x", "10x"]


def command(
    sources: options.Sources,
    at: Annotated[
        list[str] | None,
        typer.Option(help="Compute to forecast at; times the last point's as 4x.", show_default="2x, 4x, 10x"),
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
    """Say what more compute will buy: the score to be expected, with a band, and what the points cannot tell.

    Example: curricula scaling forecast runs/log --compute gpu_hours --at 4x --plot forecast.png
    """
    require("cli")
    options.check_plot(plot)
    options.places(at or [], 1.0)
    asked, scale = Asked(compute, score, by, seed, tracking_uri, bins), Scale(percent, noise, prompts, samples)
    fits = fit_all(read_series(sources, asked, scale), method=method, r0=r0, skip=skip, percent=percent)
    forecasts = [_forecast(one, at or AHEAD) for one in fits]
    if as_json:
        found = {one.label: report.dictionary(one, rows) for one, rows in zip(fits, forecasts, strict=True)}
        typer.echo(json.dumps({"fits": found}, allow_nan=False))
    else:
        console = report.console()
        console.print(report.fits_table(fits))
        console.print(report.forecast_table(fits, forecasts))
        report.show_notes(console, fits)
    finish(fits, plot, as_json, reach=max(row[0] for rows in forecasts for row in rows) * 1.1)


def _forecast(one: Fitted, at: list[str]) -> report.Forecast:
    places = options.places(at, one.last)
    mean, low, high = one.fit.predict(places)
    return [tuple(map(float, row)) for row in zip(places, mean, low, high, strict=True)]  # pyright: ignore[reportReturnType]
