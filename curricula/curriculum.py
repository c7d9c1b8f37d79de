"""Ask which prompts to spend rollouts on; tell what came of them."""

import json
import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curricula.choosing.planning import Planner
from curricula.choosing.situation import Situation
from curricula.compute import Compute
from curricula.config import CurriculumConfig, as_config
from curricula.errors import CheckpointError, CurriculaValueError
from curricula.learner import Learner
from curricula.log import OutcomeLog
from curricula.outcomes import stack
from curricula.pool import PromptPool
from curricula.predictors import Background
from curricula.records import Beliefs, Draw, GroupOutcome, Verdict, whole
from curricula.remap import key_state, remapped
from curricula.restoring import changed, log_changes, read_json, read_rng, read_windows, rng_state
from curricula.stateful import MOST, Reader
from curricula.success import SuccessMode
from curricula.tickets import Ticket, Tickets
from curricula.windows import Windows

Floats = NDArray[np.float64]

FORMAT = 4
_COUNTS = ("asks", "draws", "told", "repeats", "expired", "duplicates")
_logger = logging.getLogger("curricula")


class Curriculum:
    """Chooses prompts, learns from what came of them, and keeps account.

    `ask` and `tell` may be called in any order and any number of times: a prompt in flight is not drawn again until
    it is told, cancelled or expired. Their cost does not grow with the pool. All randomness comes from one seeded
    generator, and `state_dict` holds it: a restored curriculum goes on as if it had never stopped.

    Args:
        pool: The prompts.
        config: The mix; a mapping is validated, None takes every default.
        seed: Of the only generator; None takes the mix's `seed`.

    Attributes:
        log: Where draws and outcomes are recorded, once `open_log` opened it.
        compute: What the run has spent; hosts that know when it runs, and on how many devices, start its clock.
        lazy: Whether `tell` only judges, and what was told is learned from when something is next asked, or at
            `settle`: for hosts that do this beside a step. What the learning raises then comes from there.

    Raises:
        ConfigError: A mix that does not fit the schema or the pool.
        CurriculaValueError: Levels that the pool does not have.

    >>> curriculum = Curriculum(PromptPool(["sums", "sums", "maths", "maths"]), seed=7)
    >>> draws = curriculum.ask(2, group_size=4)
    >>> verdicts = curriculum.tell([GroupOutcome(draw.ticket, rewards=[0, 1, 1, 0]) for draw in draws])
    >>> [(verdict.keep, verdict.reason) for verdict in verdicts]
    [(True, 'informative'), (True, 'informative')]
    """

    def __init__(
        self, pool: PromptPool, config: CurriculumConfig | Mapping[str, Any] | None = None, seed: int | None = None
    ) -> None:
        self.pool = pool
        self.config = as_config(config)
        self.seed = seed = self.config.seed if seed is None else seed
        self.log: OutcomeLog | None = None
        self.compute = Compute()
        self.lazy = False
        self._windows = Windows(pool)
        for name, environment in self.config.environments.items():
            if environment.levels is not None:
                self._windows.set(name, *environment.levels)
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._planner = Planner(pool, self.config.curriculum)
        self._learner = Learner(pool, self.config)
        self._tickets = Tickets(pool)
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._shares = self._compute_shares(np.random.Generator(np.random.PCG64(seed)))
        self._least = 1.0
        mixer = self._learner.mixer
        _logger.info("base mix of %d prompts, %s", len(pool), mixer.describe(pool.environments))

    @property
    def success_mode(self) -> SuccessMode:
        """How rewards are read: as rates, or, where they cannot be, by whether groups are informative."""
        return self._learner.rule.mode

    @property
    def predictor(self) -> Background | None:
        """What predicts the difficulty of prompts never visited, for hosts that show it the policy; None without."""
        return self._learner.predictor

    def ask(self, n: int, *, group_size: int, policy_version: int = 0) -> list[Draw]:
        """Choose n prompts, each for one group of rollouts.

        Args:
            n: Groups wanted, at least 1.
            group_size: Rollouts per group, at least 2.
            policy_version: Version of the policy that will generate.

        Returns:
            n draws in random order. They are distinct prompts that are not in flight, except for repeats.

        Raises:
            CurriculaValueError: n below 1, or a group that can hold no signal.
        """
        n, group_size = whole("ask", "n", n), whole("ask", "group_size", group_size)
        policy_version = whole("ask", "policy_version", policy_version, low=-MOST)
        if group_size < 2:
            raise CurriculaValueError(
                "ask: expected group_size >= 2; got 1; the signal of a group is the difference between its rollouts, "
                "and a group of one has none, so every group would be dropped"
            )
        self.settle()
        self._begin()
        self._planner.scout.receive(self._learner)
        now = self._situation(n, group_size, self._compute_shares(self._rng))
        plan = self._planner.plan(now, self._rng)
        choices, self._shares, self._least = plan.choices, plan.shares, plan.least
        if plan.won is not None:
            self._learner.mixer.win(plan.won)
        asks, shares = self._counts["asks"], self._shares.tolist()
        numbers = self._tickets.issue(
            [Ticket(c.row, c.position, c.code, c.weight, shares[c.code], asks) for c in choices]
        )
        keys = self.pool.keys_of([choice.row for choice in choices])
        names = self.pool.environments
        draws = [
            Draw(number, choice.row, key, names[choice.code], choice.propensity, policy_version, choice.reason)
            for number, choice, key in zip(numbers, choices, keys, strict=True)
        ]
        self._counts["repeats"] += sum(choice.reason == "repeat" for choice in choices)
        self._learner.monitor.drawn.extend([choice.code for choice in choices])
        self._counts["draws"] += n
        if self.log is not None:
            believed = self.beliefs([draw.index for draw in draws])
            of_E = np.stack([self._shares, self._learner.beliefs.pool_means(self._windows.blocks_E2)])
            self.log.drawn(draws, asks, group_size, of_E, believed, [choice.weight for choice in choices])
        # Last: whatever becomes of a look ahead, these draws are issued and counted.
        self._planner.scout.prepare(replace(now, shares=self._shares), self._rng)
        return draws

    def _situation(self, n: int, group_size: int, shares: Floats) -> Situation:
        return Situation(n, group_size, shares, self._windows, self._tickets, self._learner, self._counts["draws"])

    def _begin(self) -> None:
        """Begin an ask: what has been out for too long expires, and evidence is an ask older."""
        self._counts["asks"] += 1
        for ticket in self._tickets.expire(self._counts["asks"] - self.config.curriculum.expiry):
            self._counts["expired"] += 1
            self._learner.monitor.count("expired", ticket.code)
        self._learner.beliefs.tick()
        self._learner.mixer.tick()

    def tell(self, outcomes: Iterable[GroupOutcome]) -> list[Verdict]:
        """Learn what came of draws, in any order, at any time; nothing is learned when one outcome is refused.

        Args:
            outcomes: Of draws, by ticket; or from elsewhere, such as the log of another run, by index.

        Returns:
            One verdict per outcome. Reasons to keep: informative, unfiltered. Reasons not to: zero_variance, overlong
            (mostly cut off at the limit of tokens), single (one live rollout), no_signal (none that has tokens to
            train on), unscorable (no reward at all), the status where it is not ok, duplicate (told before, or long
            forgotten), cancelled (cancelled before).

        Raises:
            CurriculaValueError: A ticket that was never issued, a row outside the pool, or values that cannot be.
        """
        outcomes = list(outcomes)
        if not outcomes:
            return []
        self.settle()
        batch = stack(outcomes)
        numbers, tickets = self._tickets.resolve(outcomes)
        verdicts: list[Verdict | None] = [None] * len(outcomes)
        # Everything is checked: from here on, state changes.
        for place, (outcome, ticket) in enumerate(zip(outcomes, tickets, strict=True)):
            if ticket is None:
                cancelled = numbers[place] in self._tickets.cancelled
                verdicts[place] = Verdict(False, "cancelled" if cancelled else "duplicate")
                self._counts["duplicates"] += 1
            elif outcome.status != "ok":
                verdicts[place] = Verdict(False, outcome.status)
                if outcome.ticket is not None:
                    self._learner.fail(outcome.status, ticket.code)
        landed = [n for n, ticket in zip(numbers, tickets, strict=True) if n is not None and ticket is not None]
        self._tickets.close(landed)
        self._counts["told"] += len(landed)
        scored = [place for place, verdict in enumerate(verdicts) if verdict is None]
        if scored:
            known = cast(list[Ticket], [tickets[place] for place in scored])
            drawn = np.array([outcomes[place].ticket is not None for place in scored])
            judged = self._learner.learn(batch, np.array(scored), known, drawn, self._windows.blocks_E2)
            for place, verdict in zip(scored, judged, strict=True):
                verdicts[place] = verdict
        told = cast(list[Verdict], verdicts)
        ours = [o.ticket is not None and ticket is not None for o, ticket in zip(outcomes, tickets, strict=True)]
        self.compute.told(outcomes, batch, told, ours)
        if self.log is not None:
            self.log.told(outcomes, told, self.compute.device_seconds)
        if not self.lazy:
            self.settle()
        return told

    def settle(self) -> None:
        """Take in what was told and not learned from yet; only a `lazy` curriculum has any."""
        self._learner.settle()

    def cancel(self, tickets: Iterable[int]) -> None:
        """Give up draws whose rollouts never come back; their prompts can be drawn again at once.

        Tickets that were told or cancelled before are left as they are.

        Raises:
            CurriculaValueError: A ticket that was never issued; nothing is cancelled then.
        """
        self.settle()
        numbers = [self._tickets.issued_number("cancel", ticket) for ticket in tickets]
        known = [(number, ticket) for number in numbers if (ticket := self._tickets.find(number)) is not None]
        for number, ticket in dict(known).items():
            self._tickets.cancel(number)
            self._learner.monitor.count("cancelled", ticket.code)
        if self.log is not None and known:
            self.log.cancelled([number for number, _ in known])

    @contextmanager
    def holding(self, indices: Iterable[int]) -> Generator[None]:
        """Within the block, asks draw none of these prompts, except as repeats where nothing else is left.

        For hosts that ask again for the same batch and want no prompt in it twice.

        Args:
            indices: Rows of the pool.

        Raises:
            CurriculaValueError: An index outside the pool.
        """
        rows = [whole("holding", "an index", index, low=0) for index in indices]
        if rows and max(rows) >= len(self.pool):
            raise CurriculaValueError(f"holding: expected indices in [0, {len(self.pool)}); got {max(rows)}")
        self._tickets.hold(self.pool.positions(np.array(rows, dtype=np.int64)))
        try:
            yield
        finally:
            self._tickets.hold(np.zeros(0, dtype=np.int64))

    def in_flight(self) -> dict[int, int]:
        """Row of the pool for each ticket that is neither told, cancelled nor expired."""
        return {number: ticket.row for number, ticket in self._tickets.in_flight.items()}

    def beliefs(self, indices: ArrayLike) -> Beliefs:
        """Posterior mean and standard deviation of each prompt's pass rate.

        In informative mode, of the chance that its group is informative.

        Args:
            indices: Shape (M,), rows of the pool.

        Raises:
            CurriculaValueError: Indices that are no rows of the pool.
        """
        return Beliefs(*self._learner.beliefs.moments(self.pool.checked("beliefs", indices)))

    def shares(self) -> dict[str, float]:
        """Each environment's share of the draws, as of the last ask; before any, as it would be without evidence."""
        return {name: float(share) for name, share in zip(self.pool.environments, self._shares, strict=True)}

    def window(self, environment: str) -> tuple[int, int]:
        """Lowest and highest level of an environment that draws are made from; (0, 0) where prompts have no levels.

        Raises:
            CurriculaValueError: No environment of the pool.
        """
        return self._windows.get(environment)

    def set_window(self, environment: str, low: int, high: int) -> None:
        """Draw only levels low to high (both included) of an environment from now on.

        Other curricula on the same pool are not touched; `state_dict` holds the window.

        Raises:
            CurriculaValueError: An unknown environment, prompts without levels, or a window that holds no prompt.
        """
        self._windows.set(environment, low, high)

    def metrics(self) -> dict[str, float]:
        """Flat metrics: of the whole by plain names, of an environment as `NAME/metric`.

        `least_propensity` is the smallest inclusion probability (see `Draw.propensity`) of the candidates of the last
        ask, drawn or not, in the environments that it drew from.
        """
        rate = "mean_reward" if self._learner.rule.mode == "informative" else "success"
        result = {name: float(count) for name, count in self._counts.items()}
        result |= self.compute.metrics()
        result["in_flight"] = float(len(self._tickets.in_flight))
        result["coverage"] = self._learner.beliefs.visited / len(self.pool)
        result["least_propensity"] = self._least
        if self._learner.predictor is not None:
            result |= self._learner.predictor.metrics()
        result |= self._learner.monitor.metrics(rate) | self._learner.mixer.metrics()
        return result | {f"{name}/share": share for name, share in self.shares().items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs to go on exactly: JSON values and numpy arrays."""
        state: dict[str, Any] = {
            "format": FORMAT,
            "fingerprint": self.pool.fingerprint,
            "config": self._mix(),
            "rng": rng_state(self._rng),
            "shares": self._shares.copy(),
            "least": np.array([self._least]),
            "counts": dict(self._counts),
            "compute": self.compute.state_dict(),
            "windows": self._window_state(),
            "ahead": self._planner.scout.state_dict(),
            "learner": self._learner.state_dict(),
            "tickets": self._tickets.state_dict(),
        }
        if self.log is not None:
            state["log"] = self.log.state_dict()
        return state | {"keys": key_state(state, self.pool)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved state, after all of it was checked. The mix may differ, and the log says where.

        So may the data set: what is known of prompts goes on with those that have the same keys, wherever they are
        now, and the log says how many. What was drawn of prompts that are gone is cancelled.

        Raises:
            CheckpointError: State that is damaged, or of a pool with fewer than half of the prompts that it speaks
                of; nothing has changed then.
        """
        reader = Reader(state, "state")
        if (saved_format := reader.integer("format")) != FORMAT:
            raise CheckpointError(
                f"state.format: expected {FORMAT}; got {saved_format}: another version of curricula saved this state; "
                "go on with that version, or start the curriculum anew"
            )
        learner, tickets = Learner(self.pool, self.config), Tickets(self.pool)
        planner = Planner(self.pool, self.config.curriculum)
        if moved := reader.text("fingerprint") != self.pool.fingerprint:
            fresh = {
                "shares": self._shares,
                "windows": self._window_state(),
                "ahead": planner.scout.state_dict(),
                "learner": learner.state_dict(),
            }
            reader = Reader(remapped(state, self.pool, fresh), "state")
        rng = read_rng(reader.section("rng"))
        shares = reader.array("shares", np.float64, self._shares.shape, high=1.0 + 1e-9)
        reader.ensure("shares", "shares that sum to 1", abs(float(shares.sum()) - 1.0) < 1e-6)
        least = reader.array("least", np.float64, (1,), high=1.0)
        counts_reader = reader.section("counts")
        counts = {name: counts_reader.integer(name) for name in _COUNTS}
        compute = Compute.read(reader.section("compute"))
        windows = read_windows(reader.section("windows"), self.pool)
        learner.load(reader.section("learner"))
        if moved:
            learner.beliefs.recount()
        planner.scout.load(reader.section("ahead"))
        tickets.load(reader.section("tickets"), counts["asks"])
        saved = read_json(reader, "config")
        mix = json.loads(self._mix())
        if changed(saved, mix, "success"):
            learner.start_afresh()
        for code, name in enumerate(self.pool.environments):
            # Levels that the mix now gives anew are meant; else the run goes on with those it had come to.
            if changed(saved, mix, "environments", name, "levels"):
                windows.copy(self._windows, code)
        if self.log is not None and "log" in state:
            self.log.load(reader.section("log"))
        # Everything is checked: from here on, state changes.
        self._rng, self._shares, self._counts, self._windows = rng, shares, counts, windows
        self._least = float(least[0])
        self.compute.take_over(compute)
        self._planner, self._learner, self._tickets = planner, learner, tickets
        log_changes(saved, mix)

    def _window_state(self) -> dict[str, list[int]]:
        return {name: list(self._windows.get(name)) for name in self.pool.environments}

    def _mix(self) -> str:
        """The part of the mix that is read here; what hosts read may hold objects that are not JSON."""
        sections = {"environments", "success", "curriculum", "monitor"}
        return self.config.model_dump_json(include=sections, exclude={"environments": {"__all__": {"source"}}})

    def _compute_shares(self, rng: np.random.Generator) -> Floats:
        per_token = self.config.curriculum.objective.type == "signal_per_token"
        costs = self._learner.costs.environments() if per_token else np.ones(len(self.pool.environments))
        return self._learner.mixer.shares(costs, rng)
