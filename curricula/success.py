"""What the rewards mean: whether, and how, they can be read as successes in [0, 1]."""

import logging
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curricula.config import SuccessConfig
from curricula.stateful import Reader

Floats = NDArray[np.float64]
SuccessMode = Literal["rate", "signed", "threshold", "range", "informative"]

_ROUNDING = 1e-6  # hosts weigh and sum rewards in float32: 0.6 + 0.4 is 1.00000003 there, and 0.9 is 0.89999998
_logger = logging.getLogger("curricula")


class SuccessRule:
    """Reads rewards as successes.

    With a threshold t, a reward is a success from t upwards. With a range [a, b], a reward counts linearly, a as 0
    and b as 1, clipped. With neither, rewards in [0, 1] are taken as they are and {-1, 1} is mapped; once anything
    else was seen, rewards cannot be read as rates, and beliefs are about the chance that a group is informative.

    >>> rule = SuccessRule(SuccessConfig(threshold=0.5))
    >>> rule.read(np.array([0.2, 0.5, np.nan]))
    array([ 0.,  1., nan])
    """

    def __init__(self, config: SuccessConfig) -> None:
        self.config = config
        self._unit = self._signed = True

    @property
    def mode(self) -> SuccessMode:
        """How rewards are read at present."""
        if self.config.threshold is not None:
            return "threshold"
        if self.config.range is not None:
            return "range"
        if self._unit:
            return "rate"
        return "signed" if self._signed else "informative"

    def observe(self, rewards: Floats) -> bool:
        """Look at rewards of any shape, NaN where unscorable; True when they end being readable as rates."""
        before = self.mode
        if before in ("threshold", "range", "informative"):
            return False
        seen = rewards[~np.isnan(rewards)]
        self._unit = self._unit and bool(((seen >= -_ROUNDING) & (seen <= 1.0 + _ROUNDING)).all())
        self._signed = self._signed and bool((np.abs(np.abs(seen) - 1.0) <= _ROUNDING).all())
        if self.mode == before:
            return False
        if self.mode == "signed":
            _logger.info("rewards are -1 or 1: -1 is read as a failure, 1 as a success")
            return False
        _logger.warning(
            "rewards are not rates: expected values in [0, 1] or {-1, 1}, saw %g to %g; beliefs are now about the "
            "chance that a group is informative, evidence starts afresh, and groups are filtered on these shaped "
            "rewards; tell successes, or set success.threshold or success.range, to have success rates",
            seen.min(),
            seen.max(),
        )
        return True

    def read(self, rewards: Floats) -> Floats:
        """Successes in [0, 1] of the same shape, NaN kept; in informative mode the rewards themselves."""
        mode = self.mode
        if mode == "threshold":
            threshold = self.config.threshold or 0.0
            least = threshold - _ROUNDING * max(1.0, abs(threshold))
            return np.where(np.isnan(rewards), np.nan, (rewards >= least).astype(np.float64))
        if mode == "range":
            low, high = self.config.range or (0.0, 1.0)
            return np.clip((rewards - low) / (high - low), 0.0, 1.0)
        if mode == "informative":
            return rewards
        return np.clip((rewards + 1.0) / 2.0 if mode == "signed" else rewards, 0.0, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """What kinds of rewards are still possible."""
        return {"unit": self._unit, "signed": self._signed}

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        self._unit, self._signed = state.flag("unit"), state.flag("signed")
