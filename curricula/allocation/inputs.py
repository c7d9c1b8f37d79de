"""What an allocation is asked for, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.scaling.laws import Floats


@dataclass(frozen=True, slots=True)
class Limits:
    """Least and most share of each environment, (E,) each."""

    low: Floats
    high: Floats

    def nearest(self, shares: Floats) -> Floats:
        """Shares (E,) in proportion to these as far as the limits let them be."""
        wish = shares / shares.sum() + 1e-9
        least, most = 0.0, 1.0
        while np.clip(most * wish, self.low, self.high).sum() < min(1.0, self.high.sum()) - 1e-12:
            most *= 2
        for _ in range(64):
            middle = (least + most) / 2
            least, most = (middle, most) if np.clip(middle * wish, self.low, self.high).sum() < 1 else (least, middle)
        found = np.clip(most * wish, self.low, self.high)
        return found / found.sum()


def named(
    what: str, given: Mapping[str, float] | None, defaults: Mapping[str, float], *, positive: bool = False
) -> Floats:
    """Numbers for each of the environments that `defaults` names, (E,).

    Raises:
        CurriculaValueError: other names, or numbers below 0, or of 0 where they have to be positive.
    """
    values = dict(defaults)
    for name, value in (given or {}).items():
        if name not in defaults:
            raise CurriculaValueError(
                f"allocate: expected {what} of environments with a fit ({_shown(list(defaults))}); got {name!r}"
            )
        if isinstance(value, bool) or not np.isfinite(value) or value < 0 or (positive and value == 0):
            least = "above 0" if positive else "of 0 or more"
            raise CurriculaValueError(f"allocate: expected {what} {least}, finite; got {value!r} for {name!r}")
        values[name] = float(value)
    return np.array(list(values.values()))


def limits(names: Sequence[str], floor: float | Mapping[str, float], cap: float | Mapping[str, float]) -> Limits:
    """Floors and caps of each environment.

    Raises:
        CurriculaValueError: no shares, other names, or limits that no split meets.
    """
    low, high = (
        named(what, given, dict.fromkeys(names, default))
        if isinstance(given, Mapping)
        else named(what, dict.fromkeys(names, given), dict.fromkeys(names, default))
        for what, given, default in (("floor", floor, 0.0), ("cap", cap, 1.0))
    )
    if low.sum() > 1 + 1e-9:
        raise CurriculaValueError(
            f"allocate: expected floors that sum to 1 or less; got {low.sum():g} over {len(names)} environments; "
            "lower them"
        )
    high = np.minimum(high, 1.0)
    if high.sum() < 1 - 1e-9:
        raise CurriculaValueError(
            f"allocate: expected caps that sum to 1 or more; got {high.sum():g} over {len(names)} environments; "
            "raise them"
        )
    if (low > high).any():
        worst = int(np.argmax(low - high))
        raise CurriculaValueError(
            f"allocate: expected floors up to the caps; got floor {low[worst]:g} and cap {high[worst]:g} for "
            f"{names[worst]!r}"
        )
    return Limits(low, high)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
