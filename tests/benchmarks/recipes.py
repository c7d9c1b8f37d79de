"""Losses and the whole of ScaleRL on a tiny model: held-out score against compute, and what each loss clips away.

    python tests/benchmarks/recipes.py --seeds 5 --json out.json --plot out.png

The model and task are the demo's (running sums of digits, 0.36 M parameters, warmed up until a fifth of the frontier is
known), the pool has as many easy, frontier and hard prompts. Five arms from the same weights, prompts and seed spend
the same rollouts: TRL's GRPOTrainer with the arguments of `curricula_trl.recipe`. Four are losses alone, on uniform
draws without filters: grpo, dapo, gspo, cispo. The fifth, scalerl, is CISPO with all parts of the recipe: a mean over
prompts, batch-level normalisation, groups without variance out of the loss, an FP32 head (the model is in 32 bits
anyway), prompts that are nearly always passed held back. It has no interruption, since these rollouts have no thinking
to close, and its ratio is against the trainer, which generates by itself.

Every generation of 16 groups of 8 is trained on in 8 optimiser's steps: 4 micro-batches of 32 rollouts, each twice
(`steps_per_generation` 4, `num_iterations` 2), so that ratios move away from 1 in all of them but the first. Learning
rate, and all else, is the same for all arms: nothing is tuned to a loss.

The score is mean success of 4 samples at temperature 1 on 384 held-out prompts; the final one is the mean of the last
three examinations. Differences are paired by seed, with 95% limits from Student's t. Shares of tokens clipped away are
those that `monitor: {clipping: true}` logs, over the whole run.

The file has `points`, one for each examination: recipe, seed, compute (rollouts), tokens generated, score, n (prompts
times samples), prompts, samples; and `runs` and `settings` beside them.
"""

import argparse
import contextlib
import copy
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from grpo import POOLS, paired
from intervals import Interval
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from curricula_trl import CurriculumSampler, recipe
from curricula_trl.demo.model import NEW_TOKENS, WARM_UP_STEPS, build_model, build_tokenizer, complete, warm_up
from curricula_trl.demo.recorder import ExactMatch
from curricula_trl.demo.task import build_pools

ARMS = ("grpo", "dapo", "gspo", "cispo", "scalerl")
GROUPS, GROUP_SIZE, PARTS, PASSES = 16, 8, 4, 2
ROLLOUTS = GROUPS * GROUP_SIZE
GENERATIONS, EVERY, SAMPLES, LAST = 30, 3, 4, 3
HELD_OUT = 128
UNIFORM: dict[str, Any] = {
    "bandit": {"type": "size_proportional", "most_draws": 1},
    "objective": {"type": "uniform"},
    "predictor": {"type": "none"},
}


def mix(arm: str, seed: int) -> dict[str, Any]:
    """Uniform draws in all arms; what else scalerl leaves out, its recipe says."""
    filters = {} if arm == "scalerl" else {"filters": []}
    return {"seed": seed, "recipe": arm, "curriculum": UNIFORM | filters, "monitor": {"clipping": True}}


class Examiner(TrainerCallback):
    """Scores the policy before the run, and each time it has learned from `every` generations."""

    def __init__(self, host: Any, sampler: CurriculumSampler, held_out: Any, seed: int, every: int) -> None:
        self.host, self.sampler, self.held_out = host, sampler, held_out
        self.seed, self.every = seed, every
        self.points: list[dict[str, Any]] = []

    def examine(self, generations: int) -> None:
        prompts, answers = (list(self.held_out[name]) * SAMPLES for name in ("prompt", "answer"))
        seed = 1000 * self.seed + generations
        given = complete(self.host.model, self.host.processing_class, prompts, sample_seed=seed)
        metrics = self.sampler.metrics()
        self.points.append(
            {
                "compute": generations * ROLLOUTS,
                "tokens": int(sum(value for name, value in metrics.items() if name.endswith("/tokens"))),
                "score": float(np.mean([text == answer for text, answer in zip(given, answers, strict=True)])),
                "n": len(prompts),
                "prompts": len(self.held_out),
                "samples": SAMPLES,
            }
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        generations, left = divmod(state.global_step, PARTS * PASSES)
        if left == 0 and (generations % self.every == 0 or state.global_step == state.max_steps):
            self.examine(generations)


def run(arm: str, seed: int, model: Any, generations: int, every: int) -> dict[str, Any]:
    """One arm from a warm model: its points, and what its loss clipped."""
    rows, held_out = build_pools(seed, HELD_OUT, POOLS["balanced"])
    steps = generations * PARTS * PASSES
    with tempfile.TemporaryDirectory() as folder:
        host = GRPOTrainer(
            model=copy.deepcopy(model),
            processing_class=build_tokenizer(),
            train_dataset=rows,
            reward_funcs=ExactMatch(),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=ROLLOUTS // PARTS,
                gradient_accumulation_steps=1,
                steps_per_generation=PARTS,
                num_iterations=PASSES,
                num_generations=GROUP_SIZE,
                max_completion_length=NEW_TOKENS,
                temperature=1.0,
                top_k=0,
                learning_rate=1e-4,
                lr_scheduler_type="constant",
                seed=seed,
                report_to=[],
                # One window over the whole run.
                logging_steps=steps,
                save_strategy="no",
                disable_tqdm=True,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                **{"beta": 0.0, **recipe(arm)},
            ),
        )
        sampler = CurriculumSampler(mix(arm, seed)).attach(host)
        examiner = Examiner(host, sampler, held_out, seed, every)
        examiner.examine(0)
        host.add_callback(examiner)
        start = time.perf_counter()
        host.train()
    (logged,) = [entry for entry in host.state.log_history if "loss" in entry]
    return {
        "recipe": arm,
        "seed": seed,
        "points": [{"recipe": arm, "seed": seed, **point} for point in examiner.points],
        "steps": int(host.state.global_step),
        # A loss logs what it does: it clips tokens away, or cuts their weights.
        "deciles": [logged.get(f"curriculum/clipping/decile_{number}", 0.0) for number in range(10)],
        "clipped": logged.get("curriculum/clipping/clipped", 0.0),
        "truncated": logged.get("curriculum/clipping/truncated", 0.0),
        "seconds": time.perf_counter() - start,
    }


