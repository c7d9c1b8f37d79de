"""From events to rows: a draw waits here until its fate is known."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from curricula.log.arrow import arrow
from curricula.log.events import CANCELLED, DRAWN, NONE, ROLLOUTS, TOLD
from curricula.log.frames import Frame
from curricula.log.schema import schema
from curricula.records import REASONS, STATUSES


class OpenDraw(NamedTuple):
    """A draw whose fate is not known; JSON holds it as a list."""

    ticket: int
    ask: int
    asked_at: int
    asked_time: float
    policy_version: int
    group_size: int
    row: int
    key: str
    environment: str
    level: int | None
    reason: str
    propensity: float
    share: float
    belief_mean: float
    belief_std: float
    weight: float | None = None
    belief_pool: float | None = None


class Ledger:
    """Takes the events of one run in order.

    Args:
        environments: Names by code.
        common: Columns that are the same in every row.
        upto: Moment up to which events have become rows already; they are passed over.
        open_draws: Draws that were open then.
    """

    def __init__(
        self, environments: Sequence[str], common: dict[str, Any], upto: int, open_draws: Sequence[OpenDraw]
    ) -> None:
        self.moment = upto
        self.open: dict[int, OpenDraw] = {draw.ticket: draw for draw in open_draws}
        self.rows: list[dict[str, Any]] = []
        self._environments = environments
        self._common = common
        self._time = 0.0
        self._asks = max((draw.ask for draw in open_draws), default=0)

    def feed(self, frame: Frame) -> None:
        """Take one event."""
        if frame.moment <= self.moment:
            return
        self.moment, self._time = frame.moment, float(frame.values["time"])
        if frame.kind == DRAWN:
            self._drawn(frame)
        elif frame.kind == TOLD:
            self._told(frame)
        elif frame.kind == CANCELLED:
            for ticket in frame.columns["ticket"].tolist():
                if (draw := self.open.pop(ticket, None)) is not None:
                    self._row(draw, frame.moment, status="cancelled")

    def finish(self, expiry: int) -> None:
        """Make rows of the draws that are still open: expired where they are as old as that, else open."""
        for draw in self.open.values():
            status = "expired" if draw.ask < self._asks - expiry else "open"
            self._row(draw, self.moment + 1, status=status)
        self.open = {}

    def table(self) -> Any:
        """The rows so far as a pyarrow table."""
        return arrow().Table.from_pylist(self.rows, schema=schema())

    def _drawn(self, frame: Frame) -> None:
        values = frame.values
        columns: dict[str, list[Any]] = {name: column.tolist() for name, column in frame.columns.items()}
        self._asks = values["ask"]
        ask, version, size = values["ask"], values["policy_version"], values["group_size"]
        levels: list[int | None] = columns.get("level") or [None] * len(values["key"])
        for place, ticket in enumerate(columns["ticket"]):
            self.open[ticket] = OpenDraw(
                ticket,
                ask,
                frame.moment,
                values["time"],
                version,
                size,
                columns["row"][place],
                values["key"][place],
                self._environments[int(columns["code"][place])],
                levels[place],
                REASONS[int(columns["reason"][place])],
                columns["propensity"][place],
                columns["share"][place],
                columns["mean"][place],
                columns["std"][place],
                columns["weight"][place] if "weight" in columns else None,
                columns["pool"][place] if "pool" in columns else None,
            )

    def _told(self, frame: Frame) -> None:
        columns: dict[str, list[Any]] = {name: column.tolist() for name, column in frame.columns.items()}
        elsewhere = {place: name for place, *name in frame.values.get("elsewhere", [])}
        starts: dict[str, int] = dict.fromkeys(("rewards", *ROLLOUTS), 0)

        def part(name: str, place: int) -> list[Any] | None:
            given = columns.get(f"has_{name}")
            if name not in columns or (given is not None and not given[place]):
                return None
            start, width = starts[name], columns["width"][place] if name == "components" else 1
            starts[name] = stop = start + columns["sizes"][place] * width
            values = columns[name][start:stop]
            return [values[at : at + width] for at in range(0, stop - start, width)] if name == "components" else values

        for place, ticket in enumerate(columns["ticket"]):
            told: dict[str, Any] = {name: part(name, place) for name in starts}
            told["status"] = STATUSES[columns["status"][place]] if "status" in columns else "ok"
            told["device_seconds"] = frame.values.get("device_seconds")
            told["keep"] = bool(columns["keep"][place])
            told["verdict"] = frame.values["reasons"][columns["verdict"][place]]
            if "policy_version" in columns and (version := columns["policy_version"][place]) != NONE:
                told["policy_version"] = version
            draw: OpenDraw | None = None
            if ticket != NONE:
                draw = self.open.pop(ticket, None)
                told["ticket"] = ticket
            else:
                row, key, code = elsewhere[place]
                told |= {"index": row, "key": key, "environment": self._environments[code]}
            self._row(draw, frame.moment, **told)

    def _row(self, draw: OpenDraw | None, moment: int, **columns: Any) -> None:
        known: dict[str, Any] = {} if draw is None else draw._asdict()
        if draw is not None:
            known["index"] = known.pop("row")
        self.rows.append({**self._common, **known, "told_at": moment, "time": self._time, **columns})
