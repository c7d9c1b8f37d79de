"""How many tokens of prompt and rollout a generator can hold."""

from typing import Any

from curricula_trl.ranks import Ranks


def longest_of(trainer: Any, ranks: Ranks) -> int | None:
    """The limit of the trainer's engine or server; None where nothing says so. Every rank has to ask."""
    if not trainer.use_vllm:
        return None
    generation = trainer.vllm_generation
    if trainer.vllm_mode != "server":
        return int(generation.llm.llm_engine.model_config.max_model_len)

    def ask() -> int | None:
        client = generation.vllm_client
        (served, *_) = client._get(f"{client.base_url}/v1/models")["data"]
        return served.get("max_model_len")

    return ranks.from_main(ask)
