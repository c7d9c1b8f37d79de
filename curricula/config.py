"""The mix in YAML: one schema for the drop-in sampler, the launcher and the simulator.

Every key has a default and an unknown key is an error. `load_mix` reads a file; `CurriculumConfig`
validates a mapping.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ShareConfig(_Section):
    """Bounds on an environment's share of the draws; a missing floor is min(0.05, 0.5 / environments)."""

    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    cap: Annotated[float, Field(gt=0, le=1)] = 1.0


class EnvironmentConfig(_Section):
    """One environment: where its prompts come from, how they are scored, what share it may have."""

    source: dict[str, Any] | None = None
    reward: str | None = None
    weight: Annotated[float, Field(gt=0)] | None = None
    share: ShareConfig = ShareConfig()
    levels: tuple[int, int] | None = None


class SuccessConfig(_Section):
    """What success is, where rewards are not rates: a reward function's name and a threshold or a range."""

    reward: str | None = None
    threshold: float | None = None
    range: tuple[float, float] | None = None


class BanditConfig(_Section):
    type: Literal["discounted_thompson", "size_proportional"] = "discounted_thompson"
    discount: Annotated[float, Field(gt=0, le=1)] = 0.99


class BeliefConfig(_Section):
    type: Literal["decayed_beta"] = "decayed_beta"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.9
    strength: Annotated[float, Field(gt=0)] = 2.0


class ObjectiveConfig(_Section):
    type: Literal["signal_per_token", "signal", "uniform"] = "signal_per_token"
    normaliser: Literal["batch", "group"] = "batch"


class ZeroVarianceConfig(_Section):
    type: Literal["zero_variance"] = "zero_variance"
    tolerance: Annotated[float, Field(ge=0)] = 1e-6


class SelectionConfig(_Section):
    """The curriculum itself."""

    bandit: BanditConfig = BanditConfig()
    belief: BeliefConfig = BeliefConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    filters: tuple[ZeroVarianceConfig, ...] = (ZeroVarianceConfig(),)
    probe: Annotated[float, Field(gt=0, le=1)] = 0.05
    candidates: Annotated[int, Field(ge=1)] = 64
    expiry: Annotated[int, Field(ge=1)] = 1000


class MonitorConfig(_Section):
    window: Annotated[int, Field(ge=8)] = 512
    trackers: Literal["auto"] | tuple[str, ...] = "auto"


class CurriculumConfig(_Section):
    """A whole mix. `Curriculum` reads environments, success and curriculum; hosts read the rest."""

    environments: dict[str, EnvironmentConfig] = {}
    environment_column: str = "environment"
    key: str | None = None
    success: SuccessConfig = SuccessConfig()
    curriculum: SelectionConfig = SelectionConfig()
    monitor: MonitorConfig = MonitorConfig()
    seed: Annotated[int, Field(ge=0)] = 0
    model: str | None = None
    trainer: dict[str, Any] = {}
