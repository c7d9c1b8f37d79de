"""The head of the generator: in FP32 where asked for, and never older than the weights."""

from typing import Any

import torch
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

from curricula.errors import CurriculaRuntimeError

# From 0.26 on the head's dtype is an attribute; before it, the projection is a method to override.
HAS_DTYPE = hasattr(LogitsProcessor, "_apply_head")


class FP32Head(LogitsProcessor):
    """vLLM's logits processor, projecting in float32 whatever the dtype of the model."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.head_dtype = torch.float32

    if not HAS_DTYPE:

        def _get_logits(self, hidden_states: Any, lm_head: Any, embedding_bias: Any, skip_gather: bool = False) -> Any:
            if not isinstance(lm_head.quant_method, UnquantizedEmbeddingMethod):
                raise CurriculaRuntimeError(
                    f"an FP32 head: expected a head that is not quantised; got {type(lm_head.quant_method).__name__}"
                )
            bias = None if embedding_bias is None else embedding_bias.float()
            logits = torch.nn.functional.linear(hidden_states.float(), lm_head.weight.float(), bias)
            gathered = self._gather_logits(logits)
            return None if gathered is None else gathered[..., : self.org_vocab_size]


def force_fp32() -> None:
    """Has vLLM build `FP32Head` for every model of this process; again is nothing.

    Raises:
        CurriculaRuntimeError: This vLLM has no such layer to replace, or another plugin has replaced it.
    """
    from vllm.model_executor.custom_op import op_registry_oot

    other = op_registry_oot.get("LogitsProcessor")
    if other is FP32Head:
        return
    if other is not None:
        raise CurriculaRuntimeError(
            f"an FP32 head: expected vLLM's own logits processor; another plugin has put {other.__name__} in its "
            "place: unset CURRICULA_FP32_HEAD, or leave that plugin out (VLLM_PLUGINS)"
        )
    if not hasattr(LogitsProcessor, "register_oot") or not hasattr(LogitsProcessor, "_get_logits"):
        from vllm import __version__

        raise CurriculaRuntimeError(
            f"an FP32 head: expected a vLLM from 0.22 to 0.31; got {__version__}, whose head cannot be replaced: unset "
            "CURRICULA_FP32_HEAD, or install another vLLM"
        )
    LogitsProcessor.register_oot(FP32Head)


def refresh(model: torch.nn.Module) -> None:
    """Packs the heads anew: on CPU vLLM keeps a packed copy, and leaves that of a tied head as it was when it loads."""
    for module in model.modules():
        method: Any = getattr(module, "quant_method", None)
        if isinstance(method, UnquantizedEmbeddingMethod):
            method.process_weights_after_loading(module)


def head_dtype(generation: Any) -> str:
    """In what the generator of TRL's `VLLMGeneration` computes its logits, as "float32"; "" where that is not shown.

    A server shows it where it was started with `--hf-overrides '{"head_dtype": ...}'`, as `python -m curricula_vllm
    serve` does for an FP32 head from vLLM 0.26 on. One that shows none may have it by CURRICULA_FP32_HEAD all the same.
    """
    if generation.mode == "colocate":
        model = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
        for module in model.modules():
            if isinstance(module, LogitsProcessor):
                found = getattr(module, "head_dtype", None)
                return str(found or next(model.parameters()).dtype).removeprefix("torch.")
        return ""
    client = getattr(generation, "vllm_client", None)
    if client is None:
        return ""
    shown = client.get_server_info().get("model_config") or {}
    overrides = shown.get("hf_overrides")
    found = overrides.get("head_dtype") if isinstance(overrides, dict) else None
    return str((shown.get("dtype") if found == "model" else found) or "").removeprefix("torch.")


def model_dtype(generation: Any) -> str:
    """What the generator of TRL's `VLLMGeneration` keeps its weights in, as "bfloat16"; "" where that is not shown."""
    if generation.mode == "colocate":
        model = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
        return str(next(model.parameters()).dtype).removeprefix("torch.")
    client = getattr(generation, "vllm_client", None)
    shown = {} if client is None else client.get_server_info().get("model_config") or {}
    return str(shown.get("dtype") or "").removeprefix("torch.")


def holds(generation: Any, weight: torch.Tensor, rows: int = 64) -> bool | None:
    """Whether the engine of TRL's `VLLMGeneration` in this process has these weights as its head.

    Args:
        generation: In colocate mode, on one device, and awake.
        weight: Shape (vocabulary, hidden), the trainer's.
        rows: How many rows are compared, spread over the vocabulary; exactly, in the engine's dtype.

    Returns:
        None where the engine has no such head, or has it asleep or quantised.
    """
    if getattr(generation, "_llm_weights_sleeping", False):
        return None
    model = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
    head = getattr(model, "lm_head", None)
    own = getattr(head, "weight", None)
    if own is None or not own.is_floating_point() or own.dim() != 2 or own.shape[1] != weight.shape[1]:
        return None
    chosen = torch.linspace(0, min(len(own), len(weight)) - 1, rows).long()
    theirs = weight.detach()[chosen.to(weight.device)].to(own.device, own.dtype)
    return bool(torch.equal(own.detach()[chosen.to(own.device)], theirs))
