import json
import os
import shutil

import numpy as np
import pytest

from curricula import CheckpointError, load_state, save_state

STATE = {
    "text": "ü\ud800",
    "numbers": [1, -2.5, 1e-300, 2**200, True, None],
    "nested": {"floats": np.array([0.1, np.nan, np.inf]), "empty": np.zeros((0, 3), dtype=np.int32), "deep": {"a": []}},
    "flags": np.array([True, False]),
}


def assert_equal(one, other):
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_equal(one[name], other[name])
    else:
        assert one == other
        assert type(one) is type(other)


def test_what_is_saved_is_loaded(tmp_path):
    save_state(tmp_path / "a" / "b", STATE)
    assert_equal(load_state(tmp_path / "a" / "b"), STATE)
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["arrays.npz", "state.json"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_an_older_state_is_replaced_as_a_whole(tmp_path):
    save_state(tmp_path / "s", STATE)
    (tmp_path / "s" / "left.over").write_text("x")
    save_state(str(tmp_path / "s"), {"new": np.arange(3)})
    assert_equal(load_state(str(tmp_path / "s")), {"new": np.arange(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert len(list((tmp_path / "s").iterdir())) == 2


@pytest.mark.parametrize("fatal", range(1, 4))
def test_a_crash_at_any_rename_leaves_a_whole_state(tmp_path, monkeypatch, fatal):
    save_state(tmp_path / "s", {"version": 1})
    calls, rename = [], os.rename

    def crash(*arguments, **keywords):
        calls.append(arguments)
        if len(calls) == fatal:
            raise KeyboardInterrupt
        return rename(*arguments, **keywords)

    monkeypatch.setattr(os, "rename", crash)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    if fatal < 3:
        with pytest.raises(KeyboardInterrupt):
            save_state(tmp_path / "s", {"version": 2})
    else:
        save_state(tmp_path / "s", {"version": 2})
    monkeypatch.undo()
    assert load_state(tmp_path / "s") == {"version": 1 if fatal < 3 else 2}
    save_state(tmp_path / "s", {"version": 3})
    assert load_state(tmp_path / "s") == {"version": 3}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": {"b": object()}}, r"state\.a\.b: expected JSON values or numpy arrays; got object"),
        ({"a": np.array([None])}, r"state\.a: expected an array of numbers"),
        ({"a": [{1: 2}]}, r"state\.a\[0\]: expected names"),
        ({"__array__": "a0"}, "expected names other than '__array__'"),
        ({"a": np.float32(1)}, "got float32"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path, state, message):
    with pytest.raises(CheckpointError, match=message):
        save_state(tmp_path / "s", state)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        load_state(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError):
        load_state(tmp_path / "file")


def test_a_missing_file_another_format_and_swapped_files_are_refused(tmp_path):
    for name in "ab":
        save_state(tmp_path / name, {"x": np.arange(3), "name": name})
    other = json.loads((tmp_path / "a" / "state.json").read_bytes().splitlines()[0])
    body = (tmp_path / "a" / "state.json").read_bytes().splitlines()[1]
    (tmp_path / "a" / "state.json").write_bytes(json.dumps({**other, "format": 2}).encode() + b"\n" + body)
    with pytest.raises(CheckpointError, match="expected checkpoint format 1; got 2"):
        load_state(tmp_path / "a")
    (tmp_path / "b" / "arrays.npz").unlink()
    with pytest.raises(CheckpointError, match="no such file"):
        load_state(tmp_path / "b")
    save_state(tmp_path / "a", {"x": np.arange(3)})
    save_state(tmp_path / "b", {"x": np.arange(4)})
    shutil.copy(tmp_path / "a" / "arrays.npz", tmp_path / "b" / "arrays.npz")
    with pytest.raises(CheckpointError, match="checksums"):
        load_state(tmp_path / "b")


def test_a_pickle_in_the_arrays_is_never_opened(tmp_path, monkeypatch):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    save_state(tmp_path / "s", {"x": np.arange(3)})
    with (tmp_path / "s" / "arrays.npz").open("wb") as file:
        np.savez(file, a0=np.array([Evil()], dtype=object))
    head, body = (tmp_path / "s" / "state.json").read_bytes().splitlines()
    from curricula import checkpoint

    sums = {"state": checkpoint._sum(body), "arrays": checkpoint._sum((tmp_path / "s" / "arrays.npz").read_bytes())}
    forged = json.dumps({**json.loads(head), "checksums": sums}).encode()
    (tmp_path / "s" / "state.json").write_bytes(forged + b"\n" + body + b"\n")
    with pytest.raises(CheckpointError, match="allow_pickle"):
        load_state(tmp_path / "s")
    assert not (tmp_path / "evil").exists()
