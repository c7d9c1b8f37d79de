"""All environments of a mix in one data set, with one reward function."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import (
    Audio,
    Dataset,
    Features,
    Image,
    Value,
    Video,
    concatenate_datasets,
    disable_progress_bars,
    enable_progress_bars,
    is_progress_bar_enabled,
)

from curricula.config import CurriculumConfig, check_shares
from curricula.config.explain import config_error
from curricula.keys import row_key, stable_keys
from curricula_envs.part import LEVEL, PROMPT, UID, Part, Place, Reward
from curricula_envs.rewards import import_path, import_reward, route
from curricula_envs.sources import DatasetSource, Source, source_of
from curricula_envs.tables import table_part
from curricula_envs.tasks import task_part

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Mixed:
    """What a mix came to.

    Attributes:
        dataset: Columns prompt, environment (named by the mix's `environment_column`), level, uid (named by its
            `key`), and each source's own, None in the rows of other sources. A source's column whose name is
            taken gets "own_" before it.
        reward: A reward function for TRL.
        config: The mix with every default of its sources, and with `key` set.
        sizes: Prompts of each environment.
    """

    dataset: Dataset
    reward: Reward
    config: CurriculumConfig
    sizes: Mapping[str, int]


def load_environments(
    config: CurriculumConfig, base: str | Path = ".", *, on_environment: Callable[[str], object] = lambda _: None
) -> Mixed:
    """Makes or reads the prompts of every environment, and imports the reward functions.

    Reward functions are code: this imports the modules that the mix names, with `base` first on the path.

    Args:
        config: A mix whose environments all have a source.
        base: Folder of the mix, where relative paths start.
        on_environment: Called with the name of each environment before its prompts are made or read.

    Raises:
        ConfigError: One line with the file, the key, what was expected and what was given.
    """
    base = Path(base)
    names = list(config.environments)
    if not names:
        place = Place(config, "NAME")
        raise place.error((), "expected at least one environment; got none; add one with a source")
    sources = {name: source_of(config, name) for name in names}
    check_shares(config, names)
    uid, column = config.key or UID, config.environment_column
    _check_columns(config, column, uid)
    parts: dict[str, Part] = {}
    with import_path(base), _quiet():
        for name, source in sources.items():
            on_environment(name)
            parts[name] = _part(config, name, source, base, frozenset({PROMPT, LEVEL, column, uid}))
        _check_formats(config, parts)
        _check_levels(config, parts)
        types = _types(config, parts)
        dataset = concatenate_datasets([_complete(name, part, types, column, uid) for name, part in parts.items()])
        leading = [PROMPT, column, LEVEL, uid]
        dataset = dataset.select_columns([*leading, *(key for key in types if key not in leading)])
    return Mixed(
        dataset=dataset,
        reward=route(parts, column),
        config=_resolved(config, sources, uid),
        sizes={name: len(part.dataset) for name, part in parts.items()},
    )


def _part(config: CurriculumConfig, name: str, source: Source, base: Path, reserved: frozenset[str]) -> Part:
    place = Place(config, name)
    given = config.environments[name].reward
    if isinstance(source, DatasetSource):
        return table_part(source, place, base, import_reward(given, place, base), reserved)
    part = task_part(source, place)
    if given is None:
        return part
    return Part(part.dataset, import_reward(given, place, base), part.arguments, part.chat)


def _check_columns(config: CurriculumConfig, column: str, uid: str) -> None:
    for key, name, others in (("environment_column", column, (PROMPT, LEVEL)), ("key", uid, (PROMPT, LEVEL, column))):
        if name in others:
            message = f"expected a name other than {', '.join(others)}; got {name}; leave it out"
            raise config_error(config.origin, (key,), message)


def _check_formats(config: CurriculumConfig, parts: Mapping[str, Part]) -> None:
    first, *others = parts
    for name in others:
        if parts[name].chat != parts[first].chat:
            words = {True: "chat", False: "text"}
            message = (
                f"expected prompts of one format in all environments; got {words[parts[name].chat]}, and "
                f"{words[parts[first].chat]} in {first}; set format: chat in both"
            )
            raise Place(config, name).error(("source", "format"), message)


def _check_levels(config: CurriculumConfig, parts: Mapping[str, Part]) -> None:
    for name, part in parts.items():
        if (window := config.environments[name].levels) is None:
            continue
        present = {level for level in part.dataset.unique(LEVEL) if level is not None}
        place = Place(config, name)
        if not present:
            message = f"expected no levels, its prompts have none; got {list(window)}; give the source levels too"
            raise place.error(("levels",), message)
        if not any(window[0] <= level <= window[1] for level in present):
            message = f"expected levels between {min(present)} and {max(present)}; got {list(window)}"
            raise place.error(("levels",), message)


def _types(config: CurriculumConfig, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Types of the sources' columns; numbers and texts of different widths meet at the widest."""
    types: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for name, part in parts.items():
        for column, feature in part.dataset.features.items():
            if column not in types:
                types[column], seen[column] = feature, name
            elif (common := _common(types[column], feature)) is None:
                message = (
                    f"expected column {column!r} to be of one type in all environments; got {_name(feature)}, and "
                    f"{_name(types[column])} in {seen[column]}; rename one"
                )
                raise Place(config, name).error(("source",), message)
            else:
                types[column] = common
    return types


def _common(one: Any, other: Any) -> Any:
    if one == other:
        return one
    if not (isinstance(one, Value) and isinstance(other, Value)):
        return None
    kinds = {_kind(one.dtype), _kind(other.dtype)}
    if "null" in kinds:
        return other if _kind(one.dtype) == "null" else one
    if kinds == {"text"}:
        return Value("string")
    if kinds == {"whole"}:
        return Value("int64")
    return Value("float64") if kinds == {"whole", "real"} or kinds == {"real"} else None


def _kind(dtype: str) -> str:
    if dtype in ("string", "large_string"):
        return "text"
    if dtype.lstrip("u").startswith("int"):
        return "whole"
    return "real" if dtype.startswith("float") else dtype


def _name(feature: Any) -> str:
    return feature.dtype if isinstance(feature, Value) else type(feature).__name__


def _complete(name: str, part: Part, types: Mapping[str, Any], column: str, uid: str) -> Dataset:
    table = part.dataset
    keys = part.keys if part.keys is not None else list(_hashed(table, name))
    own = Features({key: types[key] for key in table.features})
    if own != table.features:
        table = table.cast(own)
    ours = {column: ([name] * len(table), Value("string")), uid: (stable_keys(keys), Value("string"))}
    for key, (values, feature) in ours.items():
        table = table.add_column(key, values, feature=feature)
    for key, feature in types.items():
        if key not in table.features:
            table = table.add_column(key, [None] * len(table), feature=feature)
    return table


def _hashed(table: Dataset, environment: str) -> Iterator[str]:
    stable = [key for key, feature in table.features.items() if not isinstance(feature, Image | Audio | Video)]
    plain: Any = table.select_columns(stable).with_format("arrow")
    for batch in plain.iter(batch_size=_BATCH):
        for row in batch.to_pylist():
            yield row_key(row, environment, stable)


@contextmanager
def _quiet() -> Iterator[None]:
    shown = is_progress_bar_enabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()


def _resolved(config: CurriculumConfig, sources: Mapping[str, Source], uid: str) -> CurriculumConfig:
    environments = {
        name: config.environments[name].model_copy(update={"source": source.model_dump()})
        for name, source in sources.items()
    }
    return config.model_copy(update={"environments": environments, "key": uid})
