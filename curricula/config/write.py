"""A resolved mix as YAML: every default written out, to be printed, logged and saved."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml

from curricula.config.parse import Refused, plain
from curricula.config.schema import CurriculumConfig, EnvironmentConfig
from curricula.config.shares import share_bounds


def resolved(config: CurriculumConfig, environments: Sequence[str] | None = None) -> str:
    """The mix with every key written out; `load_mix` reads it back to the same mix.

    Args:
        config: The mix.
        environments: Names of all environments where they are known: those that the mix does not mention are
            added, and missing floors are filled in.

    >>> print(resolved(CurriculumConfig()).splitlines()[0])
    environments: {}
    """
    tree = _tree(config.model_dump())
    if environments is not None:
        floors, _ = share_bounds(config, environments)
        default = _tree(EnvironmentConfig().model_dump())
        tree["environments"] = {name: tree["environments"].get(name, default) for name in environments}
        for name, floor in zip(environments, floors, strict=True):
            entry = tree["environments"][name]
            tree["environments"][name] = {**entry, "share": {**entry["share"], "floor": floor}}
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=110)


def _tree(value: Any) -> Any:
    # `trainer` and `source` may hold anything when the mix came as a mapping: what YAML lacks is shown as text.
    if isinstance(value, Mapping):
        return {str(key): _tree(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_tree(item) for item in cast("list[Any] | tuple[Any, ...]", value)]
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


class _Dumper(yaml.SafeDumper):
    """Quotes text by our reading of plain scalars, which is not PyYAML's."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if kind is not yaml.ScalarNode or value is None or not implicit[0]:
            return super().resolve(kind, value, implicit)  # pyright: ignore
        try:
            meaning = plain(value)
        except Refused:
            meaning = None
        if isinstance(meaning, str):
            return "tag:yaml.org,2002:str"
        names = {bool: "bool", int: "int", float: "float", type(None): "null"}
        return f"tag:yaml.org,2002:{names[type(meaning)]}"
