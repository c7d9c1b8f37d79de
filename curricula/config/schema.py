"""The schema of a mix: every key has a default, an unknown key is an error, and no type is guessed at.

A key without a value (`seed:` and nothing after it) takes its default, as YAML's users expect.
"""

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from curricula.config.bandit import AnyBandit, CompetitionConfig
from curricula.config.belief import AnyBelief, HierarchicalConfig
from curricula.config.interruption import InterruptionConfig
from curricula.config.planned import AnyShares, SharesConfig
from curricula.config.recipe import AnyRecipe, RecipeConfig
from curricula.config.section import Section, problem, shown

Path = tuple[str | int, ...]

Levels = Annotated[tuple[int, int], Field(strict=False)]
"""`[low, high]`, both included."""

TOLERANCE = 1e-6
"""Results that differ by no more are alike: hosts weigh and sum rewards in floating point."""

Rate = Annotated[float, Field(ge=0, le=1)]
"""A fraction, never a percentage or a count."""

HeldRate = Annotated[float, Field(gt=0, lt=1)]
"""A rate at which what is held back still comes: nothing is ever shut out."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a mix came from, for messages; all origins are equal, so that mixes compare by what they say.

    Attributes:
        where: The file, or a word for what was given instead.
        lines: Line of each key and item in it.
    """

    where: str = field(default="config", compare=False)
    lines: Mapping[Path, int] = field(default_factory=dict[Path, int], compare=False)


class ShareConfig(Section):
    """Bounds on an environment's share of the draws; a missing floor is min(0.02, 0.5 / environments)."""

    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    cap: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> "ShareConfig":
        if self.floor is not None and self.floor > self.cap:
            raise problem(
                f"floor <= cap (cap is {self.cap:g})", f"floor {self.floor:g}", "lower the floor or raise the cap"
            )
        return self


class EnvironmentConfig(Section):
    """One environment: where its prompts come from, how they are scored, what share it may have."""

    source: dict[str, Any] | None = None
    reward: str | None = None
    weight: Annotated[float, Field(gt=0, le=1e9)] | None = None
    share: ShareConfig = ShareConfig()
    levels: Levels | None = None

    @model_validator(mode="after")
    def _coherent(self) -> "EnvironmentConfig":
        if self.levels is not None and self.levels[0] > self.levels[1]:
            raise problem("levels: [low, high] with low <= high", f"{list(self.levels)}")
        if self.reward is not None and self.source is None:
            raise problem("a source beside reward", "reward alone", "without a source the trainer's own rewards score")
        return self


