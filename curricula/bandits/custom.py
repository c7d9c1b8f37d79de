"""What a rule of the user's own gives, checked, so that an error names its class."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from curricula.bandits.base import Bandit, Codes, Floats
from curricula.config.section import shown
from curricula.errors import CurriculaRuntimeError, CurriculaValueError, described

_CLOSE = 1e-5


def asked(rule: Bandit, name: str, costs: Floats, rng: np.random.Generator) -> Floats:
    """The rule's shares, shape (E,).

    Raises:
        CurriculaRuntimeError: The rule raised.
        CurriculaValueError: Anything but E shares, not negative, of sum 1.
    """
    try:
        shares: object = rule.shares(costs, rng)
    except Exception as error:
        raise CurriculaRuntimeError(f"curriculum.bandit: {name}.shares raised {described(error)}; mend it") from error
    if (got := _wrong(shares, len(costs))) is not None:
        raise CurriculaValueError(
            f"curriculum.bandit: expected {name}.shares to return an array of {len(costs)} shares, not negative, of "
            f"sum 1; got {got}; mend it"
        )
    return np.asarray(shares, dtype=np.float64)


def told(rule: Bandit, name: str, codes: Codes, rewards: Floats, shares: Floats) -> None:
    """Let the rule learn K groups; raises CurriculaRuntimeError where it raises."""
    try:
        rule.update(codes, rewards, shares)
    except Exception as error:
        raise CurriculaRuntimeError(f"curriculum.bandit: {name}.update raised {described(error)}; mend it") from error


def _wrong(shares: object, arms: int) -> str | None:
    """What was returned, where it cannot be shares."""
    if not isinstance(shares, np.ndarray):
        return shown(shares) if shares is None else f"{shown(shares)} ({type(shares).__name__})"
    array = cast("NDArray[np.generic]", shares)
    if array.dtype.kind not in "fiu" or array.shape != (arms,):
        return f"one of shape {array.shape} and type {array.dtype}"
    values = array.astype(np.float64)
    if not np.isfinite(values).all() or (values < 0.0).any() or abs(float(values.sum()) - 1.0) > _CLOSE:
        return " ".join(np.array2string(values, precision=4, threshold=8).split())
    return None
