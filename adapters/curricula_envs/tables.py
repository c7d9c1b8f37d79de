"""Environments from data sets on disk."""

import glob
from pathlib import Path
from typing import Any, cast

import datasets
from datasets import Dataset, DatasetDict, Features, List, Value

from curricula.config.explain import did_you_mean
from curricula.config.schema import shown
from curricula_envs.part import LEVEL, PROMPT, Part, Place, Reward, prompt_feature, text_prompt
from curricula_envs.sources import DatasetSource

_READERS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".arrow": "arrow"}
_TRL = {
    "prompts",
    "completion",
    "completions",
    "completion_ids",
    "trainer_state",
    "log_extra",
    "log_metric",
    "environments",
}
_OWN = "own_"  # put before a source's column whose name is one of ours


def table_part(source: DatasetSource, place: Place, base: Path, reward: Reward, reserved: frozenset[str]) -> Part:
    """Reads an environment's prompts.

    Args:
        source: What to read.
        place: The environment, for errors.
        base: Where relative paths start.
        reward: Scores the completions.
        reserved: Columns that the mixed data set has for itself.

    Raises:
        ConfigError: A file that cannot be read, a split or a column that is not there, or a prompt that is none.
    """
    table = _read(source, place, base / Path(source.path).expanduser())
    for key in ("prompt", "answer", "key", "level"):
        column = getattr(source, key)
        if column is not None and column not in table.column_names:
            there = f"it has {', '.join(table.column_names)}"
            raise place.error(("source", key), f"expected a column of {source.path}; got {shown(column)}; {there}")
    if len(table) == 0:
        raise place.error(("source", "path"), f"expected prompts in {source.path}; got none")
    keys = None if source.key is None else _keys(source, place, table)
    names = _names(source, table.column_names, reserved)
    renamed = table.rename_columns({old: new for old, new in names.items() if old != new})
    renamed, chat = _prompts(renamed, source, place)
    renamed = _with_level(renamed, source, place)
    # A function gets a column under the name that it has in the source, where TRL leaves that name free.
    arguments = {new if old in _TRL or old == PROMPT else old: new for old, new in names.items()}
    arguments.setdefault(LEVEL, LEVEL)
    if source.answer is not None:
        if "answer" in names:  # displaced by the column that the mix calls the answer
            arguments[names["answer"]] = names["answer"]
        arguments["answer"] = names[source.answer]
    arguments.pop(PROMPT, None)  # TRL gives `prompts` itself
    return Part(renamed, reward, arguments, chat, keys)


def _names(source: DatasetSource, columns: list[str], reserved: frozenset[str]) -> dict[str, str]:
    """New name of every column of the source."""
    chosen = {source.prompt: PROMPT}
    if source.level is not None:
        chosen.setdefault(source.level, LEVEL)
    if source.answer is not None:
        chosen.setdefault(source.answer, "answer")
    taken = {*reserved, *_TRL, *chosen.values()}
    names: dict[str, str] = {}
    for column in columns:
        new = chosen.get(column, column)
        while column not in chosen and (new in taken or (new != column and new in columns)):
            new = _OWN + new
        names[column] = new
    return names


def _read(source: DatasetSource, place: Place, path: Path) -> Dataset:
    at = ("source", "path")
    if not path.exists():
        raise place.error(at, f"expected a file or a folder; got {shown(str(path))}; check the path")
    reader = _READERS.get(path.suffix)
    if path.is_file() and reader is None:
        raise place.error(at, f"expected a file of type {', '.join(_READERS)}, or a folder; got {shown(path.name)}")
    try:
        if path.is_file():
            loaded: Any = datasets.load_dataset(
                str(reader), data_files=glob.escape(str(path)), split=source.split or "train"
            )
        elif (path / "dataset_dict.json").exists() or (path / "state.json").exists():
            loaded = datasets.load_from_disk(str(path))
        else:
            loaded = datasets.load_dataset(str(path))
    except Exception as error:
        cause = error.__cause__ or error
        message = f"expected a data set that can be read; got {type(cause).__name__}: {cause}"
        raise place.error(at, message) from None
    if isinstance(loaded, DatasetDict):
        return _split(loaded, source, place)
    if path.is_dir() and source.split is not None:
        message = f"expected no split, since {source.path} holds one data set; got {shown(source.split)}; remove it"
        raise place.error(("source", "split"), message)
    return cast(Dataset, loaded)


def _split(loaded: DatasetDict, source: DatasetSource, place: Place) -> Dataset:
    names = [str(name) for name in loaded]
    wanted = source.split if source.split is not None else "train" if "train" in names else names[0]
    if source.split is None and len(names) > 1 and "train" not in names:
        raise place.error(("source", "split"), f"expected one of {', '.join(names)}; got nothing; choose one")
    if wanted not in names:
        message = f"expected a split of {source.path}; got {shown(wanted)}; {did_you_mean(wanted, names)}"
        raise place.error(("source", "split"), message)
    return loaded[wanted]


def _keys(source: DatasetSource, place: Place, table: Dataset) -> list[str]:
    values = table[str(source.key)][:]
    for row, value in enumerate(values):
        if value is None or isinstance(value, list | dict):
            raise place.error(("source", "key"), f"expected a key in every row; got {shown(value)} in row {row}")
    return [f"{place.environment}/{value}" for value in values]


def _prompts(table: Dataset, source: DatasetSource, place: Place) -> tuple[Dataset, bool]:
    feature: Any = table.features[PROMPT]
    inner: Any = feature.feature if isinstance(feature, List) else None
    dtype = feature.dtype if isinstance(feature, Value) else ""
    is_text = dtype in ("string", "large_string")
    is_chat = isinstance(inner, dict) and {"role", "content"} <= set(inner)
    if not (is_text or is_chat):
        message = f"expected text or lists of messages in column {shown(source.prompt)}; got {_type(feature)}"
        raise place.error(("source", "prompt"), message)
    if is_chat and source.format == "text":
        message = f"expected chat, column {shown(source.prompt)} holds messages; got text; remove it"
        raise place.error(("source", "format"), message)
    for row, prompt in enumerate(table[PROMPT]):
        if not prompt:
            raise place.error(("source", "prompt"), f"expected a prompt in every row; got {shown(prompt)} in row {row}")
    chat = is_chat or source.format == "chat"
    instructions = source.instructions
    if is_chat and instructions is not None:
        system = {**dict.fromkeys(inner), "role": "system", "content": instructions}
        table = table.map(lambda prompt: {PROMPT: [system, *prompt]}, features=table.features, **_MAP)
    elif is_text and (chat or instructions is not None or dtype != "string"):
        features = Features({**table.features, PROMPT: prompt_feature(chat)})
        table = table.map(lambda prompt: {PROMPT: text_prompt(prompt, instructions, chat)}, features=features, **_MAP)
    return table, chat


def _with_level(table: Dataset, source: DatasetSource, place: Place) -> Dataset:
    if source.level is None:
        return table.add_column(LEVEL, [None] * len(table), feature=Value("int64"))
    feature = table.features[LEVEL]
    if not (isinstance(feature, Value) and feature.dtype.lstrip("u").startswith("int")):
        message = f"expected whole numbers in column {shown(source.level)}; got {_type(feature)}"
        raise place.error(("source", "level"), message)
    return table if feature.dtype == "int64" else table.cast_column(LEVEL, Value("int64"))


def _type(feature: Any) -> str:
    return feature.dtype if isinstance(feature, Value) else type(feature).__name__


_MAP: dict[str, Any] = {"input_columns": [PROMPT], "keep_in_memory": True, "load_from_cache_file": False}
