"""Rollouts in two parts: to a limit of thinking, then, where they still think, with a sentence that ends it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from curricula import CurriculaRuntimeError, CurriculumConfig
from curricula.config import InterruptionConfig
from curricula_trl.interruption.bounded import generate_bounded
from curricula_trl.interruption.checks import check_trainer, sentence_of
from curricula_trl.interruption.masking import mask_forced
from curricula_trl.interruption.plan import Plan
from curricula_trl.interruption.rollouts import Begun, Rollout, begun, joined, within
from curricula_trl.interruption.sleeping import one_waking
from curricula_trl.interruption.thinking import Thinking
from curricula_trl.merge import count_items
from curricula_trl.ranks import Ranks
from curricula_trl.room import Room
from curricula_trl.texts import tokenizer_of

Turn = Callable[[list[list[int]], Mapping[str, Any]], tuple[Any, Any]]
"""TRL's generation of one turn, of token ids and of what else there is for each of them."""


class Ends(NamedTuple):
    """How this rank's B rollouts of a round ended.

    Attributes:
        put_in: Shape (B,), tokens that were put into each.
        interrupted: Into which of them the sentence was put; an end for a rollout without a token is none.
        full: Which of them had all the tokens that they may have.
    """

    put_in: torch.Tensor
    interrupted: list[bool]
    full: list[bool]


def interruption_of(trainer: Any, config: CurriculumConfig, ranks: Ranks, room: Room) -> "Interruption | None":
    """What interrupts a trainer's rollouts; None where the mix does not ask for it.

    Raises:
        CurriculaValueError: A trainer or lengths for which it cannot be done.
    """
    if config.interruption is None:
        return None
    check_trainer(trainer, config)
    return Interruption(trainer, config.interruption, config.seed, ranks, room)


class Interruption:
    """Interrupts the rollouts of one trainer, and keeps tokens that were put in out of its loss.

    Args:
        trainer: The trainer.
        chosen: The mix's section.
        seed: Of the mix.
        ranks: Of the trainer.
        room: Of the trainer's generator.
    """

    def __init__(self, trainer: Any, chosen: InterruptionConfig, seed: int, ranks: Ranks, room: Room) -> None:
        tokenizer = tokenizer_of(trainer)
        self._chosen, self._ranks, self._room = chosen, ranks, room
        self._sentence = sentence_of(trainer, chosen)
        self._thinking = Thinking(tokenizer, chosen.closing or "")
        self._plan = Plan(seed, chosen.at)
        self._ends = {*trainer.eos_token_ids, tokenizer.pad_token_id}
        self._eos = int(trainer.eos_token_ids[0])
        self._rollouts: list[Rollout] | None = None

    def generate(
        self, trainer: Any, turn: Turn, prompts: Sequence[Sequence[int]], fields: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """Generates a round in place of TRL; every rank has to call it.

        Args:
            trainer: The trainer.
            turn: TRL's own.
            prompts: Token ids of this rank's rows.
            fields: What the tokenizer gives beside them.

        Returns:
            Token ids and log-probabilities, as TRL's; NaN for tokens that were put in.
        """
        longest = self._room.longest(trainer)
        count, rank = len(prompts), self._ranks.rank
        limits = self._plan.limits(int(trainer.state.global_step), count * self._ranks.world_size)
        limits = limits[rank * count : (rank + 1) * count]
        budgets = limits
        if longest is not None:
            budgets = [max(1, min(most, longest - len(ids))) for most, ids in zip(limits, prompts, strict=True)]
        with one_waking(trainer):
            tokens, logps = generate_bounded(trainer, self._ranks, lambda rows: turn(rows, fields), prompts, budgets, 0)
            parts = [
                self._begun(prompts[row], tokens[row], None if logps is None else logps[row], limits[row], longest)
                for row in range(count)
            ]
            rollouts = self._finished(trainer, turn, prompts, fields, parts)
        self._rollouts = rollouts
        scores = None if logps is None else [rollout.logps for rollout in rollouts]
        return [rollout.tokens for rollout in rollouts], scores

    def finish(self, trainer: Any, output: dict[str, Any]) -> Ends:
        """Masks what was put in, in TRL's output of the round, in place."""
        rollouts, self._rollouts = self._rollouts, None

        def mask() -> None:
            if rollouts is None:
                raise CurriculaRuntimeError(
                    f"{type(trainer).__name__} generated without TRL's _generate_single_turn, so no rollout was "
                    "interrupted; call TRL's method in your subclass, or leave interruption out of the mix"
                )
            mask_forced(output, [rollout.forced for rollout in rollouts])

        self._ranks.together("interrupted rollouts", mask)
        assert rollouts is not None
        output["num_items_in_batch"] = count_items(self._ranks, output)
        forced = [() if rollout.forced is None else rollout.forced.tokens for rollout in rollouts]
        put_in = torch.tensor([len(tokens) for tokens in forced], device=output["completion_ids"].device)
        interrupted = [tokens == tuple(self._sentence) for tokens in forced]
        return Ends(put_in, interrupted, [rollout.full for rollout in rollouts])

    def _begun(
        self,
        prompt: Sequence[int],
        tokens: list[int],
        logps: list[float | None] | None,
        limit: int,
        longest: int | None = None,
    ) -> Begun:
        if not tokens:  # an engine that gave up at once: TRL needs one token at least, and no policy chose it
            return Begun([], None if logps is None else [], (self._eos,), 0, full=False)
        closed = 0 if self._thinking.is_closed(prompt) else self._thinking.end(tokens)
        ended = tokens[-1] in self._ends
        chosen = self._chosen
        part = begun(
            tokens, logps, limit=limit, closed=closed, ended=ended, answer=chosen.answer, sentence=self._sentence
        )
        return within(part, len(prompt), longest)

    def _finished(
        self,
        trainer: Any,
        turn: Turn,
        prompts: Sequence[Sequence[int]],
        fields: Mapping[str, Any],
        parts: list[Begun],
    ) -> list[Rollout]:
        waiting = [row for row, part in enumerate(parts) if part.budget]
        tokens: list[list[int]] = []
        logps: list[list[float | None]] | None = None
        if not self._ranks.all_true(not waiting):
            # A rank whose rollouts are all complete takes part with a token that is not used.
            rows = [[*prompts[row], *parts[row].tokens, *parts[row].put_in] for row in waiting]
            budgets = [parts[row].budget for row in waiting]
            places = waiting or [0]
            tokens, logps = generate_bounded(
                trainer,
                self._ranks,
                lambda longer: turn(longer, _longer(fields, places, longer)),
                rows or [prompts[0]],
                budgets or [1],
                1,
            )
        found = {row: place for place, row in enumerate(waiting)}
        rollouts: list[Rollout] = []
        for row, part in enumerate(parts):
            if row in found:
                scores = None if logps is None else logps[found[row]]
                rollouts.append(joined(part, tokens[found[row]], scores))
            else:
                rollouts.append(joined(part, (), None))
        return rollouts


def _longer(fields: Mapping[str, Any], places: Sequence[int], prompts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What there is for each token of the prompts at some places, for prompts that have become longer."""
    longer: dict[str, Any] = {}
    for name, values in fields.items():
        if not isinstance(values, list) or not all(isinstance(row, list) for row in values):
            raise CurriculaRuntimeError(
                f"interruption: cannot go on from prompts with {name!r}, which is not by token (images?); leave it out "
                "of the prompts, or interruption out of the mix"
            )
        known = [values[place] for place in places]
        longer[name] = [[*row, *[0] * (len(prompt) - len(row))] for row, prompt in zip(known, prompts, strict=False)]
    return longer
