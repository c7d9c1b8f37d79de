"""Shares that follow a plan: the compute still to come, split by the scaling curves of the environments."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.bandits.base import Floats
from curricula.bandits.success_curves import Points, SuccessCurves
from curricula.config.planned import Planned
from curricula.errors import CurriculaError
from curricula.scored import Scored
from curricula.stateful import Reader

# Points of an environment that a plan takes, at least, and the factor in compute that they span.
LEAST_POINTS, LEAST_SPAN = 5, 2.0
# Of the last plan, in one for the same environments.
KEPT = 0.5
_FIGURES = ("share", "gain", "ceiling")
_LARGEST = 1e120
_logger = logging.getLogger("curricula")


class Plan:
    """Target shares of the draws, by what compute would gain in each environment (`curricula.allocation`).

    Success is the corrected one, of which curriculum and filters are no part (`Scored.corrected_K`), against what was
    spent in the environment. Curves are fitted anew every so many asks, when outcomes are next learned from, which is
    beside the step where learning is. What an environment has too few points for is left to the bandit, with all of its
    share; the others share theirs by the plan. No plan without two of those. A plan is followed as far as what it gains
    over an even split is clear (its `trust`): for the rest the bandit decides, on all of it where curves tell nothing.
    Between plans for the same environments half of the last one is kept, so that one odd fit does not turn a run.

    Fits are not kept: points, counts and the last plan are, so that a resumed run goes on exactly.

    Args:
        config: The mode.
        base: Shape (E,), weights of the environments' success.
        floors: Shape (E,), least shares.
        caps: Shape (E,), most shares.
        seed: Of the fits.
    """

    def __init__(self, config: Planned, base: Floats, floors: Floats, caps: Floats, seed: int) -> None:
        self.config, self.base, self.floors, self.caps, self.seed = config, base, floors, caps, seed
        self.curves = SuccessCurves(len(base))
        self._every = max(config.every, len(base))
        self._said: set[str] = set()
        self._asks = self._plans = 0
        self._since = 0
        self._forget()

    def _forget(self) -> None:
        arms = len(self.base)
        self.planned_E: NDArray[np.bool_] = np.zeros(arms, dtype=np.bool_)
        self.target_E: Floats = np.zeros(arms)
        self.trust = 0.0
        self.figures_EF: Floats = np.zeros((arms, len(_FIGURES)))
        self.whole: dict[str, float] = {}

    def clear(self) -> None:
        """Forget curves and plan, when success comes to be measured in another way."""
        self.curves.clear()
        self._forget()

    def tick(self) -> None:
        """Count an ask."""
        self._asks += 1
        self._since += 1

    def mix(self, shares: Floats) -> Floats:
        """Shares (E,) of the bandit, with those that are planned shared out by the plan."""
        if not self.planned_E.any():
            return shares
        part = float(shares[self.planned_E].sum()) / float(shares.sum())
        # Environments of the plan are never without any share because the bandit saw nothing in them.
        part = max(part, float(self.base[self.planned_E].sum()) if part <= 0 else 0.0)
        followed = self.trust * self.planned_E.astype(np.float64)
        return (1 - followed) * shares / shares.sum() + followed * part * self.target_E

    @property
    def decides(self) -> bool:
        """Whether any share is the plan's."""
        return self.trust > 0 and bool(self.planned_E.any())

    def observe(self, groups: Scored, rated: bool, names: Sequence[str]) -> None:
        """Enter the groups that this run drew, and plan anew where it is time."""
        if not rated:
            self._say("rates", "rewards are no success rates: there are no curves to plan by, and the bandit decides")
            return
        drawn = groups.drawn_K
        weights = np.where(groups.members_K > 0, groups.weight_K, 0.0)
        rollouts = (~np.isnan(groups.results_KG)).sum(axis=1) * 1.0
        self.curves.observe(
            groups.codes_K[drawn],
            groups.corrected_K[drawn],
            weights[drawn],
            groups.tokens_K[drawn],
            np.maximum(rollouts, groups.counted_K)[drawn],
        )
        if self._since >= self._every:
            self._since = 0
            self._make(names)

    def _make(self, names: Sequence[str]) -> None:
        # Imported here: they bring parts of scipy that a run without a plan never needs.
        from curricula.allocation import allocate
        from curricula.scaling import ScalingFit, fit

        axis = self.config.axis
        if axis == "tokens" and not self.curves.spent_E2[:, 0].any():
            self._say("tokens", "no tokens are told: the plan counts rollouts")
            axis = "rollouts"
        self._plans += 1
        seed = (self.seed + self._plans) % 2**63
        fits: dict[int, ScalingFit] = {}
        for code in range(len(self.base)):
            points = self.curves.points(code, axis)
            if not _enough(points):
                continue
            try:
                fits[code] = fit(points.compute, points.score, noise=points.noise, seed=seed)
            except CurriculaError as error:  # points that the fit refuses: the environment is the bandit's again
                self._say(f"curve {code}", f"no curve of {names[code]}: {error}")
        before = self.planned_E, self.target_E, self.trust
        self._forget()
        if len(fits) < 2:
            return
        codes = np.array(list(fits))
        spent_E = self.curves.spent_E2[:, 0 if axis == "tokens" else 1]
        total = float(spent_E[codes].sum())
        until = total / max(self._asks, 1) * self._every
        keys = {code: str(code) for code in fits}
        caps = self.caps if float(self.caps[codes].sum()) >= 1 else np.ones(len(self.base))
        made = allocate(
            {keys[code]: found for code, found in fits.items()},
            max(self.config.horizon * total, until),
            spent={keys[code]: float(spent_E[code]) for code in fits},
            weights={keys[code]: float(self.base[code]) for code in fits},
            floor={keys[code]: float(self.floors[code]) for code in fits},
            cap={keys[code]: float(caps[code]) for code in fits},
            method=self.config.method,
            seed=seed,
        )
        # The plan is of compute, and shares are of draws: what costs more is drawn less for the same.
        price_E = spent_E / np.maximum(self.curves.spent_E2[:, 1], 1.0)
        draws = np.array([made.shares[keys[code]] for code in fits]) / np.maximum(price_E[codes], 1e-9)
        self.planned_E[codes] = True
        self.target_E[codes] = draws / draws.sum()
        self.trust = made.trust
        if (before[0] == self.planned_E).all():
            self._keep(*before[1:])
        for code, found in fits.items():
            share, ceiling = made.shares[keys[code]], found.asymptote
            # A straight line has no ceiling but 1.
            self.figures_EF[code] = share, made.gains[keys[code]].mean, 1.0 if np.isnan(ceiling) else ceiling
        self.whole = {
            "compute": made.budget,
            "gain": made.total.mean,
            "gain_low": made.total.low,
            "gain_high": made.total.high,
            "gain_equal": made.equal,
            "gap": made.gap,
            "trust": self.trust,
        }
        said = ", ".join(
            f"{names[code]} {made.shares[keys[code]]:.2f} (gain {made.gains[keys[code]].mean:+.3f}"
            + "".join(f"; {reason}" for reason in found.reasons)
            + ")"
            for code, found in fits.items()
        )
        _logger.info("plan %d over %.4g %s, followed by %.2f: %s", self._plans, made.budget, axis, self.trust, said)

    def _keep(self, target: Floats, trust: float) -> None:
        """Take half of the last plan: of its shares as far as they were followed."""
        mine, old = (1 - KEPT) * self.trust, KEPT * trust
        if mine + old > 0:
            self.target_E = (mine * self.target_E + old * target) / (mine + old)
        self.trust = mine + old

    def _say(self, what: str, text: str) -> None:
        """Once for each of `what`."""
        if what not in self._said:
            self._said.add(what)
            _logger.warning("shares from scaling: %s", text)

    def metrics(self, names: Sequence[str]) -> dict[str, float]:
        """Figures of the last plan; those of an environment as `NAME/plan_…`."""
        result = {"plan/made": float(self._plans), "plan/environments": float(self.planned_E.sum())}
        result |= {f"plan/{name}": value for name, value in self.whole.items()}
        for code in np.flatnonzero(self.planned_E).tolist():
            for figure, value in zip(_FIGURES, self.figures_EF[code].tolist(), strict=True):
                result[f"{names[code]}/plan_{figure}"] = value
        return result

    def state_dict(self) -> dict[str, Any]:
        """Points, counts and the last plan."""
        return {
            "curves": self.curves.state_dict(),
            "asks": self._asks,
            "since": self._since,
            "plans": self._plans,
            "planned": self.planned_E.astype(np.int64),
            "target": self.target_E.copy(),
            "figures": self.figures_EF.copy(),
            "whole": np.array([self.whole.get(name, 0.0) for name in _WHOLE] if self.whole else []),
        }

    def load(self, state: Reader) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        arms = len(self.base)
        asks, since, plans = (state.integer(name) for name in ("asks", "since", "plans"))
        planned = state.array("planned", np.int64, (arms,), high=1) > 0
        target = state.array("target", np.float64, (arms,), high=1 + 1e-9)
        figures = state.array("figures", np.float64, (arms, len(_FIGURES)), low=-_LARGEST, high=_LARGEST)
        whole = state.array("whole", np.float64, (None,), low=-_LARGEST, high=_LARGEST)
        state.ensure("whole", f"{len(_WHOLE)} figures or none", len(whole) in (0, len(_WHOLE)))
        self.curves.load(state.section("curves"))
        self._asks, self._since, self._plans = asks, since, plans
        self.figures_EF = figures
        self.whole = dict(zip(_WHOLE, whole.tolist(), strict=True)) if len(whole) else {}
        self.trust = min(max(self.whole.get("trust", 0.0), 0.0), 1.0)
        # Of a data set that changed, environments of the plan may be gone.
        sum_of = float(target[planned].sum())
        usable = sum_of > 0
        self.planned_E = planned & usable
        self.target_E = np.where(self.planned_E, target / sum_of, 0.0) if usable and abs(sum_of - 1) > 1e-12 else target


_WHOLE = ("compute", "gain", "gain_low", "gain_high", "gain_equal", "gap", "trust")


def _enough(points: Points) -> bool:
    return len(points.compute) >= LEAST_POINTS and bool(points.compute[-1] >= LEAST_SPAN * points.compute[0])
