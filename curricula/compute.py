"""What a run has spent: rollouts, tokens, and the time of its devices."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from curricula.errors import CheckpointError
from curricula.outcomes import OutcomeBatch
from curricula.records import GroupOutcome, Verdict
from curricula.stateful import Reader

_MOST = 1e18


class Compute:
    """Counts what is told, and how long so many devices have been at it.

    The counts are those of every outcome that is told, once, failed and dropped groups included; a warm start's are
    another run's. Time is counted between `begin` and `pause`, up to the last `tick` where there is no `pause`.

    Attributes:
        rollouts: Generated.
        generated_tokens: Of them, as far as tokens are told.
        trained_tokens: Of rollouts that can be trained on, in groups that are kept; each once, however many passes
            are made over it.

    >>> compute = Compute()
    >>> compute.add(8, 120.0, 60.0)
    >>> compute.metrics()
    {'rollouts': 8.0, 'generated_tokens': 120.0, 'trained_tokens': 60.0}
    """

    def __init__(self) -> None:
        self.rollouts = 0
        self.generated_tokens = self.trained_tokens = 0.0
        self._seconds = self._device_seconds = 0.0
        self._devices = 0
        self._since: float | None = None

    def begin(self, devices: int) -> None:
        """Start the clock, for so many devices at once; what was not ticked since an earlier start is not counted."""
        self._devices, self._since = devices, time.monotonic()

    def tick(self) -> None:
        """Count the time up to now."""
        if self._since is None:
            return
        now = time.monotonic()
        self._seconds += now - self._since
        self._device_seconds += (now - self._since) * self._devices
        self._since = now

    def pause(self) -> None:
        """Stop the clock."""
        self.tick()
        self._since = None

    def add(self, rollouts: int, generated_tokens: float, trained_tokens: float) -> None:
        """Count what was told."""
        self.rollouts += rollouts
        self.generated_tokens += generated_tokens
        self.trained_tokens += trained_tokens
        self.tick()

    def told(
        self, outcomes: Sequence[GroupOutcome], batch: OutcomeBatch, verdicts: Sequence[Verdict], ours: Sequence[bool]
    ) -> None:
        """Count what outcomes cost, but for those from elsewhere and those that were told before."""
        mine = np.array(ours)
        kept = np.array([verdict.keep for verdict in verdicts]) & mine
        new = [outcome for outcome, one in zip(outcomes, ours, strict=True) if one]
        # The batch has nothing of failed groups, whose tokens were generated all the same.
        failed = [outcome.tokens for outcome in new if outcome.status != "ok" and outcome.tokens is not None]
        generated = float(batch.tokens_K[mine].sum()) + sum(float(np.nansum(tokens)) for tokens in failed)
        rollouts = sum(np.size(outcome.rewards) for outcome in new)
        self.add(rollouts, generated, float(batch.trained_K[kept].sum()))

    @property
    def device_seconds(self) -> float | None:
        """Seconds times devices, up to the last tick; None where no clock was ever started."""
        return self._device_seconds if self._device_seconds or self._since is not None else None

    def metrics(self) -> dict[str, float]:
        """The counts, as far as there are any: seconds as `wall_time`, device-hours as `gpu_hours`."""
        self.tick()
        found = {"rollouts": float(self.rollouts)}
        if self.generated_tokens:
            found |= {"generated_tokens": self.generated_tokens, "trained_tokens": self.trained_tokens}
        if self.device_seconds is not None:
            found |= {"wall_time": self._seconds, "gpu_hours": self._device_seconds / 3600}
        return found

    def state_dict(self) -> dict[str, Any]:
        """The counts, up to now."""
        self.tick()
        return {
            "rollouts": self.rollouts,
            "spent": [self.generated_tokens, self.trained_tokens, self._seconds, self._device_seconds],
        }

    @staticmethod
    def read(state: Reader) -> "Compute":
        """What `state_dict` gave; CheckpointError where it cannot be right."""
        found, spent = Compute(), state.raw("spent")
        found.rollouts = state.integer("rollouts")
        match spent:
            case [float(generated), float(trained), float(seconds), float(device_seconds)] if all(
                0 <= value <= _MOST for value in (generated, trained, seconds, device_seconds)
            ):
                found.generated_tokens, found.trained_tokens = generated, trained
                found._seconds, found._device_seconds = seconds, device_seconds
            case _:
                raise CheckpointError(f"{state.place}.spent: expected four counts; got {str(spent)[:80]}")
        return found

    def take_over(self, other: "Compute") -> None:
        """Go on from another's counts; a clock that runs here runs on from now."""
        self.rollouts = other.rollouts
        self.generated_tokens, self.trained_tokens = other.generated_tokens, other.trained_tokens
        self._seconds, self._device_seconds = other._seconds, other._device_seconds
        if self._since is not None:
            self._since = time.monotonic()
