"""Trainer against generator: how far apart their log-probabilities of the sampled tokens are, after each update.

TRL computes the trainer's for every batch that vLLM generated, unless its importance correction is off, so the
comparison costs a gather of a few numbers; with the head read, less than a hundredth of a step
(tests/benchmarks/test_mismatch_cost.py). The first batch of a run is generated before any update: what differs there is
arithmetic, and is what later ones are held against, those of a resumed run too. Where an update left the generator's
head behind, the head itself shows it (`heads`), however small the step was; other weights show in the log-probabilities
alone.
"""

import logging
from typing import Any, NamedTuple

import torch

from curricula import CheckpointError
from curricula.apart import apart
from curricula_trl.fp32 import head_dtype, model_dtype
from curricula_trl.heads import Heads
from curricula_trl.merge import loss_mask
from curricula_trl.ranks import Ranks

logger = logging.getLogger("curricula")

FACTOR, MOST = 4.0, 0.2
"""A mean difference is too large above FACTOR times the first batch's, where it is above LEAST; and above MOST nats,
several times what arithmetic in 16 bits made of any model that was measured."""
LEAST = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
"""Nats a token, by the coarser dtype of the two sides. Healthy runs of 40 large steps, after which logits are large,
reached 1.3e-5 in float32 (50 times the first batch) and 1.8e-2 in bfloat16. In float16 none was run: it has three bits
more than bfloat16, so 1.8e-2 is 2.3e-3 there, and it is given twice that."""

_CAUSES = ("head", "start", "update")
_ALONE = "a stale head is seen by its log-probabilities alone"


class Differences(NamedTuple):
    """Of the log-probabilities of the tokens of a batch, over all ranks.

    Attributes:
        mean: Mean absolute difference of the log-probabilities, in nats.
        largest: The largest.
        kl: Estimate of KL(generator || trainer) a token (`curricula.apart`).
        tokens: How many.
        left_out: Tokens in the loss beside them, without a number on one side.
    """

    mean: float
    largest: float
    kl: float
    tokens: int
    left_out: int


class Sides(NamedTuple):
    """What trainer and generator compute in, as "float32"; "" where that is not known."""

    head: str
    generator_head: str
    model: str = ""
    generator: str = ""

    @property
    def least(self) -> float:
        """Difference of the log-probabilities below which nothing is said, in nats a token."""
        return max(LEAST.get(dtype, LEAST["bfloat16"]) for dtype in (self.model, self.generator))


def measured(output: dict[str, Any], ranks: Ranks) -> Differences | None:
    """Differences of a batch on all ranks; None where one side gave no log-probabilities."""
    sampled, trained = output.get("sampling_per_token_logps"), output.get("old_per_token_logps")
    if sampled is None or trained is None:
        return None
    inside = loss_mask(output) != 0
    both = torch.stack([sampled, trained])[:, inside].cpu().double().numpy()
    differences, terms, known = apart(*both)
    largest = differences.max(initial=0.0)
    mine = [differences.sum(), terms.sum(), terms.size, known.size - terms.size, largest]
    table = ranks.gather(torch.tensor([mine], dtype=torch.float64, device=sampled.device)).cpu()
    total, divergence, count, left_out = table[:, :4].sum(dim=0).tolist()
    return Differences(
        total / max(count, 1), float(table[:, 4].max()), divergence / max(count, 1), int(count), int(left_out)
    )


def sides_of(trainer: Any, ranks: Ranks) -> Sides:
    """What a trainer and its generator compute in; the generator is asked on the first rank."""
    if not getattr(trainer, "use_vllm", False) or not ranks.is_main:
        return Sides(head_dtype(trainer), "", model_dtype(trainer))
    from curricula_vllm.head import head_dtype as generator_head_dtype
    from curricula_vllm.head import model_dtype as generator_dtype

    generation = trainer.vllm_generation
    return Sides(
        head_dtype(trainer), generator_head_dtype(generation), model_dtype(trainer), generator_dtype(generation)
    )


