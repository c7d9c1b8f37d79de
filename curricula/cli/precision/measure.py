"""The parts of a measurement, in their order, and what they have found together."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from curricula.cli.progress import progress

if TYPE_CHECKING:
    from curricula_vllm.precision.plan import Side
    from curricula_vllm.precision.processes import Processes
    from curricula_vllm.precision.rule import Combination

Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found.

    Attributes:
        rows: Each generator with each trainer.
        step: Of the step in fp16; None where fp16 was not asked for.
        updates: Of small updates in copies.
    """

    rows: "list[Combination]"
    step: Found | None
    updates: Found


class Progressed:
    """Runs the parts in a bar on a terminal, and in a line for each elsewhere."""

    def __init__(self, console: Console, processes: "Processes") -> None:
        self._console, self._processes = console, processes
        self._bar = progress(console)
        self._task = self._bar.add_task("", total=1)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def expect(self, parts: int) -> None:
        """Says how many parts there will be."""
        self._bar.update(self._task, total=parts)

    def run(self, words: str, job: str, name: str, **found: Any) -> Found:
        """As `Processes.run`."""
        self._bar.update(self._task, description=words)
        began = time.perf_counter()
        result = self._processes.run(job, name, **found)
        self._bar.advance(self._task)
        if not self._console.is_terminal:
            state = "failed" if "error" in result else "done"
            self._console.print(f"{words}: {state}, {time.perf_counter() - began:.0f} s", highlight=False)
        return result


def measured(parts: Progressed, generators: "Sequence[Side]", trainers: "Sequence[Side]") -> Measured:
    """Samples by every generator, computes again by every trainer, then looks at steps.

    Raises:
        CurriculaRuntimeError: No generator runs here, or no trainer.
    """
    from curricula_vllm.precision.processes import first_error

    dtypes = list(dict.fromkeys(side.dtype for side in trainers))
    with_step = any(side.dtype == "fp16" for side in (*generators, *trainers))
    parts.expect(1 + len(generators) + len(dtypes) + with_step + 1)
    tokens = parts.run("prompts", "tokens", "tokens")
    if "error" in tokens:
        raise first_error({"prompts": tokens})
    samples = {
        side: parts.run(
            f"vLLM, {side}",
            "generate",
            f"generate-{side.key}",
            fp32_head=side.head != side.dtype,
            dtype=side.dtype,
            head=side.head,
            tokens=tokens,
        )
        for side in generators
    }
    good = {side: sample for side, sample in samples.items() if "error" not in sample}
    if not good:
        raise first_error({f"vLLM, {side}": sample for side, sample in samples.items()})
    trained: dict[str, Found] = {}
    for dtype in dtypes:
        heads = ["model" if side.head == side.dtype else "fp32" for side in trainers if side.dtype == dtype]
        given = {side.key: {"tokens": sample["tokens"]} for side, sample in good.items()}
        trained[dtype] = parts.run(
            f"transformers, {dtype}",
            "recompute",
            f"recompute-{dtype}",
            dtype=dtype,
            heads=heads,
            tokens=tokens,
            samples=given,
        )
    if all("error" in result for result in trained.values()):
        raise first_error({f"transformers, {dtype}": result for dtype, result in trained.items()})
    sample = {"tokens": next(iter(good.values()))["tokens"]}
    step = parts.run("step in fp16", "step", "step", tokens=tokens, sample=sample) if with_step else None
    updates = parts.run("small updates", "updates", "updates", tokens=tokens, sample=sample)
    rows = [_combination(one, other, samples[one], trained[other.dtype]) for one in generators for other in trainers]
    return Measured(rows, step, updates)


def _combination(generator: "Side", trainer: "Side", sample: Found, trained: Found) -> "Combination":
    from curricula_vllm.precision.figures import measure
    from curricula_vllm.precision.rule import Combination

    if "error" in sample:
        return Combination(generator, trainer, None, f"vLLM: {sample['error']}")
    mine = trained if "error" in trained else trained["model" if trainer.head == trainer.dtype else "fp32"]
    if "error" in mine:
        return Combination(generator, trainer, None, f"transformers: {mine['error']}")
    figures = measure(sample["logprobs"], mine[generator.key])
    why = "" if figures is not None else "log-probabilities that are not finite"
    return Combination(generator, trainer, figures, why)
