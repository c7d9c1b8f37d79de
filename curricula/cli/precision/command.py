"""`curricula precision`: how far trainer and generator are apart, and in what to run them."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from curricula.cli.precision import report
from curricula.cli.precision.measure import Progressed, measured
from curricula.errors import CurriculaValueError
from curricula.versions import require


def command(
    model: Annotated[str, typer.Argument(help="A folder, or a name on a hub.", show_default=False)],
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="Prompts: .jsonl or .parquet with a column prompt, else a line each.", show_default="built in"
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=2, max=10_000, help="Prompts, a completion each; the first ones.")] = 16,
    tokens: Annotated[int, typer.Option(min=1, max=1_000_000, help="Most tokens of a completion.")] = 128,
    generator: Annotated[str, typer.Option(help="In what vLLM runs.")] = "bf16,fp16,fp32",
    trainer: Annotated[str, typer.Option(help="In what the trainer computes.")] = "bf16,fp16,fp32",
    heads: Annotated[
        str, typer.Option(help="In what both compute logits: as the model, or in 32 bits.")
    ] = "model,fp32",
    learning_rate: Annotated[
        float, typer.Option(min=1e-12, max=1.0, help="Of the updates that a copy may lose; TRL's default for GRPO.")
    ] = 1e-6,
    steps: Annotated[int, typer.Option(min=1, max=1000, help="How many of them.")] = 4,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of the sampling.")] = 0,
    limit: Annotated[float, typer.Option(min=1, help="Seconds that each part may take.")] = 1800.0,
    out: Annotated[Path, typer.Option(help="Folder for the plot and the figures.")] = Path("runs/precision"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")] = False,
) -> None:
    """Measure how far trainer and generator are apart on a model, and advise in what to run them.

    vLLM samples completions in each dtype and with each head; transformers computes the log-probabilities of the same
    tokens again, as TRL would. Then a policy-gradient step in fp16 is looked at for overflows, and small updates for
    how many of them a generator's copy shows. Each engine takes a process, and some minutes. What this machine cannot
    run is a row that says why.

    Example: curricula precision HuggingFaceTB/SmolLM2-135M-Instruct --tokens 64
    """
    require("cli")
    from curricula_vllm.precision.plan import DTYPES, HEADS, Plan, chosen, sides
    from curricula_vllm.precision.prompts import BUILT_IN, read_prompts

    dtypes = [chosen(name, text, list(DTYPES)) for name, text in (("--generator", generator), ("--trainer", trainer))]
    given_heads = chosen("--heads", heads, HEADS)
    if model.startswith((".", "/", "~")) and not Path(model).expanduser().is_dir():
        raise CurriculaValueError(f"MODEL: expected the folder of a model; got {model!r}; check the path")
    asked = list(BUILT_IN[:count]) if prompts is None else read_prompts(prompts, count)
    try:
        (out / "parts").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CurriculaValueError(
            f"--out: expected a folder that can be written; got {out}: {error.strerror}"
        ) from error
    require("vllm")
    path = str(Path(model).expanduser()) if model.startswith("~") else model
    plan = Plan(path, asked, prompts is None, tokens, seed, learning_rate, steps)
    console = Console(stderr=as_json)
    console.print(
        f"{len(asked)} prompts, at most {tokens} tokens each; what the parts say is in {out / 'parts'}", highlight=False
    )
    from curricula_vllm.precision.processes import Processes

    with Progressed(console, Processes(plan, out / "parts", limit)) as parts:
        found = measured(parts, sides(dtypes[0], given_heads), sides(dtypes[1], given_heads))
    from curricula.cli.precision.plot import draw  # matplotlib takes a second, and --help should not wait for it

    pictures = draw(found, model, out)
    summary = report.summary(found, plan) | {"plots": [str(picture) for picture in pictures]}
    (out / "precision.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if as_json:
        print(json.dumps(summary))
        return
    console.print()
    console.print(report.table(found))
    for line in report.words(found, plan):
        console.print(line, highlight=False, soft_wrap=True)
    for name, place in (("plot", pictures[0]), ("figures", out / "precision.json")):
        print(f"{name:9} {place}")
