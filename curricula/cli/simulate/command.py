"""`curricula simulate`: a preview of a mix without a GPU."""

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from curricula.cli import import_beside
from curricula.cli.progress import progress
from curricula.cli.simulate import report
from curricula.cli.simulate.environments import simulated
from curricula.cli.simulate.left_out import left_out
from curricula.cli.simulate.preview import Plan, Preview, run_mix, run_uniform
from curricula.config import CurriculumConfig, load_mix
from curricula.config.explain import nearest
from curricula.errors import CurriculaValueError
from curricula.simulation import WORLDS, Curve, Law, named_law, random_law
from curricula.versions import require


def command(
    mix: Annotated[Path, typer.Argument(help="The mix, a YAML file.", show_default=False)],
    world: Annotated[str, typer.Option(help=f"The assumed learner: {', '.join(WORLDS)}, or random.")] = "skewed",
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Steps of a run.")] = 150,
    groups: Annotated[int, typer.Option(min=1, max=100_000, help="Prompts in a step.")] = 32,
    group_size: Annotated[
        int | None, typer.Option(min=2, max=1024, help="Rollouts of a prompt; the mix's, else 8.", show_default=False)
    ] = None,
    prompts: Annotated[int, typer.Option(min=1, max=1_000_000, help="In environments whose size is not known.")] = 1000,
    learning: Annotated[float, typer.Option(min=0, max=1000, help="How fast ability grows, times the world's.")] = 1.0,
    unlearnable: Annotated[
        float | None, typer.Option(min=0, max=0.99, help="Share of prompts never solved.", show_default="the world's")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(min=-0.99, max=0.99, help="Of texts with difficulty.", show_default="the world's"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds; each runs both arms.")] = 5,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="The first of them.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for the plot, in two formats, and the figures; there is no --plot.")
    ] = Path("runs/simulate"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Preview a mix on a simulated learner, against uniform draws; no model, no GPU.

    The learner is assumed, and its law is printed: this shows how a mix behaves, and is no forecast of a run.

    Example: curricula simulate configs/first-run.yaml --world chains
    """
    require("cli")
    import_beside(mix)
    config = load_mix(mix)
    law = settled(world, seed, learning, unlearnable, correlation, steps)
    about = simulated(config, mix.parent, law, prompts)
    plan = Plan(about.law, about.levels, steps, groups, _group_size(config, group_size))
    total = sum(environment.prompts for environment in plan.law.environments)
    if groups > total:
        raise CurriculaValueError(f"--groups: expected at most {total}, the prompts of the mix; got {groups}")
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    console = Console(stderr=as_json)
    preview = _run(plan, config, range(seed, seed + seeds), console)
    from curricula.cli.simulate.plot import draw  # matplotlib takes a second, and --help should not wait for it

    with _writing(out):
        pictures = draw(preview, world, out)
    notes = [report.DISCLAIMER, report.law_text(world, plan.law), *about.notes]
    if ignored := left_out(config):
        notes.append(f"Not simulated, of what the mix sets: {', '.join(ignored)}.")
    summary = preview.summary() | {"world": world, "notes": notes, "plots": [str(picture) for picture in pictures]}
    with _writing(out):
        (out / "simulate.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(summary))
        return
    console.print()
    for table in report.tables(summary):
        console.print(table)
    for line in (*report.verdict(summary), "", *notes):
        # Words are kept whole in a terminal; a file has its lines as they are.
        console.print(line, highlight=False, soft_wrap=not console.is_terminal)
    for name, place in (("plot", pictures[0]), ("figures", out / "simulate.json")):
        print(f"{name:9} {place}")


@contextmanager
def _writing(out: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or out
        raise CurriculaValueError(
            f"--out: expected a folder that can be written; got {place}: {error.strerror}; free it, or give another"
        ) from error


def settled(
    world: str, seed: int, learning: float, unlearnable: float | None, correlation: float | None, steps: int
) -> Law:
    """The law of a world, with what the options change in it."""
    law = random_law(np.random.Generator(np.random.PCG64(seed)), steps) if world == "random" else _named(world)
    environments = tuple(
        replace(
            environment,
            rate=environment.rate * learning,
            unlearnable=environment.unlearnable if unlearnable is None else unlearnable,
            correlation=environment.correlation if correlation is None else correlation,
        )
        for environment in law.environments
    )
    return replace(law, environments=environments)


def _named(world: str) -> Law:
    try:
        return named_law(world)
    except CurriculaValueError:
        names = [*WORLDS, "random"]
        raise CurriculaValueError(
            f"--world: expected {', '.join(WORLDS)} or random; got {world!r}{nearest(world, names)}"
        ) from None


def _group_size(config: CurriculumConfig, given: int | None) -> int:
    mixed = config.trainer.get("num_generations")
    return given or (mixed if isinstance(mixed, int) and mixed >= 2 else 8)


def _run(plan: Plan, config: CurriculumConfig, seeds: range, console: Console) -> Preview:
    bars = progress(console)
    uniform: list[Curve] = []
    mixed: list[Curve] = []
    with bars:
        bar = bars.add_task("steps", total=2 * len(seeds) * plan.steps)
        for number, seed in enumerate(seeds):
            done = 2 * number * plan.steps
            uniform.append(run_uniform(plan, seed, lambda step, done=done: bars.update(bar, completed=done + step)))
            done += plan.steps
            mixed.append(
                run_mix(
                    plan,
                    config,
                    seed,
                    uniform[-1].final,
                    lambda step, done=done: bars.update(bar, completed=done + step),
                )
            )
            if not console.is_terminal:
                console.print(f"seed {seed}: done", highlight=False)
    return Preview(plan, {"uniform": uniform, "mix": mixed})
