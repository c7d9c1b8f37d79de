"""What another curriculum would have chosen at each ask of a log, and what that would have brought."""

import os
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curricula.config import CurriculumConfig
from curricula.config.predictors import names_predictor
from curricula.config.schema import TOLERANCE, PredictorConfig
from curricula.errors import CurriculaValueError
from curricula.log.estimate import Estimate, estimate
from curricula.log.events import ROLLOUTS
from curricula.log.reader import read_history
from curricula.log.shadow import Shadow
from curricula.records import GroupOutcome

Floats = NDArray[np.float64]
Row = dict[str, Any]

_COLUMNS = ("weight", "informative", "success", "tokens")


@dataclass(frozen=True, slots=True)
class Side:
    """One environment, or all of them: as it was logged, and as it would have been.

    Attributes:
        share: Of the draws, under the other curriculum.
        logged_share: Of the draws, in the log.
        unsupported: Part of the other's draws that fall where the log has none: on an environment, or a level of it,
            that was never drawn there. No estimate speaks for them.
        unseen: Part of the other's draws on prompts that the log never drew, supported or not.
        logged: The plain means of the log.
        other: The estimates.
    """

    share: float
    logged_share: float
    unsupported: float
    unseen: float
    logged: Estimate
    other: Estimate


@dataclass(frozen=True, slots=True)
class Replay:
    """A replayed log.

    Attributes:
        asks: Asks that were replayed.
        repeats: Draws of prompts that were in flight, which no estimate takes in.
        rates: Whether results are read as success rates; mean rewards otherwise.
        whole: All environments.
        environments: Each of them.
        notes: What of the other mix could not be followed.
    """

    asks: int
    repeats: int
    rates: bool
    whole: Side
    environments: dict[str, Side]
    notes: tuple[str, ...] = ()


def replay(folder: str | os.PathLike[str], config: CurriculumConfig) -> Replay:
    """Follow the newest history of a log with another mix: a one-step counterfactual.

    Before each ask of the log the other curriculum, which was told what was told until then, is asked for the
    probability that it would have drawn each prompt that was drawn. It is a question about one step: what the policy
    would have become under other prompts is not in a log.

    Args:
        folder: The log.
        config: The other mix; a predictor that it names is left out, and the notes say so.

    Raises:
        CurriculaValueError: Not a log, a damaged one, or one without draws.
        ConfigError: A mix that does not fit the environments of the log.
    """
    run, table = read_history(folder)
    rows: list[Row] = table.to_pylist()
    if not any(row["asked_at"] is not None for row in rows):
        raise CurriculaValueError(f"{os.fspath(folder)}: expected an outcome log with draws; got one without any")
    notes: list[str] = []
    if names_predictor(config.curriculum.predictor):
        notes.append("the log holds no texts or features: the predictor is left out")
        without = config.curriculum.model_copy(update={"predictor": PredictorConfig(type="none")})
        config = config.model_copy(update={"curriculum": without})
    shadow = Shadow(run, rows, config)
    walk = _Walk(shadow, rows)
    walk.go()
    names, count = shadow.pool.environments, len(walk.columns["code"])
    columns = {name: np.array(values, dtype=np.float64) for name, values in walk.columns.items()}
    everyone = np.ones(count, dtype=np.bool_)
    shares = walk.shares_E / max(walk.planned, 1)
    sides = {
        name: walk.side(columns, columns["code"] == code, code, float(shares[code])) for code, name in enumerate(names)
    }
    rates = shadow.success_mode != "informative"
    return Replay(walk.asks, walk.repeats, rates, walk.side(columns, everyone, None, 1.0), sides, tuple(notes))