class Mismatch:
    """Keeps the first batch's figures, and says when later ones are not arithmetic any more.

    Args:
        ranks: Of the trainer.
        sides: What both compute in; those of the first rank are used by all.
        heads: Looks at the head of this rank's generator; on every rank or on none.
        uses_vllm: Whether the generator is one that gives log-probabilities.
    """

    def __init__(self, ranks: Ranks, sides: Sides, heads: Heads | None = None, uses_vllm: bool = True) -> None:
        self._ranks, self._sides, self._heads = ranks, sides, heads
        self._uses_vllm = uses_vllm
        self._first: Differences | None = None
        self._last: Differences | None = None
        self._counts: dict[str, int] = dict.fromkeys(_CAUSES, 0)
        self._left_out = 0
        # Of this process, and so not saved: a run that is resumed says how it begins, too.
        self._reported = self._said_unread = False
        self._shared = False

    def watch(self, output: dict[str, Any]) -> None:
        """Measures a batch that was just generated, before anything is done to it."""
        if not self._shared:
            self._sides, self._shared = Sides(*self._ranks.from_main(lambda: list(self._sides))), True
        stale = self._stale_ranks(output)
        found = measured(output, self._ranks)
        if found is not None and (found.tokens or found.left_out):
            self._last = found if found.tokens else None
            self._note_left_out(found)
        if found is not None and found.tokens and self._first is None:
            self._first = found
        if not self._reported and (self._uses_vllm if found is None else found.tokens or found.left_out):
            self._reported = True
            self._report(found)
        self._note_unread()
        if stale:
            self._warn("head", found, f"{', '.join(map(str, stale))} of {self._ranks.world_size}")
        elif found is not None and found.tokens and self._first is not None and found.mean > self._limit(self._first):
            self._warn("start" if self._first.mean > MOST else "update", found, "")

    def state(self) -> dict[str, Any]:
        """The account, as JSON."""
        first, last = ([] if found is None else list(found) for found in (self._first, self._last))
        return {"first": first, "last": last, "counts": dict(self._counts), "left_out": self._left_out}

    def load(self, state: Any) -> None:
        """Takes over what `state` gave; None is that of a run before there was any.

        Raises:
            CheckpointError: It cannot be right.
        """
        match state if state is not None else Mismatch(self._ranks, self._sides).state():
            case {"first": first, "last": last, "counts": dict(counts), "left_out": int(left_out)} if (
                _may_be_figures(first)
                and _may_be_figures(last)
                and set(counts) == set(_CAUSES)
                and all(type(count) is int and count >= 0 for count in (*counts.values(), left_out))
            ):
                self._first, self._last = (Differences(*found) if found else None for found in (first, last))
                self._counts, self._left_out = dict(counts), left_out
            case _:
                raise CheckpointError(
                    f"mismatch: expected its saved account; got {str(state)[:80]}; resume from an older checkpoint"
                )

    def metrics(self) -> dict[str, float]:
        """Of the last batch, where a token had a number on both sides, and counts since the start."""
        stale = {"mismatch/stale": float(sum(self._counts.values()))}
        left_out = {"mismatch/left_out": float(self._left_out)}
        if self._last is None:
            return (stale if sum(self._counts.values()) else {}) | (left_out if self._left_out else {})
        mean, largest, kl, *_ = self._last
        return {"mismatch/mean": mean, "mismatch/largest": largest, "mismatch/kl": kl, **stale, **left_out}

    def _limit(self, first: Differences) -> float:
        return min(max(FACTOR * first.mean, self._sides.least), MOST)

    def _stale_ranks(self, output: dict[str, Any]) -> list[int]:
        """Ranks whose generator has another head than it was sent."""
        if self._heads is None:
            return []
        mine = self._ranks.together("generator's head", self._heads.is_stale)
        device = output["completion_mask"].device
        flags = self._ranks.gather(torch.tensor([mine is True], dtype=torch.int64, device=device)).tolist()
        return [rank for rank, flag in enumerate(flags) if flag]

    @property
    def _unread(self) -> str:
        """Why a stale head would not be seen as one; "" where it would, or there was nothing to look at yet."""
        if self._heads is not None:
            return self._heads.unread
        return "TRL's generator has no sync_weights or _iter_named_params to look at" if self._uses_vllm else ""

    def _note_unread(self) -> None:
        if self._said_unread or not (why := self._unread):
            return
        self._said_unread = True
        if self._ranks.is_main:
            logger.warning("trainer and generator: %s; %s (said once)", why, _ALONE)

    def _note_left_out(self, found: Differences) -> None:
        if found.left_out and not self._left_out and self._ranks.is_main:
            logger.warning(
                "trainer and generator: %d of %d tokens have no finite log-probability on one side (-9999 from vLLM is "
                "none) and are left out of the comparison; mismatch/left_out counts them (said once)",
                found.left_out,
                found.tokens + found.left_out,
            )
        self._left_out += found.left_out

    def _warn(self, cause: str, found: Differences | None, where: str) -> None:
        self._counts[cause] += 1
        times = self._counts[cause]
        # Said the 1st, 2nd, 4th, 8th … time: it is to be seen, not to fill the log.
        if not self._ranks.is_main or times & (times - 1) != 0:
            return
        first, apart_by = self._first, ""
        if found is not None and found.tokens:
            apart_by = f"{found.mean:.2g} nats a token, the largest {found.largest:.2g}"
        if cause == "head":
            logger.warning(
                "trainer and generator: the generator's head holds other weights than it was sent at the last update, "
                "on rank %s%s: a stale head (%d times so far)",
                where,
                f"; log-probabilities are apart by {apart_by}" if apart_by else "",
                times,
            )
        elif cause == "start":
            logger.warning(
                "trainer and generator: expected log-probabilities apart by %.2g nats a token at most; got %s, and as "
                "much in the first batch, before any update: does vLLM load the model that is trained, and sample from "
                "all of its distribution (top_p, top_k, min_p, repetition_penalty)? (%d times so far)",
                MOST,
                apart_by,
                times,
            )
        elif first is not None:
            logger.warning(
                "trainer and generator: expected log-probabilities apart by %.2g nats a token at most, as arithmetic "
                "explains (%.2g in the first batch); got %s after a weight update: the generator holds other weights, "
                "as where an update did not reach it (%d times so far)",
                self._limit(first),
                first.mean,
                apart_by,
                times,
            )

    def _report(self, found: Differences | None) -> None:
        if not self._ranks.is_main:
            return
        ours, theirs = self._sides[:2]
        if found is None:
            text = (
                "trainer and generator: log-probabilities are not compared, as TRL computes the trainer's only with "
                "vllm_importance_sampling_correction"
            )
        elif not found.tokens:
            text = "trainer and generator: log-probabilities are not compared yet, as no token has one on both sides"
        else:
            text = "trainer and generator differ by {:.2g} nats a token (largest {:.2g}, KL {:.2g}) on {} tokens"
            text = text.format(*found)
        if why := self._unread:
            self._said_unread, text = True, f"{text}; {why}; {_ALONE}"
        if ours and theirs and ours != theirs and "float32" in (ours, theirs):
            logger.warning(
                "%s: the trainer's head is in %s, the generator's in %s. FP32 on one side only can be worse than on "
                "neither: set recipe.fp32_head, and CURRICULA_FP32_HEAD=1 for vLLM (for a server, where `python -m "
                "curricula_vllm serve` is started), or leave out both",
                text,
                ours,
                theirs,
            )
        else:
            logger.info("%s", text)
            print(f"curricula: {text}", flush=True)  # as the banner: few scripts show what is logged at INFO


def _may_be_figures(found: object) -> bool:
    match found:
        case []:
            return True
        case [float(mean), float(largest), float(kl), int(tokens), int(left_out)]:
            return min(mean, largest, kl, tokens, left_out) >= 0
        case _:
            return False
