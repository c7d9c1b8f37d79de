"""Engines of one process, some with an FP32 head: `fp32_host.py OUT.json '{"…": …}'`, and what they compute in."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host

from curricula import CurriculaError
from curricula.config import as_config
from curricula_vllm import use_cpu


def launched(folder: Path, asked: bool) -> list[str]:
    """By the launcher: the trainer's head and the generator's."""
    from curricula_trl import launch

    arguments: dict[str, Any] = {
        **host.arguments(folder / "out", max_steps=1, report_to="none"),
        "model_init_kwargs": {"dtype": "bfloat16"},
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_max_model_length": 64,
    }
    mix = {"model": str(folder / "model"), "recipe": {"fp32_head": asked}, "trainer": arguments}
    trainer = launch.run(as_config(mix), host.dataset(), host.reward)
    return list(trainer._curricula._mismatch._sides[:2])


def built(folder: Path, asked: bool) -> list[str]:
    """By hand, with the variable in the environment: the generator's head, or why it has none."""
    from vllm import LLM
    from vllm.distributed import cleanup_dist_env_and_memory

    from curricula_vllm.head import head_dtype

    os.environ["CURRICULA_FP32_HEAD"] = str(int(asked))
    llm: Any = LLM(model=str(folder / "model"), dtype="bfloat16", enforce_eager=True, max_model_len=64)
    try:
        return [head_dtype(SimpleNamespace(mode="colocate", llm=llm))]
    except CurriculaError as error:
        return [str(error)]
    finally:
        llm.llm_engine.engine_core.shutdown()
        cleanup_dist_env_and_memory()


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    use_cpu()
    way = {"launched": launched, "built": built}[options["way"]]
    found = [way(Path(options["folder"]), asked) for asked in options["asked"]]
    Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
