"""From the mix's `predictor` section to a predictor that runs in the background."""

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from curricula.beliefs import build_belief
from curricula.config.explain import config_error, did_you_mean
from curricula.config.predictors import offered_predictors, predictor_names
from curricula.config.schema import CurriculumConfig, Origin, Path, PredictorConfig, shown
from curricula.errors import CurriculaError, described
from curricula.pool import PromptPool
from curricula.predictors.background import Background
from curricula.predictors.base import Predictor
from curricula.predictors.dense import Features
from curricula.predictors.estimator import Estimator
from curricula.predictors.hashed_text import HashedText
from curricula.predictors.params import Unfit
from curricula.predictors.stack import Stack

Factory = Callable[..., Predictor]
Leaf = tuple[PredictorConfig, Path]

_OWN: Mapping[str, Factory] = {"features": Features, "hashed_text": HashedText}
_PLACE: Path = ("curriculum", "predictor")


def build_predictor(config: PredictorConfig, pool: PromptPool, origin: Origin | None = None) -> Background | None:
    """The predictor that a mix asks for, or None where it asks for none.

    `auto` predicts from whatever the pool has: texts, features, or the weighted sum of both; nothing without. That is
    safe as a default: weights are earned on outcomes that the predictors had not seen.

    Args:
        config: The section.
        pool: The prompts.
        origin: Where the mix came from, for messages.

    Raises:
        ConfigError: A type or parameters that there are not.
        CurriculaValueError: A pool without the columns that are asked for.
        MissingExtraError: A library that is not installed.
    """
    members: list[tuple[str, Predictor]] = []
    for leaf, place in _leaves(config, pool.texts is not None, pool.features is not None, _PLACE):
        with _placed(origin or Origin(), place):
            members.append((leaf.type, _factory(leaf)(pool)))
    if not members:
        return None
    kind = config.model_dump_json(exclude_defaults=True) if config.type != "auto" else ", ".join(n for n, _ in members)
    return Background(Stack(pool, members), len(pool), kind)


def check_read(config: CurriculumConfig, read: bool) -> None:
    """Check that no predictor is named whose predictions nothing reads.

    Args:
        config: The mix.
        read: Whether its belief uses predictions.

    Raises:
        ConfigError: One is.
    """
    chosen = config.curriculum.predictor.type
    if not read and chosen not in ("auto", "none"):
        raise config_error(
            config.origin,
            (*_PLACE, "type"),
            f"expected auto or none beside a belief of type {config.curriculum.belief.type}, which uses no "
            f"predictions; got {chosen!r}; leave it out, or choose belief: {{type: hierarchical}}",
        )


def check_buildable(config: CurriculumConfig) -> None:
    """Check what the mix says of predictors as far as that takes no prompts.

    Classes are imported and made. Predictors of other packages are imported and their parameters' names are checked;
    they are not made, since that may load a model onto a device of the machine that trains.

    Raises:
        ConfigError: A class that cannot be imported or made, parameters that there are not, or a predictor beside a
            belief that uses none.
        MissingExtraError: A library that is not installed.
    """
    pool = PromptPool(["any"] * 2, texts=["one", "two"], features=np.array([[0.0], [1.0]]))
    check_read(config, build_belief(config.curriculum.belief, pool).predicted)
    for leaf, place in _leaves(config.curriculum.predictor, False, False, _PLACE):
        with _placed(config.origin, place):
            make = _factory(leaf)
            if leaf.type in _OWN or ":" in leaf.type:
                make(pool)


def _leaves(config: PredictorConfig, texts: bool, features: bool, place: Path) -> Iterator[Leaf]:
    """The predictors of a section that are to be built, and where each is asked for."""
    if config.type == "stack":
        for number, member in enumerate(config.members):
            yield from _leaves(member, texts, features, (*place, "members", number))
    elif config.type == "auto":
        for kind, there in (("hashed_text", texts), ("features", features)):
            if there:
                yield PredictorConfig(type=kind), place
    elif config.type != "none":
        yield config, place


@contextmanager
def _placed(origin: Origin, place: Path) -> Generator[None]:
    """Says of what is refused within the block which section of which file it stands in."""
    try:
        yield
    except Unfit as error:
        raise config_error(origin, (*place, *error.key), error.why) from error


def _factory(config: PredictorConfig) -> Callable[[PromptPool], Predictor]:
    """What makes the predictor of a pool; its type and the names of its parameters are known to be right."""
    if ":" in config.type:
        return lambda pool: Estimator(pool, config.type, config.params, config.features)
    factory = _OWN.get(config.type)
    if factory is None:
        offered = offered_predictors()
        if config.type not in offered:
            names = ", ".join(predictor_names())
            raise Unfit(("type",), f"expected one of {names}, or module:Class; got {shown(config.type)}")
        loaded: Factory = offered[config.type].load()
        factory = loaded
    parameters = list(inspect.signature(factory).parameters.values())[1:]
    known = [parameter.name for parameter in parameters]
    for name in config.params:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else f"none with {config.type}"
            raise Unfit(("params",), f"expected {expected}; got {shown(name)}; {did_you_mean(name, known)}")
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty and parameter.name not in config.params:
            raise Unfit(("params",), f"expected {parameter.name} with {config.type}; got nothing; add it")

    def make(pool: PromptPool) -> Predictor:
        try:
            return factory(pool, **config.params)
        except CurriculaError:
            raise
        except Exception as error:
            raise Unfit(("params",), f"{config.type} refuses them: {described(error)}") from error

    return make
