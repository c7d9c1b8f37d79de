"""The trainer's side of weights through shared memory."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from safetensors.torch import save_file

# Bytes of weights in one file: what a transfer needs beside the two models.
PART = 2**30

_PREFIX = "curricula-weights-"
_MEMORY = Path("/dev/shm")


def send(weights: Iterable[tuple[str, torch.Tensor]], post: Callable[[Path], None], part: int = PART) -> None:
    """Writes the weights part by part where the server can read them; each file is gone when `post` has returned.

    What a process left that was killed meanwhile goes first.

    Args:
        weights: Names, as a checkpoint has them, and tensors.
        post: Tells the server of a file, and returns when it is read.
        part: Bytes of weights in one file, about.
    """
    for root in {_MEMORY, Path(tempfile.gettempdir())}:
        sweep(root)
    for number, tensors in enumerate(_parts(weights, part)):
        with _folder(_memory(tensors)) as folder:
            path = folder / f"{number}.safetensors"
            save_file(tensors, path)
            post(path)


def sweep(root: Path) -> None:
    """Removes what `send` left there in processes that were killed: the system has let go of their locks."""
    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                if _lock(descriptor, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextmanager
def _folder(root: str | None) -> Iterator[Path]:
    """A folder under a lock, gone afterwards. A pid in its name would mean nothing where containers share memory."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process swept before it was locked
        _lock(descriptor, wait=True)
        if folder.exists():
            break
        os.close(descriptor)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _lock(descriptor: int, wait: bool) -> bool:
    # Where the system has no such locks nobody gets one, and nothing is swept.
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _parts(weights: Iterable[tuple[str, torch.Tensor]], part: int) -> Iterator[dict[str, torch.Tensor]]:
    tensors: dict[str, torch.Tensor] = {}
    size = 0
    for name, tensor in weights:
        # A copy: views of one storage cannot be saved, and an adapter's merge is undone behind the last name.
        tensors[name] = tensor.detach().cpu().contiguous().clone()
        size += tensor.nbytes
        if size >= part:
            yield tensors
            tensors, size = {}, 0
    if tensors:
        yield tensors


def _memory(tensors: dict[str, torch.Tensor]) -> str | None:
    """/dev/shm where there is one with room (containers often have 64 MB), else None: the folder for such files."""
    needed = sum(tensor.nbytes for tensor in tensors.values()) + 2**20
    return str(_MEMORY) if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > needed else None
