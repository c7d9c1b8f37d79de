"""What is advised, by a rule that is stated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from curricula_vllm.precision.figures import Figures, difference_error
from curricula_vllm.precision.plan import DTYPES, Side

RULE = (
    "Rule: the smallest mean KL a token. What is no further from it than the standard error of their difference is a "
    "tie, and goes to the cheaper one: fewer sides in fp32, the generator before the trainer; then fewer FP32 heads; "
    "then bf16 before fp16, which needs its loss scaled. fp16, on either side, only where a real step in fp16 showed "
    "no overflow in its logits and gradients."
)


@dataclass(frozen=True, slots=True)
class Combination:
    """A generator and a trainer.

    Attributes:
        generator: In what it sampled.
        trainer: In what the log-probabilities of its tokens were computed again.
        figures: How far apart they are; None where one of them cannot run.
        why: What it said then.
    """

    generator: Side
    trainer: Side
    figures: Figures | None
    why: str = ""

    def has(self, dtype: str) -> bool:
        """Whether one of the sides is in this dtype."""
        return dtype in (self.generator.dtype, self.trainer.dtype)


def overflow(step: dict[str, Any] | None) -> str:
    """Why fp16 is not to be used, from what the step in fp16 found; "" where it may be.

    >>> overflow({"logits": True, "gradients": True, "scale": 65536.0})
    ''
    """
    if step is None:
        return "no step in fp16 was run"
    if "error" in step:
        return f"no step in fp16 could be run ({step['error']})"
    broken = [name for name in ("logits", "gradients") if not step[name]]
    return f"{' and '.join(broken)} of a step in fp16 overflowed" if broken else ""


def advise(rows: Sequence[Combination], fp16: bool, half: bool = False) -> Combination | None:
    """The combination that `RULE` chooses; None where there is none to choose from.

    Args:
        rows: What was measured.
        fp16: Whether a step in fp16 was free of overflows.
        half: Choose among those with neither side in fp32.
    """
    able = [
        (row, row.figures)
        for row in rows
        if row.figures is not None and (fp16 or not row.has("fp16")) and not (half and row.has("fp32"))
    ]
    if not able:
        return None
    best, least = min(able, key=lambda pair: pair[1].kl)

    def ties(row: Combination, figures: Figures) -> bool:
        return figures.kl - least.kl <= difference_error(figures, least, row.generator == best.generator)

    return min((pair for pair in able if ties(*pair)), key=lambda pair: (_cost(pair[0]), pair[1].kl))[0]


def _cost(row: Combination) -> tuple[int, ...]:
    both = (row.generator, row.trainer)
    return (
        sum(side.dtype == "fp32" for side in both),
        int(row.generator.dtype == "fp32"),
        sum(side.head != side.dtype for side in both),
        sum(side.dtype == "fp16" for side in both),
    )


def settings(row: Combination, model: str) -> list[str]:
    """The lines of a mix, and of the environment and the command of a server, that set a combination."""
    trainer = {"bf16": "bf16: true, fp16: false", "fp16": "bf16: false, fp16: true"}
    lines = [
        f"trainer: {{{trainer.get(row.trainer.dtype, 'bf16: false, fp16: false')}}}",
        f"recipe: {{fp32_head: {str(row.trainer.head == 'fp32' != row.trainer.dtype).lower()}}}  # beside its preset",
        f"export CURRICULA_FP32_HEAD={int(row.generator.head == 'fp32' != row.generator.dtype)}",
        f"python -m curricula_vllm serve {model} --dtype {DTYPES[row.generator.dtype]}",
    ]
    colocate = f'colocate: vLLM takes the dtype of the model\'s config.json: "dtype": "{DTYPES[row.generator.dtype]}"'
    if row.generator.dtype == "fp32":
        colocate = "colocate: on a GPU vLLM takes bf16 for a model in fp32, so use a server; on a CPU, the trainer's"
    return [*lines, f"# {colocate}"]
