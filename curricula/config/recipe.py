"""The recipe of a run: which loss, and what is done around it; and how long rollouts may think."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from curricula.config.section import Section, problem, shown

_PLAIN = "\nTime is up. The final answer is: "

Preset = Literal["scalerl", "cispo", "dapo", "gspo", "grpo"]

_PARTS: dict[str, dict[str, Any]] = {
    "scalerl": {
        "ratio": "generator",
        "aggregation": "prompt",
        "normaliser": "batch",
        "zero_variance": "mask",
        "fp32_head": True,
    },
}


class RecipeConfig(Section):
    """A preset of the loss, and what the trainer's own loss lacks; parts that are left out are the preset's.

    Attributes:
        preset: Arguments of the trainer, by name; without one they are the script's own.
        ratio: Whose log-probabilities the importance ratio is against: the trainer's of the same weights, or those
            that the generator gave as it sampled.
        aggregation: The trainer's own, or a mean over prompts, each of which is a mean over its group's tokens.
        normaliser: The trainer's own, or the standard deviation of the batch's centred advantages, of groups that are
            trained on.
        zero_variance: Whether groups that are not trained on stay in the loss's count of tokens, without advantages,
            or are masked out of it.
        fp32_head: Whether the trainer's logits are computed in 32 bits, and the generator's are expected to be.

    Source: ScaleRL, arXiv 2510.13786, section 3.
    """

    preset: Preset | None = None
    ratio: Literal["trainer", "generator"] = "trainer"
    aggregation: Literal["trainer", "prompt"] = "trainer"
    normaliser: Literal["trainer", "batch"] = "trainer"
    zero_variance: Literal["keep", "mask"] = "keep"
    fp32_head: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_the_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = cast("Mapping[Any, Any]", data)
        preset = given.get("preset")
        parts = _PARTS.get(preset, {}) if isinstance(preset, str) else {}
        return {**parts, **{key: value for key, value in given.items() if value is not None}}


def _named(value: Any) -> Any:
    return {"preset": value} if isinstance(value, str) else value


AnyRecipe = Annotated[RecipeConfig, BeforeValidator(_named)]
"""A preset's name, or a mapping."""


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
