"""What a mix says and a preview does not simulate."""

from collections.abc import Iterator

from curricula.config import CurriculumConfig, OverlongConfig, ZeroVarianceConfig
from curricula.config.explain import dotted
from curricula.config.predictors import offered_predictors
from curricula.config.schema import Path, PredictorConfig, SelectionConfig, SuccessConfig

_HOSTS = ("environment_column", "key", "success", "refill", "recipe", "interruption", "monitor", "seed", "log", "model")


def simulable(config: CurriculumConfig) -> CurriculumConfig:
    """The mix that is simulated: rewards are 0 and 1, and what reads prompts with a model cannot read made-up ones."""
    curriculum = config.curriculum
    if _needs_host(curriculum.predictor):
        curriculum = curriculum.model_copy(update={"predictor": PredictorConfig()})
    return config.model_copy(update={"success": SuccessConfig(), "curriculum": curriculum})


def left_out(config: CurriculumConfig) -> list[str]:
    """Keys of a mix that are not at their default, and that a preview makes no use of.

    Of sources it takes size and levels, of `trainer` num_generations.

    >>> left_out(CurriculumConfig.model_validate({"refill": {"rounds": 3}, "trainer": {"num_generations": 4}}))
    ['refill']
    """
    return [dotted(path) for path in _left_out(config)]


def _left_out(config: CurriculumConfig) -> Iterator[Path]:
    default = CurriculumConfig()
    for name, environment in config.environments.items():
        if environment.reward is not None:
            yield "environments", name, "reward"
    if _needs_host(config.curriculum.predictor):
        yield "curriculum", "predictor"
    for number, chosen in enumerate(config.curriculum.filters):
        if isinstance(chosen, OverlongConfig):
            yield "curriculum", "filters", number
        elif isinstance(chosen, ZeroVarianceConfig) and chosen.on != "success":
            yield "curriculum", "filters", number, "on"
    if config.curriculum.expiry != SelectionConfig().expiry:
        yield "curriculum", "expiry"
    for key in _HOSTS:
        if getattr(config, key) != getattr(default, key):
            yield (key,)
    if config.trainer.keys() - {"num_generations"}:
        yield ("trainer",)


def _needs_host(predictor: PredictorConfig) -> bool:
    """Whether a section, or one of its members, is a predictor of another package."""
    return predictor.type in offered_predictors() or any(map(_needs_host, predictor.members))
