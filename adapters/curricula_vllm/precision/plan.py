"""What is measured: the two sides, each in a dtype and with a head, and what every process has to know."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from curricula.errors import CurriculaValueError

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""Names on the command line, and torch's."""

HEADS = ("model", "fp32")
"""In the model's dtype, or in 32 bits."""


@dataclass(frozen=True, slots=True, order=True)
class Side:
    """In what the trainer, or the generator, computes.

    A generator has its weights in `dtype`. A trainer has them in float32, and computes in `dtype` by autocast, as TRL
    does with `bf16` or `fp16`.

    >>> print(Side("bf16", "fp32"), "|", Side("fp32", "fp32"))
    bf16, FP32 head | fp32
    """

    dtype: str
    head: str

    def __str__(self) -> str:
        return self.dtype if self.head == self.dtype else f"{self.dtype}, FP32 head"

    @property
    def key(self) -> str:
        """For names of files."""
        return f"{self.dtype}-{self.head}"


def sides(dtypes: Sequence[str], heads: Sequence[str]) -> list[Side]:
    """Each dtype with each head, once.

    >>> [str(side) for side in sides(["bf16", "fp32"], ["model", "fp32"])]
    ['bf16', 'bf16, FP32 head', 'fp32']
    """
    found = [Side(dtype, dtype if head == "model" else "fp32") for dtype in dtypes for head in heads]
    return list(dict.fromkeys(found))


def chosen(option: str, text: str, known: Sequence[str]) -> list[str]:
    """Names given with commas.

    Raises:
        CurriculaValueError: None, or one that there is not.
    """
    names = list(dict.fromkeys(part for part in text.replace(" ", "").split(",") if part))
    if not names or not set(names) <= set(known):
        raise CurriculaValueError(f"{option}: expected some of {', '.join(known)}, with commas; got {text!r}")
    return names


@dataclass(frozen=True, slots=True)
class Plan:
    """What every process reads.

    Attributes:
        model: A folder, or a name on a hub.
        prompts: Texts, or lists of messages.
        chat: Whether texts are put to the model's chat template as a user's.
        tokens: Most tokens of a completion.
        seed: Of the sampling.
        learning_rate: Of the small updates.
        steps: How many of them.
    """

    model: str
    prompts: list[Any]
    chat: bool
    tokens: int
    seed: int
    learning_rate: float
    steps: int

    def as_json(self) -> dict[str, Any]:
        """For a file that a process reads."""
        return asdict(self)
