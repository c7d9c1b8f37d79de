import re
import tomllib
import warnings
from importlib import metadata
from pathlib import Path

import pytest

from curricula.cli import main
from curricula.errors import CurriculaError, MissingExtraError
from curricula.versions import TESTED, check, require

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("extra", TESTED)
def test_the_table_is_that_of_the_extras(extra: str) -> None:
    declared = dict(
        re.fullmatch(r"([\w-]+)(>=.*)", requirement).groups()
        for requirement in PROJECT["optional-dependencies"][extra]
        if not requirement.startswith("curricula-rl")
    )
    assert {host: declared[host] for host in TESTED[extra]} == TESTED[extra]


@pytest.mark.parametrize("extra", ["trl", "mlflow", "transformers", "envs", "cli"])
def test_what_is_installed_here_is_what_was_tested(extra: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require(extra)


def test_without_matplotlib_the_demo_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name.startswith("matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    (tmp_path / "mix.yaml").touch()
    for arguments, code in (
        (["demo", "--out", str(tmp_path / "out")], 1),
        (["validate", str(tmp_path / "mix.yaml")], 0),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    assert (
        capsys.readouterr().err
        == 'curricula: matplotlib is not installed: pip install -e ".[cli]" in a clone of curricula\n'
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("installed", ["2.13.0+cpu", "2.13", "2.13.9", "2.13.0rc1"])
def test_in_range(installed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check("trl", "torch", ">=2.13,<2.14", installed)


@pytest.mark.parametrize("installed", ["2.12.9", "2.9.1+cu128", "1.99"])
def test_too_old(installed: str) -> None:
    with pytest.raises(
        MissingExtraError, match=re.escape(f"torch {installed} is too old, >=2.13,<2.14 works")
    ) as caught:
        check("trl", "torch", ">=2.13,<2.14", installed)
    assert 'pip install -e ".[trl]"' in str(caught.value)
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, CurriculaError)


@pytest.mark.parametrize("installed", ["2.14", "2.14.0.dev20261001", "3.0"])
def test_newer_is_one_warning(installed: str) -> None:
    with pytest.warns(UserWarning, match="newer than what was tested") as caught:
        check("trl", "torch", ">=2.13,<2.14", installed)
    assert len(caught) == 1


def test_another_distribution_of_the_same_package_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "mlflow-skinny":
            return "3.17.2"
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    require("mlflow")
    with pytest.raises(MissingExtraError, match="vllm is not installed"):
        require("vllm")
