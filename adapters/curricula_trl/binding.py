"""One trainer's tie to its curriculum: every generation round asks, binds rows, and tells what came of them.

The loader stays TRL's clock. What it delivers is only a count; which prompts are generated for is decided
when TRL generates, so no outcome is ever missing from a decision (the design calls this late binding).
"""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.trainer import TRAINER_STATE_NAME

from curricula import (
    CheckpointError,
    CurriculaValueError,
    Curriculum,
    CurriculumConfig,
    Draw,
    Verdict,
    load_state,
    save_state,
)
from curricula.config import OverlongConfig
from curricula_trl.ahead import Ahead
from curricula_trl.batch import Fill
from curricula_trl.block import block_shape, in_block, load_block, save_block
from curricula_trl.checks import kl_in_advantages, overrides_generation
from curricula_trl.ranks import Ranks
from curricula_trl.refill import Choose, Refill
from curricula_trl.rounds import NO_TICKET, Floats, Round, Scores, batch_values, outcomes, truncated
from curricula_trl.rows import Rows

logger = logging.getLogger("curricula")

FOLDER = "curricula"


class Binding:
    """Asks and tells for one trainer.

    Attributes:
        has_drawn: True once rollouts that the curriculum drew are there to train on.
        refill: What replaces groups that are not trained on.
    """

    def __init__(self, trainer: Any, rows: Rows, config: CurriculumConfig, curriculum: Curriculum | None) -> None:
        self.ranks = Ranks(trainer.accelerator)
        self.rows = rows
        self.config = config
        self._ahead = None if curriculum is None else Ahead(curriculum)
        self.has_drawn = False
        self._draws: list[Draw] = []
        self._next_round = 0
        self._rewards: torch.Tensor | None = None
        self._lengths: list[int] = []
        self._completion_ids: Sequence[Sequence[int]] = []
        self._bound: list[dict[str, Any]] = []
        self._are_ours = False
        self._success_column = _success_column(trainer, config)
        self._may_reorder = overrides_generation(trainer)
        self._may_zero = not kl_in_advantages(trainer)
        self._sees_truncated = any(isinstance(rule, OverlongConfig) for rule in config.curriculum.filters)
        self.refill = Refill(config.refill, self.ranks)

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

        first = play(groups, self._take_ahead)
        output = self.refill.complete(trainer, first, play) if self.refill.active else first.output
        self._next_round = groups if _generates_again(trainer) else 0
        return output

    def _round(self, trainer: Any, groups: int, generate: Callable[[Any], dict[str, Any]], choose: Choose) -> Round:
        output = generate(self._bind(trainer, groups, choose))
        verdicts, values = self._observe(trainer, output)
        played = Round(output, self._draws, verdicts, values)
        self._draws, self._rewards = [], None
        return played

    def _bind(self, trainer: Any, groups: int, choose: Choose) -> list[dict[str, Any]]:
        """Draws a prompt for every group and returns this rank's rows in place of the loader's."""
        group_size = trainer.num_generations
        version = int(trainer.state.global_step)
        self._draws, self._rewards = self._shared_draws(groups, group_size, version, choose), None
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
        self._bound = rows
        return rows

    def capture(self, inputs: Sequence[Any], rewards: torch.Tensor, completion_ids: Sequence[Sequence[int]]) -> None:
        """Keeps a round's gathered rewards, shape (B, functions) in global order, and this rank's lengths."""
        self._are_ours = len(inputs) == len(self._bound) and all(
            mine is theirs for mine, theirs in zip(self._bound, inputs, strict=True)
        )
        self._rewards = rewards
        self._lengths = [len(ids) for ids in completion_ids]
        self._completion_ids = completion_ids

    def _observe(self, trainer: Any, output: dict[str, Any]) -> tuple[list[tuple[bool, str]], Floats | None]:
        """Tells the round's outcomes, and takes groups that are not to be trained on out of the advantages.

        Returns:
            What was decided on each group; and what advantages are divided by the spread of, as in `Round`.
        """
        self.ranks.together("rollouts", lambda: self._check_rollouts(trainer, output))
        scores = self._scores(trainer, output)
        verdicts = self.ranks.from_main(lambda: self._tell(trainer, scores))
        self.ranks.agree("verdicts", verdicts)
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
        self._draws, self._rewards = [], None

    def end(self) -> None:
        """After a run: returns prompts that were drawn for a round that did not come, and closes the log."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._close_log()

    def close(self) -> None:
        """At `detach`: as `end`, for good."""
        if self._ahead is not None:
            self._ahead.close()
            self._close_log()

    def _close_log(self) -> None:
        if (curriculum := self.curriculum) is not None and curriculum.log is not None:
            curriculum.log.close()

    def metrics(self) -> dict[str, float]:
        """The curriculum's metrics; empty on other ranks than 0."""
        return {} if self._ahead is None else self._ahead.metrics() | self.refill.metrics()

    def save(self, trainer: Any, checkpoint: Path) -> None:
        """Writes `checkpoint/curricula/`: the curriculum by rank 0, the unfinished block by each rank.

        It is written before TRL's own files, the last of which makes a checkpoint one: a run that is killed
        in between leaves no checkpoint that lacks the curriculum.
        """
        folder = checkpoint / FOLDER
        resumable = not trainer.args.save_only_model
        mark = self.ranks.from_main(lambda: self._save_state(trainer, folder))

        def save_rank() -> None:
            if resumable and in_block(trainer):
                folder.mkdir(parents=True, exist_ok=True)
                save_block(folder / _block_name(self.ranks.rank), trainer._buffered_inputs, mark)
            if resumable and self.refill.spare:
                folder.mkdir(parents=True, exist_ok=True)
                save_block(folder / _spare_name(self.ranks.rank), [fill.saved() for fill in self.refill.spare], mark)

        self.ranks.together("saved block", save_rank)

    def load(self, trainer: Any, checkpoint: Path) -> None:
        """Restores what `save` wrote; a checkpoint from before the curriculum starts a fresh one, and says so.

        Raises:
            CheckpointError: The state is damaged or is that of another data set.
        """
        folder = checkpoint / FOLDER
        saved = self.ranks.from_main(lambda: self._load_state(folder, checkpoint))
        if saved is None:
            if self.ranks.is_main:
                logger.warning("%s holds no curriculum state: the curriculum starts afresh from here", checkpoint)
            return
        trainer._step, trainer._buffered_inputs = 0, None
        path = folder / _block_name(self.ranks.rank)
        fits = saved["shape"] == block_shape(trainer)
        self._load_refill(trainer, saved, folder, fits)
        if not saved["in_block"]:
            trainer._step = saved["step"] if fits else 0
        elif self.ranks.all_true(fits and path.is_file()):
            mark, device = saved["mark"], trainer.accelerator.device
            block = self.ranks.together("saved block", lambda: load_block(path, device, mark))
            trainer._step, trainer._buffered_inputs, self.has_drawn = saved["step"], block, True
        elif self.ranks.is_main:
            logger.warning(
                "%s was saved in the middle of a generation block under other batch settings or ranks: its last "
                "rollouts are generated again",
                checkpoint,
            )

    def _load_refill(self, trainer: Any, saved: dict[str, Any], folder: Path, fits: bool) -> None:
        state, path, device = saved["refill"], folder / _spare_name(self.ranks.rank), trainer.accelerator.device
        waits = isinstance(state, dict) and state.get("spare", 0) != 0
        spare: list[Fill] = []
        # Without them a run is as good: other groups fill the next batch.
        if waits and self.ranks.all_true(fits and path.is_file()):
            parts = self.ranks.together("spare groups", lambda: load_block(path, device, saved["mark"]))
            spare = [Fill.read(part) for part in parts]
        self.refill.load(state, spare, len(self.rows))

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

    def _check_rollouts(self, trainer: Any, output: dict[str, Any]) -> None:
        name = type(trainer).__name__
        if self._rewards is None:
            raise CurriculaValueError(
                f"{name} generated without calling _calculate_rewards; the curriculum learns from its rewards. "
                "Call TRL's method in your subclass, or detach()"
            )
        if not self._are_ours:
            raise CurriculaValueError(
                f"{name} generated for other prompts than the curriculum drew: its _generate_and_score_completions "
                "replaces the rows it is given. Pass them on, or detach()"
            )
        if self._may_reorder and not _same_rows(output["completion_ids"], self._completion_ids):
            raise CurriculaValueError(
                f"{name}._generate_and_score_completions returns other rows than were scored, or in another order; "
                "the curriculum cannot tell which group they belong to. Keep TRL's rows, or detach()"
            )

    def _scores(self, trainer: Any, output: dict[str, Any]) -> Scores:
        """What came of the rollouts of all ranks."""
        assert self._rewards is not None
        rows = len(self._lengths)
        masked = trainer.mask_truncated_completions or "tool_mask" in output
        told = [np.array(self._lengths), np.ones(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)]
        if "tool_mask" in output:
            told[0] = _generated_tokens(output, self._lengths).cpu().numpy()
        if masked:
            told[1] = (output["completion_mask"] * output.get("tool_mask", 1)).any(dim=1).long().cpu().numpy()
        if self._sees_truncated:
            told[2] = np.array(truncated(trainer, self._completion_ids), dtype=np.int64)
        if self.ranks.world_size > 1:
            table = torch.from_numpy(np.stack(told, axis=1)).to(self._rewards.device)
            told = list(self.ranks.gather(table).cpu().numpy().T)
        columns = self._rewards.detach().to("cpu", torch.float64).numpy()
        return Scores(columns, told[0], told[1] != 0, told[2] != 0)

    def _tell(self, trainer: Any, scores: Scores) -> list[list[Any]]:
        curriculum = self.curriculum
        assert curriculum is not None
        verdicts: list[Verdict] = curriculum.tell(outcomes(trainer, self._draws, scores, self._success_column))
        return [[verdict.keep, verdict.reason] for verdict in verdicts]

    def _save_state(self, trainer: Any, folder: Path) -> str:
        """Saves, and returns a mark that ties the ranks' blocks to this state."""
        assert self._ahead is not None
        state = {
            "curriculum": self._ahead.settled().state_dict(),
            "ahead": self._ahead.state(),
            "refill": self.refill.state(),
            "step": int(trainer._step),
            "global_step": int(trainer.state.global_step),
            "in_block": in_block(trainer),
            "shape": block_shape(trainer),
        }
        told = json.dumps([state["curriculum"]["rng"], state["curriculum"]["fingerprint"], state["step"]])
        mark = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        save_state(folder, {**state, "mark": mark})
        return mark

    def _load_state(self, folder: Path, checkpoint: Path) -> dict[str, Any] | None:
        assert self._ahead is not None
        if not folder.is_dir():
            return None
        state = load_state(folder)
        saved = _checked(state, folder, checkpoint)
        self._ahead.load(state["curriculum"], state["ahead"])
        return saved


