"""Saving and loading of state: JSON and plain arrays, checksummed, replaced as a whole."""

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from curricula.errors import CheckpointError

FORMAT = 1
_STATE, _ARRAYS = "state.json", "arrays.npz"
_MARK = "__array__"


def save_state(folder: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state to a folder: `state.json`, and `arrays.npz` for its numpy arrays.

    The folder is written beside its final place, flushed to disk and renamed, so that a crash at any moment leaves
    the old state or the new one. A folder that exists is replaced.

    Args:
        folder: Where to; its parents are made.
        state: Nested mappings and lists of JSON values and numpy arrays (no object arrays).

    Raises:
        CheckpointError: A value that is neither JSON nor a plain array.
    """
    target = Path(folder).absolute()
    arrays: dict[str, NDArray[Any]] = {}
    tree = _flatten(state, "state", arrays)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **cast(Any, arrays))
    body = json.dumps(tree, separators=(",", ":"))
    sums = {"state": _sum(body.encode()), "arrays": _sum(packed.getvalue())}
    text = json.dumps({"format": FORMAT, "checksums": sums}, separators=(",", ":"))
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write(work / _ARRAYS, packed.getvalue())
        # One line of checksums, one line of state: what is hashed is exactly what stands in the file.
        _write(work / _STATE, f"{text}\n{body}\n".encode())
        _sync(work)
        work.chmod(0o755)
        aside = _aside(target)
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)
            target.rename(aside)
        work.rename(target)
        _sync(target.parent)
        shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def load_state(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a state written by `save_state`.

    Raises:
        CheckpointError: No such folder, another format, or any damage.
    """
    target = Path(folder).absolute()
    if not target.exists() and _aside(target).exists():
        # The crash came between the two renames of a replacement.
        target = _aside(target)
    try:
        lines = (target / _STATE).read_bytes().splitlines()
        head, body = json.loads(lines[0]), lines[1]
        version, sums = head["format"], head["checksums"]
        if version != FORMAT:
            raise CheckpointError(f"{target}: expected checkpoint format {FORMAT}; got {version!r}")
        packed = (target / _ARRAYS).read_bytes()
        if len(lines) != 2 or _sum(body) != sums["state"] or _sum(packed) != sums["arrays"]:
            raise CheckpointError(f"{target}: expected the checksums of state.json; a file is damaged")
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        state = _restore(json.loads(body), arrays)
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"{target}: expected a saved state ({_STATE} and {_ARRAYS}); got no such file") from error
    except Exception as error:  # whatever a damaged file makes the parsers raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise CheckpointError(f"{target}: expected a saved state; a file is damaged ({reason})") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{target}: expected a mapping in {_STATE}; got {type(state).__name__}")
    return cast(dict[str, Any], state)


def _flatten(value: Any, place: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        array = cast(NDArray[Any], value)
        if array.dtype.hasobject:
            raise CheckpointError(f"{place}: expected an array of numbers; got one of Python objects")
        arrays[name := f"a{len(arrays)}"] = array
        return {_MARK: name}
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value)
        for name in items:
            if not isinstance(name, str) or name == _MARK:
                raise CheckpointError(f"{place}: expected names other than {_MARK!r} as keys; got {name!r}")
        return {name: _flatten(item, f"{place}.{name}", arrays) for name, item in items.items()}
    if isinstance(value, (list, tuple)):
        return [_flatten(item, f"{place}[{i}]", arrays) for i, item in enumerate(cast(list[Any], value))]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(f"{place}: expected JSON values or numpy arrays; got {type(value).__name__}")


def _restore(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        items = cast(dict[str, Any], value)
        return arrays[items[_MARK]] if _MARK in items else {name: _restore(v, arrays) for name, v in items.items()}
    if isinstance(value, list):
        return [_restore(item, arrays) for item in cast(list[Any], value)]
    return value


def _sum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Flush the entries of a folder, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
