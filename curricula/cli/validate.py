"""`curricula validate`: everything that can be wrong with a mix, before a run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from curricula.config import load_mix, resolved


def command(
    mix: Annotated[Path, typer.Argument(help="The mix, a YAML file.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Read a mix, load its sources, and print it with every default written out.

    Reward functions that the mix names are imported, and so run.

    Example: curricula validate configs/first-run.yaml
    """
    config = load_mix(mix)
    sizes: dict[str, int] = {}
    if any(environment.source is not None for environment in config.environments.values()):
        from curricula_envs import load_environments

        mixed = load_environments(config, mix.parent)
        config, sizes = mixed.config, dict(mixed.sizes)
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
