"""Replaces groups that are not trained on by further rounds of generation, in the same step.

Every rank runs this on the same verdicts and so plays the same rounds, each as large as what is missing, rounded up
to what divides evenly over the ranks. Good groups beyond the need wait for the next step. The trainer's steps and its
learning-rate schedule do not move: they count batches, and this fills one.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import Any, get_args

from curricula import CheckpointError, CurriculaRuntimeError, Curriculum, Draw
from curricula.config import RefillConfig
from curricula.filters.base import Judgement
from curricula.records import STATUSES
from curricula_trl.batch import Fill, assemble, fills
from curricula_trl.ranks import Ranks
from curricula_trl.rounds import NO_TICKET, Round

logger = logging.getLogger("curricula")

Choose = Callable[[Curriculum, int, int, int], list[Draw]]
"""On rank 0: the draws of a round, given how many, the size of a group and the version of the policy."""
Play = Callable[[int, Choose], Round]

_COUNTS = ("rounds", "refilled", "carried", "padded", "unfilled", "exhausted", "empty")
_CAUSES = {*get_args(Judgement), *STATUSES, "duplicate"}
_KNOWN = 4096
_LONGEST_PAUSE = 60.0


class Refill:
    """What fills a batch, and the account of it.

    Attributes:
        spare: Groups to be trained on in the next step.
        counts: Of rounds of generation and of groups, since the start.
        wasted: Groups that were generated and not trained on, by cause.
    """

    def __init__(self, config: RefillConfig, ranks: Ranks) -> None:
        self.config, self._ranks = config, ranks
        self.spare: list[Fill] = []
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.wasted: dict[str, int] = {}
        self._known: dict[int, None] = {}
        self._empty_steps = 0
        self._used: list[int] = []

    @property
    def active(self) -> bool:
        """Whether the mix asks for anything that TRL's own batch is not."""
        return self.config.rounds > 0 or self.config.batch == "variable"

    def complete(self, trainer: Any, first: Round, play: Play) -> dict[str, Any]:
        """The batch to train on.

        Args:
            trainer: The trainer.
            first: The step's own round.
            play: Generates for a number of groups.

        Raises:
            CurriculaRuntimeError: What the mix asks to end a run for.
        """
        self._used = []
        failed, all_failed = self._enter(first)
        holes = [place for place, (keep, _) in enumerate(first.verdicts) if not keep]
        found, left = self.spare[: len(holes)], self.spare[len(holes) :]
        carried, extra = len(found), []
        if holes and self.config.rounds:
            extra = self._play_rounds(trainer, failed, all_failed, len(holes), found, play)
        self.spare = extra  # only now: a round that failed leaves the spare groups where they were
        self.counts["carried"] += carried
        self._waste("stale", len(left))
        self._note(len(holes) - len(found), len(holes) - len(found) == len(first.draws))
        if not holes:
            return first.output
        self.counts["refilled"] += len(found)
        return assemble(trainer, self._ranks, first, dict(zip(holes, found, strict=False)), self.config.batch)

    def metrics(self) -> dict[str, float]:
        """Counts since the start; nothing while refill is off."""
        if not self.active:
            return {}
        counts = {f"refill_{name}": float(count) for name, count in self.counts.items()}
        counts["refill_spare"] = float(len(self.spare))
        return counts | {f"wasted_{cause}": float(count) for cause, count in self.wasted.items()}

    def state(self) -> dict[str, Any]:
        """The account, as JSON; spare groups are saved by each rank."""
        return {
            "counts": self.counts,
            "wasted": self.wasted,
            "known": list(self._known),
            "empty_steps": self._empty_steps,
            "spare": len(self.spare),
        }

    def load(self, state: dict[str, Any] | None, spare: list[Fill], prompts: int) -> None:
        """Takes over a saved account; None is that of a run before there was any.

        Raises:
            CheckpointError: It cannot be right.
        """
        if state is None:
            state = Refill(self.config, self._ranks).state()
        saved = [state.get(name) for name in ("counts", "wasted", "known", "empty_steps", "spare")]
        match saved:
            case [dict(counts), dict(wasted), list(known), int(empty), int(held)] if (
                set(counts) == set(_COUNTS)
                and set(wasted) <= _CAUSES
                and len(spare) in (0, held)
                and all(type(n) is int and n >= 0 for n in (*counts.values(), *wasted.values(), empty, held))
                and all(type(row) is int and 0 <= row < prompts for row in known)
            ):
                self.counts, self.wasted = dict(counts), dict(wasted)
                self._known, self._empty_steps, self.spare = dict.fromkeys(known), empty, spare
            case _:
                raise CheckpointError(f"refill: expected its saved account; got {str(state)[:80]}")

    def _play_rounds(
        self, trainer: Any, failed: int, all_failed: bool, wanted: int, found: list[Fill], play: Play
    ) -> list[Fill]:
        """Plays rounds until as many groups are found as wanted, or limits are reached; returns good ones beyond."""
        rounds, retries, extra = 0, 0, list[Fill]()
        while (short := wanted - len(found)) > 0:
            failed = min(failed, short)
            if failed and all_failed:
                self._pause(retries)
            if rounds < self.config.rounds and (short > failed or retries >= self.config.retries):
                rounds, asked = rounds + 1, short
            elif failed and retries < self.config.retries:
                retries, asked = retries + 1, failed
            else:
                break
            played = play(self._even(trainer, asked), self._fresh)
            failed, all_failed = self._enter(played)
            self._take(trainer, played, wanted, found, extra)
        if short > 0 and self.config.on_exhaustion == "pad":
            padded = play(self._even(trainer, short), self._best)
            self._enter(padded)
            before = len(found)
            self._take(trainer, padded, wanted, found, extra)
            self.counts["padded"] += len(found) - before
        if wanted > len(found):
            self._exhausted(wanted - len(found), rounds)
        return extra

    def _take(self, trainer: Any, played: Round, wanted: int, found: list[Fill], extra: list[Fill]) -> None:
        good = fills(trainer, self._ranks, played)
        room = wanted - len(found)
        found += good[:room]
        extra += good[room:]

    def _even(self, trainer: Any, groups: int) -> int:
        """The least number of groups, no less than asked, whose rollouts divide evenly over the ranks."""
        unit = self._ranks.world_size // math.gcd(self._ranks.world_size, trainer.num_generations)
        return -(-groups // unit) * unit

    def _enter(self, played: Round) -> tuple[int, bool]:
        """Counts a round; returns how many of its groups failed, and whether all did."""
        self.counts["rounds"] += 1
        failed = 0
        for draw, (keep, reason) in zip(played.draws, played.verdicts, strict=True):
            if keep or self.config.consumed:
                self._used.append(draw.index)
            if keep and self.config.on_exhaustion == "pad":
                self._known.pop(draw.index, None)
                self._known[draw.index] = None
            if not keep:
                self._waste(reason, 1)
                failed += reason == "unscorable"
        while len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        return failed, failed == len(played.draws)

    def _waste(self, cause: str, groups: int) -> None:
        if groups:
            self.wasted[cause] = self.wasted.get(cause, 0) + groups

    def _fresh(self, curriculum: Curriculum, groups: int, group_size: int, version: int) -> list[Draw]:
        with curriculum.holding(self._used):
            return curriculum.ask(groups, group_size=group_size, policy_version=version)

    def _best(self, curriculum: Curriculum, groups: int, group_size: int, version: int) -> list[Draw]:
        """Prompts of groups that were trained on, by what is now expected of them; others where these are too few.

        They are picked, not drawn: there is no probability to correct by, so they are told by row, and the figures
        of the run leave them out.
        """
        used = set(self._used)
        rows = [row for row in self._known if row not in used]
        means = curriculum.beliefs(rows).mean
        worth = means if curriculum.success_mode == "informative" else means * (1.0 - means)
        best = [rows[place] for place in (-worth).argsort(kind="stable")[:groups].tolist()]
        pool = curriculum.pool
        picked = [
            Draw(NO_TICKET, row, pool.key(row), pool.environments[pool.codes[row]], 1.0, version, "repeat")
            for row in best
        ]
        if len(picked) < groups:
            self._used += best
            picked += self._fresh(curriculum, groups - len(picked), group_size, version)
        return picked

    def _pause(self, times: int) -> None:
        seconds = min(self.config.pause * 2.0**times, _LONGEST_PAUSE)
        if self._ranks.is_main:
            logger.warning(
                "refill: every group of a round failed (no rewards); generating again in %g s. Look into the reward "
                "functions and what they call",
                seconds,
            )
        time.sleep(seconds)

    def _exhausted(self, short: int, rounds: int) -> None:
        self.counts["exhausted"] += 1
        if self.config.on_exhaustion == "raise":
            raise CurriculaRuntimeError(
                f"refill: expected a full batch; got {short} groups too few after {rounds} further rounds; raise "
                "refill.rounds, or set refill.on_exhaustion to shrink or pad"
            )
        times = self.counts["exhausted"]
        # Said the 1st, 2nd, 4th, 8th … time: it is to be seen, not to fill the log.
        if self._ranks.is_main and times & (times - 1) == 0:
            logger.warning(
                "refill: %d groups are still missing after %d further rounds, and the batch is trained without them "
                "(%d times so far); wasted groups by cause: %s",
                short,
                rounds,
                times,
                ", ".join(f"{cause} {count}" for cause, count in self.wasted.items()),
            )

    def _note(self, unfilled: int, empty: bool) -> None:
        self.counts["unfilled"] += unfilled
        self._empty_steps = self._empty_steps + 1 if empty else 0
        if not empty:
            return
        self.counts["empty"] += 1
        if (limit := self.config.abort_after) is not None and self._empty_steps >= limit:
            raise CurriculaRuntimeError(
                f"refill: {self._empty_steps} steps in a row had no group to train on, and the mix asks to stop then "
                "(refill.abort_after); the counts of wasted groups say why"
            )
        if self._ranks.is_main and self._empty_steps & (self._empty_steps - 1) == 0:
            logger.warning("refill: no group to train on in %d steps in a row; training goes on", self._empty_steps)
