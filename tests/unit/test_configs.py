from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from curricula.config import CurriculumConfig, EnvironmentConfig, load_mix, resolved
from curricula.config.parse import parse
from curricula_envs.sources import SOURCES, source_of

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize("file", sorted(CONFIGS.rglob("*.yaml")), ids=lambda file: file.name)
def test_every_config_is_a_mix(file: Path, tmp_path: Path) -> None:
    mix = load_mix(file)
    for name, environment in mix.environments.items():
        if environment.source is not None:
            source_of(mix, name)
    if mix.trainer:
        from curricula_trl.arguments import check_arguments_of

        check_arguments_of(mix)
    (tmp_path / "again.yaml").write_text(resolved(mix), encoding="utf-8")
    assert load_mix(tmp_path / "again.yaml") == mix


def test_the_reference_shows_every_key_with_its_default() -> None:
    text = (CONFIGS / "reference.yaml").read_text(encoding="utf-8")
    raw, _ = parse(text)
    environments = raw.pop("environments")
    assert _shown(raw, CurriculumConfig, {"environments"}) == []
    assert CurriculumConfig.model_validate(raw) == CurriculumConfig()
    for environment in environments.values():
        source = environment.pop("source")
        assert _shown(environment, EnvironmentConfig, {"source"}) == []
        assert _shown(source, SOURCES[source["type"]], set()) == []
    assert [source["type"] for source in (e.source for e in load_mix(CONFIGS / "reference.yaml").environments.values()) if source] == list(SOURCES)  # fmt: skip  # noqa: E501


def _shown(raw: dict[str, Any], model: type[BaseModel], apart: set[str]) -> list[str]:
    """Keys that are missing, or shown with another value than their default."""
    wrong: list[str] = []
    for name, field in model.model_fields.items():
        if name in apart:
            continue
        if name not in raw:
            wrong.append(f"{model.__name__}.{name} is missing")
            continue
        if field.is_required() or (model is EnvironmentConfig and name == "reward"):
            continue
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            wrong += _shown(raw[name], type(default), set())
        elif isinstance(default, tuple):
            wrong += [
                w for item, given in zip(default, raw[name], strict=True) for w in _shown(given, type(item), set())
            ]
        elif raw[name] != default:
            wrong.append(f"{model.__name__}.{name} is {raw[name]!r}, by default {default!r}")
    return wrong
