"""`CurriculumSampler`: the object a user holds, in a TRL script by `attach`, elsewhere as a torch sampler."""

import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from torch.utils.data import Sampler

from curricula import (
    CheckpointError,
    CurriculaRuntimeError,
    CurriculaValueError,
    Curriculum,
    CurriculumConfig,
    GroupOutcome,
    Verdict,
)
from curricula.config import as_config, launcher_keys, load_mix
from curricula.log import open_log, warm_start
from curricula.tracking import load_trackers
from curricula_trl.binding import Binding
from curricula_trl.callback import CurriculumCallback
from curricula_trl.checks import (
    check_clipping,
    check_dataset,
    check_refill,
    check_rewards,
    check_trainer,
    warn_of_batching,
)
from curricula_trl.fp32 import fp32_head
from curricula_trl.mixin import CurriculumMixin
from curricula_trl.policy import show_policy
from curricula_trl.ranks import Ranks
from curricula_trl.recipes import check_trainer_arguments
from curricula_trl.rows import Rows
from curricula_trl.vanishing import warn_of_vanishing

logger = logging.getLogger("curricula")


class CurriculumSampler(Sampler[int]):
    """Decides which prompts a run generates rollouts for.

    In a TRL script two lines are enough, and `attach` is all there is to call:

        from curricula_trl import CurriculumSampler
        CurriculumSampler.from_yaml("mix.yaml").attach(trainer)

    For hosts without TRL's seam it is a genuine `torch.utils.data.Sampler` over a map-style data set: give
    `dataset`, `batch_size` and `group_size`, iterate, and call `tell` with what came of the rollouts. Such a
    host draws ahead: a loader that prefetches k batches chooses prompts without the outcomes of the last k
    (the lag), and a prompt that is drawn and not yet told is not drawn again. An epoch is one draw per prompt
    of the data set, not one pass over it.

    Args:
        config: A mix: `CurriculumConfig`, a mapping of the same keys, or None for the defaults.
        dataset: Map-style data set, for use without `attach`.
        batch_size: Prompts asked for at once, for use without `attach`.
        group_size: Rollouts per prompt, for use without `attach`.
        repeat: How often each index is yielded in a row, for hosts that want the group's copies.
        warm_start: The folder of another run's outcome log; what it says of these prompts is known from the start.

    Raises:
        CurriculaValueError: A mix or an argument that cannot be used.
    """

    def __init__(
        self,
        config: CurriculumConfig | Mapping[str, Any] | None = None,
        *,
        dataset: Any = None,
        batch_size: int = 1,
        group_size: int = 8,
        repeat: int = 1,
        warm_start: str | Path | None = None,
    ) -> None:
        self.config = as_config(config)
        for name, value, least in (("batch_size", batch_size, 1), ("group_size", group_size, 2), ("repeat", repeat, 1)):
            if value < least:
                raise CurriculaValueError(
                    f"CurriculumSampler: {name}: expected at least {least}; got {value}; raise it"
                )
        self._trainer: Any = None
        self._binding: Binding | None = None
        self._callback: CurriculumCallback | None = None
        self._curriculum: Curriculum | None = None
        self._standalone = dataset is not None
        self._warm_start = warm_start
        self._batch_size, self._group_size, self._repeat = batch_size, group_size, repeat
        # Indices still to be yielded, with their tickets; and the tickets that wait to be told, by index.
        self._waiting: deque[tuple[int, int]] = deque()
        self._yielded = 0
        self._resumed = False
        self._open: dict[int, deque[int]] = {}
        if dataset is not None:
            self._curriculum = self._make(Rows(dataset, self.config))

    @classmethod
    def from_yaml(cls, path: str | Path, **arguments: Any) -> Self:
        """Reads the mix from a file; further arguments are those of the class.

        Raises:
            ConfigError: One line with the file, the key and what would be right.
        """
        return cls(load_mix(path), **arguments)

    @property
    def curriculum(self) -> Curriculum | None:
        """The state, for reading; None before `attach` and on other ranks than 0.

        Take it anew for each look: while a backward pass runs, the next round is drawn in another thread, and what
        this property returns is safe until then.
        """
        return self._curriculum if self._binding is None else self._binding.curriculum

    @property
    def trainer(self) -> Any:
        """The trainer it is attached to, or None."""
        return self._trainer

    def attach(self, trainer: Any, *, launched: bool = False) -> Self:
        """Puts the curriculum into a built `GRPOTrainer` or `RLOOTrainer`; call it on every rank, before `train`.

        The trainer's class is swapped for a subclass of itself that keeps its name; `detach` undoes it. A sampler
        that was detached may be attached again, to a trainer with the same prompts: it goes on where it was.

        Args:
            trainer: The trainer.
            launched: True where model, arguments and sources of the mix were used to build the trainer; where they
                were not, keys that name them are said to be ignored.

        Raises:
            CurriculaValueError: A trainer or a data set that a curriculum cannot serve, with the reason.
            CurriculaRuntimeError: One of the two is attached already.
        """
        if self._trainer is not None:
            raise CurriculaRuntimeError("attach: this sampler is attached to a trainer already; detach() it first")
        if self._standalone:
            raise CurriculaRuntimeError(
                "attach: this sampler was built over a data set of its own (dataset=...); leave it out, the trainer's "
                "is used"
            )
        if isinstance(trainer, CurriculumMixin) and getattr(trainer, "_curricula", None) is not None:
            raise CurriculaRuntimeError(
                "attach: this trainer has a curriculum already; curricula_trl.detach(trainer) first (in a notebook: "
                "run the cell that builds the trainer again, or detach before attaching another)"
            )
        check_trainer(trainer)
        if not launched and (ignored := launcher_keys(self.config)):
            logger.warning("only `curricula train` reads %s of a mix: ignored here", ", ".join(ignored))
        ranks = Ranks(trainer.accelerator)

        def read() -> Rows:
            check_dataset(trainer)
            check_rewards(trainer, self.config)
            check_refill(trainer, self.config)
            check_clipping(trainer, self.config)
            check_trainer_arguments(trainer, self.config)
            return Rows(trainer.train_dataset, self.config)

        rows = ranks.together("data set", read)
        curriculum: Curriculum | None = None

        def build() -> None:
            nonlocal curriculum
            curriculum = self._make(rows, trainer)
            if self.config.monitor.trackers != "auto":
                load_trackers(self.config.monitor.trackers)
            if self._curriculum is not None:
                # Attached before: what it knows of these prompts goes on, and other prompts are refused.
                curriculum.load_state_dict(self._curriculum.state_dict())

        ranks.from_main(lambda: _check_server(trainer))
        ranks.agree("size of the data set", len(rows))
        ranks.from_main(build)
        if self.config.recipe.fp32_head:
            ranks.together("head", lambda: fp32_head(trainer))
        binding = self._bound(trainer, rows, ranks, curriculum)
        if not isinstance(trainer, CurriculumMixin):
            trainer.__class__ = _with_curriculum(type(trainer))
        trainer._curricula = binding
        self._callback = CurriculumCallback(trainer, binding)
        trainer.add_callback(self._callback)
        self._trainer, self._binding, self._curriculum = trainer, binding, curriculum
        trainer._curricula_sampler = self
        return self

    def _bound(self, trainer: Any, rows: Rows, ranks: Ranks, curriculum: Curriculum | None) -> Binding:
        made: list[Binding] = []
        try:
            ranks.together("reward functions", lambda: made.append(Binding(trainer, rows, self.config, curriculum)))
            ranks.from_main(lambda: warn_of_vanishing(trainer, ranks))
            if ranks.is_main:
                warn_of_batching(trainer)
        except Exception:
            for binding in made:
                binding.close()  # leaves the generator as it was
            raise
        return made[0]

    def detach(self) -> None:
        """Gives the trainer its own class back; it then draws as TRL does. The curriculum's state stays here."""
        if self._trainer is None:
            raise CurriculaRuntimeError("detach: this sampler is not attached to a trainer")
        trainer, self._trainer = self._trainer, None
        trainer.remove_callback(self._callback)
        trainer._curricula = trainer._curricula_sampler = None
        if (original := vars(type(trainer)).get("_curricula_original")) is not None:
            trainer.__class__ = original
            del trainer._curricula, trainer._curricula_sampler
        if self._binding is not None:
            self._binding.close()
        self._binding = self._callback = None

    def metrics(self) -> dict[str, float]:
        """The curriculum's metrics; empty before `attach` and on other ranks than 0."""
        if self._binding is not None:
            return self._binding.metrics()
        return {} if self._curriculum is None else self._curriculum.metrics()

    def __len__(self) -> int:
        """Indices in an epoch: the prompts of the data set, times `repeat`."""
        return self._size() * self._repeat

    def __iter__(self) -> Iterator[int]:
        """Yields rows of the data set for an epoch; the first one after `load_state_dict` ends the epoch begun."""
        curriculum = self._own()
        if not self._resumed:
            self._abandon(curriculum)
        self._resumed = False
        while self._yielded < len(self):
            if not self._waiting:
                left = -(-(len(self) - self._yielded) // self._repeat)
                draws = curriculum.ask(min(self._batch_size, left), group_size=self._group_size)
                self._forget_landed(curriculum)
                for draw in draws:
                    self._open.setdefault(draw.index, deque()).append(draw.ticket)
                    self._waiting.extend([(draw.index, draw.ticket)] * self._repeat)
            self._yielded += 1
            yield self._waiting.popleft()[0]

    def tell(self, outcomes: Sequence[GroupOutcome]) -> list[Verdict]:
        """Takes what came of rollouts; an outcome without a ticket answers the oldest open draw of its index."""
        curriculum = self._own()
        answered: list[GroupOutcome] = []
        taken: dict[int, int] = {}
        for outcome in outcomes:
            open_draws = self._open.get(-1 if outcome.index is None else outcome.index)
            if outcome.ticket is None and open_draws is not None and outcome.index is not None:
                position = taken.get(outcome.index, 0)
                if position < len(open_draws):
                    taken[outcome.index] = position + 1
                    outcome = replace(outcome, ticket=open_draws[position])
            answered.append(outcome)
        verdicts = curriculum.tell(answered)
        self._forget_landed(curriculum)
        return verdicts

    def state_dict(self) -> dict[str, Any]:
        """The curriculum and the place within the epoch: JSON-able values and numpy arrays."""
        return {
            "curriculum": self._own().state_dict(),
            "yielded": self._yielded,
            "waiting": [list(entry) for entry in self._waiting],
            "open": [[index, list(tickets)] for index, tickets in self._open.items()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` gave; of a data set that changed since, as `Curriculum.load_state_dict` does.

        Raises:
            CheckpointError: The state is damaged or is that of another data set.
        """
        curriculum = self._own()
        try:
            waiting = deque((int(index), int(ticket)) for index, ticket in state["waiting"])
            open_draws = {int(index): deque(int(ticket) for ticket in tickets) for index, tickets in state["open"]}
            yielded, inner = int(state["yielded"]), state["curriculum"]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"CurriculumSampler.load_state_dict: expected what state_dict() gave; got {type(error).__name__}: "
                f"{error}"
            ) from error
        curriculum.load_state_dict(inner)
        if inner["fingerprint"] != curriculum.pool.fingerprint:
            # The data set changed: prompts that were drawn are in other rows now, or gone.
            flying = curriculum.in_flight()
            waiting = deque((flying[ticket], ticket) for _, ticket in waiting if ticket in flying)
            open_tickets = [ticket for tickets in open_draws.values() for ticket in tickets if ticket in flying]
            open_draws = {}
            for ticket in open_tickets:
                open_draws.setdefault(flying[ticket], deque()).append(ticket)
        self._waiting, self._open = waiting, open_draws
        # Saved after the last prompt of an epoch, the next one begins.
        self._yielded, self._resumed = (yielded, True) if yielded < len(self) else (0, False)

    def _make(self, rows: Rows, trainer: Any = None) -> Curriculum:
        curriculum = Curriculum(rows.pool(), self.config)
        if trainer is not None:
            show_policy(trainer, curriculum)
        if self._warm_start is not None:
            told, prompts, unmatched = warm_start(curriculum, self._warm_start)
            found = f"warm start from {self._warm_start}: {told:,} outcomes of {prompts:,} prompts were taken over, "
            found += f"{unmatched:,} of prompts that are not here were passed over"
            logger.info("%s", found)
            if trainer is not None:
                print(f"curricula: {found}", flush=True)  # as the banner: few scripts show what is logged at INFO
        if (folder := self.config.log_folder) is not None:
            open_log(curriculum, folder)
        return curriculum

    def _own(self) -> Curriculum:
        if self._trainer is not None:
            raise CurriculaRuntimeError(
                "CurriculumSampler: attached, so the trainer draws, tells and saves; detach() to use it by hand"
            )
        curriculum = self._curriculum
        if curriculum is None:
            raise CurriculaRuntimeError(
                "CurriculumSampler: no data set yet; attach(trainer) in a TRL script, or give dataset=... to the "
                "sampler"
            )
        return curriculum

    def _size(self) -> int:
        curriculum = self.curriculum
        return len((self._own() if curriculum is None else curriculum).pool)

    def _abandon(self, curriculum: Curriculum) -> None:
        # What an epoch that was left early had drawn and handed out no copy of may be drawn again.
        left = Counter(self._waiting)
        unseen = {ticket for (_, ticket), copies in left.items() if copies == self._repeat}
        curriculum.cancel(sorted(unseen))
        self._forget_landed(curriculum)
        self._waiting.clear()
        self._yielded = 0

    def _forget_landed(self, curriculum: Curriculum) -> None:
        """Drops tickets that were told, cancelled or expired."""
        flying = curriculum.in_flight()
        if sum(map(len, self._open.values())) > len(flying):
            left = {index: [ticket for ticket in tickets if ticket in flying] for index, tickets in self._open.items()}
            self._open = {index: deque(tickets) for index, tickets in left.items() if tickets}


def detach(trainer: Any) -> None:
    """Takes the curriculum out of a trainer, whichever sampler put it there.

    Raises:
        CurriculaRuntimeError: The trainer has none.
    """
    sampler = getattr(trainer, "_curricula_sampler", None)
    if sampler is None:
        raise CurriculaRuntimeError(f"detach: this {type(trainer).__name__} has no curriculum")
    sampler.detach()


def _check_server(trainer: Any) -> None:
    if getattr(trainer, "use_vllm", False):
        from curricula_vllm.same_model import check_same_model

        check_same_model(trainer)


def _with_curriculum(original: type) -> type:
    members = {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "_curricula_original": original,
    }
    return type(original.__name__, (CurriculumMixin, original), members)
