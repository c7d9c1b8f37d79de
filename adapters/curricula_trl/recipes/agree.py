"""Whether a trainer is what a recipe is defined for; each refusal in one line, with both values."""

from collections.abc import Mapping
from typing import Any

from curricula import CurriculaValueError, CurriculumConfig
from curricula.config import RecipeConfig
from curricula.config.explain import config_error
from curricula_trl.recipes.presets import ARGUMENTS

_BOUNDS = ("epsilon", "epsilon_high", "delta")
_PROMPT_LOSSES = ("cispo", "dapo")
_SCALES = {True: "group", False: "none"}


def check_arguments(config: CurriculumConfig) -> None:
    """Refuses arguments under `trainer:` that contradict the recipe of the mix, and bounds of ratios that are none.

    Raises:
        ConfigError: With the key, the recipe's value and the given one.
    """
    for name, expected, given in _contradictions(config.recipe, config.trainer):
        message = (
            f"expected {expected}, of recipe {config.recipe.preset}; got {given}; remove it, or leave out the recipe"
        )
        raise config_error(config.origin, ("trainer", name), message)
    for name in _BOUNDS:
        value: Any = config.trainer.get(name)
        if isinstance(value, int | float) and value <= 0:
            message = f"expected a bound on ratios above 0; got {value:g}; change it, or leave it out"
            raise config_error(config.origin, ("trainer", name), message)


def check_trainer_arguments(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses a built trainer that a recipe's preset or parts are not defined for.

    Raises:
        CurriculaValueError: With what to change.
    """
    chosen = config.recipe
    if chosen == RecipeConfig():
        return
    from trl import GRPOTrainer

    if not isinstance(trainer, GRPOTrainer):
        raise CurriculaValueError(
            f"attach: a recipe is of GRPOTrainer's losses; got {type(trainer).__name__}, whose loss reads neither "
            "masks nor token counts; leave recipe out of the mix"
        )
    args = trainer.args
    given = {name: getattr(args, name) for name in ARGUMENTS.get(chosen.preset or "", {})}
    if given.get("epsilon_high", 0) is None:
        given["epsilon_high"] = args.epsilon
    for name, expected, value in _contradictions(chosen, given):
        raise CurriculaValueError(
            f"attach: recipe {chosen.preset} has {name} {expected}, the trainer was built with {value}; build it with "
            f'GRPOConfig(**curricula_trl.recipe("{chosen.preset}"), ...)'
        )
    _check_parts(trainer, chosen)


def _contradictions(chosen: RecipeConfig, given: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Name, the preset's value, and the given one, of each argument that is given and is not the preset's."""
    expected = ARGUMENTS.get(chosen.preset or "", {})
    found: list[tuple[str, str, Any]] = []
    for name, argument in expected.items():
        if name in given:
            value: Any = given[name]
            value = _SCALES.get(value, value) if name == "scale_rewards" and isinstance(value, bool) else value
            if not argument.admits(value):
                found.append((name, str(argument), value))
    return found


def _check_parts(trainer: Any, chosen: RecipeConfig) -> None:
    args, loss = trainer.args, trainer.loss_type
    penalty = "beta" if trainer.beta != 0.0 else "an entropy bonus" if _entropy_bonus(trainer) else None
    if chosen.aggregation == "prompt":
        if loss not in _PROMPT_LOSSES:
            raise CurriculaValueError(
                f"attach: recipe.aggregation prompt weighs the advantages of a loss over all tokens, loss_type "
                f"{' or '.join(_PROMPT_LOSSES)}; the trainer has {loss}; set aggregation to trainer"
            )
        if penalty is not None:
            raise CurriculaValueError(
                f"attach: recipe.aggregation prompt is a weight of advantages, and {penalty} is not weighed by them; "
                f"remove {penalty}, or set aggregation to trainer"
            )
    if chosen.normaliser == "batch" and (
        args.scale_rewards != "none" or trainer.multi_objective_aggregation != "sum_then_normalize"
    ):
        raise CurriculaValueError(
            "attach: recipe.normaliser batch divides centred advantages; the trainer has scale_rewards "
            f"{args.scale_rewards!r} and multi_objective_aggregation {trainer.multi_objective_aggregation!r}; set them "
            'to "none" and "sum_then_normalize"'
        )
    if chosen.zero_variance == "mask" and trainer.beta != 0.0 and loss not in (*_PROMPT_LOSSES, "vespo", "bnpo"):
        raise CurriculaValueError(
            f"attach: recipe.zero_variance mask leaves rollouts out of loss_type {loss}, a mean over rollouts, and a "
            "KL penalty cannot be made up for that; set beta to 0, or zero_variance to keep"
        )
    if chosen.ratio == "generator" and trainer.use_vllm and not trainer.vllm_importance_sampling_correction:
        raise CurriculaValueError(
            "attach: recipe.ratio generator falls back on the trainer's log-probability where vLLM gives none for a "
            "token; set vllm_importance_sampling_correction to true, TRL's default"
        )


def _entropy_bonus(trainer: Any) -> bool:
    return bool(getattr(trainer, "_entropy_bonus_enabled", False))
