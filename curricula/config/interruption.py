"""How long rollouts may think, and how their thinking is ended."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, model_validator

from curricula.config.section import Section, problem, shown

_PLAIN = "\nTime is up. The final answer is: "


class InterruptionConfig(Section):
    """Forced length interruption: at a random length the thinking is closed, and the answer gets tokens of its own.

    Attributes:
        at: [least, most] tokens of thinking; each rollout's limit is drawn evenly between them, both included.
        answer: Tokens for the answer, after the thinking has ended or was ended.
        sentence: What is put in where a rollout still thinks at its limit.
        closing: What ends the thinking; null where there is no such tag, and only the end of the text does.

    Source: ScaleRL, arXiv 2510.13786, section 2 and appendix; budget forcing, arXiv 2501.19393.
    """

    at: Annotated[tuple[int, int], Field(strict=False)]
    answer: Annotated[int, Field(ge=1)]
    sentence: Annotated[str, Field(min_length=1)] = (
        "\nOkay, time is up. Let me stop thinking and formulate a final answer now.\n</think>\n\n"
    )
    closing: Annotated[str | None, AfterValidator(lambda tag: tag or None)] = "</think>"

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, data: Any) -> Any:
        # Without a tag, the sentence has none to close by. Empty, as null would give way to the default.
        if not isinstance(data, Mapping):
            return data
        given = cast("Mapping[Any, Any]", data)
        if given.get("closing", True) not in (None, ""):
            return given
        return {"sentence": _PLAIN} | {k: v for k, v in given.items() if v is not None} | {"closing": ""}

    @model_validator(mode="after")
    def _coherent(self) -> "InterruptionConfig":
        least, most = self.at
        if not 1 <= least <= most:
            raise problem("at: [least, most] with 1 <= least <= most", f"{list(self.at)}")
        if self.closing and self.closing not in self.sentence:
            raise problem(
                f"a sentence with {shown(self.closing)}, which ends the thinking",
                shown(self.sentence),
                "add it, or set closing to null for plain text",
            )
        return self
