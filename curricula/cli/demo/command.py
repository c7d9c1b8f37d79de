"""`curricula demo`: the runs, one table, one picture, and where to look further."""

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from curricula.cli.demo.jobs import Job, run_all, run_one
from curricula.cli.demo.plan import ARMS, ROLLOUTS
from curricula.cli.demo.results import Comparison
from curricula.errors import CurriculaValueError
from curricula.versions import require

EXPERIMENT = "curricula demo"


def command(
    out: Annotated[Path, typer.Option(help="Folder for the table, the plot and the MLflow store.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds to average over; each trains both arms.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help=f"Steps of a run, {ROLLOUTS} rollouts each.")] = 200,
    warm_up: Annotated[int, typer.Option(min=1, hidden=True, help="Supervised steps before a run.")] = 240,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Train a tiny model on a skewed mix, uniformly and by a curriculum, and compare the two.

    Real GRPO with TRL's trainer and the CISPO loss, on the processor, without a network. The model is built and
    warmed up on the spot. Both arms begin with the same weights and spend as many rollouts.

    Example: curricula demo --seeds 1 --out runs/first
    """
    require("cli")
    require("trl")
    require("mlflow")
    from curricula.cli.demo.plot import draw  # matplotlib takes a second, and --help should not wait for it

    runs = out / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CurriculaValueError(
            f"--out: expected a folder that can be written; got {out}: {error.strerror}"
        ) from error
    uri = f"sqlite:///{(out / 'mlflow.db').resolve()}"
    environment = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": EXPERIMENT}
    start = time.perf_counter()
    console = Console(stderr=as_json)
    console.print(
        f"{seeds} {'seed' if seeds == 1 else 'seeds'} x {len(ARMS)} arms, {steps * ROLLOUTS:,} rollouts each",
        highlight=False,
    )
    run_one(Job("MLflow store", ("store", str(runs), uri, EXPERIMENT), 0), runs, environment)
    jobs = [
        Job(f"{arm}, seed {seed}", ("run", str(runs), arm, str(seed), str(steps), str(warm_up)), steps)
        for seed in range(seeds)
        for arm in ARMS
    ]
    run_all(jobs, runs, environment, console, workers=min(2, os.cpu_count() or 1))
    comparison = Comparison.read([runs / f"{arm}-{seed}.json" for arm in ARMS for seed in range(seeds)])
    pictures = draw(comparison, out)
    report = comparison.summary() | {
        "seconds": round(time.perf_counter() - start, 1),
        "plots": [str(picture) for picture in pictures],
        "mlflow": uri,
    }
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(report))
        return
    console.print()
    console.print(comparison.table())
    console.print(f"took      {report['seconds']:.0f} s", highlight=False)
    for name, place in (("plot", pictures[0]), ("figures", out / "report.json")):
        print(f"{name:9} {place}")
    print(f"in MLflow {shlex.quote(sys.executable)} -m mlflow ui --backend-store-uri {shlex.quote(uri)}")
