"""From a mix to the rule over environments that it asks for, and what the rule is rewarded for."""

import importlib
from typing import Any, cast

from curricula.bandits.base import Bandit, Floats
from curricula.bandits.competition import Competition
from curricula.bandits.exp3s import Exp3S
from curricula.bandits.fixed import FixedShares
from curricula.bandits.rewards import Informative, LearningProgress, MeanAdvantage, Reward
from curricula.bandits.thompson import DiscountedThompson
from curricula.bandits.ucb import SlidingWindowUCB
from curricula.config import (
    BanditConfig,
    CompetitionConfig,
    CurriculumConfig,
    CustomBanditConfig,
    EqualConfig,
    Exp3SConfig,
    LearnedConfig,
    LearningProgressConfig,
    MeanAdvantageConfig,
    QuotasConfig,
    SizeProportionalConfig,
    ThompsonConfig,
    UcbConfig,
)
from curricula.config.explain import config_error
from curricula.errors import described

_METHODS = ("shares", "update", "state_dict", "load")


def make_bandit(config: CurriculumConfig, base: Floats, sizes: Floats) -> Bandit:
    """The rule of a mix.

    Args:
        config: The mix.
        base: Shape (E,), the base mix.
        sizes: Shape (E,), prompts of each environment.

    Raises:
        ConfigError: Quotas without weights, or a class that cannot be imported or made.
    """
    chosen, arms = config.curriculum.bandit, len(base)
    match chosen:
        case ThompsonConfig():
            return DiscountedThompson(arms, chosen.discount, chosen.sharpness)
        case Exp3SConfig():
            return Exp3S(arms, chosen.exploration, chosen.switching)
        case UcbConfig():
            return SlidingWindowUCB(arms, chosen.window, chosen.exploration)
        case CompetitionConfig():
            return Competition(base)
        case EqualConfig():
            return FixedShares(base * 0.0 + 1.0)
        case SizeProportionalConfig():
            return FixedShares(sizes)
        case QuotasConfig():
            if all(environment.weight is None for environment in config.environments.values()):
                raise config_error(
                    config.origin,
                    ("curriculum", "bandit", "type"),
                    "expected weights of environments beside quotas; got none; give environments.NAME.weight",
                )
            return FixedShares(base)
        case CustomBanditConfig():
            return _custom(config, chosen, arms)


def make_reward(chosen: BanditConfig, base: Floats) -> Reward:
    """What the rule of a mix is rewarded for; shares that do not learn make no use of it."""
    if isinstance(chosen, LearnedConfig):
        if isinstance(chosen.reward, LearningProgressConfig):
            return LearningProgress(base, chosen.reward.memory)
        if isinstance(chosen.reward, MeanAdvantageConfig):
            return MeanAdvantage(len(base))
    return Informative(len(base))


def _custom(config: CurriculumConfig, chosen: CustomBanditConfig, arms: int) -> Bandit:
    place = ("curriculum", "bandit", "type")
    module, _, name = chosen.type.partition(":")
    try:
        kind: Any = getattr(importlib.import_module(module), name)
    # Its module is run by the import, and may raise anything.
    except (Exception, SystemExit) as error:
        message = f"expected module:Class that can be imported; got {chosen.type} ({described(error)})"
        raise config_error(config.origin, place, message) from error
    missing = [method for method in _METHODS if not callable(getattr(kind, method, None))]
    if missing:
        message = f"expected a class with {', '.join(_METHODS)}; got {chosen.type}, without {', '.join(missing)}"
        raise config_error(config.origin, place, message)
    try:
        return cast(Bandit, kind(arms, **chosen.params))
    except (Exception, SystemExit) as error:
        message = f"expected params that {chosen.type}({arms}, ...) takes; got {chosen.params} ({described(error)})"
        raise config_error(config.origin, ("curriculum", "bandit", "params"), message) from error
