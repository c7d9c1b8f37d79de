"""A generation block in a checkpoint: the rollouts that TRL has generated and not yet trained on.

TRL saves neither its micro-step counter nor these buffers, so a run that resumes in the middle of a block
would generate again: other rollouts, and the saved ones lost. Each rank saves its own as safetensors.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from curricula import CheckpointError


def block_shape(trainer: Any) -> dict[str, int]:
    """What has to be the same for a saved block to be of use: its size and how it is cut."""
    return {
        "steps_per_generation": trainer.args.steps_per_generation,
        "num_iterations": trainer.num_iterations,
        "per_device_train_batch_size": trainer.args.per_device_train_batch_size,
        "gradient_accumulation_steps": trainer.args.gradient_accumulation_steps,
        "num_generations": trainer.num_generations,
        "world_size": trainer.accelerator.num_processes,
    }


def in_block(trainer: Any) -> bool:
    """True when rollouts wait in TRL's buffer."""
    every = trainer.args.steps_per_generation * trainer.num_iterations
    return trainer._buffered_inputs is not None and trainer._step % every != 0


def save_block(path: Path, buffered: list[dict[str, Any]], mark: str) -> None:
    """Writes one rank's buffer: tensors as they are, other values as JSON, and a digest of both and `mark`. Atomic."""
    tensors: dict[str, torch.Tensor] = {}
    plain: list[dict[str, Any]] = []
    for number, part in enumerate(buffered):
        plain.append({})
        for name, value in part.items():
            if isinstance(value, torch.Tensor):
                # The parts are views of one tensor, which the format refuses.
                tensors[f"{number}/{name}"] = value.detach().to("cpu", copy=True).contiguous()
            else:
                plain[number][name] = value
    text = json.dumps(plain)
    temporary = path.with_suffix(".tmp")
    save_file(tensors, temporary, metadata={"plain": text, "digest": _digest(tensors, text, mark)})
    temporary.replace(path)


def load_block(path: Path, device: torch.device, mark: str) -> list[dict[str, Any]]:
    """Reads what `save_block` wrote under the same mark.

    Raises:
        CheckpointError: The file is damaged, or is that of another checkpoint.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  the reader is no mapping
        if metadata["digest"] != _digest(tensors, metadata["plain"], mark):
            raise ValueError(
                "another digest than its content has: the file is damaged, or comes from another checkpoint"
            )
        parts: list[dict[str, Any]] = json.loads(metadata["plain"])
        for name, tensor in tensors.items():
            number, _, column = name.partition("/")
            parts[int(number)][column] = tensor.to(device)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: expected the rollouts of an unfinished generation block; got {type(error).__name__}: {error}. "
            "Resume from an earlier checkpoint."
        ) from error
    return parts


def _digest(tensors: dict[str, torch.Tensor], plain: str, mark: str) -> str:
    digest = hashlib.blake2b(f"{mark}\n{plain}".encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
