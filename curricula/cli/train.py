"""`curricula train`: the launcher for users without a script of their own."""

from pathlib import Path
from typing import Annotated

import typer

from curricula.cli import import_beside
from curricula.config import load_mix
from curricula.errors import CurriculaValueError


def command(
    mix: Annotated[Path, typer.Argument(help="The mix, a YAML file with a model.", show_default=False)],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the latest checkpoint in output_dir.")] = False,
    checkpoint: Annotated[
        Path | None, typer.Option("--resume-from", help="Go on from this checkpoint.", show_default=False)
    ] = None,
    warm_start: Annotated[
        Path | None,
        typer.Option("--warm-start", help="Begin with what this outcome log says of the prompts.", show_default=False),
    ] = None,
) -> None:
    """Train a model on a mix with TRL's GRPOTrainer.

    On several devices start it with torchrun or accelerate: torchrun --nproc_per_node 2 -m curricula train mix.yaml

    Example: curricula train configs/first-run.yaml
    """
    import_beside(mix)
    config = load_mix(mix)
    if warm_start is not None and (resume or checkpoint is not None):
        raise CurriculaValueError(
            "train: expected --warm-start or a checkpoint to resume from; got both; a checkpoint has what was learned"
        )
    from curricula_envs import load_environments
    from curricula_trl import launch

    launch.check(config)  # before prompts are made, which may take minutes
    mixed = load_environments(config, mix.parent)
    trainer = launch.run(
        mixed.config,
        mixed.dataset,
        mixed.reward,
        name=mix.stem,
        resume=checkpoint if checkpoint else resume,
        warm_start=warm_start,
    )
    # A process that exits with its group's threads alive may abort, and torchrun then reports a failed run.
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
