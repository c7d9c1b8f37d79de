"""What comparing trainer and generator costs of a step in TRL's two modes: `mismatch_cost.py OUT.json '{"…": …}'`.

The head that is read after each update is part of it; of a server's, what a step waits for.

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
from curricula_trl.heads import Heads
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
    compared, spent = list[float](), [0.0]

    def timed(method: Any) -> Any:
        def work(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = method(*arguments)
            spent[0] += time.perf_counter() - start
            return result

        return work

    def end(watch: Any) -> Any:
        def work(*arguments: Any) -> None:
            watch(*arguments)
            compared.append(spent[0])
            spent[0] = 0.0

        return work

    Heads._some, Heads._begin = timed(Heads._some), timed(Heads._begin)  # type: ignore[method-assign]
    Mismatch.watch = end(timed(Mismatch.watch))  # type: ignore[method-assign]
    mode = {"vllm_mode": "colocate", "vllm_max_model_length": 64}
    if "url" in options:
        mode = {"vllm_mode": "server", "vllm_server_base_url": options["url"]}
    trainer = host.trainer(
        Path(options["folder"]) / "out",
        Timed,
        model=loaded(Path(options["folder"]) / "model"),
        use_vllm=True,
        max_completion_length=options.get("tokens", 8),
        max_steps=STEPS,
        **mode,
    )
    sampler = CurriculumSampler()
    sampler.attach(trainer)
    trainer.train()
    assert sampler.metrics()["mismatch/mean"] >= 0, "there was something to compare"
    assert trainer._curricula._heads.is_stale() is False, "the head was read"
    assert len(compared) == len(trainer.steps) == STEPS
    # The quick ones of both: what else the machine does makes some slow, and not the same ones.
    compare, step = (statistics.quantiles(times[WARM:], n=10)[0] for times in (compared, trainer.steps))
    Path(out).write_text(json.dumps({"compare": compare, "step": step}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
