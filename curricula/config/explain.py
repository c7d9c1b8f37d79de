"""From a validation error to one line: where, what was expected, what was given, what to do."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from curricula.config.schema import Origin, Path
from curricula.config.section import PATH_TAG, ascii_safe, shown
from curricula.errors import ConfigError

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "bool_type": "true or false",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
    "tuple_type": "a list",
    "list_type": "a list",
    "invalid_key": "a key of text",
}
_BOUNDS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}


def config_error(origin: Origin, path: Sequence[str | int], message: str, line: int | None = None) -> ConfigError:
    """`FILE: key.path (line N): message` as an error; each part that is unknown is left out."""
    line = line if line is not None else _line_of(tuple(path), origin.lines)
    place = dotted(path)
    at = f" (line {line})" if line else ""
    head = f"{origin.where}: {place}{at}" if place else f"{origin.where}{at}"
    return ConfigError(ascii_safe(f"{head}: {message}"))


def explain(
    error: ValidationError, origin: Origin, model: type[BaseModel], under: Sequence[str | int] = ()
) -> ConfigError:
    """The first thing wrong, in one line, and how many more there are.

    Args:
        error: What pydantic raised.
        origin: Where the value came from.
        model: The model that was validated, for the names of its keys.
        under: Path of the validated value within the mix.
    """
    details = error.errors(include_url=False)
    first = details[0]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    path = [part for part in _untagged(model, first["loc"]) if part != "[key]"]
    if first["type"].startswith("union_tag"):
        path.append("type")
    return config_error(origin, [*under, *path], _message(first, model) + more)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word, else all of them.

    >>> did_you_mean("curiculum", ["curriculum", "monitor"])
    'did you mean curriculum?'
    >>> did_you_mean("zzz", ["curriculum", "monitor"])
    'known: curriculum, monitor'
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to add to a message that names all known words: the closest one, or nothing.

    >>> nearest("chain", ["chains", "steep"]), nearest("zzz", ["chains", "steep"])
    ('; did you mean chains?', '')
    """
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def dotted(path: Sequence[str | int]) -> str:
    """A path as it is written in messages.

    >>> dotted(("environments", "two words", "levels", 0))
    "environments.'two words'.levels[0]"
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if re.fullmatch(r"[\w-]+", part) and len(part) <= 60 else shown(part))
    return text


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, got, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "curricula":
        return str(context["text"])
    if kind == "extra_forbidden":
        parent = _at(model, detail["loc"][:-1])  # tags included: they tell which of several models it is
        word = str(detail["loc"][-1])
        places = _places(model, word)
        # A key of another type of this very section is no key of another place.
        elsewhere = bool(places) and tuple(_untagged(model, detail["loc"])) not in places
        if parent is not None and elsewhere and not difflib.get_close_matches(word, parent.model_fields, n=1):
            hint = f"did you mean {' or '.join(map(dotted, places[:2]))}?"
        else:
            hint = did_you_mean(word, parent.model_fields) if parent else "remove it"
        return f"expected a known key; got {shown(detail['loc'][-1])}; {hint}"
    if kind == "missing":
        expected = "this key" if isinstance(detail["loc"][-1], str) else "one more item"
        return f"expected {expected}; got nothing; add it"
    if kind in ("literal_error", "enum"):
        return _choice(re.findall(r"'([^']*)'", str(context["expected"])), got)
    if kind == "union_tag_invalid":
        return _choice(re.findall(r"'([^']*)'", str(context["expected_tags"])), cast("Mapping[Any, Any]", got)["type"])
    if kind == "union_tag_not_found":
        return f"expected one of {', '.join(_tags(_walk(model, detail['loc'])))}; got nothing; add it"
    if kind in _BOUNDS:
        name, sign = _BOUNDS[kind]
        return f"expected a number {sign} {context[name]}; got {shown(got)}; change it"
    if kind in ("too_long", "too_short"):
        length = context.get("max_length", context.get("min_length"))
        return f"expected a list of {length}; got {context['actual_length']} items"
    expected = _EXPECTED.get(kind)
    if expected is None:
        return f"{detail['msg'][0].lower()}{detail['msg'][1:]}; got {shown(got)}"
    hint = "put it in quotes" if kind == "string_type" and isinstance(got, bool | int | float) else _hint(expected, got)
    return f"expected {expected}; got {shown(got)}" + (f"; {hint}" if hint else "")


def _places(model: type[BaseModel], word: str, under: Path = (), inside: tuple[type, ...] = ()) -> list[Path]:
    """Where a key of this name stands, from the outermost in; names that are the user's stand as NAME.

    >>> from curricula.config import CurriculumConfig
    >>> [dotted(path) for path in _places(CurriculumConfig, "shares")]
    ['curriculum.shares']
    >>> [dotted(path) for path in _places(CurriculumConfig, "share")]
    ['environments.NAME.share']
    """
    found: list[Path] = [(*under, word)] if word in model.model_fields else []
    for name, field in model.model_fields.items():
        for inner, path in _models(field.annotation, (*under, name)):
            if inner not in (model, *inside):
                found += _places(inner, word, path, (*inside, model))
    return sorted(dict.fromkeys(found), key=len)


def _models(kind: Any, path: Path) -> list[tuple[type[BaseModel], Path]]:
    """Models that may stand at a path, below it where that is a mapping; those in lists have no path of their own."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [(kind, path)]
    if get_origin(kind) is dict:
        return _models(get_args(kind)[1], (*path, "NAME"))
    apart = get_origin(kind) in (Union, UnionType) or hasattr(cast(Any, kind), "__metadata__")
    return [pair for part in get_args(kind) for pair in _models(part, path)] if apart else []


