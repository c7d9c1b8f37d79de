"""Whether a trainer is what a recipe is defined for; each refusal in one line, with both values."""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from curricula import CurriculaValueError, CurriculumConfig
from curricula.config import RecipeConfig
from curricula.config.explain import config_error
from curricula_trl.losses import LOSSES, loss_of
from curricula_trl.recipes.presets import ARGUMENTS, arguments_of

logger = logging.getLogger("curricula")

_PROMPT_LOSSES = sorted(name for name, loss in LOSSES.items() if loss.prompt_mean)
_SCALES = {True: "group", False: "none"}


def check_arguments(config: CurriculumConfig) -> None:
    """Refuses arguments under `trainer:` that contradict the recipe of the mix, or that its parts are not for.

    Raises:
        ConfigError: With the key, the recipe's value and the given one.
    """
    for name, expected, given in _contradictions(config.recipe, config.trainer):
        message = (
            f"expected {expected}, of recipe {config.recipe.preset}; got {given}; remove it, or leave out the recipe"
        )
        raise config_error(config.origin, ("trainer", name), message)
    settings = Settings.of_mix(config)
    if (problem := _cut(settings)) is not None:
        name = "epsilon_high" if "epsilon_high" in config.trainer else "loss_type"
        raise config_error(config.origin, ("trainer", name), problem)
    if (problem := _problem(settings, config.recipe)) is not None:
        raise config_error(config.origin, ("recipe",), problem)


def check_trainer_arguments(trainer: Any, config: CurriculumConfig) -> None:
    """Refuses a built trainer that a recipe's preset or parts are not defined for, or whose loss cuts every ratio.

    Raises:
        CurriculaValueError: With what to change.
    """
    chosen = config.recipe
    from trl import GRPOTrainer

    if chosen == RecipeConfig():
        if isinstance(trainer, GRPOTrainer) and _looks_like_scalerl(trainer.args):
            logger.warning(
                "the trainer was built with recipe scalerl, and the mix has no recipe: its losses are TRL's alone, "
                "advantages are not divided by anything; put `recipe: scalerl` into the mix for the rest of it"
            )
        if isinstance(trainer, GRPOTrainer) and (problem := _cut(Settings.of_trainer(trainer))) is not None:
            raise CurriculaValueError(f"attach: {problem}")
        return

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
    settings = Settings.of_trainer(trainer)
    if (problem := _cut(settings)) is not None:
        raise CurriculaValueError(f"attach: {problem}")
    if (problem := _problem(settings, chosen)) is not None:
        raise CurriculaValueError(f"attach: recipe: {problem}")


def _looks_like_scalerl(args: Any) -> bool:
    return all(argument.admits(getattr(args, name)) for name, argument in ARGUMENTS["scalerl"].items())


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


class Settings(NamedTuple):
    """What of a trainer decides which parts of a recipe it can have."""

    loss_type: str
    epsilon_high: float
    beta: float
    entropy_bonus: bool
    scale_rewards: str
    aggregation: str
    use_vllm: bool
    corrects: bool

    @classmethod
    def of_trainer(cls, trainer: Any) -> "Settings":
        """Of one that is built."""
        return cls(
            trainer.loss_type,
            trainer.epsilon_high,
            trainer.beta,
            bool(getattr(trainer, "_entropy_bonus_enabled", False)),
            trainer.args.scale_rewards,
            trainer.multi_objective_aggregation,
            trainer.use_vllm,
            trainer.vllm_importance_sampling_correction,
        )

    @classmethod
    def of_mix(cls, config: CurriculumConfig) -> "Settings":
        """Of one that a mix is about to build, with TRL's defaults."""
        from trl import GRPOConfig

        given: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(GRPOConfig) if field.init}
        given |= arguments_of(config.recipe) | config.trainer
        scale: Any = given["scale_rewards"]
        high = given["epsilon"] if given["epsilon_high"] is None else given["epsilon_high"]
        return cls(
            str(given["loss_type"]),
            0.0 if high is None else high,
            given["beta"] or 0.0,
            bool(given.get("entropy_coef")) or bool(given.get("use_adaptive_entropy")),
            str(_SCALES.get(scale, scale)),
            given["multi_objective_aggregation"],
            bool(given["use_vllm"]),
            bool(given["vllm_importance_sampling_correction"]),
        )


def _cut(trainer: Settings) -> str | None:
    """Where a loss cuts the ratio of a token that has not changed, which is 1: no ratio is left but the bound."""
    if not loss_of(trainer.loss_type).cuts or trainer.epsilon_high >= 1:
        return None
    return (
        f"expected an epsilon_high of 1 or more for loss_type {trainer.loss_type}, which cuts ratios to it (left out, "
        f"it is epsilon); got {trainer.epsilon_high:g}, to which every ratio would be cut; set epsilon_high: 5, or in "
        f"place of both recipe: {trainer.loss_type}"
    )


def _problem(trainer: Settings, chosen: RecipeConfig) -> str | None:
    """What a part of the recipe is not defined for, and what to change; None where there is nothing."""
    loss = trainer.loss_type
    penalty = "beta" if trainer.beta != 0.0 else "entropy bonus" if trainer.entropy_bonus else None
    if chosen.aggregation == "prompt":
        if not loss_of(loss).prompt_mean:
            return (
                f"expected loss_type {' or '.join(_PROMPT_LOSSES)} for aggregation prompt, which weighs the advantages "
                f"of a loss over all tokens; got {loss}; set aggregation to trainer"
            )
        if penalty is not None:
            return (
                f"expected no {penalty} with aggregation prompt, which weighs advantages, and the {penalty} is not "
                "weighed by them; got one; remove it, or set aggregation to trainer"
            )
    if chosen.normaliser == "batch" and (
        trainer.scale_rewards != "none" or trainer.aggregation != "sum_then_normalize"
    ):
        return (
            'expected scale_rewards "none" and multi_objective_aggregation "sum_then_normalize" for normaliser batch, '
            f'which divides centred advantages; got "{trainer.scale_rewards}" and "{trainer.aggregation}"; set them'
        )
    if chosen.zero_variance == "mask" and trainer.beta != 0.0 and loss_of(loss).row_mean:
        return (
            f"expected a beta of 0 for zero_variance mask with loss_type {loss}, a mean over rollouts, whose KL "
            f"penalty cannot be made up for those left out; got {trainer.beta:g}; set it to 0, or zero_variance to keep"
        )
    if chosen.ratio == "generator" and trainer.use_vllm and not trainer.corrects:
        return (
            "expected vllm_importance_sampling_correction for ratio generator, which falls back on the trainer's "
            "log-probability where vLLM gives none for a token; got false; set it to true, TRL's default"
        )
    return None
