"""How pass rates are believed: one section for each rule."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field

from curricula.config.section import Section


class HierarchicalConfig(Section):
    """Ability of the environment plus deviation of the prompt, in logits.

    Evidence ages by a variance of `drift` times the squared move of the ability since, plus `ageing` for every ask
    since. `noise` is the variance that a batch adds to an ability.
    """

    type: Literal["hierarchical"] = "hierarchical"
    drift: Annotated[float, Field(ge=0, le=10)] = 0.08
    ageing: Annotated[float, Field(ge=0, le=1)] = 0.001
    noise: Annotated[float, Field(ge=1e-9, le=1)] = 0.003


class DecayedBetaConfig(Section):
    """Beta posteriors; `decay` is of a prompt's evidence per visit, `strength` of its environment's mean in it."""

    type: Literal["decayed_beta"] = "decayed_beta"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.9
    strength: Annotated[float, Field(ge=1e-6, le=1e6)] = 2.0


class ArcsineKalmanConfig(Section):
    """A Kalman filter of arcsin sqrt(p); per visit, `drift` is the progress expected at p = 1/2, `noise` the doubt.

    Both defaults are those that forecast a real run of GRPO well, one visit ahead.
    """

    type: Literal["arcsine_kalman"] = "arcsine_kalman"
    drift: Annotated[float, Field(ge=0, le=0.5)] = 0.005
    noise: Annotated[float, Field(ge=1e-9, le=10)] = 0.001


def _typed(value: Any) -> Any:
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[Any, Any]", value)
    return given if given.get("type") is not None else {**given, "type": "hierarchical"}


BeliefConfig = HierarchicalConfig | DecayedBetaConfig | ArcsineKalmanConfig
AnyBelief = Annotated[BeliefConfig, Field(discriminator="type"), BeforeValidator(_typed)]
"""A belief's name, or a mapping of its name as `type` and its parameters; without a type, the default's."""