class SuccessConfig(Section):
    """What success is: a reward function's name, and a threshold or a range, whatever values its rewards take.

    From `threshold` upwards a reward is a success. In a `range` of [a, b] a counts 0 and b counts 1, linearly, and
    what lies outside is clipped. Filters and beliefs then see successes: a group whose rewards differ on one side of
    the threshold has no variance.
    """

    reward: str | None = None
    threshold: float | None = None
    range: Annotated[tuple[float, float], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> "SuccessConfig":
        if self.threshold is not None and self.range is not None:
            raise problem("either threshold or range", "both", "remove one of them")
        if self.range is not None and self.range[0] >= self.range[1]:
            raise problem("range: [a, b] with a < b", f"{list(self.range)}")
        if self.range is not None and max(map(abs, self.range)) > 1e100:
            raise problem("range: [a, b] within 1e100 of zero", f"{list(self.range)}")
        return self


class PredictorConfig(Section):
    """How the difficulty of prompts that were never visited is predicted.

    `auto` uses what the pool has: texts, feature columns, both, or nothing. `stack` weighs its members by what they
    were right about. `module:Class` is an estimator of scikit-learn (`partial_fit`) or river (`learn_one`), and
    `features` is what it sees.
    """

    type: Annotated[str, Field(min_length=1)] = "auto"
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    features: Literal["hashed_text", "columns"] | None = None
    members: Annotated[tuple["PredictorConfig", ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _coherent(self) -> "PredictorConfig":
        if (self.type == "stack") != bool(self.members):
            raise problem(
                "members with type stack, and with no other", f"type {shown(self.type)}, {len(self.members)} members"
            )
        if self.features is not None and ":" not in self.type:
            raise problem("features with type module:Class only", f"type {shown(self.type)}", "remove it")
        if self.params and self.type in ("auto", "none", "stack"):
            raise problem(f"no params with type {self.type}", shown(self.params), "name a predictor to set them")
        return self


class ObjectiveConfig(Section):
    """What a group is worth; `normaliser` is whose deviation advantages are divided by, the batch's or the group's.

    The default is `batch` whatever the trainer divides by: p (1 - p) tells prompts near 1/2 from others more sharply,
    and a trainer that divides by the group's deviation learned faster from what it chose (`tests/benchmarks/grpo.py`).
    """

    type: Literal["signal_per_token", "signal", "uniform"] = "signal_per_token"
    normaliser: Literal["batch", "group"] = "batch"


class ZeroVarianceConfig(Section):
    """Groups whose results differ by no more than `tolerance` are not trained on.

    `on` matters where the trainer normalises reward functions one by one: by `success` a group is judged by its
    successes wherever there are any; by `components` it is kept when any of the functions differs.
    """

    type: Literal["zero_variance"] = "zero_variance"
    tolerance: Annotated[float, Field(ge=0)] = TOLERANCE
    on: Literal["success", "components"] = "success"


class OverlongConfig(Section):
    """Groups of which more than the fraction `most` was cut off at the limit of tokens are not trained on.

    With `interrupted`, rollouts that were cut short on purpose count as well.
    """

    type: Literal["overlong"] = "overlong"
    most: Rate = 0.5
    interrupted: bool = False


class PassRateCapConfig(Section):
    """Prompts believed to be passed at a rate above `above` are drawn by chance only, at `review` of an even rate."""

    type: Literal["pass_rate_cap"] = "pass_rate_cap"
    above: Rate = 0.9
    review: HeldRate = 0.02


class PredictedZeroVarianceConfig(Section):
    """Prompts whose groups are informative with a probability below `below` are drawn by chance only, as above."""

    type: Literal["predicted_zero_variance"] = "predicted_zero_variance"
    below: Rate = 0.1
    probe: HeldRate = 0.02


FilterConfig = ZeroVarianceConfig | OverlongConfig | PassRateCapConfig | PredictedZeroVarianceConfig
AnyFilter = Annotated[FilterConfig, Field(discriminator="type")]


class ScheduleConfig(Section):
    """A declared order: `warm_up` draws by chance alone, then `easy_to_hard` draws that favour falling pass rates."""

    warm_up: Annotated[int, Field(ge=0, le=2**53)] = 0
    easy_to_hard: Annotated[int, Field(ge=0, le=2**53)] = 0
    first: Annotated[float, Field(ge=0.5, le=1)] = 0.9
    width: Annotated[float, Field(ge=0.01, le=10)] = 0.15


class SelectionConfig(Section):
    """The curriculum itself."""

    bandit: AnyBandit = CompetitionConfig()
    shares: AnyShares = SharesConfig()
    belief: AnyBelief = HierarchicalConfig()
    predictor: PredictorConfig = PredictorConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    filters: Annotated[tuple[AnyFilter, ...], Field(strict=False)] = (ZeroVarianceConfig(),)
    schedule: ScheduleConfig = ScheduleConfig()
    explore: Annotated[float, Field(ge=0, le=1)] = 0.3
    optimism: Annotated[float, Field(ge=0, le=10)] = 0.5
    probe: Annotated[float, Field(gt=0, le=1)] = 0.02
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.005
    candidates: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    expiry: Annotated[int, Field(ge=1, le=2**31)] = 1000

    @property
    def tolerance(self) -> float:
        """Results of a group that differ by no more are alike: of the filter on zero variance, or its default."""
        return next((rule.tolerance for rule in self.filters if isinstance(rule, ZeroVarianceConfig)), TOLERANCE)


class RefillConfig(Section):
    """How a trainer replaces groups that are not trained on by further rounds of generation; off at 0 rounds.

    Attributes:
        rounds: Most further rounds in a step; each generates as many groups as are missing.
        on_exhaustion: When groups still miss after them: train on what there is, generate for the prompts that are
            best known, or end the run.
        batch: Whether what could not be replaced stays in the batch, without advantages, or is left out of it.
        consumed: Whether prompts of dropped groups are out of the draws for the rest of the step.
        retries: Most further rounds in a step for groups that failed, which have no reward at all.
        pause: Seconds to wait when every group of a round failed; they double up to 60.
        abort_after: Steps in a row without a group to train on that end the run; null never does.
    """

    rounds: Annotated[int, Field(ge=0, le=1000)] = 0
    on_exhaustion: Literal["shrink", "pad", "raise"] = "shrink"
    batch: Literal["constant", "variable"] = "constant"
    consumed: bool = True
    retries: Annotated[int, Field(ge=0, le=1000)] = 3
    pause: Annotated[float, Field(ge=0, le=60)] = 1.0
    abort_after: Annotated[int, Field(ge=1)] | None = None


def _names(value: Any) -> Any:
    if value == "auto":
        return "auto"
    if isinstance(value, list | tuple):
        items = tuple(cast("list[Any] | tuple[Any, ...]", value))
        if all(isinstance(item, str) and item for item in items):
            return items
    raise problem("auto, or a list of trackers' names", shown(cast("Any", value)))


class MonitorConfig(Section):
    """What is measured over how many groups, which trackers hear of it, and whether tokens clipped away are counted.

    `devices` is how many the run takes, trainer and generator together; null for what can be counted.
    """

    window: Annotated[int, Field(ge=8, le=1_000_000)] = 512
    trackers: Annotated[Literal["auto"] | tuple[str, ...], BeforeValidator(_names)] = "auto"
    clipping: bool = False
    devices: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class CurriculumConfig(Section):
    """A whole mix. `Curriculum` reads environments, success, curriculum and monitor.window; hosts read the rest.

    The seed is an argument of `Curriculum`, and hosts pass it on.

    >>> CurriculumConfig().curriculum.belief.drift
    0.08
    """

    environments: dict[str, EnvironmentConfig] = Field(default_factory=dict[str, EnvironmentConfig])
    environment_column: Annotated[str, Field(min_length=1)] = "environment"
    key: Annotated[str, Field(min_length=1)] | None = None
    success: SuccessConfig = SuccessConfig()
    curriculum: SelectionConfig = SelectionConfig()
    refill: RefillConfig = RefillConfig()
    recipe: AnyRecipe = RecipeConfig()
    interruption: InterruptionConfig | None = None
    monitor: MonitorConfig = MonitorConfig()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    log: Annotated[str, Field(min_length=1)] | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    trainer: dict[str, Any] = Field(default_factory=dict[str, Any])
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @property
    def origin(self) -> Origin:
        """Where this mix came from, for messages."""
        return self._origin

    @property
    def log_folder(self) -> pathlib.Path | None:
        """The folder of the outcome log, where there is one; relative paths start at the mix's folder."""
        return (
            None if self.log is None else pathlib.Path(self._origin.where).parent / pathlib.Path(self.log).expanduser()
        )

    def from_origin(self, origin: Origin) -> "CurriculumConfig":
        """This mix, knowing where it came from."""
        mix = self.model_copy()
        mix._origin = origin
        return mix

    @model_validator(mode="before")
    @classmethod
    def _bare_environments(cls, data: Any) -> Any:
        # `sums:` with nothing after it is an environment with every default.
        if not isinstance(data, Mapping):
            return data
        given = cast("Mapping[Any, Any]", data)
        if not isinstance(named := given.get("environments"), Mapping):
            return given
        entries = cast("Mapping[Any, Any]", named)
        bare: dict[Any, Any] = {}
        return {**given, "environments": {k: bare if v is None else v for k, v in entries.items()}}

    @model_validator(mode="before")
    @classmethod
    def _filters_of_the_recipe(cls, data: Any) -> Any:
        # ScaleRL draws no prompt again that is nearly always passed; here such prompts are reviewed.
        if not isinstance(data, Mapping):
            return data
        given = cast("Mapping[Any, Any]", data)
        recipe, selection = given.get("recipe"), given.get("curriculum")
        if isinstance(recipe, RecipeConfig):
            recipe = recipe.preset
        preset: Any = cast("Mapping[Any, Any]", recipe).get("preset") if isinstance(recipe, Mapping) else recipe
        if preset != "scalerl":
            return given
        rules = (ZeroVarianceConfig(), PassRateCapConfig())
        if isinstance(selection, SelectionConfig):
            if "filters" in selection.model_fields_set:
                return given
            return {**given, "curriculum": selection.model_copy(update={"filters": rules})}
        if not isinstance(selection, Mapping | None):
            return given
        chosen = cast("Mapping[Any, Any]", selection or {})
        if chosen.get("filters") is not None:
            return given
        return {**given, "curriculum": {**chosen, "filters": [rule.model_dump() for rule in rules]}}

    @model_validator(mode="after")
    def _named(self) -> "CurriculumConfig":
        for name in self.environments:
            if not name.strip() or not name.isprintable() or len(name) > 200:
                raise problem("environments named by 1 to 200 printable characters", shown(name))
        return self
