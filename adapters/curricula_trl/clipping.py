"""Tokens whose gradient is clipped away, by decile of entropy.

Rare tokens of high entropy, at which a rollout forks, are those whose ratio moves most: a clipped loss takes their
gradient, and CISPO is meant to keep it (arXiv 2506.13585; fork tokens: arXiv 2506.01939). What TRL's loss
computed is looked at once more, from the same tensors: no forward pass, and no loss of its own.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curricula import CheckpointError
from curricula_trl.losses import LOSSES, loss_of
from curricula_trl.merge import loss_mask
from curricula_trl.ranks import Ranks

LOW, HIGH, CELLS = 1e-6, 20.0, 4096
"""Entropies in nats are counted in cells of equal ratio (.4%); below LOW they are rounding, above HIGH no
vocabulary's."""

_SCALE = CELLS / math.log(HIGH / LOW)
COUNTED = tuple(name for name, loss in LOSSES.items() if loss.clips or loss.cuts)
"""Losses that bound the ratio of a token, and so have something to count."""


def clipped_away(trainer: Any, inputs: dict[str, Any], logps: torch.Tensor) -> torch.Tensor:
    """Tokens whose policy term has no gradient because of the clip of the ratio; boolean, shape (B, T).

    Losses with a clip lose the gradient of a ratio above 1 + epsilon_high (or above `delta`) where the advantage is
    positive, and of one below 1 - epsilon (or above `delta`) where it is negative; with one ratio a sequence, that of
    all its tokens. CISPO, SAPO and VESPO weigh tokens, and clip none away. What other options take
    (`top_entropy_quantile`, `off_policy_mask_threshold`, vLLM's correction) is not clipped away.

    Args:
        trainer: A `GRPOTrainer`.
        inputs: What its loss was given.
        logps: Shape (B, T), the log-probabilities that the loss was computed from.
    """
    advantages = _advantages(inputs)
    if not loss_of(trainer.loss_type).clips:
        return torch.zeros_like(logps, dtype=torch.bool)
    ratio = _ratio(trainer, inputs, logps)
    high = 1 + trainer.epsilon_high
    delta = torch.inf if trainer.args.delta is None else trainer.args.delta
    up = (ratio > min(high, delta)) & (advantages > 0)
    down = ((ratio < 1 - trainer.epsilon_low) | (ratio > max(high, delta))) & (advantages < 0)
    return (up | down).expand_as(logps)


def truncated(trainer: Any, inputs: dict[str, Any], logps: torch.Tensor) -> torch.Tensor:
    """Tokens whose weight CISPO cuts to epsilon_high, none in other losses; as `clipped_away`."""
    if not loss_of(trainer.loss_type).cuts:
        return torch.zeros_like(logps, dtype=torch.bool)
    return (_ratio(trainer, inputs, logps) > trainer.epsilon_high).expand_as(logps)


def counted(entropies: torch.Tensor, pool: torch.Tensor, *kinds: torch.Tensor) -> torch.Tensor:
    """Tokens of a pool in cells of entropy, then those of each kind among them; shape (1 + kinds, CELLS), int64.

    Args:
        entropies: Shape (B, T), in nats; tokens without a finite one are left out.
        pool: Shape (B, T), boolean.
        kinds: Shape (B, T), boolean.
    """
    values = entropies.detach().float()
    pool = pool & values.isfinite()
    values = values.nan_to_num(nan=LOW).clamp(LOW, HIGH)
    places = ((values.log() - math.log(LOW)) * _SCALE).long().clamp(max=CELLS - 1)
    # What is no token of a kind counts 0: to pick tokens, or to count up to the largest, a device would wait for them.
    counts = torch.stack([pool & kind for kind in (pool, *kinds)]).long()
    rows = torch.arange(len(counts), device=places.device)[:, None, None] * CELLS
    cells = torch.zeros(len(counts) * CELLS, dtype=torch.int64, device=places.device)
    return cells.scatter_add_(0, (places + rows).flatten(), counts.flatten()).view(-1, CELLS)


