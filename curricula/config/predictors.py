"""Names of predictors: our own, and those that installed packages offer."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from curricula.config.explain import config_error, did_you_mean
from curricula.config.schema import CurriculumConfig, PredictorConfig, shown

GROUP = "curricula.predictors"
OWN = ("auto", "none", "hashed_text", "features", "stack")


def predictor_names() -> list[str]:
    """Names that `predictor.type` may have, apart from import paths; no host is imported.

    >>> predictor_names()
    ['auto', 'none', 'hashed_text', 'features', 'stack', 'frozen_encoder', 'policy_head']
    """
    return [*OWN, *sorted(offered_predictors())]


def offered_predictors() -> dict[str, EntryPoint]:
    """Predictors of installed packages by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def names_predictor(predictor: PredictorConfig) -> bool:
    """Whether a section names a predictor, itself or among its members, and does not leave it to what the pool has.

    >>> names_predictor(PredictorConfig()), names_predictor(PredictorConfig(type="hashed_text"))
    (False, True)
    """
    if predictor.type == "stack":
        return any(map(names_predictor, predictor.members))
    return predictor.type not in ("auto", "none")


def check_predictors(config: CurriculumConfig) -> None:
    """Check that each predictor which the mix names is ours, an import path, or offered by an installed package.

    Raises:
        ConfigError: One that is not.
    """
    _check(config, config.curriculum.predictor, ("curriculum", "predictor"))


def _check(config: CurriculumConfig, predictor: PredictorConfig, place: Sequence[str | int]) -> None:
    kind = predictor.type
    if kind not in OWN and ":" not in kind and kind not in (names := predictor_names()):
        message = f"expected one of {', '.join(names)}, or module:Class; got {shown(kind)}; {did_you_mean(kind, names)}"
        raise config_error(config.origin, (*place, "type"), message)
    for number, member in enumerate(predictor.members):
        _check(config, member, (*place, "members", number))
