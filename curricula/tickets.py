"""Draws that are out: which prompts are in flight, which tickets expired, which were cancelled."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CurriculaValueError
from curricula.pool import PromptPool
from curricula.records import GroupOutcome, whole
from curricula.stateful import Reader

Positions = NDArray[np.int64]

_REMEMBERED = 1 << 16


class Ticket(NamedTuple):
    """What a draw needs to be told later.

    Attributes:
        row: Row of the prompt in the pool.
        position: Its place in the pool's grouped order.
        code: Code of its environment.
        weight: How many eligible prompts of the environment it stands for, relative to a uniform draw; mean 1.
        share: Its environment's share of the draws at that ask.
        ask: Number of the ask that drew it.
    """

    row: int
    position: int
    code: int
    weight: float
    share: float
    ask: int


class Resolved(NamedTuple):
    """What outcomes refer to, one entry per outcome; no number: told by row; no ticket: told, cancelled, forgotten."""

    numbers: list[int | None]
    tickets: list[Ticket | None]


class Tickets:
    """Issues tickets, and keeps those that are in flight, expired or cancelled.

    Expired and cancelled ones are remembered up to a bound, oldest forgotten first.
    """

    def __init__(self, pool: PromptPool) -> None:
        self.pool = pool
        self.issued = 0
        self.in_flight: dict[int, Ticket] = {}
        self.expired: dict[int, Ticket] = {}
        self.cancelled: dict[int, None] = {}
        # Positions in flight, ascending; one comes twice only after repeats.
        self._taken: Positions = np.zeros(0, dtype=np.int64)
        self._held: Positions = np.zeros(0, dtype=np.int64)

    def issue(self, tickets: Sequence[Ticket]) -> range:
        """Number draws, in order, and take their prompts out of the eligible ones."""
        numbers = range(self.issued, self.issued + len(tickets))
        self.issued = numbers.stop
        self.in_flight.update(zip(numbers, tickets, strict=True))
        self._take(tickets)
        return numbers

    def hold(self, positions: Positions) -> None:
        """Take positions out of the eligible ones, though they are not in flight, until others are held instead."""
        self._held = positions

    def taken(self, start: int, stop: int) -> Positions:
        """Distinct positions in flight or held within start to stop, ascending."""
        first, last = self._taken.searchsorted((start, stop))
        inside = self._taken[first:last]
        if self._held.size:
            held = self._held[(self._held >= start) & (self._held < stop)]
            return np.union1d(inside, held)
        repeats = inside[1:] == inside[:-1]
        return np.delete(inside, np.flatnonzero(repeats)) if repeats.any() else inside

    def find(self, number: int) -> Ticket | None:
        """The ticket if it is in flight or expired."""
        return self.in_flight.get(number) or self.expired.get(number)

    def resolve(self, outcomes: Sequence[GroupOutcome]) -> Resolved:
        """Number and ticket of each outcome.

        Raises:
            CurriculaValueError: A ticket that was never issued, or a row outside the pool.
        """
        given = [outcome.ticket for outcome in outcomes]
        if set(map(type, given)) == {int} and len(set(given)) == len(given):
            numbers = cast(list[int], given)
            if min(numbers) >= 0 and max(numbers) < self.issued:
                return Resolved(given, [self.find(number) for number in numbers])
        resolved = Resolved([], [])
        told: set[int] = set()
        for place, outcome in enumerate(outcomes):
            if outcome.ticket is None:
                number, ticket = None, self._elsewhere(place, outcome)
            else:
                number = self.issued_number("tell", outcome.ticket)
                ticket = None if number in told else self.find(number)
                told.add(number)
            resolved.numbers.append(number)
            resolved.tickets.append(ticket)
        return resolved

    def _elsewhere(self, place: int, outcome: GroupOutcome) -> Ticket:
        row = whole("tell", "an index", cast(int, outcome.index), low=0)
        if row >= len(self.pool):
            raise CurriculaValueError(f"tell, outcome {place}: expected an index in [0, {len(self.pool)}); got {row}")
        return Ticket(row, self.pool.position(row), int(self.pool.codes[row]), 0.0, 0.0, 0)

    def issued_number(self, caller: str, ticket: int) -> int:
        """The number of a ticket, or CurriculaValueError where it was never issued."""
        number = whole(caller, "a ticket", ticket, low=0)
        if number >= self.issued:
            raise CurriculaValueError(
                f"{caller}: expected a ticket of this curriculum, in [0, {self.issued}); got {ticket}"
            )
        return number

    def close(self, numbers: Iterable[int]) -> None:
        """Told: their prompts are eligible again, and the tickets teach no more."""
        landed: list[Ticket] = []
        for number in numbers:
            if (ticket := self.in_flight.pop(number, None)) is not None:
                landed.append(ticket)
            else:
                self.expired.pop(number, None)
        self._release(landed)

    def cancel(self, number: int) -> None:
        """Never to be told; a tell that comes after all is refused by name."""
        self.close([number])
        self.cancelled[number] = None
        _forget(self.cancelled)

    def expire(self, ask: int) -> list[Ticket]:
        """Expire the tickets of asks before `ask`; their prompts are eligible again, late tells still teach."""
        late: list[Ticket] = []
        # Tickets are in order of their asks, so the walk stops at the first that is young enough.
        while self.in_flight and (ticket := self.in_flight[number := next(iter(self.in_flight))]).ask < ask:
            self.expired[number] = self.in_flight.pop(number)
            late.append(ticket)
        self._release(late)
        _forget(self.expired)
        return late

    def _take(self, tickets: Iterable[Ticket]) -> None:
        positions = _sorted_positions(tickets)
        self._taken = np.insert(self._taken, self._taken.searchsorted(positions), positions)

    def _release(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            positions = _sorted_positions(tickets)
            # Of equal positions, each goes from a place of its own.
            places = np.arange(positions.size) + self._taken.searchsorted(positions) - positions.searchsorted(positions)
            self._taken = np.delete(self._taken, places)

    def state_dict(self) -> dict[str, Any]:
        """All that is out."""
        return {
            "issued": self.issued,
            "in_flight": _columns(self.in_flight),
            "expired": _columns(self.expired),
            "cancelled": np.array(list(self.cancelled), dtype=np.int64),
        }

    def load(self, state: Reader, asks: int) -> None:
        """Take over a saved state; raises CheckpointError where it cannot be right."""
        self.issued = state.integer("issued")
        self.in_flight = self._read(state.section("in_flight"), asks)
        self.expired = self._read(state.section("expired"), asks)
        cancelled = state.array("cancelled", np.int64, (None,), high=self.issued - 1)
        self.cancelled = dict.fromkeys(cancelled.tolist())
        kinds = (self.in_flight, self.expired, self.cancelled)
        distinct = len(set[int]().union(*kinds)) == sum(map(len, kinds)) == len(cancelled) + sum(map(len, kinds[:2]))
        state.ensure("in_flight", "tickets that are in one place only", distinct)
        self._take(self.in_flight.values())

    def _read(self, state: Reader, asks: int) -> dict[int, Ticket]:
        numbers = state.array("number", np.int64, (None,), high=self.issued - 1)
        shape = numbers.shape
        rows = state.array("row", np.int64, shape, high=len(self.pool) - 1)
        weights = state.array("weight", np.float64, shape, high=1e18)
        shares = state.array("share", np.float64, shape, high=1.0)
        ask = state.array("ask", np.int64, shape, high=asks)
        state.ensure("number", "ascending numbers", bool((numbers[1:] > numbers[:-1]).all()))
        state.ensure("ask", "asks in the order of the tickets", bool((ask[1:] >= ask[:-1]).all()))
        columns = (rows, self.pool.positions(rows), self.pool.codes[rows], weights, shares, ask)
        tickets = map(Ticket._make, zip(*(column.tolist() for column in columns), strict=True))
        return dict(zip(numbers.tolist(), tickets, strict=True))


def _columns(tickets: dict[int, Ticket]) -> dict[str, Any]:
    values: Iterable[Ticket] = tickets.values()
    return {
        "number": np.array(list(tickets), dtype=np.int64),
        "row": np.array([ticket.row for ticket in values], dtype=np.int64),
        "weight": np.array([ticket.weight for ticket in values], dtype=np.float64),
        "share": np.array([ticket.share for ticket in values], dtype=np.float64),
        "ask": np.array([ticket.ask for ticket in values], dtype=np.int64),
    }


def _sorted_positions(tickets: Iterable[Ticket]) -> Positions:
    return np.sort(np.array([ticket.position for ticket in tickets], dtype=np.int64))


def _forget(remembered: dict[int, Any]) -> None:
    while len(remembered) > _REMEMBERED:
        del remembered[next(iter(remembered))]