def _choice(options: Sequence[str], got: object) -> str:
    close = difflib.get_close_matches(got, options, n=1) if isinstance(got, str) else []
    hint = f"did you mean {close[0]}?" if close else "choose one"
    return f"expected one of {', '.join(options)}; got {shown(got)}; {hint}"


def _hint(expected: str, got: object) -> str:
    try:
        quoted = "number" in expected and isinstance(got, str) and math.isfinite(float(got))
    except ValueError:
        return ""
    return "remove the quotes" if quoted else ""


def _line_of(path: Path, lines: Mapping[Path, int]) -> int | None:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path) if path else None


def _at(model: type[BaseModel], path: Iterable[str | int]) -> type[BaseModel] | None:
    return _find(_walk(model, path), lambda k: isinstance(k, type) and issubclass(k, BaseModel))


def _walk(model: type[BaseModel], path: Iterable[str | int]) -> Any:
    kind: Any = model
    for part in path:
        kind = _step(kind, part)
    return kind


def _untagged(model: type[BaseModel], path: Iterable[str | int]) -> list[str | int]:
    """The path without the names by which pydantic says which model of several a mapping was read as."""
    kept: list[str | int] = []
    kind: Any = model
    for part in path:
        if part not in _tags(kind):
            kept.append(part)
        kind = _step(kind, part)
    return kept


def _tags(kind: Any) -> dict[str, type[BaseModel]]:
    """Models that a `type` tells apart, by its values; none where there is one model only."""
    models: list[type[BaseModel]] = []
    _find(kind, lambda k: isinstance(k, type) and issubclass(k, BaseModel) and models.append(k))
    if len(models) < 2 or any("type" not in found.model_fields for found in models):
        return {}
    return {
        str(tag): found for found in models for tag in get_args(found.model_fields["type"].annotation) or (PATH_TAG,)
    }


def _step(kind: Any, part: str | int) -> Any:
    if (tagged := _tags(kind)) and part in tagged:
        return tagged[str(part)]
    owner = _find(kind, lambda k: isinstance(k, type) and issubclass(k, BaseModel))
    if owner is not None and isinstance(part, str) and part in owner.model_fields:
        return owner.model_fields[part].annotation
    container = _find(kind, lambda k: get_origin(k) in (dict, tuple, list))
    if container is None:
        return None
    arguments = get_args(container)
    return arguments[1] if get_origin(container) is dict else arguments[0]


def _find(kind: Any, test: Callable[[Any], Any]) -> Any:
    if kind is None:
        return None
    if test(kind):
        return kind
    if get_origin(kind) in (Union, UnionType) or hasattr(kind, "__metadata__"):
        for part in get_args(kind):
            if (found := _find(part, test)) is not None:
                return found
    return None
