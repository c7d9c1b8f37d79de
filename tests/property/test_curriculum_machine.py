"""Any order of ask, tell, cancel and checkpoint, against a plain model of what is out."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool, load_state, save_state

EXPIRY = 4
NAMES = ["a"] * 9 + ["b"] * 6 + ["c"]
LEVELS = [0, 1, 2] * 5 + [0]
rewards = st.lists(st.sampled_from([0.0, 1.0, 0.5, np.nan]), min_size=1, max_size=5)
statuses = st.sampled_from(["ok", "ok", "ok", "error", "stale", "cancelled"])
seeds = st.integers(0, 2**32 - 1)


class CurriculumMachine(RuleBasedStateMachine):
    @initialize(seed=seeds, leveled=st.booleans(), learned=st.booleans())
    def start(self, seed, leveled, learned):
        self.levels = LEVELS if leveled else None
        self.config = {
            "curriculum": {
                "expiry": EXPIRY,
                "candidates": 2,
                "bandit": {"type": "discounted_thompson" if learned else "size_proportional"},
                "shares": {"from": "scaling", "every": 2} if learned else "bandit",
            },
            "monitor": {"window": 8},
        }
        self.curriculum = Curriculum(PromptPool(NAMES, levels=self.levels), self.config, seed=seed)
        self.asks = self.drawn = self.told = self.duplicates = self.repeats = self.errors = 0
        self.out, self.expired, self.closed = {}, {}, {}

    def busy(self):
        return {draw.index for draw, _ in self.out.values()}

    @rule(n=st.integers(1, 20), group_size=st.integers(2, 6))
    def ask(self, n, group_size):
        self.asks += 1
        for ticket, (_, asked) in list(self.out.items()):
            if asked < self.asks - EXPIRY:
                self.expired[ticket] = self.out.pop(ticket)[0]
        busy = self.busy()
        draws = self.curriculum.ask(n, group_size=group_size, policy_version=self.asks)
        fresh = [draw for draw in draws if draw.reason != "repeat"]
        assert [draw.ticket for draw in draws] == list(range(self.drawn, self.drawn + n))
        assert len({draw.index for draw in fresh}) == len(fresh)
        assert not busy & {draw.index for draw in fresh}
        eligible = {row for row in range(len(NAMES)) if self.eligible(row)}
        assert {draw.index for draw in draws} <= eligible
        # Repeats come only when nothing else is left.
        assert len(fresh) == min(n, len(eligible - busy))
        assert all(0 < draw.propensity <= 1 for draw in draws)
        self.drawn += n
        self.repeats += n - len(fresh)
        self.out |= {draw.ticket: (draw, self.asks) for draw in draws}

    def eligible(self, row):
        if self.levels is None:
            return True
        low, high = self.curriculum.window(NAMES[row])
        return low <= self.levels[row] <= high

    @rule(data=st.data(), late=st.booleans(), tokens=st.booleans())
    def tell(self, data, late, tokens):
        pool = list(self.expired) if late else list(self.out)
        if not pool:
            return
        tickets = data.draw(st.lists(st.sampled_from(pool), max_size=6))
        outcomes, expected = [], []
        for ticket in tickets:
            values, status = data.draw(rewards), data.draw(statuses)
            counts = np.ones(len(values)) if tokens else None
            outcomes.append(GroupOutcome(ticket, values, tokens=counts, status=status))
            if ticket in self.closed:
                expected.append("duplicate")
                self.duplicates += 1
                continue
            live = [value for value in values if not np.isnan(value)]
            kind = "zero_variance" if len(set(live)) == 1 else "informative"
            expected.append(status if status != "ok" else ("unscorable", "single", kind)[min(len(live), 2)])
            self.closed[ticket] = "told"
            self.told += 1
        verdicts = self.curriculum.tell(outcomes)
        for ticket in tickets:
            self.out.pop(ticket, None)
            self.expired.pop(ticket, None)
        assert [verdict.reason for verdict in verdicts] == expected
        assert [verdict.keep for verdict in verdicts] == [reason == "informative" for reason in expected]

    @precondition(lambda self: self.closed)
    @rule(data=st.data(), values=rewards)
    def tell_again(self, data, values):
        ticket = data.draw(st.sampled_from(list(self.closed)))
        before = self.curriculum.beliefs(range(len(NAMES))).mean
        (verdict,) = self.curriculum.tell([GroupOutcome(ticket, values)])
        assert verdict.reason == {"told": "duplicate", "cancelled": "cancelled"}[self.closed[ticket]]
        np.testing.assert_array_equal(self.curriculum.beliefs(range(len(NAMES))).mean, before)
        self.duplicates += 1

    @rule(row=st.integers(0, len(NAMES) - 1), values=rewards)
    def tell_from_a_log(self, row, values):
        self.curriculum.tell([GroupOutcome(None, values, index=row)] * 2)

    @rule(data=st.data(), extra=st.integers(0, 5))
    def tell_or_cancel_what_never_was(self, data, extra):
        before = repr(self.curriculum.state_dict())
        good = [GroupOutcome(ticket, [0, 1]) for ticket in list(self.out)[:2]]
        with pytest.raises(CurriculaValueError, match="expected a ticket"):
            self.curriculum.tell([*good, GroupOutcome(self.drawn + extra, [0, 1])])
        with pytest.raises(CurriculaValueError, match="expected a ticket"):
            self.curriculum.cancel([*list(self.out)[:2], self.drawn + extra])
        assert repr(self.curriculum.state_dict()) == before

    @rule(data=st.data())
    def cancel(self, data):
        known = [*self.out, *self.expired, *self.closed]
        if not known:
            return
        tickets = data.draw(st.lists(st.sampled_from(known), max_size=4))
        self.curriculum.cancel(tickets)
        for ticket in tickets:
            if self.out.pop(ticket, None) or self.expired.pop(ticket, None):
                self.closed[ticket] = "cancelled"

    @precondition(lambda self: self.levels is not None)
    @rule(low=st.integers(0, 2), width=st.integers(0, 2))
    def move_the_window(self, low, width):
        for name in "ab":
            self.curriculum.set_window(name, low, low + width)

    @rule(seed=seeds, on_disk=st.booleans())
    def resume(self, seed, on_disk):
        state = self.curriculum.state_dict()
        if on_disk:
            with tempfile.TemporaryDirectory() as folder:
                save_state(Path(folder) / "state", state)
                state = load_state(Path(folder) / "state")
        resumed = Curriculum(PromptPool(NAMES, levels=self.levels), self.config, seed=seed)
        resumed.load_state_dict(state)
        assert repr(resumed.state_dict()) == repr(self.curriculum.state_dict())
        self.curriculum = resumed

    @invariant()
    def accounts_are_right(self):
        metrics = self.curriculum.metrics()
        assert all(np.isfinite(value) for value in metrics.values())
        counted = {name: metrics[name] for name in ("asks", "draws", "told", "duplicates", "repeats", "in_flight")}
        assert counted == {
            "asks": self.asks,
            "draws": self.drawn,
            "told": self.told,
            "duplicates": self.duplicates,
            "repeats": self.repeats,
            "in_flight": len(self.out),
        }
        assert self.drawn == len(self.out) + len(self.expired) + len(self.closed)

    @invariant()
    def beliefs_and_shares_are_right(self):
        belief = self.curriculum.beliefs(range(len(NAMES)))
        assert ((belief.mean > 0) & (belief.mean < 1) & (belief.std > 0)).all()
        assert sum(self.curriculum.shares().values()) == pytest.approx(1)
        means = self.curriculum._learner.beliefs.pool_means(self.curriculum._windows.blocks_E2)
        for code, name in enumerate("abc"):
            rows = [row for row in range(len(NAMES)) if NAMES[row] == name and self.eligible(row)]
            assert means[code] == pytest.approx(belief.mean[rows].mean(), abs=0.05)


TestCurriculum = CurriculumMachine.TestCase
TestCurriculum.settings = settings(
    max_examples=80, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
