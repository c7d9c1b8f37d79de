"""How many tokens a rollout may have: the trainer's limit, and what its generator can hold of prompt and rollout."""

from typing import Any

import torch

from curricula_trl.ranks import Ranks


class Room:
    """Of one trainer.

    Args:
        ranks: Of the trainer.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._longest: int | None = None
        self._looked = False

    def longest(self, trainer: Any) -> int | None:
        """Most tokens of prompt and rollout; None where nothing says so. Every rank has to ask, the first time."""
        if not self._looked:
            self._longest, self._looked = self._found(trainer), True
        return self._longest

    def limits(self, trainer: Any, output: dict[str, Any]) -> list[int | None]:
        """Most tokens of each of this rank's rollouts; None where it is not known. Every rank has to ask.

        Args:
            trainer: The trainer.
            output: What its generation returned.
        """
        longest, most = self.longest(trainer), _most(trainer)
        if longest is None:
            return [most] * len(output["prompt_mask"])
        prompts: torch.Tensor = output["prompt_mask"].sum(dim=1)
        rooms = [longest - prompt for prompt in prompts.tolist()]
        return [room if most is None else min(most, room) for room in rooms]

    def _found(self, trainer: Any) -> int | None:
        if not getattr(trainer, "use_vllm", False):
            return None
        generation = trainer.vllm_generation
        if trainer.vllm_mode != "server":
            return int(generation.llm.llm_engine.model_config.max_model_len)

        def ask() -> int | None:
            client = generation.vllm_client
            try:
                served = client._get(f"{client.base_url}/v1/models").get("data")
            except Exception as error:
                if not str(error).startswith("Request failed: 404"):  # TRL's text: it has no class for it
                    raise
                served = None
            return served[0].get("max_model_len") if served else None

        return self._ranks.from_main(ask)


def _most(trainer: Any) -> int | None:
    if getattr(trainer, "rollout_func", None) is not None:
        return None  # it has limits of its own
    if not getattr(trainer, "use_vllm", False):
        return trainer.generation_config.max_new_tokens
    return (trainer.args.generation_kwargs or {}).get("max_tokens", trainer.max_completion_length)
