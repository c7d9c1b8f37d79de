"""One trainer's tie to its curriculum: every generation round asks, binds rows, and tells what came of them.

The loader stays TRL's clock. What it delivers is only a count; which prompts are generated for is decided
when TRL generates, so no outcome is ever missing from a decision (the design calls this late binding).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from curricula import CurriculaValueError, Curriculum, CurriculumConfig, Draw, Verdict
from curricula_trl.ahead import Ahead
from curricula_trl.captured import Captured
from curricula_trl.checks import kl_in_advantages, overrides_generation
from curricula_trl.clipping import Clipping
from curricula_trl.heads import Heads
from curricula_trl.interruption import Ends, interruption_of
from curricula_trl.mismatch import Mismatch, sides_of
from curricula_trl.policy import reads_policy, show_policy
from curricula_trl.ranks import Ranks
from curricula_trl.recipes import Finish
from curricula_trl.refill import Choose, Refill
from curricula_trl.room import Room
from curricula_trl.rounds import NO_TICKET, Floats, Round, Scores, batch_values, compared, outcomes
from curricula_trl.rows import Rows
from curricula_trl.saving import Saving

logger = logging.getLogger("curricula")


class Binding:
    """Asks and tells for one trainer.

    Attributes:
        has_drawn: True once rollouts that the curriculum drew are there to train on.
        refill: What replaces groups that are not trained on.
        interruption: What ends the thinking of rollouts, where the mix asks for it.
        clipping: What counts tokens that the loss clips away, where the mix asks for it.
    """

    def __init__(self, trainer: Any, rows: Rows, config: CurriculumConfig, curriculum: Curriculum | None) -> None:
        self.ranks = Ranks(trainer.accelerator)
        self.rows = rows
        self.config = config
        self._ahead = None if curriculum is None else Ahead(curriculum, self._read_rows)
        self.has_drawn = False
        self._said_infinite = False
        # A predictor that reads the policy cannot do so while it is trained.
        self._beside = curriculum is None or not reads_policy(curriculum)
        self._draws: list[Draw] = []
        self._next_round = 0
        self._captured = Captured([])
        self._success_column = _success_column(trainer, config)
        self._may_reorder = overrides_generation(trainer)
        self._may_zero = not kl_in_advantages(trainer)
        self._room = Room(self.ranks)
        self.interruption = interruption_of(trainer, config, self.ranks, self._room)
        self.refill = Refill(config.refill, self.ranks)
        self._finish = Finish(config.recipe, self.ranks, config.curriculum.tolerance)
        self.clipping = Clipping(self.ranks, config.monitor.clipping, getattr(trainer, "loss_type", ""))
        sides = sides_of(trainer, self.ranks)
        self._heads = Heads.of(trainer, self.ranks.is_main)
        self._mismatch = Mismatch(self.ranks, sides, self._heads, bool(getattr(trainer, "use_vllm", False)))
        self._saving = Saving(self.ranks, self._ahead, self.refill, self._mismatch, self.clipping, len(rows))

    @property
    def curriculum(self) -> Curriculum | None:
        """The state; on rank 0 only, None elsewhere."""
        return None if self._ahead is None else self._ahead.settled()

    def step(self, trainer: Any, count: int, generate: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Generates for a step, and returns what to train on.

        Args:
            trainer: The trainer.
            count: Rows on each rank.
            generate: TRL's own method.
        """
        size = trainer.num_generations
        groups = count * self.ranks.world_size // size

        def play(wanted: int, choose: Choose) -> Round:
            return self._round(trainer, wanted, generate, choose)

        curriculum = self.curriculum
        if curriculum is not None:
            show_policy(trainer, curriculum)
        first = play(groups, self._take_ahead)
        output = self.refill.complete(trainer, first, play) if self.refill.active else first.output
        output = self._finish.complete(trainer, output)
        self._next_round = groups if self._beside and _generates_again(trainer) else 0
        return output

    def _round(self, trainer: Any, groups: int, generate: Callable[[Any], dict[str, Any]], choose: Choose) -> Round:
        output = generate(self._bind(trainer, groups, choose))
        ends = None if self.interruption is None else self.interruption.finish(trainer, output)
        self._mismatch.watch(output)
        verdicts, values = self._observe(trainer, output, ends)
        played = Round(output, self._draws, verdicts, values)
        self._draws, self._captured = [], Captured([])
        return played

    def _bind(self, trainer: Any, groups: int, choose: Choose) -> list[dict[str, Any]]:
        """Draws a prompt for every group and returns this rank's rows in place of the loader's."""
        group_size = trainer.num_generations
        version = int(trainer.state.global_step)
        self._draws = self._shared_draws(groups, group_size, version, choose)
        count = groups * group_size // self.ranks.world_size
        first = self.ranks.rank * count
        last = first + count
        columns = trainer._signature_columns if trainer.args.remove_unused_columns else None
        starts = range(0, groups * group_size, group_size)
        mine = [
            (draw, min(last, start + group_size) - max(first, start))
            for start, draw in zip(starts, self._draws, strict=True)
            if start < last and start + group_size > first
        ]

        def fetch() -> list[dict[str, Any]]:
            if self.ranks.world_size > 1:
                self._check_keys([draw for draw, _ in mine])
            return self.rows.fetch([draw.index for draw, _ in mine], [copies for _, copies in mine], columns)

        rows = self.ranks.together("rows", fetch)
        if self.ranks.world_size > 1:
            self.ranks.agree("draws", [[draw.ticket, draw.index, draw.key] for draw in self._draws])
        self.has_drawn = True
        self._captured = Captured(rows)
        return rows

    def generated(self, found: Any) -> None:
        """Takes what TRL's `_generate` returned in this round."""
        self._captured.generated(found)

    def capture(
        self, inputs: Sequence[Any], rewards: torch.Tensor, completion_ids: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """Keeps what TRL scored in this round, and returns it for TRL to train on: infinite rewards are none."""
        infinite = rewards.isinf()
        if infinite.any():
            # One would decide the mean of its group, and the spread of the batch.
            rewards = rewards.masked_fill(infinite, torch.nan)
            if self.ranks.is_main and not self._said_infinite:
                self._said_infinite = True
                logger.warning(
                    "rewards were infinite: such rollouts are taken as unscorable, like NaN, and not trained on; look "
                    "into the reward function (said once)"
                )
        self._captured.take(inputs, rewards, completion_ids)
        return rewards

    def _observe(
        self, trainer: Any, output: dict[str, Any], ends: Ends | None
    ) -> tuple[list[tuple[bool, str]], Floats | None]:
        """Tells the round's outcomes, and takes groups that are not to be trained on out of the advantages.

        Returns:
            What was decided on each group; and what advantages are divided by the spread of, as in `Round`.
        """
        captured = self._captured
        self.ranks.together("rollouts", lambda: captured.check(trainer, output, self._may_reorder))
        scores = captured.scores(trainer, output, self.ranks, self._room, ends)
        verdicts = self.ranks.from_main(lambda: self._tell(trainer, scores))
        self.ranks.agree("verdicts", verdicts)
        if self._finish.marks:
            self._finish.mark(output, compared(trainer, scores.columns), trainer.num_generations)
        if self._may_zero:
            kept = [keep for keep, _ in verdicts]
            _zero_dropped(output["advantages"], kept, self.ranks.rank, trainer.num_generations)
        values = batch_values(trainer, scores.columns) if self.refill.active else None
        return [(keep, reason) for keep, reason in verdicts], values

    def ask_ahead(self, trainer: Any) -> None:
        """Begins to ask for the next round; called before a backward pass, which leaves the interpreter free."""
        groups, self._next_round = self._next_round, 0
        if groups and self._ahead is not None:
            self._ahead.start(groups, trainer.num_generations, int(trainer.state.global_step))

    def cancel(self) -> None:
        """Returns the prompts of a round that failed, so that a later one may draw them."""
        curriculum = self.curriculum
        if curriculum is not None and self._draws:
            curriculum.cancel([draw.ticket for draw in self._draws if draw.ticket != NO_TICKET])
        self._draws, self._captured = [], Captured([])

    def end(self) -> None:
        """After a run: returns prompts that were drawn for a round that did not come, and closes the log."""
        if self._ahead is not None:
            self._ahead.settled().compute.pause()
            self._ahead.cancel()
            self._close_log()

    def close(self) -> None:
        """At `detach`: as `end`, for good."""
        if self._heads is not None:
            self._heads.close()
        if self._ahead is not None:
            self._ahead.close()
            self._close_log()

    def _close_log(self) -> None:
        if (curriculum := self.curriculum) is not None and curriculum.log is not None:
            curriculum.log.close()

    def metrics(self) -> dict[str, float]:
        """The curriculum's metrics; empty on other ranks than 0."""
        if self._ahead is None:
            return {}
        own = self.refill.metrics() | self._mismatch.metrics() | self.clipping.metrics()
        # What was drawn ahead cost nothing yet; the clock goes on.
        return self._ahead.metrics() | self._ahead.settled().compute.metrics() | own

    def save(self, trainer: Any, checkpoint: Path) -> None:
        """Writes the curriculum into a checkpoint."""
        self._saving.save(trainer, checkpoint)

    def load(self, trainer: Any, checkpoint: Path) -> None:
        """Restores what `save` wrote."""
        self.has_drawn = self._saving.load(trainer, checkpoint) or self.has_drawn

    def _read_rows(self, draws: Sequence[Draw]) -> None:
        # On several ranks, each has rows of its own to read, and learns of the draws as they are taken.
        if self.ranks.world_size == 1:
            self.rows.read_ahead([draw.index for draw in draws])

    def _take_ahead(self, _: Curriculum, groups: int, group_size: int, version: int) -> list[Draw]:
        assert self._ahead is not None
        return self._ahead.take(groups, group_size, version)

    def _shared_draws(self, groups: int, group_size: int, version: int, choose: Choose) -> list[Draw]:
        def ask() -> list[Draw]:
            curriculum = self.curriculum
            assert curriculum is not None
            return choose(curriculum, groups, group_size, version)

        if self.ranks.world_size == 1:
            return ask()
        return [Draw(**fields) for fields in self.ranks.from_main(lambda: [asdict(draw) for draw in ask()])]

    def _check_keys(self, draws: Sequence[Draw]) -> None:
        for draw, key in zip(draws, self.rows.keys([draw.index for draw in draws]), strict=True):
            if key != draw.key and not draw.key.startswith(f"{key}#"):
                raise CurriculaValueError(
                    f"row {draw.index} of its data set has key {key}, on rank 0 it has {draw.key}. "
                    "Give every rank the same data set in the same order, and seed whatever shuffles it"
                )

    def _tell(self, trainer: Any, scores: Scores) -> list[list[Any]]:
        curriculum = self.curriculum
        assert curriculum is not None
        verdicts: list[Verdict] = curriculum.tell(outcomes(trainer, self._draws, scores, self._success_column))
        return [[verdict.keep, verdict.reason] for verdict in verdicts]


def _generates_again(trainer: Any) -> bool:
    # What is drawn for a round that never comes would count as cancelled.
    block = trainer.args.steps_per_generation * trainer.num_iterations
    steps = -(-block // trainer.args.gradient_accumulation_steps)
    return int(trainer.state.global_step) + steps < trainer.state.max_steps


def _success_column(trainer: Any, config: CurriculumConfig) -> int | None:
    name = config.success.reward
    if name is None:
        return None
    names = list(trainer.reward_func_names)
    if name not in names:
        known = ", ".join(names)
        raise CurriculaValueError(f"success.reward: no reward function is called {name!r}; there are {known}")
    if names.count(name) > 1:
        raise CurriculaValueError(
            f"success.reward: {names.count(name)} reward functions are called {name!r}; give the one that is meant a "
            "name of its own (its __name__)"
        )
    return names.index(name)


def _zero_dropped(advantages: torch.Tensor, keep: Sequence[bool], rank: int, group_size: int) -> None:
    """Zeroes the advantages, shape (B,) or (B, T), of this rank's rows whose group is not to be trained on."""
    first = rank * len(advantages)
    dropped = [row for row in range(len(advantages)) if not keep[(first + row) // group_size]]
    if dropped:
        advantages[dropped] = 0.0
