"""Numbers that no trainer can use: said when a mix is read, since TRL says so deep in a run, or not at all."""

from typing import Any

from curricula import CurriculumConfig
from curricula.config.explain import config_error, did_you_mean

_ABOVE_ZERO = ("epsilon", "epsilon_high", "delta", "temperature")
_NOT_BELOW = {
    "beta": 0,
    "learning_rate": 0,
    "num_generations": 2,
    "num_iterations": 1,
    "steps_per_generation": 1,
    "gradient_accumulation_steps": 1,
    "per_device_train_batch_size": 1,
    "max_completion_length": 1,
}
_WITHIN_ONE = ("top_entropy_quantile", "top_p", "vllm_gpu_memory_utilization")
_MOST = 1e9
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
"""What TRL 1.16 knows as `loss_type`."""


def check_bounds(config: CurriculumConfig) -> None:
    """Refuses arguments under `trainer:` that are out of their range.

    Raises:
        ConfigError: With the key, the range and the value.
    """
    for name, value in config.trainer.items():
        expected = _expected(name, value)
        if expected is not None:
            raise config_error(config.origin, ("trainer", name), f"expected {expected}; got {value}; change it")
    loss: Any = config.trainer.get("loss_type")
    if isinstance(loss, str) and loss not in LOSSES:
        message = f"expected one of {', '.join(LOSSES)}; got {loss}; {did_you_mean(loss, LOSSES)}"
        raise config_error(config.origin, ("trainer", "loss_type"), message)


def _expected(name: str, value: Any) -> str | None:
    """The range that a number is out of, in words; None where it is in it, or is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if name in _ABOVE_ZERO and not 0 < value <= _MOST:
        return "a finite number above 0"
    if name in _NOT_BELOW and not _NOT_BELOW[name] <= value <= _MOST:
        return f"a finite number of {_NOT_BELOW[name]} or more"
    if name in _WITHIN_ONE and not 0 < value <= 1:
        return "a part of one, above 0"
    return None
