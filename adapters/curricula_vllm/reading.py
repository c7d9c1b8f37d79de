"""What the generator's head holds: some of its weights, read in this process or, of a server, in its workers.

On a CPU vLLM computes with a packed copy of the head, which an update may leave behind. There the head is read as it
computes: from a hidden state that is 1 at one place and 0 elsewhere it makes a column of its weights, to the bit.

A server reads its head where it was started with `--worker-extension-cls curricula_vllm.reading.Extension`, as `python
-m curricula_vllm serve` does.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from curricula_vllm.plugin import EXTENSION

_HEADS = (("lm_head",), ("embed_out",), ("output",), ("model", "embed_tokens"))
"""Where vLLM's models have their head; those of Gemma 2 and 3n and of Cohere have none but their embeddings."""


_PLAIN = (torch.float32, torch.float16, torch.bfloat16)
"""Weights that are what they hold: those in 8 bits have scales beside them."""


class Part(NamedTuple):
    """What one worker holds of a head.

    Attributes:
        places: Which of the rows that were asked for it holds.
        values: Shape (places, columns), float32.
        dtype: Of the weights.
        computes: Dtype of the logits.
    """

    places: list[int]
    values: torch.Tensor
    dtype: str
    computes: str


class Extension:
    """A method that vLLM's workers gain."""

    def curricula_head(self, rows: list[int], columns: list[int]) -> dict[str, Any] | None:
        """As `read`, in JSON."""
        part = read(self.model_runner.model, rows, columns)  # type: ignore[attr-defined]
        return None if part is None else {**part._asdict(), "values": part.values.tolist()}


def shows_head(generation: Any) -> bool:
    """Whether the engine of TRL's `VLLMGeneration` can be asked: in this process always, a server by `Extension`."""
    if generation.mode == "colocate":
        return True
    client = getattr(generation, "vllm_client", None)
    shown = {} if client is None else client.get_server_info().get("parallel_config") or {}
    return shown.get("worker_extension_cls") == EXTENSION


def engine_model(generation: Any) -> Any:
    """The model of an engine in this process, of TRL's `VLLMGeneration`."""
    return generation.llm.llm_engine.model_executor.driver_worker.model_runner.model


def parts(generation: Any, rows: Sequence[int], columns: Sequence[int]) -> list[Part]:
    """What the engine of TRL's `VLLMGeneration` holds of its head: in this process, or in all workers of a server.

    The engine has to be awake; `shows_head` says whether it can be asked.

    Args:
        generation: The generator.
        rows: Of the vocabulary, ascending.
        columns: Of the hidden state.
    """
    if generation.mode == "colocate":
        found = read(engine_model(generation), rows, columns)
        return [] if found is None else [found]
    client = generation.vllm_client
    asked = {"method": Extension.curricula_head.__name__, "args": [list(rows), list(columns)]}
    told = client._post(f"{client.base_url}/collective_rpc", json=asked)["results"]
    return [Part(**{**part, "values": torch.tensor(part["values"])}) for part in told if part is not None]


@torch.inference_mode()
def read(model: Any, rows: Sequence[int], columns: Sequence[int]) -> Part | None:
    """What a model of vLLM's holds of its head; None where it has none, or a quantised one."""
    holder = model if hasattr(model, "logits_processor") else getattr(model, "language_model", None)
    head = _head(holder)
    weight = getattr(head, "weight", None)
    if weight is None or weight.dim() != 2 or weight.dtype not in _PLAIN or weight.shape[1] <= max(columns):
        return None
    processor = getattr(holder, "logits_processor", None)
    first, last = _held(head)
    places = [place for place, row in enumerate(rows) if first <= row < last]
    local = torch.tensor([rows[place] - first for place in places], dtype=torch.long, device=weight.device)
    chosen = torch.tensor(list(columns), device=weight.device)
    if weight.device.type == "cpu" and processor is not None:
        hidden = torch.zeros(len(columns), weight.shape[1], dtype=weight.dtype)
        hidden[torch.arange(len(columns)), chosen] = 1.0
        values = _projected(processor, head, hidden)[:, local].T
    else:
        values = weight[local[:, None], chosen]
    computes = getattr(processor, "head_dtype", None) or weight.dtype
    return Part(places, values.float(), *(str(dtype).removeprefix("torch.") for dtype in (weight.dtype, computes)))


def _head(holder: Any) -> Any:
    for path in _HEADS:
        found = functools.reduce(lambda part, name: getattr(part, name, None), path, holder)
        if found is not None:
            return found
    return None


def _held(head: Any) -> tuple[int, int]:
    """First row of the vocabulary that this worker holds, and the one after its last."""
    shard = getattr(head, "shard_indices", None)
    if shard is None:
        return 0, len(head.weight)
    return shard.org_vocab_start_index, shard.org_vocab_end_index


def _projected(processor: Any, head: Any, hidden: torch.Tensor) -> torch.Tensor:
    if hasattr(processor, "_apply_head"):  # from vLLM 0.26 on
        return processor._apply_head(head, hidden, None)
    if getattr(processor, "head_dtype", None) == torch.float32:
        return hidden.float() @ head.weight.float().T
    return head.quant_method.apply(head, hidden)
