"""Updates that the generator does not get: the trainer's weights in 32 bits, vLLM's in bf16, a small learning rate."""

import logging
from typing import Any

import torch

from curricula_trl.ranks import Ranks

logger = logging.getLogger("curricula")


def warn_of_vanishing(trainer: Any, ranks: Ranks) -> None:
    """Says once, as a run is attached, where most updates vanish as the weights are rounded to the generator's bf16.

    An estimate on a sample of the weights that are trained, for steps of the learning rate's size. Adapters are passed
    over: what the generator gets is their product, merged into other weights.
    """
    if not ranks.is_main or not getattr(trainer, "use_vllm", False):
        return
    from curricula_vllm.head import model_dtype
    from curricula_vllm.precision.rounding import MOST_LOST, surviving_share

    policy = trainer.accelerator.unwrap_model(trainer.model)
    trained = [weight for weight in policy.parameters() if weight.requires_grad and weight.dtype == torch.float32]
    if not trained or hasattr(policy, "peft_config") or model_dtype(trainer.vllm_generation) != "bfloat16":
        return
    rate = trainer.args.learning_rate
    share = surviving_share(trained, rate, torch.bfloat16)
    if share is not None and 1 - share > MOST_LOST:
        logger.warning(
            "trainer and generator: at a learning rate of %g about %.1f%% of the updates of float32 weights vanish "
            "when they are rounded to vLLM's bfloat16, until they add up. `curricula precision MODEL` measures how far "
            "that takes it from the trainer; recipe.ratio: generator weighs by what was sampled from, and vLLM in "
            "float16 or float32 loses fewer",
            rate,
            100 * (1 - share),
        )
