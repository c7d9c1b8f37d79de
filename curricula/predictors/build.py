"""From the mix's `predictor` section to a predictor that runs in the background."""

import inspect
from collections.abc import Callable, Iterator, Mapping

from curricula.config.explain import did_you_mean
from curricula.config.predictors import offered_predictors, predictor_names
from curricula.config.schema import PredictorConfig, shown
from curricula.errors import ConfigError, CurriculaError, described
from curricula.pool import PromptPool
from curricula.predictors.background import Background
from curricula.predictors.base import Predictor
from curricula.predictors.dense import Features
from curricula.predictors.estimator import Estimator
from curricula.predictors.hashed_text import HashedText
from curricula.predictors.stack import Stack

Factory = Callable[..., Predictor]

_OWN: Mapping[str, Factory] = {"features": Features, "hashed_text": HashedText}
_PLACE = "curriculum.predictor"


def build_predictor(config: PredictorConfig, pool: PromptPool) -> Background | None:
    """The predictor that a mix asks for, or None where it asks for none.

    `auto` predicts from whatever the pool has: texts, features, or the weighted sum of both; nothing without. That is
    safe as a default: weights are earned on outcomes that the predictors had not seen.

    Raises:
        ConfigError: A type or parameters that there are not.
        CurriculaValueError: A pool without the columns that are asked for.
        MissingExtraError: A library that is not installed.
    """
    members = list(_members(config, pool, _PLACE))
    if not members:
        return None
    kind = config.model_dump_json(exclude_defaults=True) if config.type != "auto" else ", ".join(n for n, _ in members)
    return Background(Stack(pool, members), len(pool), kind)


def _members(config: PredictorConfig, pool: PromptPool, place: str) -> Iterator[tuple[str, Predictor]]:
    if config.type == "stack":
        for number, member in enumerate(config.members):
            yield from _members(member, pool, f"{place}.members[{number}]")
    elif config.type == "auto":
        if pool.texts is not None:
            yield "hashed_text", HashedText(pool)
        if pool.features is not None:
            yield "features", Features(pool)
    elif config.type != "none":
        yield config.type, _build(config, pool, place)


def _build(config: PredictorConfig, pool: PromptPool, place: str) -> Predictor:
    if ":" in config.type:
        return Estimator(pool, config.type, config.params, config.features)
    factory = _OWN.get(config.type)
    if factory is None:
        offered = offered_predictors()
        if config.type not in offered:
            names = ", ".join(predictor_names())
            raise ConfigError(f"{place}.type: expected one of {names}, or module:Class; got {shown(config.type)}")
        loaded: Factory = offered[config.type].load()
        factory = loaded
    parameters = list(inspect.signature(factory).parameters.values())[1:]
    known = [parameter.name for parameter in parameters]
    for name in config.params:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else f"none with {config.type}"
            raise ConfigError(f"{place}.params: expected {expected}; got {shown(name)}; {did_you_mean(name, known)}")
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.name not in config.params:
            raise ConfigError(f"{place}.params: expected {parameter.name} with {config.type}; got nothing; add it")
    try:
        return factory(pool, **config.params)
    except CurriculaError:
        raise
    except Exception as error:
        raise ConfigError(f"{place}.params: {config.type} refuses them: {described(error)}") from error
