"""What is shipped, what it imports, and where things lie."""

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

import curricula

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [Path(package) for package in PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
HOSTS = ["accelerate", "datasets", "matplotlib", "mlflow", "peft", "reasoning_gym", "rich", "river", "sklearn"]
HOSTS += ["torch", "transformers", "trl", "typer", "vllm"]
TOP_LEVEL = {"curricula", "adapters", "configs", "tests", "examples", "pyproject.toml", "README.md", "Makefile"}
TOP_LEVEL |= {"LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"}
MODULES = {"pyyaml": "yaml", "scikit-learn": "sklearn"}  # distributions whose module has another name


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Names of the top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def imports_at_import(path: Path) -> set[str]:
    """Names of the top-level packages that are imported when the file is: outside functions, and not for types."""
    found, waiting = set(), list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def declared(requirements: list[str]) -> set[str]:
    names = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}
    return {MODULES.get(name, name) for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and the core's dependencies, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # The dependencies are linked in rather than downloaded once more.
    waiting, linked = list(PYPROJECT["project"]["dependencies"]), set()
    while waiting:
        name = re.match(r"[\w.-]+", waiting.pop())[0]
        if name in linked:
            continue
        linked.add(name)
        distribution = metadata.distribution(name)
        waiting += [line for line in distribution.requires or [] if "extra ==" not in line and ";" not in line]
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(distribution.locate_file(top))
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, text=True)
    return python


def run(python: Path | str, code: str, folder: Path) -> str:
    done = subprocess.run([str(python), "-I", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        entry_points = next(opened.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {package.name for package in PACKAGES}
    for package in PACKAGES:
        assert f"{package.name}/py.typed" in names
        assert f"{package.name}/__init__.py" in names
    assert "curricula = curricula.cli:main" in entry_points
    assert "[curricula.trackers]\nmlflow = curricula_mlflow:MLflowTracker" in entry_points
    assert "[vllm.general_plugins]\ncurricula = curricula_vllm.plugin:register" in entry_points
    assert "frozen_encoder = curricula_transformers:FrozenEncoder" in entry_points
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_core_alone_works_in_a_clean_environment(clean: Path, tmp_path: Path) -> None:
    code = (
        "import curricula as c\n"
        "pool = c.PromptPool(environments=['a', 'a', 'b', 'b'])\n"
        "curriculum = c.Curriculum(pool, {}, seed=1)\n"
        "draws = curriculum.ask(2, group_size=4)\n"
        "print(len(curriculum.tell([c.GroupOutcome(d.ticket, [0, 1, 1, 0]) for d in draws])))"
    )
    assert run(clean, code, tmp_path).strip() == "2"


def test_importing_the_core_loads_no_host(clean: Path, tmp_path: Path) -> None:
    dependencies = ", ".join(sorted(declared(PYPROJECT["project"]["dependencies"])))
    names = "import sys, json; print(json.dumps(sorted(sys.modules)))"
    bare = set(json.loads(run(clean, f"import {dependencies}; {names}", tmp_path)))
    for python in (clean, sys.executable):
        loaded = set(json.loads(run(python, f"import curricula; {names}", tmp_path)))
        assert not {name.partition(".")[0] for name in loaded} & set(HOSTS)
        # The time of an import goes with what it loads: hardly more than the dependencies themselves.
        own = {name for name in loaded - bare if name.partition(".")[0] == "curricula"}
        assert len(loaded - bare - own) < 150, sorted(loaded - bare - own)


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("curricula_trl", "trl"),
        ("curricula_mlflow", "mlflow"),
        ("curricula_transformers", "transformers"),
        ("curricula_vllm", "vllm"),
    ],
)
def test_a_missing_host_names_its_extra(clean: Path, tmp_path: Path, package: str, extra: str) -> None:
    code = f"try:\n    from {package} import *\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    said = run(clean, code, tmp_path)
    assert said.startswith("MissingExtraError")
    assert f'pip install -e ".[{extra}]"' in said


def test_an_editable_install_exposes_the_packages_only(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, json\n"
        "specs = [u.find_spec(n) for n in ('adapters', 'tests', 'examples', 'configs')]\n"
        "print(json.dumps([str(p) for s in specs if s for p in s.submodule_search_locations or []]))"
    )
    assert not [path for path in json.loads(run(sys.executable, code, tmp_path)) if Path(path).is_relative_to(ROOT)]


def test_all_is_what_is_exported() -> None:
    public = {name for name in vars(curricula) if not name.startswith("_")}
    modules = {name for name in public if type(vars(curricula)[name]).__name__ == "module"}
    assert set(curricula.__all__) - {"__version__"} == public - modules
    assert len(set(curricula.__all__)) == len(curricula.__all__)
    assert curricula.__version__ == PYPROJECT["project"]["version"]


def test_the_core_imports_what_it_declares() -> None:
    project = PYPROJECT["project"]
    core, cli = declared(project["dependencies"]), declared(project["optional-dependencies"]["cli"])
    own = {package.name for package in PACKAGES}
    found = set()
    for path in sources("curricula"):
        used = imports(path) - set(sys.stdlib_module_names) - {"", "curricula"}
        in_cli = (ROOT / "curricula" / "cli") in path.parents
        # pydantic and pydantic_core are one library in two distributions; the one pins the other.
        unknown = used - {"pydantic_core"} - core - (cli | own if in_cli else set())
        assert not unknown, f"{path.relative_to(ROOT)} imports {unknown}"
        found |= used
    assert core <= found, f"declared and not imported: {core - found}"


def test_the_command_line_imports_adapters_and_hosts_inside_functions_only(tmp_path: Path) -> None:
    own_hosts = {"typer", "rich", "matplotlib"}
    forbidden = (set(HOSTS) | {package.name for package in PACKAGES}) - own_hosts - {"curricula"}
    files = list(sources("curricula/cli"))
    assert any(imports(path) & forbidden for path in files)
    for path in files:
        assert not imports_at_import(path) & forbidden, path
    planted = tmp_path / "planted.py"
    planted.write_text("try:\n    import torch\nexcept ImportError:\n    pass\ndef f():\n    import trl\n")
    assert imports_at_import(planted) == {"torch"}


def test_nothing_is_unpickled_or_evaluated() -> None:
    forbidden = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for path in sources("curricula", "adapters", "examples"):
        assert not imports(path) & forbidden, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            call, keywords = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
            assert call not in {"eval", "exec", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}, path
            assert keywords.get("allow_pickle", "False") == "False", path
            if call == "torch.load":
                assert keywords.get("weights_only") == "True", path
            if call in {"np.load", "numpy.load"}:
                assert keywords.get("allow_pickle") == "False", path


def test_adapters_are_packages_of_their_own() -> None:
    assert not (ROOT / "adapters" / "__init__.py").exists(), "another project owns the import name"
    on_disk = {path.parent.relative_to(ROOT) for path in (ROOT / "adapters").glob("*/__init__.py")}
    assert {Path("curricula"), *on_disk} == set(PACKAGES)
    assert set(PYPROJECT["tool"]["importlinter"]["root_packages"]) == {package.name for package in PACKAGES}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the list of tracked files")
def test_the_top_level_is_the_agreed_one() -> None:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tops = {name.split("/")[0] for name in listing.split("\n") if name}
    assert {top for top in tops if not top.startswith(".")} == TOP_LEVEL


def test_the_commands_in_the_texts_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for text in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        named = set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT / text).read_text(encoding="utf-8"), re.MULTILINE))
        assert named, text
        assert named <= targets, text
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1] == "make test"


