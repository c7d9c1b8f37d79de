"""The trainer's half of an FP32 head: logits in 32 bits, whatever the rest of the model is in.

TRL has this as `cast_lm_head_to_fp32`, at construction; with LoRA on a model whose head is tied to its embeddings that
raises AttributeError. Here it is done to a trainer that is built, with TRL's own fused head, and works there too.
"""

from typing import Any

import torch
from torch import nn

from curricula import CurriculaValueError

_DONE = "_curricula_fp32_head"
"""On a trainer: its logits are in 32 bits. On a head: its forward is."""


def fp32_head(trainer: Any) -> None:
    """Computes the logits of the policy, and of the reference model where there is one, in 32 bits; for good.

    Raises:
        CurriculaValueError: An adapter sits on the head, or the model has none.

    Source: ScaleRL, arXiv 2510.13786, section 3.2 ("FP32 precision at the LM head").
    """
    if _is_done(trainer):
        return
    unwrap = trainer.accelerator.unwrap_model
    outputs = ("log_probs", "entropy")
    for model, fields in ((trainer.model, outputs), (getattr(trainer, "ref_model", None), outputs[:1])):
        if model is not None:
            base = _base(unwrap(model))
            _cast(base)
            # For each trainer anew: each puts a head of its own on the model when it is built.
            _fuse(base, trainer.temperature, fields)
    setattr(trainer, _DONE, True)
    if getattr(trainer, "use_transformers_continuous_batching", False):
        trainer.args.cast_lm_head_to_fp32 = True  # TRL casts the model to generate, and asks this for the head


def head_dtype(trainer: Any) -> str:
    """In what the trainer computes its logits, as "float32"."""
    if _is_done(trainer):
        return "float32"
    base = _base(trainer.accelerator.unwrap_model(trainer.model))
    return _mixed(trainer) or str(base.get_output_embeddings().weight.dtype).removeprefix("torch.")


def model_dtype(trainer: Any) -> str:
    """In what the trainer computes all but its logits, as "bfloat16"."""
    return _mixed(trainer) or str(_base(trainer.accelerator.unwrap_model(trainer.model)).dtype).removeprefix("torch.")


def _mixed(trainer: Any) -> str:
    return {"bf16": "bfloat16", "fp16": "float16"}.get(str(trainer.accelerator.mixed_precision), "")


def _is_done(trainer: Any) -> bool:
    return bool(getattr(trainer.args, "cast_lm_head_to_fp32", False) or getattr(trainer, _DONE, False))


def _base(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _cast(model: nn.Module) -> None:
    head = model.get_output_embeddings()  # type: ignore[operator]
    if head is None:
        raise CurriculaValueError(
            f"recipe.fp32_head: expected a model with a head of logits; got {type(model).__name__}; set it to false"
        )
    if not isinstance(head, nn.Linear):
        raise CurriculaValueError(
            f"recipe.fp32_head: expected a head without an adapter; got {type(head).__name__}: remove lm_head from "
            "LoRA's target_modules and modules_to_save, or set fp32_head to false"
        )
    if getattr(head, _DONE, False):
        return
    from curricula_vllm.projection import in_fp32

    before = head.weight.dtype
    head.float()
    setattr(head, _DONE, True)
    head.forward = in_fp32(head)
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    if before != torch.float32 and getattr(embedding, "weight", None) is head.weight:
        # Tied: the embedding's weights are the head's, and what it gives has to stay as it was.
        embedding.register_forward_hook(lambda _, __, output: output.to(before))


def _fuse(model: nn.Module, temperature: float, outputs: tuple[str, ...]) -> None:
    # The last one put on answers; TRL's own, put on at construction, stays beneath and is not called.
    from trl.trainer.utils import add_fused_lm_head

    add_fused_lm_head(model, temperature=temperature, cast_lm_head_to_fp32=True, outputs=outputs)  # type: ignore[arg-type]
