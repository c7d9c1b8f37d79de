"""Attaching to a server that is gone after a few answers, on several ranks: `served_host.py OUT.json '{"…": …}'`."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
from accelerate.utils import gather_object

from curricula import CurriculaRuntimeError
from curricula_trl import CurriculumSampler


def attached(folder: Path, answers: int) -> str:
    """What comes of it where the server answers so often."""
    trainer = host.trainer(folder, max_steps=1)
    left = [answers]

    def shown() -> dict[str, Any]:
        if not left[0]:
            raise CurriculaRuntimeError("the server is gone")
        left[0] -= 1
        return {"model_config": {"dtype": "torch.bfloat16"}}

    client = SimpleNamespace(get_server_info=shown, model=trainer.model.config.name_or_path, base_url="http://server")
    client.session = SimpleNamespace(mount=lambda *_: None)
    trainer.use_vllm = True
    trainer.vllm_generation = SimpleNamespace(mode="server", server_timeout=1.0)
    if trainer.accelerator.is_main_process:
        trainer.vllm_generation.vllm_client = client
    try:
        CurriculumSampler().attach(trainer)
    except CurriculaRuntimeError as error:
        return str(error)
    return f"attached, {left[0]} answers left"


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    found: list[list[str]] = []
    while not found or not found[-1][0].startswith("attached"):
        found.append(gather_object([attached(Path(options["folder"]), len(found))]))
    Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
