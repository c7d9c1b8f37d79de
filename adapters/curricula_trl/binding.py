"""One trainer's tie to its curriculum: every generation round asks, binds rows, and tells what came of them.

The loader stays TRL's clock. What it delivers is only a count; which prompts are generated for is decided
when TRL generates, so no outcome is ever missing from a decision (the design calls this late binding).
"""

import hashlib
import json
import logging
from collections.abc import Sequence
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
    GroupOutcome,
    Verdict,
    load_state,
    save_state,
)
from curricula_trl.ahead import Ahead
from curricula_trl.block import block_shape, in_block, load_block, save_block
from curricula_trl.checks import kl_in_advantages, overrides_generation
from curricula_trl.ranks import Ranks
from curricula_trl.rows import Rows

logger = logging.getLogger("curricula")

FOLDER = "curricula"


class Binding:
    """Asks and tells for one trainer.

    Attributes:
        has_drawn: True once rollouts that the curriculum drew are there to train on.
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

    @property
    def curriculum(self) -> Curriculum | None:
        """The state; on rank 0 only, None elsewhere."""
        return None if self._ahead is None else self._ahead.settled()

    def bind(self, trainer: Any, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """Draws a prompt for every group and returns this rank's rows in place of the loader's."""
        group_size = trainer.num_generations
        groups = len(inputs) * self.ranks.world_size // group_size
        version = int(trainer.state.global_step)
        self._draws, self._rewards = self._shared_draws(groups, group_size, version), None
        first = self.ranks.rank * len(inputs)
        last = first + len(inputs)
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
        self._completion_ids = completion_ids if self._may_reorder else []

    def observe(self, trainer: Any, output: dict[str, Any]) -> None:
        """Tells the round's outcomes, and takes groups that are not to be trained on out of the advantages."""
        self.ranks.together("rollouts", lambda: self._check_rollouts(trainer, output))
        tokens = np.array(self._lengths)
        if self.ranks.world_size > 1 or "tool_mask" in output:
            tokens = self.ranks.gather(_generated_tokens(output, self._lengths)).cpu().numpy()
        live = self._live(trainer, output)
        verdicts = self.ranks.from_main(lambda: self._tell(trainer, tokens, live))
        self.ranks.agree("verdicts", verdicts)
        if self._may_zero:
            kept = [keep for keep, _ in verdicts]
            _zero_dropped(output["advantages"], kept, self.ranks.rank, trainer.num_generations)
        self._next_round = len(self._draws) if _generates_again(trainer) else 0
        self._draws, self._rewards = [], None

    def ask_ahead(self, trainer: Any) -> None:
        """Begins to ask for the next round; called before a backward pass, which leaves the interpreter free."""
        groups, self._next_round = self._next_round, 0
        if groups and self._ahead is not None:
            self._ahead.start(groups, trainer.num_generations, int(trainer.state.global_step))

    def cancel(self) -> None:
        """Returns the prompts of a round that failed, so that a later one may draw them."""
        curriculum = self.curriculum
        if curriculum is not None and self._draws:
            curriculum.cancel([draw.ticket for draw in self._draws])
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
        return {} if self._ahead is None else self._ahead.metrics()

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

    def _shared_draws(self, groups: int, group_size: int, version: int) -> list[Draw]:
        def ask() -> list[Draw]:
            assert self._ahead is not None
            return self._ahead.take(groups, group_size, version)

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

    def _live(self, trainer: Any, output: dict[str, Any]) -> np.ndarray | None:
        """Rollouts of all ranks that have a token to train on, shape (B,); None where all have."""
        if not trainer.mask_truncated_completions:
            return None
        live = (output["completion_mask"] * output.get("tool_mask", 1)).any(dim=1)
        return self.ranks.gather(live).cpu().numpy()

    def _tell(self, trainer: Any, tokens: np.ndarray, live: np.ndarray | None) -> list[list[Any]]:
        curriculum = self.curriculum
        assert curriculum is not None
        assert self._rewards is not None
        size = trainer.num_generations
        columns = self._rewards.detach().to("cpu", torch.float64).numpy()
        weights = trainer.reward_weights.detach().to("cpu", torch.float64).numpy()
        missing = np.isnan(columns)
        rewards = np.where(missing, 0.0, columns) @ weights
        rewards[missing.all(axis=1)] = np.nan
        if clip := getattr(trainer, "reward_clip_range", None):
            rewards = rewards.clip(*clip)
        if live is not None:
            # A masked rollout has a reward and no gradient: it is no member of its group.
            rewards[~live] = np.nan
        rewards_NG = rewards.reshape(-1, size)
        tokens_NG = tokens.reshape(-1, size)
        raw_NG = None if self._success_column is None else columns[:, self._success_column].reshape(-1, size)
        verdicts: list[Verdict] = curriculum.tell(
            [
                GroupOutcome(
                    ticket=draw.ticket,
                    rewards=rewards_NG[group],
                    successes=None if raw_NG is None else raw_NG[group],
                    tokens=tokens_NG[group],
                    policy_version=draw.policy_version,
                )
                for group, draw in enumerate(self._draws)
            ]
        )
        return [[verdict.keep, verdict.reason] for verdict in verdicts]

    def _save_state(self, trainer: Any, folder: Path) -> str:
        """Saves, and returns a mark that ties the ranks' blocks to this state."""
        assert self._ahead is not None
        state = {
            "curriculum": self._ahead.settled().state_dict(),
            "ahead": self._ahead.state(),
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
    saved = {name: state.get(name) for name in ("step", "in_block", "shape", "mark")}
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
