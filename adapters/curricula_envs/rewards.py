"""Reward functions: imported by name, and routed so that each environment's own function scores its rows."""

import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curricula.config.schema import shown
from curricula.errors import CurriculaRuntimeError
from curricula_envs.part import Part, Place, Reward


@contextmanager
def import_path(base: Path) -> Iterator[None]:
    """Puts the mix's folder first on the import path."""
    entry = str(base.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def import_reward(name: str | None, place: Place, base: Path) -> Reward:
    """Imports `module:function`; call it inside `import_path`.

    Raises:
        ConfigError: A name of another form, a module that does not import, or no such function in it.
    """
    at = ("reward",)
    if name is None:
        raise place.error(at, "expected module:function; got nothing; a data set needs a reward function")
    module_name, colon, attribute = name.partition(":")
    parts = [*module_name.split("."), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise place.error(at, f"expected module:function; got {shown(name)}")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        message = f"expected a module that imports; got {type(error).__name__} from {module_name}: {error}"
        raise place.error(at, message) from error
    _check_shadowed(module_name, module, place, base)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        there = ", ".join(sorted(n for n, v in vars(module).items() if inspect.isfunction(v))[:10]) or "none"
        message = f"expected a function of {module_name}; got {shown(attribute)}; its functions: {there}"
        raise place.error(at, message)
    return found


def _check_shadowed(name: str, module: Any, place: Place, base: Path) -> None:
    # A module of that name which was imported before is not the one beside the mix.
    here = base.joinpath(*name.split("."))
    loaded = getattr(module, "__file__", None)
    for file in (here.with_suffix(".py"), here / "__init__.py"):
        if file.is_file() and loaded is not None and not Path(loaded).samefile(file):
            message = f"expected {name} to be {file}; got {loaded}, imported before; rename the module"
            raise place.error(("reward",), message)


def is_async(function: Reward) -> bool:
    """Whether a reward function has to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def route(parts: Mapping[str, Part], environment_column: str) -> Reward:
    """One reward function, named "reward", that gives each row to its environment's function.

    Each function gets its own rows and columns only, and is not called where it has none. The result is
    async when one of the functions is.
    """
    router = _Router(parts, environment_column)
    if any(is_async(part.reward) for part in parts.values()):

        async def reward_async(**arguments: Any) -> list[float | None]:
            calls = router.calls(arguments)
            results = await asyncio.gather(*(_awaited(call()) for _, _, call in calls))
            return router.merge(arguments, calls, results)

        reward_async.__name__ = "reward"
        return reward_async

    def reward(**arguments: Any) -> list[float | None]:
        calls = router.calls(arguments)
        return router.merge(arguments, calls, [call() for _, _, call in calls])

    return reward


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


_Call = tuple[str, list[int], Callable[[], Any]]


class _Router:
    def __init__(self, parts: Mapping[str, Part], environment_column: str) -> None:
        self._parts = parts
        self._column = environment_column
        self._columns = {column for part in parts.values() for column in part.arguments.values()}
        self._extra: dict[str, list[Any]] = {}

    def calls(self, arguments: Mapping[str, Any]) -> list[_Call]:
        rows: dict[str, list[int]] = {}
        for row, environment in enumerate(arguments[self._column]):
            rows.setdefault(environment, []).append(row)
        self._extra = {}
        return [(name, chosen, self._call(name, chosen, arguments)) for name, chosen in rows.items()]

    def merge(self, arguments: Mapping[str, Any], calls: Sequence[_Call], results: Sequence[Any]) -> list[float | None]:
        merged: list[float | None] = [None] * len(arguments["completions"])
        for (name, rows, _), result in zip(calls, results, strict=True):
            function = getattr(self._parts[name].reward, "__name__", "its reward function")
            if not isinstance(result, Iterable):
                raise CurriculaRuntimeError(
                    f"environment {name}: expected a list with one reward for each completion from {function}; "
                    f"got {result!r}"
                )
            rewards = list(result)
            if len(rewards) != len(rows):
                raise CurriculaRuntimeError(
                    f"environment {name}: expected one reward for each of {len(rows)} completions from {function}; "
                    f"got {len(rewards)}"
                )
            for row, value in zip(rows, rewards, strict=True):
                merged[row] = value
        for column, values in self._extra.items():
            arguments["log_extra"](column, values)
        return merged

    def _call(self, name: str, rows: list[int], arguments: Mapping[str, Any]) -> Callable[[], Any]:
        part = self._parts.get(name)
        if part is None:
            raise CurriculaRuntimeError(f"expected an environment of the mix ({', '.join(self._parts)}); got {name!r}")
        size = len(arguments["completions"])
        own: dict[str, Any] = {}
        for key, value in arguments.items():
            if key in self._columns:
                continue
            per_row = isinstance(value, list) and len(value) == size
            own[key] = [value[row] for row in rows] if per_row else value
        for argument, column in part.arguments.items():
            if column in arguments:
                own[argument] = [arguments[column][row] for row in rows]
            elif column == "prompt":
                own[argument] = own["prompts"]
        if "log_extra" in arguments:
            own["log_extra"] = self._scattered(rows, size)
        return lambda: part.reward(**own)

    def _scattered(self, rows: list[int], size: int) -> Callable[[str, Sequence[Any]], None]:
        # TRL's table has a line for every completion; a function knows only its own.
        def log_extra(column: str, values: Sequence[Any]) -> None:
            whole = self._extra.setdefault(column, [None] * size)
            for row, value in zip(rows, values, strict=True):
                whole[row] = value

        return log_extra
