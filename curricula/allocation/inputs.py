"""What an allocation is asked for, checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curricula.errors import CurriculaValueError
from curricula.scaling.laws import Floats

# Numbers further from 1 than this do not multiply and add up as floats.
LEAST, MOST = 1e-100, 1e100


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


def amount(what: str, value: Any, where: str = "", *, positive: bool = False) -> float:
    """A number of 0 or more, or above 0.

    Raises:
        CurriculaValueError: No number, one below 0 or not finite, or one so small or large that sums of it are none.
    """
    try:
        found = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or found < 0 or (positive and found == 0):
        least = "above 0" if positive else "of 0 or more"
        raise CurriculaValueError(f"allocate: expected {what} {least}, finite; got {str(value)[:60]}{where}")
    if found and not LEAST <= found <= MOST:
        raise CurriculaValueError(
            f"allocate: expected {what} from {LEAST:g} to {MOST:g}; got {found:g}{where}; take another unit"
        )
    return found


def named(
    what: str, given: Mapping[str, float] | None, defaults: Mapping[str, float], *, positive: bool = False
) -> Floats:
    """Numbers for each of the environments that `defaults` names, (E,).

    Raises:
        CurriculaValueError: other names, or numbers below 0, or of 0 where they have to be positive.
    """
    values = dict(defaults)
    if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CurriculaValueError(
            f"allocate: expected {what} as a mapping from environments to numbers; got {type(given).__name__}"
        )
    for name, value in (given or {}).items():
        if name not in defaults:
            raise CurriculaValueError(
                f"allocate: expected {what} of environments with a fit ({_shown(list(defaults))}); got {name!r}"
            )
        values[name] = amount(what, value, f" for {name!r}", positive=positive)
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
            f"allocate: expected floors that sum to 1 or less; got {low.sum():.12g} over {len(names)} environments; "
            "lower them"
        )
    high = np.minimum(high, 1.0)
    if high.sum() < 1 - 1e-9:
        raise CurriculaValueError(
            f"allocate: expected caps that sum to 1 or more; got {high.sum():.12g} over {len(names)} environments; "
            "raise them"
        )
    if (low > high).any():
        worst = int(np.argmax(low - high))
        raise CurriculaValueError(
            f"allocate: expected floors up to the caps; got floor {low[worst]:.12g} and cap {high[worst]:.12g} for "
            f"{names[worst]!r}"
        )
    return Limits(low, high)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8])) + (", …" if len(names) > 8 else "")
