"""Options that the commands share."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from curricula.errors import CurriculaValueError

# Past it, pictures and times overflow.
FARTHEST = 1e100

Sources = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet or JSON files; folders of outcome logs; mlflow:RUN_ID; mlflow-experiment:NAME.",
        show_default=False,
    ),
]
Compute = Annotated[
    str | None,
    typer.Option(
        help="Column of compute; of a log or a run of ours: rollouts, generated_tokens (tokens), trained_tokens, "
        "gpu_hours.",
        show_default="compute, or rollouts",
    ),
]
Score = Annotated[
    str | None,
    typer.Option(
        "--score",
        "--metric",
        help="Column of scores, or MLflow's metric; of a log: success_corrected, success_drawn, success_trained.",
        show_default="score, or success_corrected",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Column whose values are curves of their own: a recipe, an environment; a parameter or tag in MLflow.",
        show_default="recipe, where there is one",
    ),
]
Seed = Annotated[
    str | None,
    typer.Option(help="Column that tells repetitions of a curve apart.", show_default="seed, where there is one"),
]
Percent = Annotated[bool, typer.Option("--percent", help="Scores are percentages.")]
Noise = Annotated[str | None, typer.Option(help="Column of the scores' standard errors.", show_default=False)]
Prompts = Annotated[
    int | None, typer.Option(min=1, help="Prompts of an evaluation, for its noise.", show_default=False)
]
Samples = Annotated[int | None, typer.Option(min=1, help="Rollouts of each of them.", show_default="1")]
R0 = Annotated[float | None, typer.Option("--r0", help="The score at no compute, if it is known.", show_default=False)]
Skip = Annotated[str, typer.Option(help="Early points to leave out: auto, none, or the compute below which they lie.")]
MethodName = Literal["bayes", "grid", "power_law", "log_linear"]
Method = Annotated[MethodName, typer.Option(help="How to fit.")]
Bins = Annotated[int, typer.Option(min=4, max=400, help="Points of an outcome log, at most.")]
TrackingUri = Annotated[
    str | None, typer.Option("--tracking-uri", help="MLflow's store.", show_default="MLFLOW_TRACKING_URI")
]
Plot = Annotated[Path | None, typer.Option(help="File to draw into: .png, .svg or .pdf.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def skipped(text: str) -> str | float | None:
    """What `fit` takes for --skip.

    >>> skipped("auto"), skipped("none"), skipped("1500")
    ('auto', None, 1500.0)
    """
    if text in ("auto", "none"):
        return None if text == "none" else "auto"
    return number("--skip", text, "auto, none, or a compute of 0 or more")


def places(texts: list[str], last: float) -> list[float]:
    """Where to forecast: compute, or times the last point, as 4x.

    >>> places(["1000", "4x"], 500.0)
    [1000.0, 2000.0]
    """
    expected = "a compute above 0, or times the last point's as 4x"
    found: list[float] = []
    for text in texts:
        times = text.endswith("x")
        value = number("--at", text.removesuffix("x"), expected, given=text)
        if value <= 0:
            raise CurriculaValueError(f"--at: expected {expected}; got {text}")
        place = value * last if times else value
        if place > FARTHEST:
            raise CurriculaValueError(f"--at: expected a compute up to {FARTHEST:g}; got {text}")
        found.append(place)
    return found


def number(option: str, text: str, expected: str, given: str | None = None) -> float:
    """A finite number of 0 or more from an option's text."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise CurriculaValueError(f"{option}: expected {expected}; got {given or text}")
    return value


def check_plot(path: Path | None) -> None:
    """Raises CurriculaValueError where a picture cannot be written there, before the work is done."""
    if path is None:
        return
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise CurriculaValueError(f"--plot: expected a file that ends in .png, .svg or .pdf; got {path}")
    if not path.absolute().parent.is_dir():
        raise CurriculaValueError(f"--plot: expected a folder that exists; got {path.parent}; make it first")
