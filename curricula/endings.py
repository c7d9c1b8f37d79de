"""How rollouts ended, per environment: of themselves, forced to an answer, or cut off at the limit of tokens."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.outcomes import OutcomeBatch
from curricula.slots import in_windows
from curricula.stateful import Reader

Floats = NDArray[np.float64]

MOST_TRUNCATED = 0.1
"""Fraction of rollouts cut off at the limit above which training was seen to become unstable (10 to 15%)."""

_LEAST = 100  # rollouts, before a fraction of them is worth a warning
_LIMITED, _TRUNCATED, _TIMED, _INTERRUPTED, _CUT_SUM, _CUT, _FINISHED_SUM, _FINISHED = range(8)
_FIELDS = 8
_MOST = 1e120
_logger = logging.getLogger("curricula")


class Endings:
    """Windowed fractions per environment, over groups of which hosts said how their rollouts ended.

    Source: ScaleRL, arXiv 2510.13786, appendix: truncations of 10 to 15% destabilised training.

    Args:
        names: The environments.
        window: Groups of each that count.

    Attributes:
        quiet: Whether nothing is warned of, as where a log is followed.
    """

    def __init__(self, names: tuple[str, ...], window: int) -> None:
        self.names, self.window = names, window
        self.quiet = False
        self._warned_E = np.zeros(len(names), dtype=np.bool_)
        self.clear()

    def clear(self) -> None:
        """Empty the windows, when what success is has changed."""
        self.ends_EWF: Floats = np.zeros((len(self.names), self.window, _FIELDS))
        self.told_E = np.zeros(len(self.names), dtype=np.int64)

    def record(
        self, batch: OutcomeBatch, places_K: NDArray[np.int64], codes_K: NDArray[np.int64], results_KG: Floats
    ) -> None:
        """Enter groups, in the order they were told.

        Args:
            batch: All outcomes of a tell.
            places_K: Those of them that are entered.
            codes_K: Their environments.
            results_KG: Their successes, NaN where unknown.
        """
        truncates, interrupts = batch.truncation_told_K[places_K], batch.interruption_told_K[places_K]
        told = truncates | interrupts
        if not told.any():
            return
        scored = ~np.isnan(batch.rewards_KG[places_K])
        cut = batch.interrupted_KG[places_K] & scored & interrupts[:, None]
        known = ~np.isnan(results_KG) & interrupts[:, None]
        values = np.where(known, results_KG, 0.0)
        columns = (
            scored & truncates[:, None],
            batch.truncated_KG[places_K] & scored & truncates[:, None],
            scored & interrupts[:, None],
            cut,
            values * cut,
            known & cut,
            values * ~cut,
            known & ~cut,
        )
        ends_KF = np.stack([column.sum(axis=1) * 1.0 for column in columns], axis=1)[told]
        groups, codes, slots, counts_E = in_windows(codes_K[told], self.told_E, self.window)
        self.ends_EWF[codes, slots] = ends_KF[groups]
        self.told_E += counts_E
        self._warn(np.flatnonzero(counts_E))

    def metrics(self, rate: str) -> dict[str, float]:
        """Flat metrics; `rate` names what rollouts are measured in: "success" or "mean_reward"."""
        sums = self.ends_EWF.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            columns = {
                "truncated": sums[:, _TRUNCATED] / sums[:, _LIMITED],
                "interrupted": sums[:, _INTERRUPTED] / sums[:, _TIMED],
                f"{rate}_interrupted": sums[:, _CUT_SUM] / sums[:, _CUT],
                f"{rate}_finished": sums[:, _FINISHED_SUM] / sums[:, _FINISHED],
            }
        return {
            f"{name}/{column}": float(values[code])
            for code, name in enumerate(self.names)
            for column, values in columns.items()
            if not np.isnan(values[code])
        }

    def _warn(self, codes: NDArray[np.int64]) -> None:
        if self.quiet:
            return
        counts_E2 = self.ends_EWF[:, :, [_LIMITED, _TRUNCATED]].sum(axis=1)
        for code in map(int, codes):
            limited, truncated = float(counts_E2[code, 0]), float(counts_E2[code, 1])
            if self._warned_E[code] or limited < _LEAST or truncated <= MOST_TRUNCATED * limited:
                continue
            self._warned_E[code] = True
            _logger.warning(
                "%s: %.0f%% of the last %d rollouts were cut off at the limit of tokens; above 10 to 15%% training "
                "was seen to become unstable. Raise the limit, or end the thinking in time (interruption) (said once)",
                self.names[code],
                100.0 * truncated / limited,
                limited,
            )

    def state_dict(self) -> dict[str, Any]:
        """The windows, and which environments were warned of."""
        return {
            "window": self.window,
            "ends": self.ends_EWF.copy(),
            "told": self.told_E.copy(),
            "warned": self._warned_E.copy(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; windows of another length start empty."""
        window = state.integer("window", low=1)
        ends = state.array("ends", np.float64, (len(self.names), window, _FIELDS), low=-_MOST, high=_MOST)
        told = state.array("told", np.int64, (len(self.names),))
        self._warned_E = state.array("warned", np.bool_, (len(self.names),))
        if window == self.window:
            self.ends_EWF, self.told_E = ends, told
