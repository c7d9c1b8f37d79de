"""Who decides on the shares of the environments: the bandit, or a plan by their scaling curves."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, create_model, model_validator

from curricula.config.section import Section, problem, shown


class Planned(Section):
    """With `from: scaling`, shares follow a plan that is made anew every so often, as far as curves can be fitted.

    Attributes:
        axis: What compute is counted in.
        every: Asks between two plans; of more environments than that, one for each.
        horizon: How far a plan looks ahead, in parts of what was spent so far; at least until the next one.
        method: By the mean over what is believed of the curves, or by one draw of it.
    """

    axis: Literal["tokens", "rollouts"] = "tokens"
    every: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    horizon: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    method: Literal["expected", "thompson"] = "expected"

    @model_validator(mode="after")
    def _read(self) -> "Planned":
        if not self.planned:
            for name, info in Planned.model_fields.items():
                if (value := getattr(self, name)) != info.default:
                    raise problem(f"{name} with from: scaling only", shown(value), "add from: scaling, or remove it")
        return self

    @property
    def planned(self) -> bool:
        """Whether shares follow a plan."""
        return getattr(self, "from") == "scaling"


if TYPE_CHECKING:
    SharesConfig = Planned
else:
    # The key is a word of Python's, so that it cannot be written as a field of the class above.
    SharesConfig = create_model(
        "SharesConfig",
        __base__=Planned,
        __module__=__name__,
        __doc__=Planned.__doc__,
        **{"from": (Literal["bandit", "scaling"], "bandit")},
    )


def _by_name(value: Any) -> Any:
    return {"from": value} if isinstance(value, str) else value


AnyShares = Annotated[SharesConfig, BeforeValidator(_by_name)]
"""A mapping, or a name alone."""
