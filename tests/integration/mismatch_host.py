"""A run in TRL's colocate mode whose generator is left behind on purpose: `mismatch_host.py OUT.json '{"…": …}'`."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import host
import torch
from vllm_host import loaded

import curricula_vllm.head
from curricula_trl import CurriculumSampler
from curricula_vllm import use_cpu


def plant(trainer: Any, fault: str) -> None:
    """A head that updates pass by: its weights, or the copy of them that vLLM packed."""
    generation = trainer.vllm_generation
    if fault == "packed copy":
        curricula_vllm.head.refresh = lambda model: None
    if fault == "head":
        engine = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
        before = engine.lm_head.weight.detach().clone()
        refresh = curricula_vllm.head.refresh

        def left_behind(model: Any) -> None:
            with torch.no_grad():
                model.lm_head.weight.copy_(before)
            refresh(model)

        curricula_vllm.head.refresh = left_behind


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    use_cpu()
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("curricula").addHandler(handler)
    logging.getLogger("curricula").setLevel(logging.INFO)
    trainer = host.trainer(
        Path(options["folder"]) / "out",
        model=loaded(Path(options["folder"]) / "model", options["dtype"]),
        use_vllm=True,
        vllm_mode="colocate",
        vllm_max_model_length=64,
        max_completion_length=8,
        learning_rate=options.get("learning_rate", 0.05),
        max_steps=4,
    )
    plant(trainer, options.get("fault", ""))
    sampler = CurriculumSampler(options.get("config", {}))
    sampler.attach(trainer)
    trainer.train()
    result = {"metrics": sampler.metrics(), "said": [line for line in said if line.startswith("trainer and generator")]}
    Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
