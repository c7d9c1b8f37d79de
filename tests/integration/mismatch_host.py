"""A run in TRL's colocate mode whose generator is left behind on purpose: `mismatch_host.py OUT.json '{"…": …}'`."""

import hashlib
import json
import logging
import sys
from pathlib import Path
from typing import Any

import host
import torch
from accelerate.utils import gather_object
from vllm_host import loaded

import curricula_vllm.head
from curricula_trl import CurriculumSampler
from curricula_vllm import use_cpu


def spread(completions: list[str], **_: Any) -> list[float]:
    """Tells the answers of a group apart, so that every step has a gradient: a server's draws depend on its timing."""
    return [hashlib.blake2b(text.encode(), digest_size=1).digest()[0] / 2560 for text in completions]


def plant(trainer: Any, fault: str) -> None:
    """A head that updates pass by: its weights, the copy of them that vLLM packed, or what a server is sent."""
    generation = trainer.vllm_generation
    if fault == "sent" and trainer.accelerator.is_main_process:
        client = generation.vllm_client
        send, kept = client.update_named_params, trainer.model.lm_head.weight.detach().clone()

        def send_old(metadata: Any, named: Any) -> None:
            send(metadata, ((name, kept if name == "lm_head.weight" else value) for name, value in named))

        client.update_named_params = send_old
    if fault == "packed copy":
        curricula_vllm.head.refresh = lambda model: None
    if fault == "head" and trainer.accelerator.process_index == trainer.accelerator.num_processes - 1:
        engine = generation.llm.llm_engine.model_executor.driver_worker.model_runner.model
        head = engine.lm_head if hasattr(engine, "lm_head") else engine.model.embed_tokens
        before = head.weight.detach().clone()
        refresh = curricula_vllm.head.refresh

        def left_behind(model: Any) -> None:
            with torch.no_grad():
                head.weight.copy_(before)
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
    engine: dict[str, Any] = {"vllm_mode": "colocate", "vllm_max_model_length": 64}
    if "url" in options:
        engine = {"vllm_mode": "server", "vllm_server_base_url": options["url"], "vllm_server_timeout": 60.0}
    trainer = host.trainer(
        Path(options["folder"]) / "out",
        model=loaded(Path(options["folder"]) / "model", options["dtype"]),
        reward_funcs=[host.reward, spread],
        use_vllm=True,
        max_completion_length=8,
        learning_rate=options.get("learning_rate", 0.05),
        lr_scheduler_type="constant",
        max_steps=options.get("steps", 4),
        per_device_train_batch_size=8 // options.get("world_size", 1),
        **engine,
        **options.get("arguments", {}),
    )
    assert trainer.accelerator.num_processes == options.get("world_size", 1)
    plant(trainer, options.get("fault", ""))
    sampler = CurriculumSampler(options.get("config", {}))
    sampler.attach(trainer)
    mismatch = trainer._curricula._mismatch
    if options.get("blind"):
        mismatch._heads.is_stale = lambda: None
    by_rank: list[list[list[float]]] = []
    means: list[float] = []
    watch = mismatch.watch

    def seen(output: dict[str, Any]) -> None:
        watch(output)
        if "old_per_token_logps" in output:
            apart = (output["old_per_token_logps"] - output["sampling_per_token_logps"]).double().abs()
            mine = apart[output["completion_mask"] != 0]
            by_rank.append(gather_object([[float(mine.sum()), float(len(mine))]]))
            means.append(mismatch.metrics()["mismatch/mean"])

    mismatch.watch = seen
    trainer.train()
    if trainer.accelerator.is_main_process:
        told = [line for line in said if line.startswith("trainer and generator")]
        found = {"metrics": sampler.metrics(), "said": told, "means": means, "by_rank": by_rank}
        Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
