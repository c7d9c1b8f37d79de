"""Floors and caps of the environments' shares, once it is known which environments there are."""

from collections.abc import Sequence

from curricula.config.explain import config_error, did_you_mean
from curricula.config.schema import CurriculumConfig, shown
from curricula.errors import ConfigError

_SLACK = 1e-9  # floors such as ten times 0.1 add up to a little more than 1 in floating point


def share_bounds(config: CurriculumConfig, environments: Sequence[str]) -> tuple[list[float], list[float]]:
    """Floor and cap of each environment, in the order given; they always admit shares that sum to 1.

    A missing floor is min(0.02, 0.5 / environments), less where the cap or the other floors leave less room.

    Raises:
        ConfigError: As `check_shares`.

    >>> config = CurriculumConfig.model_validate({"environments": {"a": {"share": {"floor": 0.98}}}})
    >>> floors, caps = share_bounds(config, ["a", "b"])
    >>> [round(floor, 3) for floor in floors], caps
    ([0.98, 0.02], [1.0, 1.0])
    """
    check_shares(config, environments)
    shares = [config.environments[name].share if name in config.environments else None for name in environments]
    given = [share.floor if share else None for share in shares]
    caps = [share.cap if share else 1.0 for share in shares]
    missing = sum(floor is None for floor in given)
    room = max(0.0, 1.0 - sum(floor for floor in given if floor is not None))
    default = min(0.02, 0.5 / max(1, len(environments)), room / max(1, missing))
    floors = [min(default, cap) if floor is None else floor for floor, cap in zip(given, caps, strict=True)]
    return floors, caps


def check_shares(config: CurriculumConfig, environments: Sequence[str]) -> None:
    """Check that every environment of the mix exists, and that its floors and caps can be met together.

    Args:
        config: The mix.
        environments: Names of all environments, from the sources or from the data.

    Raises:
        ConfigError: An unknown environment, floors that sum above 1, or caps that sum below 1.
    """
    known = set(environments)
    for name in config.environments:
        if name not in known:
            hint = did_you_mean(name, sorted(known)[:20])
            message = f"expected an environment of the data; got {shown(name)}; {hint}"
            raise config_error(config.origin, ("environments", name), message)
    check_floors(config)
    total = sum(config.environments[name].share.cap if name in config.environments else 1.0 for name in known)
    if environments and total < 1 - _SLACK:
        raise _sum(config, "caps that sum to 1 or more", total, "raise some of them")


def check_floors(config: CurriculumConfig) -> None:
    """The part of `check_shares` that holds whatever further environments the data may have.

    Raises:
        ConfigError: Floors that sum above 1.
    """
    total = sum(environment.share.floor or 0.0 for environment in config.environments.values())
    if total > 1 + _SLACK:
        raise _sum(config, "floors that sum to 1 or less", total, "lower some of them")


def _sum(config: CurriculumConfig, expected: str, total: float, hint: str) -> ConfigError:
    return config_error(config.origin, ("environments",), f"expected {expected}; got {total:.4g}; {hint}")
