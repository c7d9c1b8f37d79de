"""How the draws are shared among the environments: one section for each rule, one for each reward."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator

from curricula.config.section import PATH_TAG, Section, problem, shown

Discount = Annotated[float, Field(gt=0, le=1)]


class LearningProgressConfig(Section):
    """Gain in success per informative group; `memory` is in groups of an environment, of the slope."""

    type: Literal["learning_progress"] = "learning_progress"
    memory: Annotated[float, Field(ge=10, le=1e6)] = 1000.0


class InformativeConfig(Section):
    """Whether groups are informative."""

    type: Literal["informative"] = "informative"


class MeanAdvantageConfig(Section):
    """Mean |advantage| of groups (SEC)."""

    type: Literal["mean_advantage"] = "mean_advantage"


RewardConfig = LearningProgressConfig | InformativeConfig | MeanAdvantageConfig


def _by_name(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


AnyReward = Annotated[RewardConfig, Field(discriminator="type"), BeforeValidator(_by_name)]
"""A reward's name, or a mapping of its name as `type` and its parameters."""


class FixedConfig(Section):
    """Shares that do not learn: quotas by the environments' weights, in proportion to their sizes, or equal.

    With `most_draws` above 1 they are shares of what is trained on, and draws make up for what filters drop, at no
    more than so many times the draws; at 1 they are shares of the draws. Quotas are exact in every batch, so 1.
    """

    most_draws: Annotated[float, Field(ge=1, le=1000)] = 4.0
    discount: Discount = 0.995


class QuotasConfig(FixedConfig):
    """In proportion to the environments' weights."""

    type: Literal["quotas"] = "quotas"
    most_draws: Annotated[float, Field(ge=1, le=1000)] = 1.0


class SizeProportionalConfig(FixedConfig):
    """In proportion to the environments' sizes."""

    type: Literal["size_proportional"] = "size_proportional"


class EqualConfig(FixedConfig):
    """The same for every environment."""

    type: Literal["equal"] = "equal"


class LearnedConfig(Section):
    """Shares of the draws that learn from the reward; what is trained is held within declared floors and caps.

    That may cost no more than `most_draws` times the draws; at 1 floors and caps are of the draws. `discount` is of
    what was seen, costs in tokens included, at each told group.
    """

    reward: AnyReward = LearningProgressConfig()
    most_draws: Annotated[float, Field(ge=1, le=1000)] = 4.0
    discount: Discount = 0.995


class ThompsonConfig(LearnedConfig):
    """Discounted Thompson sampling; `sharpness` is the power of what each environment gives in its share."""

    type: Literal["discounted_thompson"] = "discounted_thompson"
    sharpness: Annotated[float, Field(ge=0.1, le=1000)] = 2.0


class CompetitionConfig(LearnedConfig):
    """All candidates compete for the draws by expected signal per token times what the reward says it is worth.

    Where they all count alike (a uniform objective, a warm-up) there is nothing to compete by: shares are the base mix.
    The reward only bounds the worth: under `learning_progress` an environment whose informative groups are known to
    teach nothing counts for less, and none for more; `informative` switches that off. `mean_advantage` bounds nothing.
    """

    type: Literal["competition"] = "competition"

    @field_validator("reward")
    @classmethod
    def _bounds(cls, value: RewardConfig) -> RewardConfig:
        if isinstance(value, MeanAdvantageConfig):
            raise problem(
                "learning_progress or informative as the reward of a competition",
                "mean_advantage",
                "name a bandit that learns from rewards, such as discounted_thompson",
            )
        return value


class Exp3SConfig(LearnedConfig):
    """EXP3.S: `exploration` is the part that is spread evenly, `switching` about one over the groups of a phase."""

    type: Literal["exp3s"] = "exp3s"
    exploration: Annotated[float, Field(gt=0, le=1)] = 0.1
    switching: Annotated[float, Field(gt=0, le=1)] = 0.001


class UcbConfig(LearnedConfig):
    """Upper confidence bounds over the last `window` groups, wide by `exploration`."""

    type: Literal["sliding_window_ucb"] = "sliding_window_ucb"
    window: Annotated[int, Field(ge=8, le=10_000_000)] = 1000
    exploration: Annotated[float, Field(gt=0, le=100)] = 0.5


class CustomBanditConfig(LearnedConfig):
    """A class of your own, named `module:Class` and made as `Class(arms, **params)`."""

    type: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("type")
    @classmethod
    def _path(cls, value: str) -> str:
        module, _, name = value.partition(":")
        if not (name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
            raise problem("module:Class", shown(value))
        return value


def _typed(value: Any) -> Any:
    value = _by_name(value)
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[Any, Any]", value)
    return given if given.get("type") is not None else {**given, "type": "competition"}


def _tag(value: Any) -> Any:
    kind = cast("Mapping[Any, Any]", value).get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return PATH_TAG if isinstance(kind, str) and ":" in kind else kind


BanditConfig = (
    ThompsonConfig
    | CompetitionConfig
    | Exp3SConfig
    | UcbConfig
    | QuotasConfig
    | SizeProportionalConfig
    | EqualConfig
    | CustomBanditConfig
)
AnyBandit = Annotated[
    Annotated[ThompsonConfig, Tag("discounted_thompson")]
    | Annotated[CompetitionConfig, Tag("competition")]
    | Annotated[Exp3SConfig, Tag("exp3s")]
    | Annotated[UcbConfig, Tag("sliding_window_ucb")]
    | Annotated[QuotasConfig, Tag("quotas")]
    | Annotated[SizeProportionalConfig, Tag("size_proportional")]
    | Annotated[EqualConfig, Tag("equal")]
    | Annotated[CustomBanditConfig, Tag(PATH_TAG)],
    Discriminator(_tag),
    BeforeValidator(_typed),
]
