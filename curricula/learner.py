"""What is learned from outcomes: each is judged once, then teaches every part in one update."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from curricula.bandits import Mixer
from curricula.beliefs import Belief, build_belief
from curricula.choosing.visited import Visited
from curricula.config import CurriculumConfig
from curricula.costs import TokenCosts
from curricula.filters import Filters, Groups, Judgement
from curricula.monitor import Event, Monitor
from curricula.outcomes import OutcomeBatch
from curricula.pool import PromptPool
from curricula.predictors import Background, build_predictor
from curricula.predictors.build import check_read
from curricula.records import Status, Verdict
from curricula.scored import Scored
from curricula.stateful import Reader
from curricula.success import SuccessMode, SuccessRule
from curricula.tickets import Ticket

Floats = NDArray[np.float64]

Flags = NDArray[np.bool_]

_KEPT = ("informative", "unfiltered")
_VERDICTS: dict[Judgement, Verdict] = {
    judgement: Verdict(judgement in _KEPT, judgement) for judgement in get_args(Judgement)
}
_logger = logging.getLogger("curricula")


class Told(NamedTuple):
    """K judged groups, as they were told: what `Learner.learn` was given, and what came of the judging."""

    batch: OutcomeBatch
    places: NDArray[np.int64]
    tickets: list[Ticket]
    drawn: NDArray[np.bool_]
    windows_E2: NDArray[np.int64]
    results: Floats
    mixed: Flags
    compared: NDArray[np.int64]
    mode: SuccessMode


class Learner:
    """The parts that learn, and the order in which they do.

    A group is judged when it is told, since a host waits for the verdict. What it teaches may wait until `settle`, or
    until a part is next looked at: a host that asks beside a step then learns beside it too. No more than one tell
    waits.
    """

    def __init__(self, pool: PromptPool, config: CurriculumConfig) -> None:
        selection = config.curriculum
        self.pool = pool
        self._belief_type = selection.belief.type
        self._beliefs = build_belief(selection.belief, pool)
        self._visited = Visited(pool)
        check_read(config, self._beliefs.predicted)
        self._predictor = build_predictor(selection.predictor, pool, config.origin) if self._beliefs.predicted else None
        self._costs = TokenCosts(pool, selection.bandit.discount)
        self._mixer = Mixer(pool, config)
        self.rule = SuccessRule(config.success)
        self._monitor = Monitor(pool.environments, self._mixer.base, config.monitor.window)
        self._filters = Filters(selection.filters)
        self._said_infinite = False
        self._untaught: Callable[[], None] | None = None

    @property
    def beliefs(self) -> Belief:
        """What is believed of pass rates, by all that was told."""
        self.settle()
        return self._beliefs

    @property
    def visited(self) -> Visited:
        """Prompts that were visited."""
        self.settle()
        return self._visited

    @property
    def predictor(self) -> Background | None:
        """What predicts the difficulty of prompts never visited, if anything does."""
        self.settle()
        return self._predictor

    @property
    def costs(self) -> TokenCosts:
        """What rollouts cost."""
        self.settle()
        return self._costs

    @property
    def mixer(self) -> Mixer:
        """Shares of the environments."""
        self.settle()
        return self._mixer

    @property
    def monitor(self) -> Monitor:
        """Figures of the run."""
        self.settle()
        return self._monitor

    def settle(self) -> None:
        """Take in what was told and not taught yet; where that raises, it is said once."""
        if self._untaught is not None:
            untaught, self._untaught = self._untaught, None
            untaught()

    def learn(
        self,
        batch: OutcomeBatch,
        places: NDArray[np.int64],
        tickets: list[Ticket],
        drawn: NDArray[np.bool_],
        windows_E2: NDArray[np.int64],
    ) -> list[Verdict]:
        """Judge scored groups; at the next `settle` they teach every part, in one update each.

        Args:
            batch: All outcomes of a tell.
            places: Shape (K,), those of them that are scored.
            tickets: What each of the K groups was drawn for.
            drawn: Shape (K,), False for outcomes from elsewhere: they teach, and are no part of this run's account.
            windows_E2: Shape (E, 2), the range of eligible blocks of each environment.
        """
        if batch.infinite_K[places].any() and not self._said_infinite:
            self._said_infinite = True
            _logger.warning(
                "rewards or successes were infinite or beyond 1e100: such rollouts are taken as unscorable, like NaN; "
                "look into the reward function (said once)"
            )
        scored = ~np.isnan(batch.rewards_KG[places])
        # A rollout without a token to train on has a reward and no gradient: it is no member of its group.
        rewards = np.where(batch.trainable_KG[places], batch.rewards_KG[places], np.nan)
        results = rewards
        if batch.given_K.any():
            results = np.where(batch.given_K[places, None], batch.successes_KG[places], rewards)
            results[np.isnan(rewards)] = np.nan
        if self.rule.observe(results):
            self.clear()
            self.monitor.clear()
            self.mixer.clear()
        results = self.rule.read(results)
        # A group that successes were asked of and none came is judged by its rewards; it says nothing of pass rates.
        judged = results
        if batch.given_K.any():
            unrated = batch.given_K[places] & np.isnan(results).all(axis=1)
            judged = np.where(unrated[:, None], rewards, results)
        judgements, mixed = self._filters.judge(self._groups(batch, places, judged, scored))
        verdicts = [_VERDICTS[judgement] for judgement in judgements]
        compared = (~np.isnan(judged)).sum(axis=1)
        told = Told(batch, places, tickets, drawn, windows_E2.copy(), results, mixed, compared, self.rule.mode)
        self._untaught = partial(self._take_in, told, verdicts)
        return verdicts

    def _take_in(self, told: Told, verdicts: list[Verdict]) -> None:
        batch, places, tickets, drawn = told.batch, told.places, told.tickets, told.drawn
        results, mixed, compared = told.results, told.mixed, told.compared
        live = ~np.isnan(results)
        members = live.sum(axis=1)
        codes = np.array([ticket.code for ticket in tickets])
        kept = np.array([verdict.keep for verdict in verdicts])
        ends: list[Event] = ["kept" if verdict.keep else cast(Event, verdict.reason) for verdict in verdicts]
        self._monitor.count_all([end for end, ours in zip(ends, drawn.tolist(), strict=True) if ours], codes[drawn])
        self._monitor.trained.extend(codes[kept & drawn])
        np.add.at(self._monitor.tokens_E, codes, np.where(drawn, batch.tokens_K[places], 0.0))
        self._monitor.endings.record(batch, places[drawn], codes[drawn], results[drawn])
        if not compared.any():
            return
        rows = np.array([ticket.row for ticket in tickets])
        passed = np.where(live, results, 0.0).sum(axis=1)
        value = passed / np.maximum(members, 1)
        rated = members > 0
        corrected = value
        if told.mode == "informative":
            taught, taught_passed, tried = members > 1, mixed.astype(np.float64), np.ones(rows.size)
        else:
            means, _ = self._beliefs.moments(rows)
            corrected = self._beliefs.pool_means(told.windows_E2)[codes] + value - means
            taught, taught_passed, tried = rated, passed, members * 1.0
        first = np.zeros(rows.size, dtype=np.bool_)
        first[taught] = self._first_visits(rows[taught])
        groups = Scored(
            rows_K=rows,
            codes_K=codes,
            drawn_K=drawn,
            first_K=first,
            results_KG=results,
            members_K=members,
            passed_K=passed,
            value_K=value,
            corrected_K=corrected,
            weight_K=np.array([ticket.weight for ticket in tickets]),
            share_K=np.array([ticket.share for ticket in tickets]),
            mixed_K=mixed,
            kept_K=kept,
            tokens_K=batch.tokens_K[places],
            counted_K=batch.counted_K[places],
        )
        self._monitor.record(groups)
        self._teach(rows[taught], taught_passed[taught], tried[taught], np.flatnonzero(first[taught]))
        live_K = compared > 0
        self._costs.update(rows[live_K], groups.tokens_K[live_K], groups.counted_K[live_K])
        self._mixer.observe(groups, compared > 1, told.mode != "informative")

    def _first_visits(self, rows: NDArray[np.int64]) -> Flags:
        """Whether each visit (K,) is its row's first; where a tell brings several, the first of them counts."""
        first = np.zeros(rows.size, dtype=np.bool_)
        first[np.unique(rows, return_index=True)[1]] = True
        return first & ~self._beliefs.seen(rows)

    def _teach(self, rows: NDArray[np.int64], passed: Floats, tried: Floats, first: NDArray[np.int64]) -> None:
        """One update of beliefs; first visits, by their places, also teach the predictor, and are visited now."""
        ability = self._beliefs.ability()[0]
        self._beliefs.update(rows, passed, tried)
        self._visited.add(rows[first])
        if self._predictor is not None and first.size:
            # Relative to the ability before these visits.
            offsets = ability[self.pool.codes[rows[first]]]
            self._predictor.learn(rows[first], passed[first], tried[first], offsets)

    def clear(self) -> None:
        """Forget all beliefs, and what was learned of difficulty."""
        self.beliefs.clear()
        self.visited.clear()
        if self.predictor is not None:
            self.predictor.clear()

    def fail(self, status: Status, code: int) -> None:
        """Count a group of this run that did not end well; one that came too late is one that was not trained on."""
        self.monitor.count(cast(Event, status), code)
        if status == "stale":
            self.mixer.lost(np.array([code]))

    def start_afresh(self) -> None:
        """Forget what was believed of pass rates, when they come to be measured in another way."""
        self.clear()
        self.monitor.clear()
        self.mixer.clear()
        self.rule = SuccessRule(self.rule.config)
        _logger.warning("success is measured in another way than in the saved run: beliefs and rates start afresh")

    def _groups(self, batch: OutcomeBatch, places: NDArray[np.int64], judged: Floats, scored: Flags) -> Groups:
        components = batch.components_KGC
        if components is not None:
            components = np.where(np.isnan(judged)[:, :, None], np.nan, components[places])
        return Groups(
            results_KG=judged,
            components_KGC=components,
            declared_K=batch.given_K[places] | (self.rule.mode in ("threshold", "range")),
            scored_KG=scored,
            truncated_KG=batch.truncated_KG[places],
            interrupted_KG=batch.interrupted_KG[places],
        )

    def state_dict(self) -> dict[str, Any]:
        """State of every part."""
        state = {name: part.state_dict() for name, part in self._parts()}
        return state | {"predictor": None if self.predictor is None else self.predictor.state_dict()}

    def load(self, state: Reader) -> None:
        """Take over saved states; raises CheckpointError where one cannot be right."""
        afresh = False
        for name, part in self._parts():
            section = state.section(name)
            if name == "visited" and afresh:
                continue
            if name == "beliefs" and (kind := section.text("type")) != self._belief_type:
                _logger.warning(
                    "beliefs were %s in the saved run and are %s now: they start afresh", kind, self._belief_type
                )
                afresh = True
            else:
                part.load(section)
        if not afresh:
            self.visited.agree(state, self.beliefs)
        if self.predictor is not None and not afresh and state.raw("predictor") is not None:
            self.predictor.load(state.section("predictor"))

    def _parts(self) -> list[tuple[str, Any]]:
        names = ("beliefs", "visited", "costs", "mixer", "rule", "monitor")
        return [(name, getattr(self, name)) for name in names]
