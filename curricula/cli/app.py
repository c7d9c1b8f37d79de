"""The commands, put together. A new one is a file with a function `command`, and one line below."""

from typing import Annotated

import typer

import curricula
from curricula.cli import replay, train, validate
from curricula.cli.demo.command import command as demo
from curricula.cli.precision.command import command as precision
from curricula.cli.scaling.app import app as scaling
from curricula.cli.simulate.command import command as simulate

app = typer.Typer(
    name="curricula",
    help="Decide which prompts a reinforcement-learning run spends its rollouts on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("demo")(demo)
app.command("precision")(precision)
app.command("replay")(replay.command)
app.command("simulate")(simulate)
app.command("train")(train.command)
app.add_typer(scaling, name="scaling")
app.command("validate")(validate.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"curricula {curricula.__version__}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass
