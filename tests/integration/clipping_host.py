"""A real run that counts tokens clipped away, beside the gradients that its log-probabilities really got.

Run as a script it does so under torchrun: `clipping_host.py OUT.json '{"…": …}'`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from host import model, trainer
from trl import GRPOTrainer

from curricula_trl import CurriculumSampler


class Recorder(GRPOTrainer):
    """Keeps the log-probabilities and entropies of every micro-batch, and the gradient once there is one."""

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        if found[0].requires_grad:
            found[0].retain_grad()
            self.steps.append({"logps": found[0], "entropies": found[1].detach()})
        return found

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        self.steps[-1]["pool"] = (mask != 0) & (inputs["advantages"] != 0)[:, None]
        self.put_in += int((inputs["completion_mask"] - mask).sum())
        return loss


def play(output: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Trains; rank 0 has the answer: entropies of tokens with an advantage, whether their gradient is 0, the log."""
    # Weights so large that some tokens are nearly certain and others open, as a trained model's are.
    host = trainer(output, Recorder, model=model(initializer_range=0.5), **spec.get("arguments", {}))
    host.steps, host.put_in = [], 0
    assert host.accelerator.num_processes == spec.get("world_size", 1)
    CurriculumSampler({"monitor": {"clipping": True}, **spec.get("config", {})}).attach(host)
    host.train()
    mine: list[tuple[float, bool]] = []
    for step in host.steps:
        pool, gradient = step["pool"], step["logps"].grad
        mine += zip(step["entropies"][pool].tolist(), (gradient[pool] == 0).tolist(), strict=True)
    log = [entry for entry in host.state.log_history if "loss" in entry]
    return {"tokens": gather_object(mine), "put_in": host.put_in, "log": log}


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    found = play(Path(options["output"]), options)
    if torch.distributed.get_rank() == 0:
        Path(out).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
