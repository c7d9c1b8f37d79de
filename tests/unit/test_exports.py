import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import curricula


def test_everything_public_is_exported_and_nothing_else():
    public = {
        name for name, value in vars(curricula).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(curricula.__all__)
    assert curricula.__all__ == sorted(curricula.__all__, key=lambda name: (name[0].islower(), name))


def test_public_signatures_stay():
    shown = {
        name: str(inspect.signature(getattr(curricula.Curriculum, name)))
        for name in (
            "__init__",
            "ask",
            "tell",
            "cancel",
            "beliefs",
            "shares",
            "metrics",
            "state_dict",
            "load_state_dict",
        )
    }
    assert shown == {
        "__init__": "(self, pool: curricula.pool.PromptPool, config: curricula.config.schema.CurriculumConfig | "
        "collections.abc.Mapping[str, typing.Any] | None = None, seed: int | None = None) -> None",
        "ask": "(self, n: int, *, group_size: int, policy_version: int = 0) -> list[curricula.records.Draw]",
        "tell": "(self, outcomes: collections.abc.Iterable[curricula.records.GroupOutcome]) -> "
        "list[curricula.records.Verdict]",
        "cancel": "(self, tickets: collections.abc.Iterable[int]) -> None",
        "beliefs": str(inspect.signature(curricula.Curriculum.beliefs)),
        "shares": "(self) -> dict[str, float]",
        "metrics": "(self) -> dict[str, float]",
        "state_dict": "(self) -> dict[str, typing.Any]",
        "load_state_dict": "(self, state: collections.abc.Mapping[str, typing.Any]) -> None",
    }
    assert list(inspect.signature(curricula.PromptPool).parameters) == [
        "environments", "keys", "texts", "features", "levels"
    ]  # fmt: skip


def test_the_core_imports_no_host_and_nothing_heavy():
    heavy = ["torch", "trl", "vllm", "mlflow", "transformers", "datasets", "pyarrow", "scipy", "sklearn", "river"]
    program = f"import sys, curricula; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_version_is_the_packages():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert curricula.__version__ == project["version"]
