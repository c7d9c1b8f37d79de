"""Trainer against generator: how far apart their log-probabilities of the sampled tokens are, after each update.

TRL computes the trainer's for every batch that vLLM generated, so the comparison costs a gather of four numbers, and
less than a hundredth of a step (tests/benchmarks/test_mismatch_cost.py). The first batch of a run is generated before
any update: what differs there is arithmetic, and is what later ones are held against, those of a resumed run too. A
generator that an update left behind, as copies of tied or packed heads are, shows in the batch after it where the step
was large. Where steps are small, its head is read: in the trainer's process, rows of it have to be the trainer's own,
to the bit.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from curricula import CheckpointError
from curricula_trl.fp32 import head_dtype
from curricula_trl.merge import loss_mask
from curricula_trl.ranks import Ranks

logger = logging.getLogger("curricula")

FACTOR, LEAST, MOST = 4.0, 0.01, 0.2
"""A mean difference is too large above FACTOR times the first batch's, where it is above LEAST nats; and above MOST,
several times what arithmetic in 16 bits made of any model that was measured."""


class Figures(NamedTuple):
    """Of the tokens of a batch, over all ranks: absolute differences, and the divergence.

    Attributes:
        mean: Mean absolute difference of the log-probabilities, in nats.
        largest: The largest.
        kl: Estimate of KL(generator || trainer) a token, by exp(d) - 1 - d with d = log trainer - log generator, whose
            terms are never negative (k3 of http://joschu.net/blog/kl-approx.html).
        tokens: How many.
    """

    mean: float
    largest: float
    kl: float
    tokens: int


def measured(output: dict[str, Any], ranks: Ranks) -> Figures | None:
    """Figures of a batch on all ranks; None where the generator gave no log-probabilities."""
    sampled, trained = output.get("sampling_per_token_logps"), output.get("old_per_token_logps")
    if sampled is None or trained is None:
        return None
    difference = (trained - sampled).double()
    difference = difference[(loss_mask(output) != 0) & ~difference.isnan()]
    size = difference.abs()
    kl = torch.expm1(difference) - difference
    largest = size.max() if size.numel() else size.new_zeros(())
    mine = torch.stack([size.sum(), kl.sum(), size.new_tensor(float(size.numel())), largest])[None]
    table = ranks.gather(mine) if ranks.world_size > 1 else mine
    total, divergence, count = table[:, :3].sum(dim=0).tolist()
    return Figures(total / max(count, 1), float(table[:, 3].max()), divergence / max(count, 1), int(count))


def heads_of(trainer: Any, ranks: Ranks) -> tuple[str, str]:
    """In what trainer and generator compute their logits; "" for a generator that does not show it, or is none."""
    if not getattr(trainer, "use_vllm", False) or not ranks.is_main:
        return head_dtype(trainer), ""
    from curricula_vllm.head import head_dtype as generator_head_dtype
    from curricula_vllm.head import model_dtype

    # A head that a server says nothing of is in what its weights are in.
    generation = trainer.vllm_generation
    return head_dtype(trainer), generator_head_dtype(generation) or model_dtype(generation)


def reader_of(trainer: Any) -> Callable[[], bool | None]:
    """Reads whether the generator's head is another than the trainer's: for an engine in this process, whole on it."""
    generation = getattr(trainer, "vllm_generation", None)
    spread = getattr(trainer, "is_fsdp_enabled", False) or getattr(trainer, "is_deepspeed_enabled", False)
    if generation is None or generation.mode != "colocate" or generation.tensor_parallel_size > 1 or spread:
        return lambda: None
    from curricula_vllm.head import holds

    def read() -> bool | None:
        # `trainer.model` is the bare one here; unwrapping it once more would take longer than all of the comparison.
        held = holds(generation, trainer.model.get_output_embeddings().weight)
        return None if held is None else not held

    return read


class Mismatch:
    """Keeps the first batch's figures, and says when later ones are not arithmetic any more.

    Args:
        ranks: Of the trainer.
        heads: In what trainer and generator compute their logits, "float32" and the like; "" where that is not known.
        is_stale: Whether the generator's head has other weights than the trainer's; None where it cannot be read.
    """

    def __init__(
        self, ranks: Ranks, heads: tuple[str, str], is_stale: Callable[[], bool | None] = lambda: None
    ) -> None:
        self._ranks = ranks
        self._heads = heads
        self._is_stale = is_stale
        self._first: Figures | None = None
        self._last: Figures | None = None
        self._large = 0

    def watch(self, output: dict[str, Any]) -> None:
        """Measures a batch that was just generated, before anything is done to it."""
        found = measured(output, self._ranks)
        if found is None or found.tokens == 0:
            return
        self._last = found
        if self._first is None:
            self._first = found
            self._report(found)
        stale = self._is_stale()
        if stale or found.mean > min(max(FACTOR * self._first.mean, LEAST), MOST):
            self._large += 1
            # Said the 1st, 2nd, 4th, 8th … time: it is to be seen, not to fill the log.
            if self._ranks.is_main and self._large & (self._large - 1) == 0:
                logger.warning(
                    "trainer and generator: expected log-probabilities about as near as at the start (%.2g nats a "
                    "token); got %.2g (largest %.2g) after a weight update: the generator holds other weights, as a "
                    "stale head does (%d times so far)",
                    self._first.mean,
                    found.mean,
                    found.largest,
                    self._large,
                )

    def state(self) -> list[float]:
        """The first batch's figures, for a checkpoint; empty before there is one."""
        return [] if self._first is None else [float(value) for value in self._first]

    def load(self, state: Any) -> None:
        """Takes over what `state` gave; None is that of a run before there was any.

        Raises:
            CheckpointError: It cannot be right.
        """
        match state:
            case None | []:
                self._first = None
            case [float(mean), float(largest), float(kl), float(tokens)] if min(mean, largest, kl, tokens) >= 0:
                self._first = Figures(mean, largest, kl, int(tokens))
            case _:
                raise CheckpointError(f"mismatch: expected four figures; got {str(state)[:80]}")

    def metrics(self) -> dict[str, float]:
        """Of the last batch; nothing before there is one."""
        if self._last is None:
            return {}
        mean, largest, kl, _ = self._last
        return {
            "mismatch/mean": mean,
            "mismatch/largest": largest,
            "mismatch/kl": kl,
            "mismatch/stale": float(self._large),
        }

    def _report(self, found: Figures) -> None:
        if not self._ranks.is_main:
            return
        ours, theirs = self._heads
        text = "trainer and generator differ by %.2g nats a token (largest %.2g, KL %.2g) on %d tokens"
        if ours and theirs and ours != theirs and "float32" in self._heads:
            logger.warning(
                text + ": the trainer's head is in %s, the generator's in %s. FP32 on one side only can be worse than "
                "on neither: set recipe.fp32_head, and CURRICULA_FP32_HEAD=1 for vLLM (for a server, where `python -m "
                "curricula_vllm serve` is started), or leave out both",
                *found,
                ours,
                theirs,
            )
        else:
            logger.info(text, *found)
            print(f"curricula: {text % found}", flush=True)  # as the banner: few scripts show what is logged at INFO
