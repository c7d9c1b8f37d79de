"""`curricula scaling allocate`: a budget split among environments."""

import json
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from curricula.allocation import Allocation, allocate
from curricula.allocation.caution import BLIND
from curricula.cli.scaling import options, report
from curricula.cli.scaling.fitting import Fitted, fit_all
from curricula.cli.scaling.report import amount
from curricula.cli.scaling.series import Scale, read_series
from curricula.cli.scaling.sources import Asked
from curricula.config.explain import nearest
from curricula.errors import CurriculaValueError
from curricula.versions import require

Named = list[str] | None


def command(
    sources: options.Sources,
    budget: Annotated[str, typer.Option(help="Compute to split, in the unit of the curves.", show_default=False)],
    weight: Annotated[
        Named, typer.Option(help="What a gain counts, as NAME=VALUE; repeat it.", show_default="1 each")
    ] = None,
    cost: Annotated[
        Named,
        typer.Option(help="Budget for a unit of its compute, as NAME=VALUE; repeat it.", show_default="1 each"),
    ] = None,
    spent: Annotated[
        Named, typer.Option(help="Compute so far, as NAME=VALUE; repeat it.", show_default="the last points")
    ] = None,
    floor: Annotated[float, typer.Option(min=0, max=1, help="Least share of each.")] = 0.0,
    cap: Annotated[float, typer.Option(min=0, max=1, help="Most share of each.")] = 1.0,
    rule: Annotated[
        Literal["expected", "thompson"], typer.Option(help="The best on average, or by one draw of the curves.")
    ] = "expected",
    draw: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
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
    """Split a budget among environments so that their scores rise most, by the fits of their curves.

    A curve is an environment's score against the compute spent on it. An outcome log has those of its environments.

    Example: curricula scaling allocate runs/log --budget 100000 --weight maths=2 --floor 0.05
    """
    require("cli")
    options.check_plot(plot)
    asked = Asked(compute, score, by, seed, tracking_uri, bins, own=True)
    found = read_series(sources, asked, Scale(percent, noise, prompts, samples))
    labels = [series.label for series in found]
    given = {
        "costs": _named("--cost", cost, labels),
        "weights": _named("--weight", weight, labels),
        "spent": _named("--spent", spent, labels),
    }
    amount_of = options.number("--budget", budget, "a compute of 0 or more")
    fits = fit_all(found, method=method, r0=r0, skip=skip, percent=percent)
    plan = allocate(
        {one.label: one.fit for one in fits}, amount_of, floor=floor, cap=cap, method=rule, seed=draw, **given
    )
    if as_json:
        content = {"fits": {one.label: report.dictionary(one) for one in fits}, "plan": plan.to_dict()}
        typer.echo(json.dumps(content, allow_nan=False))
    else:
        _show(fits, plan)
    if plot is not None:
        from curricula.cli.scaling.plot_plan import draw_plan  # matplotlib takes a second

        draw_plan(fits, plan, plot)
        if not as_json:
            print(f"{'plot':9} {plot}")


def _named(option: str, texts: Named, labels: Sequence[str]) -> dict[str, float] | None:
    if not texts:
        return None
    found: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or name not in labels:
            raise CurriculaValueError(
                f"{option}: expected NAME=VALUE with a name of {', '.join(labels)}; got {text!r}{nearest(name, labels)}"
            )
        if name in found:
            raise CurriculaValueError(f"{option}: expected each name once; got {name!r} twice")
        found[name] = options.number(option, value, "NAME=VALUE with a value of 0 or more", given=text)
    return found


def _show(fits: Sequence[Fitted], plan: Allocation) -> None:
    console = report.console()
    console.print(report.fits_table(fits))
    heads = ("share", fits[0].series.axis, "so far", "gain", "low", "high", "slope")
    table = report.table(f"{amount(plan.budget)} split, {plan.method}", heads, ("environment",))
    for name, share in plan.shares.items():
        gain = plan.gains[name]
        table.add_row(
            name,
            f"{share:.3f}",
            amount(round(share, 6) * plan.budget),
            amount(plan.spent[name]),
            *(f"{value:+.3f}" for value in (gain.mean, gain.low, gain.high)),
            f"{plan.marginal[name]:.2g}",
        )
    console.print(table)
    total = plan.total
    console.print(
        f"weighted gain {total.mean:.4f} [{total.low:.4f}, {total.high:.4f}]; with equal shares {plan.equal:.4f}, "
        f"with proportional ones {plan.proportional:.4f}; no split gains more than {plan.bound:.4f}"
        + (" on the curves that were drawn" if plan.method == "thompson" else ""),
        highlight=False,
        soft_wrap=True,
    )
    for note in _doubts(fits, plan):
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
    report.show_notes(console, fits)


def _doubts(fits: Sequence[Fitted], plan: Allocation) -> list[str]:
    said: list[str] = []
    if plan.budget > 0 and plan.trust < 1 and len(fits) > 1:
        said.append(
            f"what the best split gains over equal shares is not clear: these are {plan.trust:.0%} of the way from "
            "equal ones to it"
        )
    if blank := [one.label for one in fits if not BLIND.isdisjoint(one.fit.reasons)]:
        said.append(f"the gains of {', '.join(blank)} are what curves do in general: their points say too little")
    return said
