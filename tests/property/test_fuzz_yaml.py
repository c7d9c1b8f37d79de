"""Whatever stands in a file: a mix, or one clear line. Nothing else is raised, run, or waited for."""

import contextlib
import random
import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from curricula import ConfigError, CurriculumConfig, load_mix
from curricula.config import as_config, check_shares, resolved, share_bounds

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
FUZZ = settings(
    max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "mix.yaml"


def holds(file: Path, data: bytes) -> CurriculumConfig | None:
    file.write_bytes(data)
    try:
        mix = load_mix(file)
    except ConfigError as error:
        message = str(error)
        assert message.startswith(f"{file}")
        assert message.isprintable()
        assert len(message) < 1000
        return None
    again = resolved(mix)
    file.write_text(again, encoding="utf-8")
    assert load_mix(file) == mix
    return mix


@FUZZ
@given(st.binary(max_size=200))
@example(b"%YAML " + b"9" * 5000 + b".1\n---\n")
@example(b'"\\UFFFFFFFF"')
@example(b"\xff\xfe")
@example(b"? ? ? ? ?")
@example(b"&a &a a")
@example(b"<<: {<<: {<<: *b}}")
def test_bytes(file: Path, data: bytes) -> None:
    holds(file, data)


PIECES = [
    "environments", "curriculum", "success", "share", "floor", "cap", "levels", "source", "filters", "type", "trainer",
    "seed", "null", "~", "true", "no", "1e-6", "1e999", ".nan", ".inf", "0x", "99999999999999999999", "zero_variance",
    ": ", ":", "- ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", "&a ", "*a", "<<: ", "!!python/name:os.system ",
    "!!int ", "! ", "|\n  ", ">-\n", "'", '"', "\\x00", "\\ud800", "#", "---\n", "...\n", "%TAG ! x\n", "? ", "\t", "é",
    "\u2028", "\x85", "\ufeff", "@", "`",
]  # fmt: skip


@FUZZ
@given(st.lists(st.sampled_from(PIECES) | st.text(string.printable, max_size=3), max_size=40).map("".join))
def test_pieces_of_yaml(file: Path, text: str) -> None:
    holds(file, text.encode())


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(PIECES)
KEYS = st.sampled_from([*CurriculumConfig.model_fields, "bandit", "belief", *PIECES[:11]]) | st.text(max_size=5)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
MIXES = st.dictionaries(st.sampled_from(list(CurriculumConfig.model_fields)), TREES, max_size=4)


@FUZZ
@given(MIXES | TREES)
def test_any_structure(file: Path, tree: Any) -> None:
    holds(file, yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ConfigError):
        as_config(tree)


@FUZZ
@given(st.sampled_from(CONFIGS), st.integers(0, 2**32), st.integers(1, 6))
def test_mutations_of_mixes(file: Path, config: Path, seed: int, edits: int) -> None:
    holds(file, mutated(config.read_bytes(), random.Random(seed), edits))


def mutated(data: bytes, choose: random.Random, edits: int) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(edits):
        at = choose.randrange(len(lines))
        line = lines[at]
        cut = choose.randrange(len(line) + 1)
        kind = choose.randrange(6)
        if kind == 0:
            lines[at] = line[:cut] + choose.choice(PIECES).encode("utf-8", "surrogatepass") + line[cut:]
        elif kind == 1:
            lines[at] = line[:cut] + line[cut + choose.randrange(1, 4) :]
        elif kind == 2:
            lines[at] = line[:cut] + bytes([choose.randrange(256)]) + line[cut + 1 :]
        elif kind == 3:
            lines.insert(choose.randrange(len(lines)), line)
        elif kind == 4:
            del lines[at]
        else:
            lines[at] = b" " * choose.randrange(6) + line.lstrip()
        lines = lines or [b"\n"]
    return b"".join(lines)


SHARES = st.fixed_dictionaries(
    {}, optional={"floor": st.none() | st.floats(0, 0.4), "cap": st.floats(0.05, 1, exclude_min=True)}
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from("abcdef"), SHARES, max_size=6), st.integers(0, 3))
def test_bounds_admit_shares_that_sum_to_one(shares: dict[str, Any], more: int) -> None:
    try:
        mix = as_config({"environments": {name: {"share": share} for name, share in shares.items()}})
        names = [*shares, *(f"other {number}" for number in range(more))]
        check_shares(mix, names)
    except ConfigError:
        return
    floors, caps = share_bounds(mix, names)
    assert all(0 <= floor <= cap for floor, cap in zip(floors, caps, strict=True))
    if names:
        assert sum(floors) <= 1 + 1e-9
        assert sum(caps) >= 1 - 1e-9