class _Walk:
    """One pass over the events of a log."""

    def __init__(self, shadow: Shadow, rows: list[Row]) -> None:
        self.shadow = shadow
        self.asks = self.repeats = self.planned = 0
        environments = len(shadow.pool.environments)
        self.shares_E = np.zeros(environments)
        self.logged_E, self.unsupported_E, self.unseen_E = np.zeros((3, environments))
        self.columns: dict[str, list[float]] = {name: [] for name in ("code", *_COLUMNS)}
        pool = shadow.pool
        drawn = sorted((row for row in rows if row["asked_at"] is not None), key=_name)
        self._seen = {row["index"] for row in drawn}
        self._blocks = set(pool.blocks[sorted(self._seen)].tolist())
        # What was told of draws that had been given up, or told before, taught nothing.
        told = [row for row in rows if row["rewards"] is not None and (row["ticket"] is None) == (row["ask"] is None)]
        asks = [(at, 0, list(part)) for at, part in _grouped(drawn, "asked_at")]
        tells = [(at, 1, list(part)) for at, part in _grouped(told, "told_at")]
        dropped = [row for row in drawn if row["status"] == "cancelled" and row["rewards"] is None]
        cancels = [(at, 2, list(part)) for at, part in _grouped(dropped, "told_at")]
        self._events = sorted(asks + tells + cancels, key=lambda event: event[:2])
        self._weights: dict[tuple[int, int], float] = {}
        self._tickets: dict[tuple[int, int], int] = {}

    def go(self) -> None:
        """Take every event in its order."""
        for _, kind, rows in self._events:
            if kind == 0:
                self._ask(rows)
            elif kind == 1:
                self._tell(rows)
            else:
                self.shadow.cancel([self._tickets[_name(row)] for row in rows])

    def side(self, columns: dict[str, Floats], part: NDArray[np.bool_], code: int | None, share: float) -> Side:
        """Estimates over a part of the draws."""
        chosen = [columns[name][part] for name in _COLUMNS]
        pick = slice(None) if code is None else slice(code, code + 1)
        drawn = max(float(self.shares_E[pick].sum()), 1e-300)
        return Side(
            share,
            float(self.logged_E[pick].sum() / max(self.logged_E.sum(), 1.0)),
            float(self.unsupported_E[pick].sum()) / drawn,
            float(self.unseen_E[pick].sum()) / drawn,
            estimate(np.ones(int(part.sum())), *chosen[1:]),
            estimate(*chosen),
        )

    def _ask(self, rows: list[Row]) -> None:
        pool, n = self.shadow.pool, len(rows)
        indices = [row["index"] for row in rows]
        self.shadow.begin()
        foresight = self.shadow.foresee(indices, n, rows[0]["group_size"])
        codes = pool.codes[np.array(indices)]
        counts = np.bincount(codes, minlength=len(self.shares_E))
        drawn = np.array(foresight.drawn)
        own = pool.codes[drawn]
        np.add.at(self.shares_E, own, 1.0)
        np.add.at(self.unsupported_E, own, [float(block not in self._blocks) for block in pool.blocks[drawn].tolist()])
        np.add.at(self.unseen_E, own, [float(row not in self._seen) for row in foresight.drawn])
        self.logged_E += counts
        self.asks, self.planned = self.asks + 1, self.planned + n
        for row, code, probability in zip(rows, codes.tolist(), foresight.probabilities.tolist(), strict=True):
            if row["reason"] == "repeat":
                self.repeats += 1
                continue
            # A propensity is given how many draws the environment got: what it could have got belongs to it too.
            logged = min(1.0, row["propensity"] * row["share"] * n / counts[code])
            self._weights[_name(row)] = probability / logged
        propensities, shares = ([row[name] for row in rows] for name in ("propensity", "share"))
        repeats = [row["reason"] == "repeat" for row in rows]
        numbers = self.shadow.adopt(indices, propensities, shares, repeats, foresight.won)
        self._tickets |= {_name(row): number for row, number in zip(rows, numbers, strict=True)}

    def _tell(self, rows: list[Row]) -> None:
        outcomes = [self._outcome(row) for row in rows]
        self.shadow.tell(outcomes)
        for row, outcome in zip(rows, outcomes, strict=True):
            weight = self._weights.pop(_name(row), None) if row["asked_at"] is not None else None
            results = self.shadow.results(outcome)
            if weight is None or row["status"] != "ok" or not results.size:
                continue
            tokens = np.nan if row["tokens"] is None else float(np.nansum(row["tokens"]))
            self.columns["code"].append(float(self.shadow.pool.codes[row["index"]]))
            self.columns["weight"].append(weight)
            self.columns["informative"].append(float(results.size > 1 and np.ptp(results) > TOLERANCE))
            self.columns["success"].append(float(results.mean()))
            self.columns["tokens"].append(tokens)

    def _outcome(self, row: Row) -> GroupOutcome:
        ticket = None if row["asked_at"] is None else self._tickets[_name(row)]
        given = {name: row[name] for name in (*ROLLOUTS, "status", "policy_version")}
        return GroupOutcome(ticket, row["rewards"], index=row["index"], **given)


def _name(row: Row) -> tuple[int, int]:
    # Tickets number the draws of a history: a resumed run goes on counting where the saved one stood.
    return row["asked_at"], row["ticket"]


def _grouped(rows: list[Row], column: str) -> Any:
    return groupby(sorted(rows, key=lambda row: row[column]), key=lambda row: row[column])
