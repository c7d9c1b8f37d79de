"""What every section of a mix is, and how its checks speak."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

PATH_TAG = "module:Class"
"""What stands for all types that are import paths, where a `type` tells sections apart."""


class Section(BaseModel):
    """A mapping of the mix: frozen, without unknown keys, and strict about types."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _absent(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = cast("Mapping[Any, Any]", data)
        fields = cls.model_fields
        return {k: v for k, v in given.items() if v is not None or k not in fields or fields[k].is_required()}


def problem(expected: str, got: str, hint: str = "") -> PydanticCustomError:
    """The error of a check of our own; `explain` puts the place in front of it."""
    text = f"expected {expected}; got {got}" + (f"; {hint}" if hint else "")
    return PydanticCustomError("curricula", "{text}", {"text": text})


def shown(value: object) -> str:
    """A value as an error shows it: one short line.

    >>> shown({"a": 1, "b": 2}), shown("x" * 99), shown(None)
    ('a mapping of 2 keys', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"a mapping of {len(cast('Mapping[Any, Any]', value))} keys"
    if isinstance(value, str):
        return ascii_safe(repr(value if len(value) <= 40 else value[:39] + "…"))
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        inner = ", ".join(shown(item) for item in items[:4])
        return f"[{inner}{', …' if len(items) > 4 else ''}]"[:80]
    if isinstance(value, bool | int | float):
        text = str(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number of more than 20 digits"
        return text.lower() if isinstance(value, bool) else text
    return f"{type(value).__name__}"


def ascii_safe(text: str) -> str:
    """The text without line breaks, control characters or lone surrogates, so that it can be printed anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)
