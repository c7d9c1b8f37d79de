"""One run of the demo: TRL's own GRPOTrainer with CISPO, drawing uniformly or by a curriculum."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from curricula.cli.demo.plan import GROUP_SIZE, ROLLOUTS, Arm
from curricula_trl.demo.model import NEW_TOKENS, WARM_UP_STEPS, build_model, build_tokenizer, warm_up
from curricula_trl.demo.recorder import ExactMatch, Examiner
from curricula_trl.demo.task import MIX, build_pools


def train(
    arm: Arm,
    seed: int,
    steps: int,
    out: Path,
    report_to: str = "none",
    warm_up_steps: int = WARM_UP_STEPS,
    on_step: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Warms a model up, trains it, and returns what happened.

    Both arms begin with the same weights and the same pool; all that differs is which prompts are drawn.

    Args:
        arm: "uniform" leaves TRL as it is; "curriculum" attaches a `CurriculumSampler` with its defaults.
        seed: Seed of the weights, of the prompts, and of the run.
        steps: Optimiser steps of 8 prompts with 8 rollouts each.
        out: Folder for what the trainer writes.
        report_to: Tracker that TRL reports to, "none" or "mlflow".
        warm_up_steps: Supervised steps before the run.
        on_step: Called with the number of steps done: 0 when the model is warm, then after each.

    Returns:
        A mapping that is JSON as it stands: arm, seed, steps, rollouts; `prompts` per environment;
        `evaluations` (held-out accuracy per environment against rollouts); `rounds` (groups drawn, informative
        groups and solved rollouts per environment in each round of generation); seconds of training.
    """
    tokenizer, model = build_tokenizer(), build_model(seed)
    warm_up(model, tokenizer, seed, warm_up_steps)
    train_dataset, held_out = build_pools(seed)
    reward = ExactMatch()
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=train_dataset,
        reward_funcs=reward,
        args=_arguments(arm, seed, steps, out, report_to),
    )
    if arm == "curriculum":
        from curricula_trl.sampler import CurriculumSampler

        CurriculumSampler({"seed": seed}).attach(trainer)
    examiner = Examiner(trainer, tokenizer, held_out, counted=arm == "curriculum")
    trainer.add_callback(examiner)
    if on_step is not None:
        trainer.add_callback(_Progress(on_step))
        on_step(0)
    start = time.perf_counter()
    trainer.train()
    return {
        "arm": arm,
        "seed": seed,
        "steps": steps,
        "rollouts": steps * ROLLOUTS,
        "prompts": {environment.name: environment.size for environment in MIX},
        "evaluations": examiner.evaluations,
        "rounds": reward.rounds,
        "seconds": time.perf_counter() - start,
    }


def _arguments(arm: Arm, seed: int, steps: int, out: Path, report_to: str) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(out / f"{arm}-{seed}"),
        run_name=f"{arm}, seed {seed}",
        max_steps=steps,
        per_device_train_batch_size=ROLLOUTS,
        num_generations=GROUP_SIZE,
        max_completion_length=NEW_TOKENS,
        temperature=1.0,
        top_k=0,
        loss_type="cispo",
        # Left alone, it would be epsilon's 0.2, and every ratio would be clipped to that.
        epsilon_high=5.0,
        beta=0.0,
        learning_rate=1e-4,
        seed=seed,
        logging_steps=5,
        report_to=report_to,
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    )


class _Progress(TrainerCallback):
    def __init__(self, on_step: Callable[[int], None]) -> None:
        self._on_step = on_step

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._on_step(state.global_step)
