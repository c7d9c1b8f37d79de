"""What the run's batches look like: success per environment as drawn, as trained and corrected, shares and counts."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from curricula.endings import Endings
from curricula.scored import Scored
from curricula.slots import in_windows
from curricula.stateful import Reader

Floats = NDArray[np.float64]
Event = Literal[
    "kept",
    "zero_variance",
    "overlong",
    "single",
    "no_signal",
    "unscorable",
    "error",
    "stale",
    "cancelled",
    "expired",
]

EVENTS: tuple[Event, ...] = get_args(Event)
_LEAST_ESS = 5.0
_VALUE, _CORRECTED, _WEIGHT, _KEPT, _INFORMATIVE = range(5)
_FIELDS = 5
_MOST = 1e120
_PLACES: dict[str, int] = {event: place for place, event in enumerate(EVENTS)}


class Monitor:
    """Windowed rates and cumulative counts per environment.

    The corrected rate is the augmented inverse-propensity estimate of the mean over all eligible prompts, in its
    Hajek form: sum of w (M + y - p) / sum of w over the window, with y a group's mean success, p the belief about
    its prompt and M the mean belief over the environment, both as they were before the group was told, and w the
    inverse of its probability to be drawn. It is left out where its effective sample size
    (sum of w)^2 / sum of w^2 is below 5.

    References:
        Robins, Rotnitzky and Zhao, Estimation of regression coefficients when some regressors are not always
        observed, JASA 1994 (augmented inverse-propensity weighting).
    """

    def __init__(self, names: tuple[str, ...], base: Floats, window: int) -> None:
        self.names, self.base, self.window = names, base, window
        environments = len(names)
        self.events_ER = np.zeros((environments, len(EVENTS)), dtype=np.int64)
        self.tokens_E = np.zeros(environments)
        self.drawn = Ring(window)
        self.trained = Ring(window)
        self.endings = Endings(names, window)
        self.clear()

    def clear(self) -> None:
        """Empty the windows of rates, when what they measure has changed."""
        self.rates_EWF: Floats = np.zeros((len(self.names), self.window, _FIELDS))
        self.told_E = np.zeros(len(self.names), dtype=np.int64)
        self.endings.clear()

    def count(self, event: Event, code: int) -> None:
        """Count one group of an environment."""
        self.events_ER[code, _PLACES[event]] += 1

    def count_all(self, events: Sequence[Event], codes: NDArray[np.int64]) -> None:
        """Count groups, each of the environment whose code stands in its place."""
        np.add.at(self.events_ER, (codes, np.array([_PLACES[event] for event in events], dtype=np.int64)), 1)

    def record(self, groups: Scored) -> None:
        """Enter the groups that this run drew and whose result is known, in the order they were told."""
        seen = groups.drawn_K & (groups.members_K > 0)
        columns = (groups.value_K, groups.corrected_K, groups.weight_K, groups.kept_K * 1.0, groups.mixed_K * 1.0)
        rates_KF = np.stack(columns, axis=1)[seen]
        codes = groups.codes_K[seen]
        entered, environments, slots, counts_E = in_windows(codes, self.told_E, self.window)
        self.rates_EWF[environments, slots] = rates_KF[entered]
        self.told_E += counts_E

    def metrics(self, rate: str) -> dict[str, float]:
        """Flat metrics; `rate` names what groups are measured in: "success" or "mean_reward"."""
        rates = self.rates_EWF
        filled = np.minimum(self.told_E, self.window)
        kept, weights = rates[:, :, _KEPT].sum(axis=1), rates[:, :, _WEIGHT].sum(axis=1)
        squares = (rates[:, :, _WEIGHT] ** 2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ess = np.where(squares > 0.0, weights**2 / squares, 0.0)
            columns = {
                f"{rate}_drawn": rates[:, :, _VALUE].sum(axis=1) / filled,
                f"{rate}_trained": (rates[:, :, _VALUE] * rates[:, :, _KEPT]).sum(axis=1) / kept,
                f"{rate}_corrected": np.where(
                    ess >= _LEAST_ESS, (rates[:, :, _CORRECTED] * rates[:, :, _WEIGHT]).sum(axis=1) / weights, np.nan
                ),
                "informative": rates[:, :, _INFORMATIVE].sum(axis=1) / filled,
                "share_drawn": self.drawn.shares(len(self.names)),
                "share_trained": self.trained.shares(len(self.names)),
            }
        if rate == "success":
            # An unbiased estimate may leave the unit interval; a rate may not.
            columns["success_corrected"] = np.clip(columns["success_corrected"], 0.0, 1.0)
        result: dict[str, float] = {}
        for code, name in enumerate(self.names):
            for column, values in columns.items():
                if not np.isnan(values[code]):
                    result[f"{name}/{column}"] = float(values[code])
            result[f"{name}/ess"] = float(ess[code])
            result[f"{name}/tokens"] = float(self.tokens_E[code])
            for event, total in zip(EVENTS, self.events_ER[code].tolist(), strict=True):
                result[f"{name}/{event}"] = float(total)
        result |= self.endings.metrics(rate)
        overall = columns[f"{rate}_corrected"]
        if not np.isnan(overall).any():
            result[f"{rate}_corrected"] = float(self.base @ overall)
        if filled.sum() > 0:
            result["informative"] = float(rates[:, :, _INFORMATIVE].sum() / filled.sum())
        return result

    def state_dict(self) -> dict[str, Any]:
        """Windows and counts."""
        return {
            "window": self.window,
            "rates": self.rates_EWF.copy(),
            "told": self.told_E.copy(),
            "events": self.events_ER.copy(),
            "tokens": self.tokens_E.copy(),
            "drawn": self.drawn.state_dict(),
            "trained": self.trained.state_dict(),
            "endings": self.endings.state_dict(),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; windows of another length start empty, counts go on."""
        environments = len(self.names)
        events = state.array("events", np.int64, self.events_ER.shape)
        tokens = state.array("tokens", np.float64, (environments,), high=_MOST)
        window = state.integer("window", low=1)
        rates = state.array("rates", np.float64, (environments, window, _FIELDS), low=-_MOST, high=_MOST)
        told = state.array("told", np.int64, (environments,))
        self.endings.load(state.section("endings"))
        self.events_ER, self.tokens_E = events, tokens
        if window == self.window:
            self.rates_EWF, self.told_E = rates, told
            self.drawn.load(state.section("drawn"), environments)
            self.trained.load(state.section("trained"), environments)


class Ring:
    """The environments of the last `window` groups.

    >>> ring = Ring(3)
    >>> ring.extend([0, 1, 1, 1])
    >>> ring.shares(2)
    array([0., 1.])
    """

    def __init__(self, window: int) -> None:
        self.codes = np.zeros(window, dtype=np.int64)
        self.total = 0

    def extend(self, codes: Sequence[int] | NDArray[np.int64]) -> None:
        """Enter environments in order."""
        size = len(self.codes)
        start = max(0, len(codes) - size)  # of more than fill the window, the last
        self.codes[(self.total + np.arange(start, len(codes))) % size] = codes[start:]
        self.total += len(codes)

    def shares(self, environments: int) -> Floats:
        """Share of each environment, shape (E,); NaN before the first entry."""
        filled = min(self.total, len(self.codes))
        return np.bincount(self.codes[:filled], minlength=environments) / np.float64(filled)

    def state_dict(self) -> dict[str, Any]:
        """The window."""
        return {"codes": self.codes.copy(), "total": self.total}

    def load(self, state: Reader, environments: int) -> None:
        """Take over a saved window of the same length."""
        self.codes = state.array("codes", np.int64, self.codes.shape, low=0, high=environments - 1)
        self.total = state.integer("total")
