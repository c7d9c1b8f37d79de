"""What can be said of `model` and `trainer` in a mix before anything is loaded."""

import dataclasses
import os
import typing
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

from huggingface_hub import constants, try_to_load_from_cache
from transformers import GenerationConfig
from trl.trainer.grpo_config import GRPOConfig

from curricula.config import CurriculumConfig
from curricula.config.explain import config_error, did_you_mean
from curricula.config.folder import check_folder
from curricula.config.schema import shown
from curricula_trl.bounds import check_bounds
from curricula_trl.interruption import check_mix
from curricula_trl.recipes import arguments_of, check_arguments


def check_model(config: CurriculumConfig) -> None:
    """Checks that there is a model by that name, as far as that takes no network.

    Raises:
        ConfigError: No model, no such folder, or one that is not at hand while the hub is not to be asked.
    """
    model = config.model
    if model is None:
        message = "expected the path or the hub id of a model; got nothing; add one"
        raise config_error(config.origin, ("model",), message)
    if Path(model).expanduser().is_dir():
        return
    check_folder(config)
    if constants.HF_HUB_OFFLINE and not _is_cached(model):
        message = (
            f"expected a folder, or a model in the cache of the hub, which HF_HUB_OFFLINE forbids to ask; got "
            f"{shown(model)}, which is neither; check the name"
        )
        raise config_error(config.origin, ("model",), message)


def _is_cached(model: str) -> bool:
    try:
        return isinstance(try_to_load_from_cache(model, "config.json"), str)
    except ValueError:  # no name that the hub could have
        return False


def check_arguments_of(config: CurriculumConfig) -> None:
    """Checks what stands under `trainer:`.

    Raises:
        ConfigError: An argument that TRL's GRPOConfig does not have, of a type or a size it cannot use, or that the
            recipe or the interruption of the mix contradicts.
    """
    hints = typing.get_type_hints(GRPOConfig)
    known = [field.name for field in dataclasses.fields(GRPOConfig) if field.init]
    for name, value in config.trainer.items():
        if name not in known:
            hint = did_you_mean(name, known)
            hint = hint if "?" in hint else "see TRL's documentation of GRPOConfig"
            message = f"expected an argument of trl.GRPOConfig; got {shown(name)}; {hint}"
            raise config_error(config.origin, ("trainer", name), message)
        expected = _expected(hints[name])
        if expected is not None and not _fits(expected, value):
            hint = "; remove the quotes or change it" if isinstance(value, str) else ""
            message = f"expected {expected}; got {shown(value)}{hint}"
            raise config_error(config.origin, ("trainer", name), message)
    if config.trainer.get("remove_unused_columns"):
        message = "expected false, TRL's default, as rewards read the columns of their prompts; got true; remove it"
        raise config_error(config.origin, ("trainer", "remove_unused_columns"), message)
    _check_generation(config)
    check_mix(config)
    check_arguments(config)
    check_bounds(config)
    _check_batch(config)


def _check_generation(config: CurriculumConfig) -> None:
    """Refuses settings of the generator that transformers would pass over, or that TRL's batches have no room for."""
    given = config.trainer.get("generation_kwargs")
    if not isinstance(given, Mapping):
        return
    known = [name for name in vars(GenerationConfig()) if not name.startswith("_")]
    for name, value in given.items():
        path = ("trainer", "generation_kwargs", str(name))
        if name in ("n", "num_return_sequences"):
            if value != 1:
                message = f"expected 1, as TRL asks for num_generations rollouts itself; got {shown(value)}; remove it"
                raise config_error(config.origin, path, message)
        elif name not in known and not config.trainer.get("use_vllm"):  # vLLM says so itself
            hint = did_you_mean(str(name), known)
            hint = hint if "?" in hint else "see transformers' documentation"
            message = f"expected a key of transformers.GenerationConfig; got {shown(name)}; {hint}"
            raise config_error(config.origin, path, message)


def _check_batch(config: CurriculumConfig) -> None:
    """Refuses a generation that does not hold whole groups, as TRL will, for as many processes as there are."""
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(GRPOConfig) if field.init}
    given = defaults | arguments_of(config.recipe) | config.trainer
    batch, steps, group = (given[key] for key in ("generation_batch_size", "steps_per_generation", "num_generations"))
    if batch is not None and steps is not None:
        message = f"expected no generation_batch_size beside steps_per_generation; got {batch} and {steps}; remove one"
        raise config_error(config.origin, ("trainer", "generation_batch_size"), message)
    ranks = os.environ.get("WORLD_SIZE", "")
    world = int(ranks) if ranks.isdecimal() else 1
    device, among = given["per_device_train_batch_size"], f"{world} process{'es' if world > 1 else ''}"
    name = "steps_per_generation" if steps is not None else "gradient_accumulation_steps"
    steps = given[name]
    if not all(type(number) is int for number in (device, steps, group)):
        return  # no number, and so TRL's to refuse
    hint = "change one of them" if ranks else "change one of them, or name the processes of the run in WORLD_SIZE"
    if batch is None:
        batch, made = device * steps * world, f"per_device_train_batch_size {device} x {name} {steps} x {among}"
    elif batch % (device * world):
        message = (
            f"expected a multiple of {device * world}, per_device_train_batch_size {device} x {among}; got {batch}; "
            f"{hint}"
        )
        raise config_error(config.origin, ("trainer", "generation_batch_size"), message)
    else:
        made = f"generation_batch_size {batch}"
    if batch % group:
        message = (
            f"expected a divisor of {batch}, the rollouts of a generation ({made}); got num_generations {group}; {hint}"
        )
        raise config_error(config.origin, ("trainer", "num_generations"), message)


def _expected(hint: Any) -> str | None:
    """What a type admits, where a value shows it: `max_steps: "2"` fails deep inside the trainer otherwise."""
    origin = typing.get_origin(hint)
    parts = set(typing.get_args(hint)) if origin in (typing.Union, UnionType) else {hint}
    parts = {typing.get_origin(part) or part for part in parts} - {NoneType}
    if parts and parts <= {dict, str} and dict in parts:
        return "a mapping"
    if parts == {str}:
        return "text"
    if not parts or not parts <= {int, float, bool}:
        return None
    if parts == {bool}:
        return "true or false"
    return "a whole number" if parts == {int} else "a number"


def _fits(expected: str, value: Any) -> bool:
    if value is None:
        return True
    if expected == "a mapping":
        return isinstance(value, Mapping | str)  # JSON, or a file with it
    if expected == "text":
        return not isinstance(value, Mapping | list)  # a number or a switch may do for TRL, which says so itself
    if isinstance(value, bool) or expected == "true or false":
        return isinstance(value, bool) and expected == "true or false"
    return isinstance(value, int) or (expected == "a number" and isinstance(value, float))