def _checked(state: dict[str, Any], folder: Path, checkpoint: Path) -> dict[str, Any]:
    saved = {name: state.get(name) for name in ("step", "in_block", "shape", "mark", "refill")}
    sound = (
        isinstance(saved["step"], int)
        and saved["step"] >= 0
        and isinstance(saved["in_block"], bool)
        and isinstance(saved["shape"], dict)
        and isinstance(saved["mark"], str)
        and isinstance(state.get("curriculum"), dict)
        and isinstance(state.get("ahead"), list)
    )
    if not sound:
        raise CheckpointError(
            f"{folder}: expected step, in_block, shape, curriculum and ahead; got {saved}; resume from an older one"
        )
    step = json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["global_step"]
    if state.get("global_step") != step:
        raise CheckpointError(
            f"{folder}: expected the curriculum of step {step}; got that of step {state.get('global_step')}; was it "
            "copied from another checkpoint?"
        )
    return saved


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


def _block_name(rank: int) -> str:
    return f"block-{rank}.safetensors"


def _spare_name(rank: int) -> str:
    return f"spare-{rank}.safetensors"


def _same_rows(ids: torch.Tensor, lists: Sequence[Sequence[int]]) -> bool:
    return len(ids) == len(lists) and all(
        row[: len(tokens)] == list(tokens) for row, tokens in zip(ids.tolist(), lists, strict=True)
    )


def _zero_dropped(advantages: torch.Tensor, keep: Sequence[bool], rank: int, group_size: int) -> None:
    """Zeroes the advantages, shape (B,) or (B, T), of this rank's rows whose group is not to be trained on."""
    first = rank * len(advantages)
    dropped = [row for row in range(len(advantages)) if not keep[(first + row) // group_size]]
    if dropped:
        advantages[dropped] = 0.0


def _generated_tokens(output: dict[str, Any], lengths: Sequence[int]) -> torch.Tensor:
    """Tokens that the policy generated, shape (B,): what tools put in between is not counted."""
    device = output["completion_ids"].device
    tokens = torch.tensor(lengths, dtype=torch.int64, device=device)
    if (tool_mask := output.get("tool_mask")) is not None:
        tokens -= ((tool_mask == 0) & (output["completion_mask"] != 0)).sum(dim=1)
    return tokens
