"""Keys are hashed once for a data set, and kept in files that may be damaged, shared, full or forbidden."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from curricula import CurriculaValueError, CurriculumConfig, PromptPool, row_key
from curricula_trl import keycache
from curricula_trl.keycache import cache_folder, cached_keys
from curricula_trl.rows import Rows

ROWS = 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(keycache, "LEAST_ROWS", ROWS)
    monkeypatch.setenv("CURRICULA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def made(count: int = ROWS, **more: Any) -> Dataset:
    names = [("maths", "sums")[i % 2] for i in range(count)]
    return Dataset.from_dict({"prompt": [f"{i}?" for i in range(count)], "environment": names, **more})


def pool(dataset: Any, **config: Any) -> PromptPool:
    return Rows(dataset, CurriculumConfig(**config)).pool()


def keys(count: int = ROWS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8)


def kept(name: str, wanted: np.ndarray, calls: list[str]) -> np.ndarray:
    def fill(digests: np.ndarray) -> None:
        calls.append(name)
        digests[...] = wanted

    return cached_keys(name, len(wanted), fill, lambda found: np.array_equal(found[::7], wanted[::7]))


def test_keys_are_those_of_each_row_and_come_from_the_file_the_second_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(messages=[[{"role": "user", "content": str(i)}] for i in range(ROWS)], mark=[None, 0.5] * (ROWS // 2))
    plain = pool([dict(row) for row in data])
    first = pool(data)
    assert first.fingerprint == plain.fingerprint
    assert first.key(3) == row_key(data[3], "sums", data.column_names)
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr("curricula_trl.rows.hash_rows", None)
    again = pool(data)
    assert isinstance(again._keys._digests.base, np.memmap)
    assert again.fingerprint == plain.fingerprint
    # Another column, another environment, another order: other keys, so hashed anew.
    for other in (data.remove_columns("mark"), data.rename_column("environment", "of"), data.shuffle(seed=1)):
        with pytest.raises(TypeError):
            pool(other)


def test_small_data_sets_and_a_cache_that_is_off_leave_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool(made(ROWS - 1))
    pool(made(uid=[str(i) for i in range(ROWS)]), key="uid")
    monkeypatch.setenv("CURRICULA_CACHE", "off")
    pool(made())
    assert not folder.exists()


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CURRICULA_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "curricula"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "curricula"
    monkeypatch.setenv("CURRICULA_CACHE", "OFF")
    assert cache_folder() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:100],
        lambda content: b"",
        lambda content: content + b"x",
        lambda content: content[:300] + bytes([content[300] ^ 1]) + content[301:],
        lambda content: b"\x93NUMPY" + b"\xff" * 60,
        lambda content: os.urandom(400),
    ],
)
def test_a_damaged_file_is_hashed_again_and_said(folder: Path, caplog: pytest.LogCaptureFixture, damage: Any) -> None:
    calls: list[str] = []
    wanted = keys()
    kept("a", wanted, calls)
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert np.array_equal(kept("a", wanted, calls), wanted)
    assert "is damaged" in caplog.text
    caplog.clear()
    assert np.array_equal(kept("a", wanted, calls), wanted)
    assert calls == ["a", "a"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_keys_of_other_rows_are_not_believed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    kept("a", keys(seed=0), calls)
    assert np.array_equal(kept("a", keys(seed=1), calls), keys(seed=1))
    assert "holds the keys of other rows" in caplog.text


def test_a_folder_that_cannot_be_is_said_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keycache, "LEAST_ROWS", ROWS)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CURRICULA_CACHE", str(tmp_path / "file" / "cache"))
    assert np.array_equal(kept("a", keys(), []), keys())
    assert "keys are not cached" in caplog.text


def test_a_failure_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept("a", keys(), [])

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert np.array_equal(kept("b", keys(seed=1), []), keys(seed=1))
    assert len(list(folder.iterdir())) == 1


def test_the_folder_is_bounded_and_rid_of_what_a_kill_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept("a", keys(), [])
    size = next(folder.iterdir()).stat().st_size
    monkeypatch.setattr(keycache, "MOST_BYTES", 2 * size)
    (folder / ".keys-old.tmp").write_bytes(b"x")
    (folder / ".keys-new.tmp").write_bytes(b"x")
    (folder / "of somebody else").write_bytes(b"x" * 9 * size)
    os.utime(folder / ".keys-old.tmp", (1, 1))
    for name, age in (("a", 50), ("b", 90), ("c", 10)):
        kept(name, keys(), [])
        newest = max(folder.glob("keys-*"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (time.time() - age, time.time() - age))
    calls: list[str] = []
    for name in "acb":
        kept(name, keys(), calls)
    assert calls == ["b"]
    assert (folder / ".keys-new.tmp").exists()
    assert not (folder / ".keys-old.tmp").exists()
    assert (folder / "of somebody else").exists()


@pytest.mark.slow
def test_several_processes_fill_it_together(folder: Path) -> None:
    code = (
        "import numpy as np; from curricula_trl import keycache; keycache.LEAST_ROWS = 1\n"
        "for name in 'abc' * 20:\n"
        "    wanted = np.full((5000, 16), ord(name), np.uint8)\n"
        "    check = lambda found: bool((found == wanted).all())\n"
        "    found = keycache.cached_keys(name, 5000, lambda keys: keys.fill(ord(name)), check)\n"
        "    assert np.array_equal(found, wanted)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
        assert b"damaged" not in said
    assert len(list(folder.iterdir())) == 3


def test_environments_of_every_kind_have_their_names(folder: Path) -> None:
    labels = ClassLabel(names=["zeta", "alpha"])
    features = Features({"prompt": Value("string"), "environment": labels})
    labelled = Dataset.from_dict({"prompt": ["a", "b", "c"], "environment": [0, 1, 0]}, features=features)
    assert pool(labelled).environments == ("alpha", "zeta")
    assert pool(labelled).codes.tolist() == [1, 0, 1]
    for values, names in (
        ([3, 11, 3], ("11", "3")),
        ([True, False, True], ("False", "True")),
        ([[1], [2], [1]], ("[1]", "[2]")),
    ):
        found = pool(Dataset.from_dict({"prompt": ["a", "b", "c"], "environment": values}))
        assert found.environments == names
    assert pool(Dataset.from_dict({"prompt": ["a", "b"]})).environments == ("all",)


@pytest.mark.parametrize(
    ("columns", "config", "message"),
    [
        ({"environment": ["a", None, "a"]}, {}, r"row 1: column 'environment' names no environment \(it holds None\)"),
        ({"environment": ["a", "a", ""]}, {}, r"row 2: column 'environment' names no environment \(it holds ''\)"),
        ({"environment": [1.0, 1.0, float("nan")]}, {}, "row 2: column 'environment' names no environment"),
        ({"uid": ["a", None, "b"]}, {"key": "uid"}, "row 1: key column 'uid' is empty"),
        (
            {"level": [0.5, 1.0, 1.0]},
            {"environments": {"all": {"levels": [0, 1]}}},
            "row 0: column 'level' holds 0.5; expected a whole number",
        ),
    ],
)
def test_rows_that_cannot_be_are_named(columns: Any, config: Any, message: str) -> None:
    with pytest.raises(CurriculaValueError, match=message):
        pool(Dataset.from_dict({"prompt": ["a", "b", "c"], **columns}), **config)


def test_levels_and_named_keys_are_read_as_columns() -> None:
    data = made(4, level=[3, None, 1, 3], uid=[9, 8, 7, 9])
    found = pool(data, key="uid", environments={"maths": {"levels": [1, 3]}, "sums": {}})
    assert found.keys_of(range(4)) == ["9", "8", "7", "9#2"]
    assert found.block_levels.tolist() == [1, 3, 0, 3]
    assert pool(made(2, uid=[0.5, 1.5]), key="uid").keys_of([0, 1]) == ["0.5", "1.5"]
