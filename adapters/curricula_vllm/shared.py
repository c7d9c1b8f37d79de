"""The trainer's side of weights through shared memory."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file

# Bytes of weights in one file: what a transfer needs beside the two models.
PART = 2**30


def send(weights: Iterable[tuple[str, torch.Tensor]], post: Callable[[Path], None], part: int = PART) -> None:
    """Writes the weights part by part where the server can read them; each file is gone when `post` has returned.

    Args:
        weights: Names, as a checkpoint has them, and tensors.
        post: Tells the server of a file, and returns when it is read.
        part: Bytes of weights in one file, about.
    """
    for number, tensors in enumerate(_parts(weights, part)):
        with tempfile.TemporaryDirectory(prefix="curricula-weights-", dir=_memory(tensors)) as folder:
            path = Path(folder) / f"{number}.safetensors"
            save_file(tensors, path)
            post(path)


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
    memory = Path("/dev/shm")
    needed = sum(tensor.nbytes for tensor in tensors.values()) + 2**20
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > needed else None
