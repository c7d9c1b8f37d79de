"""What `attach` refuses, each in one line that says why and what to do."""

import logging
from typing import Any

from torch.utils.data import IterableDataset as TorchIterableDataset

from curricula import CurriculaValueError, CurriculumConfig
from curricula_trl.clipping import COUNTED

logger = logging.getLogger("curricula")

_HOOKS = ("_generate_and_score_completions", "_calculate_rewards", "_save_checkpoint", "_load_optimizer_and_scheduler")


def check_trainer(trainer: Any) -> None:
    """Refuses what is not a GRPO or RLOO trainer, and one that would not draw from a curriculum.

    Raises:
        CurriculaValueError: With the reason.
    """
    from trl import GRPOTrainer, RLOOTrainer

    name = type(trainer).__name__
    if not isinstance(trainer, (GRPOTrainer, RLOOTrainer)):
        raise CurriculaValueError(
            f"attach: expected a trl.GRPOTrainer or trl.RLOOTrainer (or a subclass); got {name}, which has no groups "
            "of rollouts to choose prompts for; use one of them"
        )
    for hook in _HOOKS:
        if hook in vars(trainer):
            raise CurriculaValueError(
                f"attach: {name}.{hook} was replaced on the instance, so the trainer would not draw from the "
                "curriculum; put the change into a subclass"
            )
    size: Any = trainer.num_generations
    if size < 2:
        raise CurriculaValueError(f"attach: a group needs at least 2 rollouts; num_generations is {size}; raise it")


def check_rewards(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses rewards that are normalised one by one, unless the mix says which of them is success.

    Raises:
        CurriculaValueError: With what to add.
    """
    aggregation: Any = getattr(trainer, "multi_objective_aggregation", "sum_then_normalize")
    if aggregation != "sum_then_normalize" and len(trainer.reward_funcs) > 1 and config.success.reward is None:
        names = ", ".join(trainer.reward_func_names)
        raise CurriculaValueError(
            f"attach: with multi_objective_aggregation={aggregation!r} rewards have no common scale, and their sum "
            f"does not say whether a group teaches; name the one that is success, success: {{reward: NAME}}, of {names}"
        )


def check_refill(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses refill where the advantages of a batch cannot be put together from those of its rounds.

    Raises:
        CurriculaValueError: With what to change.
    """
    if (config.refill.rounds or config.refill.batch == "variable") and getattr(trainer, "normalize_advantages", False):
        raise CurriculaValueError(
            "attach: refill puts a batch together from several rounds, and normalize_advantages divides each round's "
            "advantages by their own spread; set normalize_advantages=False, or leave refill out of the mix"
        )


def check_clipping(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses to count what a loss clips where that loss is not TRL's own, or clips nothing.

    Raises:
        CurriculaValueError: With what to change.
    """
    from trl import GRPOTrainer

    if not config.monitor.clipping:
        return
    # Of the instance, so that one that was replaced there is seen.
    if getattr(trainer._compute_loss, "__func__", None) is not GRPOTrainer._compute_loss:
        raise CurriculaValueError(
            f"attach: monitor.clipping knows what the losses of GRPOTrainer clip; {type(trainer).__name__} has a "
            "_compute_loss of its own; leave monitor.clipping out of the mix"
        )
    if trainer.loss_type not in COUNTED:
        raise CurriculaValueError(
            f"attach: monitor.clipping counts tokens by the bounds of their ratio; loss_type {trainer.loss_type} has "
            "none; leave monitor.clipping out of the mix"
        )


def warn_of_batching(trainer: Any) -> None:
    """Says that continuous batching on a processor makes a cache of half of the free memory in every generation."""
    batching: Any = getattr(trainer, "continuous_batching_config", None)
    if batching is not None and batching.num_blocks is None and trainer.accelerator.device.type == "cpu":
        logger.warning(
            "use_transformers_continuous_batching: on a CPU, transformers fills half of the free memory with a cache "
            "in every generation, which may take a minute; set transformers_continuous_batching_config: "
            "{num_blocks: 64, max_batch_tokens: 256}, or as much as your rollouts need"
        )


def kl_in_advantages(trainer: Any) -> bool:
    """True for RLOO with a KL penalty, which is part of its advantages: they must stay where rewards are all alike."""
    from trl import RLOOTrainer

    return isinstance(trainer, RLOOTrainer) and trainer.beta != 0.0


def overrides_generation(trainer: Any) -> bool:
    """True when a class between the curriculum and TRL has a generation method of its own, which might move rows."""
    hook = "_generate_and_score_completions"
    return any(
        hook in vars(cls) and not cls.__module__.startswith(("trl.", "curricula_trl.")) for cls in type(trainer).__mro__
    )


def check_dataset(trainer: Any) -> None:
    """Refuses data sets that rows cannot be chosen from.

    Raises:
        CurriculaValueError: With the reason.
    """
    import datasets

    dataset = trainer.train_dataset
    if dataset is None or _is_placeholder(trainer):
        raise CurriculaValueError("attach: the trainer has no train_dataset, so there are no prompts to choose from")
    if isinstance(dataset, (datasets.IterableDataset, TorchIterableDataset)) or not hasattr(dataset, "__getitem__"):
        raise CurriculaValueError(
            f"attach: {type(dataset).__name__} is a stream, and a curriculum picks prompts by row; load it as a "
            "map-style data set (datasets.load_dataset(..., streaming=False))"
        )
    least = trainer.args.generation_batch_size // trainer.num_generations
    if len(dataset) < least:
        raise CurriculaValueError(
            f"attach: the data set has {len(dataset)} prompts, fewer than one generation batch, which holds {least} "
            f"groups (generation_batch_size {trainer.args.generation_batch_size} / num_generations "
            f"{trainer.num_generations}); give at least {least} prompts, or a smaller batch"
        )


def _is_placeholder(trainer: Any) -> bool:
    # TRL stands in empty prompts where an environment brings its own data.
    if getattr(trainer, "environment_factories", None) is None:
        return False
    dataset = trainer.train_dataset
    if getattr(dataset, "column_names", None) != ["prompt"]:
        return False
    return all(row["prompt"] == [{"role": "user", "content": ""}] for row in dataset)
