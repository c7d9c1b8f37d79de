"""The mix that is asked for: base weights, floors and caps."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from curricula.config import CurriculumConfig, FixedConfig, share_bounds

Floats = NDArray[np.float64]


def base_mix(config: CurriculumConfig, sizes: Mapping[str, int]) -> Floats:
    """The mix that corrected rates refer to, shape (E,): declared weights (1 where none is), else sizes."""
    declared = [config.environments[name].weight if name in config.environments else None for name in sizes]
    if all(weight is None for weight in declared):
        weights = np.array(list(sizes.values()), dtype=np.float64)
    else:
        weights = np.array([1.0 if weight is None else weight for weight in declared])
    return weights / weights.sum()


def resolve_bounds(config: CurriculumConfig, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Floor and cap of each environment, shape (E,) each, with defaults filled in.

    A floor that is not given keeps an environment that fails for a while from vanishing; with fixed shares it is 0,
    because there it would change the mix that was asked for, unless a plan is to change it anyway.

    Raises:
        ConfigError: Unknown environments, or bounds that no shares can meet.
    """
    floors, caps = (np.array(bound) for bound in share_bounds(config, names))
    if isinstance(config.curriculum.bandit, FixedConfig) and not config.curriculum.shares.planned:
        given = [name in config.environments and config.environments[name].share.floor is not None for name in names]
        floors[~np.array(given)] = 0.0
    return floors, caps


def bounded_shares(shares: Floats, floors: Floats, caps: Floats) -> Floats:
    """The shares clip(c * share, floor, cap) with the one c that makes them sum to 1.

    Args:
        shares: Shape (E,), not negative, of positive sum.
        floors: Shape (E,), of sum <= 1.
        caps: Shape (E,), of sum >= 1.

    Returns:
        Shape (E,), of sum 1.

    >>> bounded_shares(np.array([1.0, 0.0, 0.0]), np.full(3, 0.1), np.full(3, 0.7)).round(3)
    array([0.7 , 0.15, 0.15])
    """
    # A sliver for everyone, so that environments without a share can take what the caps leave over.
    raw = shares / shares.sum() + 1e-9
    # The sum grows with c in straight lines; its corners are where a share leaves its floor or meets its cap.
    corners = np.concatenate([floors / raw, caps / raw])
    order = np.argsort(corners, kind="stable")
    corners = corners[order]
    slopes = np.concatenate([raw, -raw])[order].cumsum()
    reached = floors.sum() + np.concatenate([[0.0], slopes[:-1] * np.diff(corners)]).cumsum()
    # The sum is 1 within the last line that starts below it.
    last = max(int(np.searchsorted(reached, 1.0)) - 1, 0)
    scale = corners[last] + (1.0 - reached[last]) / slopes[last] if slopes[last] > 1e-12 else corners[last]
    bounded = np.minimum(np.maximum(scale * raw, floors), caps)
    return bounded / bounded.sum()
