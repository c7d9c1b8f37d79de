"""How many devices a run takes: one for each rank, and those of a vLLM server, which says how many workers it has."""

import logging
from typing import Any

from curricula_trl.ranks import Ranks

logger = logging.getLogger("curricula")


def count_devices(trainer: Any, ranks: Ranks, given: int | None) -> int:
    """Devices of trainer and generator together, on rank 0.

    Args:
        trainer: The trainer.
        ranks: Of it.
        given: What the mix says they are (`monitor.devices`); None to count them.
    """
    if given is not None:
        return given
    client = getattr(getattr(trainer, "vllm_generation", None), "vllm_client", None)
    if client is None:
        return ranks.world_size
    try:
        return ranks.world_size + int(client.get_world_size())
    except Exception as error:  # a server of another version, or one that is away: the run goes on
        logger.warning(
            "the vLLM server does not say how many devices it has (%s): gpu_hours counts the trainer's %d alone; set "
            "monitor.devices to those of both",
            " ".join(f"{type(error).__name__}: {error}".split())[:200],
            ranks.world_size,
        )
        return ranks.world_size
