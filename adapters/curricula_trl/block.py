"""A generation block in a checkpoint: the rollouts that TRL has generated and not yet trained on.

TRL saves neither its micro-step counter nor these buffers, so a run that resumes in the middle of a block
would generate again: other rollouts, and the saved ones lost. Each rank saves its own as safetensors.
"""

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


def save_block(path: Path, buffered: list[dict[str, Any]]) -> None:
    """Writes one rank's buffer: tensors as they are, other values as JSON. Atomic."""
    tensors: dict[str, torch.Tensor] = {}
    plain: list[dict[str, Any]] = []
    for number, part in enumerate(buffered):
        plain.append({})
        for name, value in part.items():
            if isinstance(value, torch.Tensor):
                # The parts are views of one tensor, which the format refuses.
                tensors[f"{number}/{name}"] = value.detach().clone().contiguous()
            else:
                plain[number][name] = value
    temporary = path.with_suffix(".tmp")
    save_file(tensors, temporary, metadata={"plain": json.dumps(plain)})
    temporary.replace(path)


def load_block(path: Path, device: torch.device) -> list[dict[str, Any]]:
    """Reads what `save_block` wrote.

    Raises:
        CheckpointError: The file is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            parts: list[dict[str, Any]] = json.loads(file.metadata()["plain"])
            for name in file.keys():  # noqa: SIM118  the reader is no mapping
                number, _, column = name.partition("/")
                parts[int(number)][column] = file.get_tensor(name).to(device)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckpointError(
            f"{path}: expected the rollouts of an unfinished generation block; got {type(error).__name__}: {error}. "
            "Resume from an earlier checkpoint."
        ) from error
    return parts
