"""What comparing trainer and generator costs of a step in TRL's colocate mode: `mismatch_cost.py OUT.json '{"…": …}'`.

A process of its own, for vLLM takes the process it runs in.
"""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

import host
from trl import GRPOTrainer
from vllm_host import loaded

from curricula_trl import CurriculumSampler
from curricula_trl.mismatch import Mismatch
from curricula_vllm import use_cpu

STEPS, WARM = 40, 10


class Timed(GRPOTrainer):
    """Notes how long each step took, generation and the update of vLLM's weights included."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.steps: list[float] = []

    def training_step(self, *arguments: Any, **keywords: Any) -> Any:
        start = time.perf_counter()
        result = super().training_step(*arguments, **keywords)
        self.steps.append(time.perf_counter() - start)
        return result


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    use_cpu()
    compared: list[float] = []
    watch = Mismatch.watch

    def timed(self: Mismatch, output: dict[str, Any]) -> None:
        start = time.perf_counter()
        watch(self, output)
        compared.append(time.perf_counter() - start)

    Mismatch.watch = timed  # type: ignore[method-assign]
    trainer = host.trainer(
        Path(options["folder"]) / "out",
        Timed,
        model=loaded(Path(options["folder"]) / "model"),
        use_vllm=True,
        vllm_mode="colocate",
        vllm_max_model_length=64,
        max_completion_length=8,
        max_steps=STEPS,
    )
    sampler = CurriculumSampler()
    sampler.attach(trainer)
    trainer.train()
    assert sampler.metrics()["mismatch/mean"] >= 0, "there was something to compare"
    assert len(compared) == len(trainer.steps) == STEPS
    compare, step = statistics.median(compared[WARM:]), statistics.median(trainer.steps[WARM:])
    Path(out).write_text(json.dumps({"compare": compare, "step": step}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