def benchmark(
    seeds: Sequence[int], generations: int = GENERATIONS, every: int = EVERY, warm: int = WARM_UP_STEPS
) -> dict[str, Any]:
    """All arms, seed by seed; what the trainers print goes to standard error."""
    runs: list[dict[str, Any]] = []
    for seed in seeds:
        model = build_model(seed)
        warm_up(model, build_tokenizer(), seed, warm)
        for arm in ARMS:
            with contextlib.redirect_stdout(sys.stderr):
                runs.append(run(arm, seed, model, generations, every))
            done = runs[-1]
            print(f"seed {seed}, {arm}: {final(done):.3f} in {done['seconds']:.0f} s", file=sys.stderr, flush=True)
    settings = {
        "rollouts": generations * ROLLOUTS,
        "groups": GROUPS,
        "group_size": GROUP_SIZE,
        "steps_per_generation": PARTS,
        "num_iterations": PASSES,
        "arguments": {arm: recipe(arm) for arm in ARMS},
    }
    points = [point for done in runs for point in done.pop("points")]
    return {"settings": settings, "points": points, "runs": runs}


def curve(report: dict[str, Any], arm: str, seed: int) -> list[dict[str, Any]]:
    """The points of one run, in the order of their compute."""
    return [point for point in report["points"] if (point["recipe"], point["seed"]) == (arm, seed)]


def final(done: dict[str, Any]) -> float:
    """Mean score of the last examinations of a run."""
    return float(np.mean([point["score"] for point in done["points"][-LAST:]]))


def summarise(report: dict[str, Any]) -> dict[str, Any]:
    """Per arm: final score, its paired difference to grpo's, and mean shares of tokens clipped away."""
    seeds = sorted({done["seed"] for done in report["runs"]})
    finals = {arm: [final({"points": curve(report, arm, seed)}) for seed in seeds] for arm in ARMS}
    found: dict[str, Any] = {}
    for arm in ARMS:
        runs = [done for done in report["runs"] if done["recipe"] == arm]
        found[arm] = {
            "final": float(np.mean(finals[arm])),
            "difference": paired(np.subtract(finals[arm], finals["grpo"]).tolist()),
            "deciles": np.mean([done["deciles"] for done in runs], axis=0),
            "clipped": float(np.mean([done["clipped"] for done in runs])),
            "truncated": float(np.mean([done["truncated"] for done in runs])),
            "tokens": float(np.mean([curve(report, arm, seed)[-1]["tokens"] for seed in seeds])),
        }
    return found


def table(report: dict[str, Any]) -> str:
    """One line for each arm; shares in percent."""
    heads = "".join(f"{number + 1:>6}" for number in range(10))
    lines = [
        f"{'recipe':<9}{'tokens':>8}{'final':>7}{'difference to grpo':>26}{'clipped %':>11}  tenths by entropy:"
        f"{heads}{'truncated %':>13}"
    ]
    for arm, figures in summarise(report).items():
        difference: Interval = figures["difference"]
        shares = "".join(f"{100 * share:>6.2f}" for share in figures["deciles"])
        lines.append(
            f"{arm:<9}{figures['tokens']:>8.0f}{figures['final']:>7.3f}"
            f"{difference.signed() if arm != 'grpo' else '':>26}{100 * figures['clipped']:>11.2f}"
            f"{'':>21}{shares}{100 * figures['truncated']:>13.2f}"
        )
    return "\n".join(lines)


def plot(report: dict[str, Any], path: Path) -> None:
    """Scores against rollouts, each seed thin and the mean thick; and shares clipped away by tenth of entropy."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    seeds = sorted({done["seed"] for done in report["runs"]})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    found = summarise(report)
    for number, arm in enumerate(ARMS):
        curves = [curve(report, arm, seed) for seed in seeds]
        rollouts = [point["compute"] for point in curves[0]]
        scores = np.array([[point["score"] for point in points] for points in curves])
        for row in scores:
            left.plot(rollouts, row, color=f"C{number}", alpha=0.25, linewidth=0.8)
        left.plot(rollouts, scores.mean(axis=0), color=f"C{number}", label=arm, linewidth=2)
        if found[arm]["clipped"] > 0:
            right.plot(range(1, 11), 100 * found[arm]["deciles"], color=f"C{number}", marker="o", label=arm)
    left.set(xlabel="rollouts", ylabel="held-out success", title=f"seeds: {len(seeds)} (thin), and their mean")
    left.legend()
    none = ", ".join(arm for arm in ARMS if found[arm]["clipped"] == 0)
    right.set(
        xlabel="tenth of tokens by entropy (10: highest)",
        ylabel="clipped away, %",
        title=f"no token clipped away: {none}",
    )
    right.set_xticks(range(1, 11))
    right.set_ylim(bottom=0)
    right.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--generations", type=int, default=GENERATIONS)
    parser.add_argument("--json", type=Path, help="file to write everything to")
    parser.add_argument("--plot", type=Path, help="file to draw the curves into")
    options = parser.parse_args()
    report = benchmark(range(options.first, options.first + options.seeds), options.generations)
    print(table(report))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if options.plot is not None:
        plot(report, options.plot)


if __name__ == "__main__":
    main()
