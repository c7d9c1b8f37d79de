"""Values that no trainer can use: said when a mix is read, since TRL says so deep in a run, or not at all."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curricula import CurriculumConfig
from curricula.config.explain import config_error, did_you_mean
from curricula_trl.losses import LOSSES


class Range(NamedTuple):
    """Of a number: what is in it, and how it is called."""

    low: float
    high: float
    open: bool
    words: str

    def holds(self, value: float) -> bool:
        """Whether a number is in it; `open` leaves the lower end out."""
        return (value > self.low if self.open else value >= self.low) and value <= self.high


_MOST = 1e9
_POSITIVE = Range(0, _MOST, True, "a finite number above 0")
_PART = Range(0, 1, True, "a part of one, above 0")
_FRACTION = Range(0, 1, False, "a number from 0 to 1")


def _from(low: float) -> Range:
    return Range(low, _MOST, False, f"a finite number of {low:g} or more")


_RANGES: dict[str, Range] = {
    **dict.fromkeys(
        (
            *("epsilon", "epsilon_high", "temperature", "repetition_penalty"),
            *("sapo_temperature_pos", "sapo_temperature_neg"),
            *("vespo_k_pos", "vespo_k_neg", "vespo_lambda_pos", "vespo_lambda_neg"),
            *("vllm_importance_sampling_clip_max", "vllm_importance_sampling_cap", "num_train_epochs"),
        ),
        _POSITIVE,
    ),
    **dict.fromkeys(
        (
            *("beta", "learning_rate", "weight_decay", "warmup_steps", "max_grad_norm", "entropy_target"),
            *("entropy_coef_delta", "vllm_importance_sampling_clip_min", "router_aux_loss_coef", "adam_epsilon"),
            *("off_policy_mask_threshold", "vllm_server_timeout", "dataloader_num_workers"),
            "max_tool_calling_iterations",
        ),
        _from(0),
    ),
    **dict.fromkeys(
        (
            *("num_iterations", "steps_per_generation", "gradient_accumulation_steps", "generation_batch_size"),
            *("per_device_train_batch_size", "per_device_eval_batch_size", "max_completion_length"),
            *("num_generations_eval", "vllm_max_model_length", "vllm_tensor_parallel_size", "ref_model_sync_steps"),
        ),
        _from(1),
    ),
    "num_generations": _from(2),
    **dict.fromkeys(("seed", "data_seed"), Range(0, 2**32 - 1, False, "a whole number from 0 to 4294967295")),
    **dict.fromkeys(("vllm_server_port", "vllm_group_port"), Range(1, 65535, False, "a port, from 1 to 65535")),
    **dict.fromkeys(("top_entropy_quantile", "top_p", "vllm_gpu_memory_utilization"), _PART),
    **dict.fromkeys(("min_p", "ref_model_mixup_alpha"), _FRACTION),
    **dict.fromkeys(("adam_beta1", "adam_beta2"), Range(0, math.nextafter(1, 0), False, "a number from 0 to below 1")),
    # It bounds the ratio of tokens with a positive advantage, too: all that are above it have no gradient.
    "delta": Range(1, _MOST, True, "a finite number above 1"),
    # 0 and -1 are words of the generators for "all of them".
    "top_k": Range(-1, _MOST, False, "a finite number of -1 or more"),
}
_SETS: dict[str, tuple[str, ...]] = {
    "loss_type": tuple(LOSSES),
    "importance_sampling_level": ("token", "sequence"),
    "scale_rewards": ("group", "batch", "none"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_mode": ("server", "colocate"),
    "vllm_model_impl": ("auto", "vllm", "transformers", "terratorch"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}
"""What TRL 1.16, or vLLM behind it, knows of an argument that takes a word."""


def check_bounds(config: CurriculumConfig) -> None:
    """Refuses arguments under `trainer:` that are out of their range, no number, or no word that TRL knows.

    Raises:
        ConfigError: With the key, the range and the value.
    """
    for name, value in config.trainer.items():
        expected = _RANGES.get(name)
        if expected is not None and _is_number(value) and not expected.holds(value):
            message = f"expected {expected.words}; got {value}; change it"
            raise config_error(config.origin, ("trainer", name), message)
        for path, number in _numbers(value, ("trainer", name)):
            if not math.isfinite(number):
                raise config_error(config.origin, path, f"expected a finite number; got {number}; change it")
        known = _SETS.get(name, ())
        if known and isinstance(value, str) and value not in known:
            message = f"expected one of {', '.join(known)}; got {value}; {did_you_mean(value, known)}"
            raise config_error(config.origin, ("trainer", name), message)
    _check_steps(config)
    _check_entropy(config)


def _check_steps(config: CurriculumConfig) -> None:
    """Refuses a length that transformers takes for none given, and then trains for three epochs."""
    steps: Any = config.trainer.get("max_steps")
    if _is_number(steps) and steps != -1 and steps < 1:
        message = f"expected 1 or more, or -1 for a run by num_train_epochs; got {steps}; change it"
        raise config_error(config.origin, ("trainer", "max_steps"), message)


def _check_entropy(config: CurriculumConfig) -> None:
    """Refuses bounds of an adaptive coefficient that no value is between: it would jump from one to the other."""
    given = {"entropy_coef_min": 0.0, "entropy_coef_max": 1.0} | dict(config.trainer)  # as in TRL 1.16
    least, most = given["entropy_coef_min"], given["entropy_coef_max"]
    if config.trainer.get("use_adaptive_entropy") and _is_number(least) and _is_number(most) and least > most:
        name = "entropy_coef_min" if "entropy_coef_min" in config.trainer else "entropy_coef_max"
        message = f"expected entropy_coef_min up to entropy_coef_max; got {least:g} and {most:g}; change one of them"
        raise config_error(config.origin, ("trainer", name), message)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Every number in a value, with where it stands."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, (*path, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, inner in enumerate(value):
            yield from _numbers(inner, (*path, place))
    elif isinstance(value, int | float):
        yield path, float(value)
