"""The commands of `curricula scaling`, put together."""

import typer

from curricula.cli.scaling import allocate, compare, design, fit, forecast

app = typer.Typer(
    help="Fit scores against compute, forecast, compare recipes, split compute, plan pilots.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("allocate")(allocate.command)
app.command("compare")(compare.command)
app.command("design")(design.command)
app.command("fit")(fit.command)
app.command("forecast")(forecast.command)
