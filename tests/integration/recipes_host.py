"""One generation batch of a real TRL trainer in 64 bits, under a recipe: its rollouts, and the gradient it made.

Run as a script it does so under torchrun: `recipes_host.py OUT.json '{"…": …}'`.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from host import dataset, model, reward, trainer
from transformers import TrainerCallback
from trl import GRPOTrainer

from curricula_trl import CurriculumSampler, recipe


class Generator(GRPOTrainer):
    """Stands in for a generator whose log-probabilities are near the trainer's, and now and then missing."""

    rollouts: list[dict[str, Any]]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
        mask = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
        with torch.no_grad():
            old = self._get_per_token_logps_and_entropies(self.model, ids, mask, output["completion_ids"].shape[1])[0]
        steps = torch.arange(old.shape[1])[None] + output["completion_ids"]
        sampled = old + 0.5 * torch.sin(7.0 * steps)
        sampled[(steps % 11) == 0] = torch.nan
        output["old_per_token_logps"], output["sampling_per_token_logps"] = old, sampled
        self.rollouts = [
            {
                "prompt": row[keep.bool()].tolist(),
                "completion": completion[live.bool()].tolist(),
                "sampled": torch.where(sampled.isnan(), old, sampled)[number][live.bool()].tolist(),
                "old": old[number][live.bool()].tolist(),
            }
            for number, (row, keep, completion, live) in enumerate(
                zip(
                    output["prompt_ids"],
                    output["prompt_mask"],
                    output["completion_ids"],
                    output["completion_mask"],
                    strict=True,
                )
            )
        ]
        return output

    def _calculate_rewards(self, *given: Any) -> Any:
        self.rewards = super()._calculate_rewards(*given)
        return self.rewards


class Gradients(TrainerCallback):
    """Sums the gradients of the optimiser's steps."""

    def __init__(self, host: Any) -> None:
        self.host, self.steps = host, 0
        self.sums: dict[str, torch.Tensor] = {}

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self.steps += 1
        for name, parameter in self.host.model.named_parameters():
            if parameter.grad is not None:
                self.sums[name] = self.sums.get(name, 0.0) + parameter.grad.detach().clone()


def unscored(completions: list[str], **columns: Any) -> list[float | None]:
    """As `reward`, but for every seventh text, which gets none."""
    scores = reward(completions, **columns)
    return [None if sum(map(ord, text)) % 7 == 0 else score for text, score in zip(completions, scores, strict=True)]


def play(output: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Trains on one generation batch at a learning rate of 0; rank 0 has the answer."""
    arguments = {
        **(recipe(spec["preset"]) if "preset" in spec else {}),
        "learning_rate": 0.0,
        "max_grad_norm": 1e9,
        "max_completion_length": 24,
        "num_generations": 4,
        **spec.get("arguments", {}),
    }
    host = trainer(
        output,
        Generator,
        model=model().double(),
        reward_funcs=unscored if spec.get("unscored") else reward,
        train_dataset=dataset({"easy": 4, "frontier": 40}),
        **arguments,
    )
    assert host.accelerator.num_processes == spec.get("world_size", 1)
    CurriculumSampler(spec.get("config", {})).attach(host)
    gradients = Gradients(host)
    host.add_callback(gradients)
    host.train()
    rollouts = gather_object(host.rollouts)
    return {
        "rollouts": rollouts,
        "rewards": host.rewards[:, 0].tolist(),
        "steps": gradients.steps,
        "loss": [entry["loss"] for entry in host.state.log_history if "loss" in entry],
        "gradients": {name: (value / gradients.steps).tolist() for name, value in gradients.sums.items()},
    }


def main(out: str, spec: str) -> None:
    options = json.loads(spec)
    found = play(Path(options["output"]), options)
    if torch.distributed.get_rank() == 0:
        Path(out).write_text(json.dumps(found, allow_nan=True), encoding="utf-8")
    assert not any(math.isnan(value) for value in found["loss"])


if __name__ == "__main__":
    main(*sys.argv[1:])
