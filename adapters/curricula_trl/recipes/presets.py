"""Arguments of TRL's `GRPOConfig` for the losses of the field, with the traps closed.

TRL leaves `epsilon_high` at `epsilon` where it is not given: CISPO would then clamp every ratio to 0.2, where its
papers let it go to 4 and above. GSPO is no `loss_type` of TRL's: it is the clipped loss, with one ratio a sequence.
"""

from dataclasses import dataclass
from typing import Any, get_args

from curricula import CurriculaValueError
from curricula.config import RecipeConfig
from curricula.config.explain import did_you_mean
from curricula.config.recipe import Preset


@dataclass(frozen=True, slots=True)
class Fixed:
    """An argument that the preset is: another value would be another loss."""

    value: Any

    def admits(self, value: Any) -> bool:
        """Whether an explicit value is the same."""
        return bool(value == self.value)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Within:
    """An argument with a default, and the range that its papers use."""

    value: float
    low: float
    high: float

    def admits(self, value: Any) -> bool:
        """Whether an explicit value is in the range, both ends included."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.value:g} ({self.low:g} to {self.high:g})"


Argument = Fixed | Within

_TOKEN, _SEQUENCE = Fixed("token"), Fixed("sequence")
_CISPO: dict[str, Argument] = {
    "loss_type": Fixed("cispo"),
    "importance_sampling_level": _TOKEN,
    # arXiv 2510.13786 finds 4, 5 and 8 alike; there is no lower bound, and TRL's CISPO reads none.
    "epsilon_high": Within(5.0, 4.0, 8.0),
}

ARGUMENTS: dict[str, dict[str, Argument]] = {
    # arXiv 2402.03300, equation 3: every rollout weighs alike, advantages over the group's deviation.
    "grpo": {
        "loss_type": Fixed("grpo"),
        "importance_sampling_level": _TOKEN,
        "epsilon": Within(0.2, 0.1, 0.3),
        "epsilon_high": Within(0.2, 0.1, 0.3),
        "scale_rewards": Fixed("group"),
    },
    # arXiv 2503.14476, equation 8: every token weighs alike, the upper bound is looser, no KL.
    "dapo": {
        "loss_type": Fixed("dapo"),
        "importance_sampling_level": _TOKEN,
        "epsilon": Fixed(0.2),
        "epsilon_high": Within(0.28, 0.26, 0.28),
        "scale_rewards": Fixed("group"),
        "beta": Fixed(0.0),
    },
    # arXiv 2507.18071, equation 5, with its 3e-4 and 4e-4; arXiv 2510.13786 used up to 5e-3.
    "gspo": {
        "loss_type": Fixed("grpo"),
        "importance_sampling_level": _SEQUENCE,
        "epsilon": Within(3e-4, 1e-4, 5e-3),
        "epsilon_high": Within(4e-4, 1e-4, 5e-3),
        "scale_rewards": Fixed("group"),
    },
    # arXiv 2506.13585, equation 4.
    "cispo": _CISPO | {"scale_rewards": Fixed("group"), "beta": Fixed(0.0)},
    # arXiv 2510.13786, section 3. Advantages come centred from TRL; what divides them is the recipe's own.
    "scalerl": _CISPO | {"scale_rewards": Fixed("none"), "beta": Fixed(0.0)},
}


def recipe(name: str) -> dict[str, Any]:
    """Arguments of `trl.GRPOConfig` for a loss of the field; a fresh dict.

    Args:
        name: scalerl, cispo, dapo, gspo or grpo.

    Raises:
        CurriculaValueError: No such recipe.

    What TRL's losses lack (`RecipeConfig`) is done by an attached `CurriculumSampler` whose mix names the recipe.

    >>> recipe("gspo")["importance_sampling_level"], recipe("scalerl")["epsilon_high"]
    ('sequence', 5.0)
    """
    known = get_args(Preset)
    if name not in known:
        raise CurriculaValueError(
            f"recipe: expected one of {', '.join(known)}; got {name!r}; {did_you_mean(str(name), known)}"
        )
    return _values(name)


def arguments_of(config: RecipeConfig) -> dict[str, Any]:
    """What the trainer is to be built with for a recipe."""
    return {} if config.preset is None else _values(config.preset)


def _values(name: str) -> dict[str, Any]:
    return {key: argument.value for key, argument in ARGUMENTS[name].items()}
