"""YAML 1.2's plain types from untrusted bytes: mappings, lists, text, numbers, true/false, null, and no more.

Built on PyYAML's events, not on its constructors: nothing in a file can name a Python object, an alias cannot
grow the result beyond `MAX_NODES`, and depth is bounded before anything recurses.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from curricula.config.schema import Path
from curricula.config.section import ascii_safe, shown

MAX_BYTES = 1 << 20
MAX_DEPTH = 24
MAX_NODES = 50_000

Lines = dict[Path, int]

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")
_OLD_BOOL = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")


class Refused(Exception):
    """Text that is not a mix: what was wrong, and where."""

    def __init__(self, message: str, line: int | None = None, path: Path = ()) -> None:
        super().__init__(message)
        self.line, self.path = line, path


def parse(text: str) -> tuple[Any, Lines]:
    """The document's value, and the line of every key and item.

    Raises:
        Refused: Not YAML, or YAML with tags, duplicate keys, cycles, too many nodes, or values out of range.

    >>> parse("a: {b: 1e-6}")
    ({'a': {'b': 1e-06}}, {(): 1, ('a',): 1, ('a', 'b'): 1})
    """
    return _Builder(_events(text)).document()


def plain(text: str) -> Any:
    """What an unquoted scalar means under YAML 1.2's core schema; `1_000` is a number too.

    >>> [plain(text) for text in ("1e-6", "0x1F", "1_000", "~", "true", "2024-01-01")]
    [1e-06, 31, 1000, None, True, '2024-01-01']
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text) or _BASED.fullmatch(text):
        number = int(text, 0) if _BASED.fullmatch(text) else int(text) if len(text) < 40 else 2**99
        if not -(2**63) <= number < 2**63:
            raise Refused("expected a whole number of 64 bits; got a larger one; put text in quotes")
        return number
    if _FLOAT.fullmatch(text):
        if math.isinf(number := float(text)):
            raise Refused(f"expected a number that fits in 64 bits; got {shown(text)}; write .inf for infinity")
        return number
    if _INF.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    if _NAN.fullmatch(text):
        raise Refused("expected a number; got .nan; leave the key out for its default")
    if _OLD_BOOL.fullmatch(text):
        # YAML 1.1 reads a boolean here and 1.2 reads text: passed on as text, `bf16: no` would switch bf16 on.
        raise Refused(f"expected true or false; got {text}; put it in quotes if text is meant")
    return text


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = "; ".join(part for part in (error.context, error.problem) if part)
        raise Refused(f"expected YAML; got text that is not: {said}", mark.line + 1 if mark else None) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Refused("expected text; got a control character; remove it", line) from error
    except (ValueError, OverflowError) as error:  # an escape or a version directive beyond what PyYAML can hold
        raise Refused(f"expected YAML; got text that is not: {error}") from error


@dataclass(slots=True)
class _Anchor:
    value: Any
    nodes: int


@dataclass(slots=True)
class _Builder:
    events: Iterator[yaml.Event]
    lines: Lines = field(default_factory=dict[Path, int])
    anchors: dict[str, _Anchor | None] = field(default_factory=dict[str, "_Anchor | None"])
    nodes: int = 0

    def document(self) -> tuple[Any, Lines]:
        value: Any = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Refused("expected one document; got another after ---; keep one", _line(event))
                value = self.node(next(self.events), ())
        return value, self.lines

    def node(self, event: yaml.Event, path: Path) -> Any:
        self.lines.setdefault(path, _line(event))
        try:
            return self._node(event, path)
        except Refused as error:
            if error.line is None:
                error.line, error.path = _line(event), path
            raise

    def _node(self, event: yaml.Event, path: Path) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        assert isinstance(event, yaml.NodeEvent)
        before = self.nodes
        self._count(1)
        if len(path) > MAX_DEPTH:
            raise Refused(f"expected at most {MAX_DEPTH} levels; got more; flatten it")
        if (tag := getattr(event, "tag", None)) is not None:
            raise Refused(f"expected plain YAML; got the tag {shown(tag)}; remove it")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(path)
        else:
            value = self._mapping(path)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchor(value, self.nodes - before)
        return value

    def _alias(self, name: str) -> Any:
        if name not in self.anchors:
            name = ascii_safe(name)
            raise Refused(f"expected an alias of an anchor above; got *{name}; define &{name} first")
        if (anchor := self.anchors[name]) is None:
            raise Refused(f"expected a finite document; got *{ascii_safe(name)} inside itself; remove the alias")
        self._count(anchor.nodes)
        return anchor.value

    def _count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise Refused(f"expected at most {MAX_NODES} values, aliases expanded; got more")

    def _sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or not event.value:
                raise Refused("expected a key of plain text", _line(event), path)
            key = event.value
            _printable(key)
            here = (*path, key)
            merges = key == "<<" and event.implicit[0]
            if key in own or (merges and merged is not None):
                raise Refused("expected each key once; got it twice; remove one", _line(event), here)
            self.lines[here] = _line(event)
            value = self.node(next(self.events), here)
            if merges:
                merged = _merge(value)
            else:
                own[key] = value
        return {**merged, **own} if merged else own


def _merge(value: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    for part in parts:
        if not isinstance(part, dict):
            raise Refused(f"expected a mapping, or a list of them, to merge; got {shown(part)}")
        merged = {**cast("dict[str, Any]", part), **merged}
    return merged


def _scalar(event: yaml.ScalarEvent) -> Any:
    _printable(event.value)
    return plain(event.value) if event.implicit[0] else event.value


def _printable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused("expected text; got half of a surrogate pair; remove the escape") from error


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1
