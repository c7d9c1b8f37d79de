"""The recipe of a run: which loss, and what is done around it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, model_validator

from curricula.config.section import Section

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
