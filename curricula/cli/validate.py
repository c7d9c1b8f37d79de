"""`curricula validate`: everything that can be wrong with a mix, before a run."""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from curricula.bandits.make import make_bandit
from curricula.cli import import_beside
from curricula.config import CurriculumConfig, load_mix, resolved
from curricula.config.folder import check_folder
from curricula.predictors.build import check_buildable


def command(
    mix: Annotated[Path, typer.Argument(help="The mix, a YAML file.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Read a mix, load its sources, and print it with every default written out.

    Reward functions and classes that the mix names are imported, and so run; no model is loaded. What takes time is
    loading torch and TRL, where the mix has a model or arguments of the trainer, and making the prompts.

    Example: curricula validate configs/first-run.yaml
    """
    import_beside(mix)
    config = load_mix(mix)
    # Seen in a terminal alone, and gone at the end: an error is one line, and the mix may be put into a file.
    with Console(stderr=True).status("looking at the mix") as status:
        config, sizes = _checked(config, mix, status)
    text = resolved(config, list(sizes) or None)
    if as_json:
        typer.echo(json.dumps({"file": str(mix), "prompts": sizes, "mix": config.model_dump(mode="json")}))
        return
    typer.echo(text, nl=False)
    if sizes:
        typer.echo(
            f"# {sum(sizes.values()):,} prompts: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}"
        )
    else:
        typer.echo("# No sources: environments come from the trainer's data set.")


def _checked(config: CurriculumConfig, mix: Path, status: Status) -> tuple[CurriculumConfig, dict[str, int]]:
    """The mix with the defaults of its sources, and their prompts."""
    sizes: dict[str, int] = {}
    # What costs least comes first: a mistyped folder is not to wait for prompts.
    _check_parts(config)
    check_folder(config)
    if config.trainer or config.model is not None:
        status.update("importing torch and TRL, which know the trainer's arguments")
        from curricula_trl.arguments import check_arguments_of, check_model

        check_arguments_of(config)
        if config.model is not None:
            check_model(config)
    if any(environment.source is not None for environment in config.environments.values()):
        status.update("importing what reads and makes prompts")
        from curricula_envs import load_environments

        def on_environment(name: str) -> None:
            status.update(f"making or reading the prompts of {escape(name)}")

        mixed = load_environments(config, mix.parent, on_environment=on_environment)
        config, sizes = mixed.config, dict(mixed.sizes)
    return config, sizes


def _check_parts(config: CurriculumConfig) -> None:
    """Makes the parts that a mix names, as far as that takes no prompts; raises ConfigError where one cannot be."""
    arms = len(config.environments) or 2  # where the data set says which there are, any number of them will do
    make_bandit(config, np.full(arms, 1.0 / arms), np.ones(arms))
    check_buildable(config)