def by_decile(all_C: NDArray[np.int64], some_C: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of some tokens among all, in each tenth of all by entropy; shape (10,). A cell is spread evenly.

    Args:
        all_C: Shape (C,), tokens in each cell, at least one in all.
        some_C: Shape (C,), those of a kind.

    >>> by_decile(np.array([50, 0, 50]), np.array([0, 0, 25])).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    total = float(all_C.sum())
    edges = np.linspace(0.0, total, 11)
    found = np.interp(edges, np.cumsum([0, *all_C]), np.cumsum([0, *some_C]))
    return np.diff(found) / (total / 10)


class Clipping:
    """Counts tokens with an advantage from one log to the next, over micro-batches and ranks.

    Args:
        ranks: Of the trainer.
        active: Whether anything is counted.
        loss: TRL's `loss_type`.
    """

    def __init__(self, ranks: Ranks, active: bool, loss: str = "") -> None:
        self._ranks = ranks
        self._active = active
        self._loss = loss
        self._open = False
        self._kept: tuple[torch.Tensor, torch.Tensor] | None = None
        self._mine: torch.Tensor | None = None
        # Of a window: what a checkpoint held, and what was counted since, which stays on the device until a log.
        self._before = np.zeros((3, CELLS), dtype=np.int64)
        self._since: torch.Tensor | None = None
        self._shown: dict[str, float] = {}

    @contextmanager
    def watching(self, trainer: Any, inputs: dict[str, Any]) -> Iterator[None]:
        """Looks at what TRL's loss, computed within, was computed from."""
        self._open = self._active
        try:
            yield
        finally:
            self._open, kept, self._kept = False, self._kept, None
        if kept is not None:
            with torch.no_grad():
                self._count(trainer, inputs, *kept)

    def keep(self, found: tuple[Any, ...]) -> None:
        """Takes log-probabilities and entropies that TRL has just computed, where they are the loss's own."""
        if self._open and found[1] is not None:
            self._kept = found[0].detach(), found[1].detach()

    def close_window(self) -> None:
        """At a log: what was counted since the last is what is shown until the next."""
        self._shown = figures(self._window(), self._loss)
        self._before, self._since = np.zeros_like(self._before), None

    def metrics(self) -> dict[str, float]:
        """Of the steps between the last two logs; nothing where no token had an advantage."""
        return self._shown

    def state(self) -> dict[str, Any]:
        """The counts since the last log, shape (3, C), and what that log showed; empty where nothing is counted."""
        return {"window": self._window(), "shown": self._shown} if self._active else {}

    def load(self, state: Any) -> None:
        """Takes over what `state` gave, where anything is counted.

        Raises:
            CheckpointError: It cannot be right.
        """
        match state:
            case {"window": np.ndarray() as window, "shown": dict(shown)} if (
                window.dtype == np.int64
                and window.shape == self._before.shape
                and (window >= 0).all()
                and all(type(value) is float for value in shown.values())
            ):
                found, told = window.copy(), dict(shown)
            case None | {} if not state:
                found, told = np.zeros_like(self._before), dict[str, float]()
            case _:
                raise CheckpointError(
                    f"clipping: expected its saved counts; got {str(state)[:80]}; resume from an older checkpoint"
                )
        if self._active:
            self._before, self._since, self._mine, self._shown = found, None, None, told

    def _count(self, trainer: Any, inputs: dict[str, Any], logps: torch.Tensor, entropies: torch.Tensor) -> None:
        pool = (loss_mask(inputs) != 0) & (_advantages(inputs) != 0)
        found = counted(entropies, pool, clipped_away(trainer, inputs, logps), truncated(trainer, inputs, logps))
        self._mine = found if self._mine is None else self._mine + found
        # Once an optimiser's step, where all ranks are: a rank may have other micro-batches without any advantage.
        if trainer.accelerator.sync_gradients:
            found = self._ranks.gather(self._mine[None]).sum(dim=0)
            self._since, self._mine = found if self._since is None else self._since + found, None

    def _window(self) -> NDArray[np.int64]:
        return self._before if self._since is None else self._before + self._since.cpu().numpy()


def figures(window: NDArray[np.int64], loss: str) -> dict[str, float]:
    """What is logged of counts, shape (3, C): of all tokens, of those clipped away, and of those truncated.

    A loss clips tokens away, or cuts their weights: what it does not do is no figure.
    """
    tokens, clipped, cut = (int(row.sum()) for row in window)
    if not tokens:
        return {}
    if loss_of(loss).cuts:
        return {"clipping/truncated": cut / tokens}
    shares = by_decile(window[0], window[1])
    return {
        **{f"clipping/decile_{number}": float(share) for number, share in enumerate(shares)},
        "clipping/clipped": clipped / tokens,
    }


def _advantages(inputs: dict[str, Any]) -> torch.Tensor:
    """Shape (B, 1), or (B, T) where a rollout has one for each token."""
    advantages: torch.Tensor = inputs["advantages"]
    return advantages[:, None] if advantages.dim() == 1 else advantages


def _ratio(trainer: Any, inputs: dict[str, Any], logps: torch.Tensor) -> torch.Tensor:
    """The importance ratio as TRL has it: shape (B, T), or (B, 1) with one a sequence."""
    old = inputs.get("old_per_token_logps")
    if old is None:  # the first update after the rollouts, whose log-probabilities TRL does not compute twice
        return torch.ones_like(logps)
    difference = logps - old
    if trainer.importance_sampling_level == "sequence":
        mask = loss_mask(inputs)
        difference = ((difference * mask).sum(-1) / mask.sum(-1).clamp(min=1.0))[:, None]
    return difference.exp()
