"""Showing the policy to a predictor that reads it."""

from typing import Any

from curricula import CurriculaValueError, Curriculum


def reads_policy(curriculum: Curriculum) -> bool:
    """Whether the predictor reads the policy, so that it must not work while the trainer does."""
    return curriculum.predictor is not None and curriculum.predictor.foreground


def show_policy(trainer: Any, curriculum: Curriculum) -> None:
    """Give the policy to a predictor that reads it; a resumed curriculum has built its predictor anew.

    Raises:
        CurriculaValueError: The policy is spread over the ranks, and the predictor runs on one.
    """
    predictor = curriculum.predictor
    if predictor is None or not predictor.foreground:
        return
    if getattr(trainer, "is_fsdp_enabled", False) or getattr(trainer, "is_deepspeed_enabled", False):
        raise CurriculaValueError(
            "curriculum.predictor: expected a policy that is whole on rank 0, for policy_head to read; got one that "
            "FSDP or DeepSpeed spreads over the ranks; choose hashed_text or frozen_encoder"
        )
    predictor.bind(trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class)
