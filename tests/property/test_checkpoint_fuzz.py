"""Damaged and forged checkpoints: a right load or one clear error."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curricula import CheckpointError, Curriculum, GroupOutcome, PromptPool, load_state, save_state
from curricula.checkpoint import _sum

pytestmark = pytest.mark.slow
many = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))


def curriculum():
    return Curriculum(PromptPool(["a", "b"] * 10), {"monitor": {"window": 8}}, seed=1)


def state():
    run = curriculum()
    for rewards in ([0, 1], [1, 1], [0, 0.5]):
        draws = run.ask(4, group_size=2)
        run.tell([GroupOutcome(draw.ticket, rewards, tokens=[3, 4]) for draw in draws[:3]])
    return run.state_dict()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "state"
    save_state(folder, state())
    return folder, {name: (folder / name).read_bytes() for name in ("state.json", "arrays.npz")}


def load_or_refuse(folder):
    """Load a folder into a curriculum and use it; False where it was refused with one line."""
    run = curriculum()
    try:
        run.load_state_dict(load_state(folder))
    except CheckpointError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    run.tell([GroupOutcome(draw.ticket, [0, 1]) for draw in run.ask(3, group_size=2)])
    run.metrics()
    return True


edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "drop"]), st.floats(0, 1), st.integers(1, 255), st.integers(1, 64)
    ),
    min_size=1,
    max_size=4,
)


def edited(content, changes):
    data = bytearray(content)
    for kind, where, value, length in changes:
        place = min(int(where * len(data)), max(len(data) - 1, 0))
        if kind == "flip" and data:
            data[place] ^= value
        elif kind == "cut":
            del data[place:]
        elif kind == "insert":
            data[place:place] = bytes([value]) * length
        elif kind == "drop":
            del data[place : place + length]
    return bytes(data)


@given(st.sampled_from(["state.json", "arrays.npz"]), edits)
@many
def test_damage_to_a_file_is_refused(saved, name, changes):
    folder, contents = saved
    damaged = edited(contents[name], changes)
    (folder / name).write_bytes(damaged)
    try:
        taken = load_or_refuse(folder)
    finally:
        (folder / name).write_bytes(contents[name])
    # Only what the checksums cannot see (the end of the last line) may be missing.
    assert not taken or damaged.split() == contents[name].split()


def forge(folder, body, arrays):
    """Write files whose checksums are right."""
    sums = {"state": _sum(body), "arrays": _sum(arrays)}
    head = json.dumps({"format": 1, "checksums": sums}).encode()
    (folder / "state.json").write_bytes(head + b"\n" + body + b"\n")
    (folder / "arrays.npz").write_bytes(arrays)


@given(st.booleans(), edits)
@many
def test_damage_under_right_checksums_is_refused_or_harmless(saved, in_arrays, changes):
    folder, contents = saved
    body, arrays = contents["state.json"].splitlines()[1], contents["arrays.npz"]
    if in_arrays:
        arrays = edited(arrays, changes)
    else:
        body = edited(body, changes)
    forge(folder, body, arrays)
    try:
        load_or_refuse(folder)
    finally:
        for name, content in contents.items():
            (folder / name).write_bytes(content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just({"__array__": "a0"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def paths(value, path=()):
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*path, name)
            yield from paths(item, (*path, name))


@given(st.data(), json_values)
@many
def test_any_value_in_any_place_is_refused_or_harmless(saved, data, value):
    folder, contents = saved
    tree = json.loads(contents["state.json"].splitlines()[1])
    path = data.draw(st.sampled_from(list(paths(tree))))
    place = tree
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    forge(folder, json.dumps(tree).encode(), contents["arrays.npz"])
    try:
        load_or_refuse(folder)
    finally:
        for name, content in contents.items():
            (folder / name).write_bytes(content)


@given(st.binary(max_size=200), st.binary(max_size=200))
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_are_refused(tmp_path_factory, head, arrays):
    folder = Path(tmp_path_factory.getbasetemp()) / "any"
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_bytes(head)
    (folder / "arrays.npz").write_bytes(arrays)
    assert not load_or_refuse(folder)


states = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.builds(
        lambda shape, dtype: np.ones(shape, dtype=dtype),
        st.sampled_from([(), (0,), (2, 3)]),
        st.sampled_from("?bIlfdU"),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), states, max_size=4))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_state_comes_back_as_it_was(tmp_path_factory, tree):
    folder = Path(tmp_path_factory.getbasetemp()) / "round"
    save_state(folder, tree)
    assert repr(load_state(folder)) == repr(tree)
