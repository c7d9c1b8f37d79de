"""Reading a mix from a file or a mapping, with one clear line for whatever is wrong."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from curricula.config.explain import config_error, explain
from curricula.config.parse import MAX_BYTES, Refused, parse
from curricula.config.predictors import check_predictors
from curricula.config.schema import CurriculumConfig, Origin, shown
from curricula.config.shares import check_floors, check_shares
from curricula.config.trackers import check_trackers
from curricula.errors import ConfigError


def load_mix(path: str | os.PathLike[str]) -> CurriculumConfig:
    """Read a mix. An empty file is the mix of all defaults.

    Raises:
        ConfigError: The file, the line and the key, what was expected there, and what was given.
    """
    file = Origin(os.fsdecode(path))
    try:
        value, lines = parse(_text(file))
    except Refused as error:
        raise config_error(file, error.path, str(error), line=error.line) from None
    return _validated(value, Origin(file.where, lines))


def as_config(value: CurriculumConfig | Mapping[str, Any] | None) -> CurriculumConfig:
    """A mix from what users pass: a mix as it is, a mapping validated, None as all defaults.

    Raises:
        ConfigError: The key, what was expected, and what was given.

    >>> as_config({"seed": "one"})
    Traceback (most recent call last):
    curricula.errors.ConfigError: config: seed: expected a whole number; got 'one'
    """
    if isinstance(value, CurriculumConfig):
        return value
    return _validated(value, Origin())


def _validated(value: object, origin: Origin) -> CurriculumConfig:
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise config_error(origin, (), f"expected a mapping of keys; got {shown(value)}")
    try:
        config = CurriculumConfig.model_validate(value).from_origin(origin)
    except ValidationError as error:
        raise explain(error, origin, CurriculumConfig) from None
    check_floors(config)
    check_trackers(config)
    check_predictors(config)
    if config.environments and all(environment.source is not None for environment in config.environments.values()):
        check_shares(config, list(config.environments))
    return config


def _text(file: Origin) -> str:
    path = Path(file.where)
    try:
        if path.is_dir():
            raise _unreadable(file, "a directory", "name the file in it")
        if not path.exists():
            raise _unreadable(file, "no such file", "check the path")
        if not path.is_file():
            raise _unreadable(file, "something that is not a regular file", "save the mix as a file")
        with path.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "a path that cannot be"
        raise _unreadable(file, reason.lower(), "check the path and its permissions") from None
    if len(data) > MAX_BYTES:
        raise _unreadable(file, f"more than {MAX_BYTES} bytes", "is this the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise config_error(file, (), "expected UTF-8 text; got other bytes; save it as UTF-8", line=line) from None


def _unreadable(file: Origin, got: str, hint: str) -> ConfigError:
    return config_error(file, (), f"expected a YAML file; got {got}; {hint}")
