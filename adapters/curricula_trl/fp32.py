"""The trainer's half of an FP32 head: logits in 32 bits, whatever the rest of the model is in.

TRL has this as `cast_lm_head_to_fp32`, at construction; with LoRA on a model whose head is tied to its embeddings that
raises AttributeError. Here it is done to a trainer that is built, with TRL's own fused head, and works there too.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from curricula import CurriculaValueError

_DONE = "_curricula_fp32_head"


def fp32_head(trainer: Any) -> None:
    """Computes the logits of the policy, and of the reference model where there is one, in 32 bits; done once.

    Raises:
        CurriculaValueError: An adapter sits on the head, or the model has none.

    Source: ScaleRL, arXiv 2510.13786, section 3.2 ("FP32 precision at the LM head").
    """
    if trainer.args.cast_lm_head_to_fp32:
        return  # TRL did it
    policy = trainer.accelerator.unwrap_model(trainer.model)
    outputs = ("log_probs", "entropy")
    for model, fields in ((policy, outputs), (getattr(trainer, "ref_model", None), outputs[:1])):
        if model is not None:
            base = model.get_base_model() if hasattr(model, "get_base_model") else model
            if not getattr(base, _DONE, False):
                _cast(base)
                _fuse(base, trainer.temperature, fields)
                setattr(base, _DONE, True)


def head_dtype(trainer: Any) -> str:
    """In what the trainer computes its logits, as "float32"."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if trainer.args.cast_lm_head_to_fp32 or getattr(base, _DONE, False):
        return "float32"
    mixed = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(trainer.accelerator.mixed_precision)
    return str(mixed or base.get_output_embeddings().weight.dtype).removeprefix("torch.")


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
    before = head.weight.dtype
    head.float()

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.float(), head.weight, head.bias)

    head.forward = forward
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    if before != torch.float32 and getattr(embedding, "weight", None) is head.weight:
        # Tied: the embedding's weights are the head's, and what it gives has to stay as it was.
        embedding.register_forward_hook(lambda _, __, output: output.to(before))


def _fuse(model: nn.Module, temperature: float, outputs: tuple[str, ...]) -> None:
    # The last one put on answers; TRL's own, put on at construction, stays beneath and is not called.
    from trl.trainer.utils import add_fused_lm_head

    add_fused_lm_head(model, temperature=temperature, cast_lm_head_to_fp32=True, outputs=outputs)  # type: ignore[arg-type]
