"""One process of the demo; `curricula demo` starts them.

    python -m curricula_trl.demo store FOLDER URI EXPERIMENT      creates the MLflow store and its experiment
    python -m curricula_trl.demo run FOLDER ARM SEED STEPS WARM   trains, and writes FOLDER/ARM-SEED.json

A run prints one JSON object a line: {"step": n}, 0 when the model is warm.
"""

import json
import os
import sys
from pathlib import Path


def store(folder: Path, uri: str, experiment: str) -> None:
    """Creates an MLflow store, so that runs which start together do not each try to."""
    import mlflow

    mlflow.set_tracking_uri(uri)
    if mlflow.get_experiment_by_name(experiment) is None:
        mlflow.create_experiment(experiment, artifact_location=(folder / "artifacts").resolve().as_uri())


def run(folder: Path, arm: str, seed: int, steps: int, warm_up_steps: int) -> None:
    """Trains one arm with one seed, reporting to MLflow, and writes what happened."""
    from curricula.cli.demo.plan import ARMS
    from curricula_trl.demo.training import train

    # What `curricula scaling` tells curves apart by; transformers puts these on the run that it starts.
    os.environ["MLFLOW_TAGS"] = json.dumps({"recipe": arm})
    # Hosts print their own logs on stdout; ours is for whoever started this process.
    ours, sys.stdout = sys.stdout, sys.stderr

    def on_step(step: int) -> None:
        print(json.dumps({"step": step}), file=ours, flush=True)

    result = train(ARMS[ARMS.index(arm)], seed, steps, folder, "mlflow", warm_up_steps, on_step)
    (folder / f"{arm}-{seed}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    command, where, *rest = sys.argv[1:]
    if command == "store":
        store(Path(where), *rest)
    else:
        run(Path(where), rest[0], *map(int, rest[1:]))
