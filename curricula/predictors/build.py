"""From the mix's `predictor` section to a predictor that runs in the background."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from curricula.config.schema import PredictorConfig
from curricula.errors import ConfigError, CurriculaError
from curricula.pool import PromptPool
from curricula.predictors.background import Background
from curricula.predictors.base import Predictor
from curricula.predictors.dense import Features
from curricula.predictors.estimator import Estimator
from curricula.predictors.hashed_text import HashedText
from curricula.predictors.stack import Stack

GROUP = "curricula.predictors"
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
    return Background(Stack(pool, members), len(pool)) if members else None


def predictor_names() -> list[str]:
    """Names that `predictor.type` may have, apart from import paths; no host is imported.

    >>> "hashed_text" in predictor_names()
    True
    """
    return sorted({"auto", "none", "stack", *_OWN, *_offered()})


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
    offered = _offered()
    if config.type not in _OWN and config.type not in offered:
        raise ConfigError(f"{place}.type: expected one of {', '.join(predictor_names())}; got {config.type!r}")
    factory: Factory = _OWN[config.type] if config.type in _OWN else offered[config.type].load()
    known = list(inspect.signature(factory).parameters)[1:]
    for name in config.params:
        if name not in known:
            raise ConfigError(f"{place}.params: expected one of {', '.join(known)}; got {name!r}")
    try:
        return factory(pool, **config.params)
    except CurriculaError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{place}.params: {config.type} refuses them: {error}") from error


def _offered() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=GROUP)}
