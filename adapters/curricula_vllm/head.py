"""The head of the generator: in FP32 where asked for, and never older than the weights."""

from typing import Any

import torch
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

from curricula.errors import CurriculaRuntimeError
from curricula_vllm.plugin import FP32_HEAD, fp32_head_is_asked
from curricula_vllm.reading import engine_model, parts, shows_head

# From 0.26 on the head's dtype is an attribute; before it, the projection is a method to override.
HAS_DTYPE = hasattr(LogitsProcessor, "_apply_head")


class FP32Head(LogitsProcessor):
    """vLLM's logits processor, projecting in float32 whatever the dtype of the model, where it is asked for.

    That is decided for each engine as it is built: vLLM loads its plugins once a process, and what takes the place of a
    layer stays there.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        if fp32_head_is_asked():
            self.head_dtype = torch.float32

    if not HAS_DTYPE:

        def _get_logits(self, hidden_states: Any, lm_head: Any, embedding_bias: Any, skip_gather: bool = False) -> Any:
            if getattr(self, "head_dtype", None) != torch.float32:
                return super()._get_logits(hidden_states, lm_head, embedding_bias, skip_gather)
            if not isinstance(lm_head.quant_method, UnquantizedEmbeddingMethod):
                raise CurriculaRuntimeError(
                    f"an FP32 head: expected a head that is not quantised; got {type(lm_head.quant_method).__name__}: "
                    f"unset {FP32_HEAD}, or quantise all but the head"
                )
            gathered = self._gather_logits(_in_fp32(hidden_states, lm_head.weight, embedding_bias))
            return None if gathered is None else gathered[..., : self.org_vocab_size]


def _in_fp32(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Logits in float32. A GPU sums into it from 16 bits, as later versions of vLLM; else the weights are copied."""
    bias = None if bias is None else bias.float()
    if not hidden.is_cuda or hidden.dtype != weight.dtype or hidden.dtype not in (torch.float16, torch.bfloat16):
        return torch.nn.functional.linear(hidden.float(), weight.float(), bias)
    logits = torch.mm(hidden.reshape(-1, hidden.shape[-1]), weight.t(), out_dtype=torch.float32)
    logits = logits if bias is None else logits + bias
    return logits.reshape(*hidden.shape[:-1], -1)


def force_fp32() -> None:
    """Has vLLM build `FP32Head` for every model of this process from now on; again is nothing.

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

    A server shows it where it was started by `python -m curricula_vllm serve`, or with `--hf-overrides '{"head_dtype":
    ...}'`. One that shows none may have it in float32 all the same, by CURRICULA_FP32_HEAD.

    Raises:
        CurriculaRuntimeError: An engine in this process has no FP32 head, although the environment asks for one.
    """
    if generation.mode == "colocate":
        model = engine_model(generation)
        for module in model.modules():
            if isinstance(module, LogitsProcessor):
                dtype = getattr(module, "head_dtype", None) or next(model.parameters()).dtype
                found = str(dtype).removeprefix("torch.")
                if fp32_head_is_asked() and found != "float32":
                    raise CurriculaRuntimeError(
                        f"an FP32 head: expected vLLM's in float32, as {FP32_HEAD}=1 asks; got {found}: vLLM loads "
                        "plugins once a process, or leaves them out (VLLM_PLUGINS): set it before the process starts"
                    )
                return found
        return ""
    client = getattr(generation, "vllm_client", None)
    if client is None:
        return ""
    shown = client.get_server_info().get("model_config") or {}
    overrides = shown.get("hf_overrides")
    found = overrides.get("head_dtype") if isinstance(overrides, dict) else None
    found = shown.get("dtype") if found == "model" else found
    if not found and shows_head(generation) and (held := parts(generation, [0], [0])):
        found = held[0].computes
    return str(found or "").removeprefix("torch.")


def model_dtype(generation: Any) -> str:
    """What the generator of TRL's `VLLMGeneration` keeps its weights in, as "bfloat16"; "" where that is not shown."""
    if generation.mode == "colocate":
        return str(next(engine_model(generation).parameters()).dtype).removeprefix("torch.")
    client = getattr(generation, "vllm_client", None)
    shown = {} if client is None else client.get_server_info().get("model_config") or {}
    return str(shown.get("dtype") or "").removeprefix("torch.")