def test_the_picture_of_the_house_is_true() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = next(block for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) if "adapters/" in block)
    folder, drawn = Path(), set()
    for line in picture.splitlines():
        names = re.split(r"\s{2,}", line.strip())[0].split(", ")
        folder = folder if line.startswith(" ") else Path(names[0])
        drawn |= {folder / name if line.startswith(" ") else Path(name) for name in names}
    modules = {path.relative_to(ROOT).with_suffix("") for path in (ROOT / "curricula").glob("[!_]*.py")}
    packages = {
        path.parent.relative_to(ROOT) for top in ("curricula", "adapters") for path in (ROOT / top).glob("*/*.py")
    }
    assert drawn == modules | packages | {Path(name) for name in TOP_LEVEL if (ROOT / name).is_dir()}


def test_links_and_files_named_in_the_texts_exist() -> None:
    for text in ("README.md", "CONTRIBUTING.md", "tests/INPUTS.md"):
        path = ROOT / text
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{text}: {target}"


def test_the_mixes_in_the_readme_are_mixes(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    mixes = []
    for block in blocks:
        path = tmp_path / "mix.yaml"
        path.write_text(block, encoding="utf-8")
        mixes.append(curricula.load_mix(path))
    # What the first one says of the curriculum is what holds without it.
    defaults = curricula.CurriculumConfig()
    assert mixes[0].curriculum == defaults.curriculum
    assert mixes[0].monitor == defaults.monitor
    assert mixes[1].trainer["learning_rate"] == 1e-6


def test_the_mix_to_train_without_a_script_needs_only_what_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curricula_envs import load_environments
    from curricula_trl.arguments import check_arguments_of

    section = (ROOT / "README.md").read_text(encoding="utf-8").split("### Without a script")[1].split("\n## ")[0]
    (mix,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    (rewards,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (row,) = re.findall(r'`(\{"question".*?\})`', section)
    (tmp_path / "mix.yaml").write_text(mix, encoding="utf-8")
    (tmp_path / "rewards.py").write_text(rewards, encoding="utf-8")
    (tmp_path / "maths.jsonl").write_text(f"{row}\n", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "rewards", raising=False)
    config = curricula.load_mix(tmp_path / "mix.yaml")
    mixed = load_environments(config, tmp_path)
    assert dict(mixed.sizes) == {"sums": 2000, "maths": 1}
    check_arguments_of(mixed.config)
    functions: dict[str, Callable[..., list[float]]] = {}
    exec(rewards, functions)
    assert functions["exact"](["It is 144", "It is 12", ""], answer=["144"] * 3) == [1.0, 0.0, 0.0]


def test_validating_a_mix_imports_only_the_hosts_that_it_names(tmp_path: Path) -> None:
    heavy = "torch", "transformers", "trl", "sklearn"
    (tmp_path / "mix.yaml").write_text("{}", encoding="utf-8")
    code = "import sys; from curricula.cli.validate import command; command(Path('mix.yaml'))"
    said = run(
        sys.executable, f"from pathlib import Path; {code}; print([n for n in {heavy} if n in sys.modules])", tmp_path
    )
    assert said.splitlines()[-1] == "[]"
