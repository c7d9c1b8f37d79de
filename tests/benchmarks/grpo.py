"""Real GRPO on a tiny model: rollouts that a curriculum, and refill, need for what uniform draws reach.

    python tests/benchmarks/grpo.py --seeds 5 --json out.json

The model and task are the demo's: 0.36 M parameters, running sums of digits, warmed up until a fifth of the frontier is
known. Two pools: skewed, mostly mastered, hopeless or mislabelled prompts; balanced, as many easy, frontier and hard
ones. Four arms from the same weights, prompts and seed, with the same settings of TRL's GRPOTrainer, each until it
has spent the same rollouts:

- uniform: TRL as it is, shuffled passes over the pool, groups without variance included;
- curriculum: the default mix;
- matched: the default mix with the objective of the trainer's own normaliser, which divides by each group's deviation:
  every mixed group then counts alike, and a prompt is worth its chance of one;
- refill: uniform draws, and groups without variance are replaced by further rounds of generation (as DAPO does).

The figure is held-out greedy accuracy, the mean over the environments whose answers are right, smoothed over three
examinations. An arm's ratio is the rollouts at which it first reaches uniform's final accuracy over those at which
uniform does; one that does not get there counts as twice the budget. Beside it the same for 95% of uniform's gain,
which says more where uniform ends on a plateau: there the last hundredth is noise. Ratios are geometric means over
paired seeds, with 95% limits from Student's t on their logarithms; differences of final accuracy are paired too.

Goals: half of uniform's rollouts on the skewed pool, with limits that exclude 1; on the balanced one a final accuracy
whose lower limit is no more than .02 below uniform's.
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
from intervals import Interval
from numpy.typing import NDArray
from simulated import geometric
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from curricula_trl import CurriculumSampler
from curricula_trl.demo.model import NEW_TOKENS, WARM_UP_STEPS, build_model, build_tokenizer, warm_up
from curricula_trl.demo.recorder import ExactMatch, held_out_accuracy
from curricula_trl.demo.task import MIX, Environment, build_pools

GROUPS, GROUP_SIZE, STEPS, EVERY = 8, 8, 150, 10
MOST, PART = 2.0, 0.95
WIDTHS = (23, 23, 8, 26, 13)
POOLS = {
    "skewed": MIX,
    "balanced": (
        Environment("easy", (3, 5), 600),
        Environment("frontier", (6, 7), 600),
        Environment("hard", (8, 8), 600),
    ),
}
ARMS: dict[str, dict[str, Any] | None] = {
    "uniform": None,
    "curriculum": {},
    "matched": {"curriculum": {"objective": {"normaliser": "group"}}},
    "refill": {
        "curriculum": {"bandit": {"type": "size_proportional", "most_draws": 1}, "objective": {"type": "uniform"}},
        "refill": {"rounds": 20},
    },
}

Floats = NDArray[np.float64]


class Watch(TrainerCallback):
    """Examines the policy by rollouts spent, and ends a run whose budget is spent."""

    def __init__(self, trainer: Any, reward: ExactMatch, held_out: Any, right: Sequence[str], budget: int) -> None:
        self.trainer, self.reward, self.held_out = trainer, reward, held_out
        self.right, self.budget = right, budget
        self.curve: list[tuple[int, float]] = []
        self.accuracy: dict[str, float] = {}

    @property
    def spent(self) -> int:
        return GROUP_SIZE * sum(sum(round_["drawn"].values()) for round_ in self.reward.rounds)

    def examine(self) -> None:
        self.accuracy = held_out_accuracy(self.trainer.model, self.trainer.processing_class, self.held_out)
        self.curve.append((self.spent, float(np.mean([self.accuracy[name] for name in self.right]))))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        due = self.curve[-1][0] + EVERY * GROUPS * GROUP_SIZE
        if self.spent >= min(due, self.budget):
            self.examine()
        control.should_training_stop |= self.spent >= self.budget


def run(pool: str, arm: str, seed: int, model: Any, steps: int) -> dict[str, Any]:
    """One arm from a warm model: its curve and what became of its groups."""
    mix = POOLS[pool]
    rows, held_out = build_pools(seed, 256, mix)
    reward = ExactMatch()
    with tempfile.TemporaryDirectory() as folder:
        host = GRPOTrainer(
            model=copy.deepcopy(model),
            processing_class=build_tokenizer(),
            train_dataset=rows,
            reward_funcs=reward,
            args=GRPOConfig(
                output_dir=folder,
                max_steps=steps,
                per_device_train_batch_size=GROUPS * GROUP_SIZE,
                num_generations=GROUP_SIZE,
                max_completion_length=NEW_TOKENS,
                temperature=1.0,
                top_k=0,
                loss_type="cispo",
                epsilon_high=5.0,
                beta=0.0,
                learning_rate=1e-4,
                # Arms take different numbers of steps for the same rollouts: a schedule would favour one of them.
                lr_scheduler_type="constant",
                seed=seed,
                report_to=[],
                logging_strategy="no",
                save_strategy="no",
                disable_tqdm=True,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
            ),
        )
        if (config := ARMS[arm]) is not None:
            CurriculumSampler({"seed": seed, **config}).attach(host)
        watch = Watch(host, reward, held_out, [part.name for part in mix if part.right], steps * GROUPS * GROUP_SIZE)
        watch.examine()
        host.add_callback(watch)
        start = time.perf_counter()
        host.train()
    drawn = sum(sum(round_["drawn"].values()) for round_ in reward.rounds)
    return {
        "curve": watch.curve,
        "accuracy": watch.accuracy,
        "steps": int(host.state.global_step),
        "informative": sum(sum(round_["informative"].values()) for round_ in reward.rounds) / drawn,
        "seconds": time.perf_counter() - start,
    }


def smoothed(curve: Sequence[tuple[int, float]]) -> tuple[Floats, Floats]:
    """Rollouts and accuracy, each examination averaged with its neighbours."""
    rollouts, accuracy = np.array(curve, dtype=np.float64).T
    padded = np.concatenate([accuracy[:1], accuracy, accuracy[-1:]])
    return rollouts, (padded[:-2] + padded[1:-1] + padded[2:]) / 3


def reach(curve: Sequence[tuple[int, float]], target: float) -> float:
    """Rollouts at which a curve first reaches a target, interpolated; infinity where it does not."""
    rollouts, accuracy = smoothed(curve)
    above = np.flatnonzero(accuracy >= target)
    if not above.size:
        return float("inf")
    first = int(above[0])
    if first == 0:
        return float(rollouts[0])
    part = (target - accuracy[first - 1]) / (accuracy[first] - accuracy[first - 1])
    return float(rollouts[first - 1] + part * (rollouts[first] - rollouts[first - 1]))


def ratio(curve: Sequence[tuple[int, float]], uniform: Sequence[tuple[int, float]], part: float = 1.0) -> float:
    """Rollouts to a part of uniform's gain in accuracy, over uniform's; all of it is its final accuracy."""
    accuracy = smoothed(uniform)[1]
    target = float(accuracy[0] + part * (accuracy[-1] - accuracy[0]))
    base = max(reach(uniform, target), 1.0)
    return max(min(reach(curve, target), MOST * uniform[-1][0]), 1.0) / base


def paired(differences_S: Sequence[float]) -> Interval:
    """Mean difference with 95% limits from Student's t."""
    from scipy.stats import t

    values = np.array(differences_S)
    count = len(values)
    half = float(t.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    return Interval(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half)


def summarise(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Per arm, over paired seeds: ratio of rollouts, final accuracy against uniform's, and means of the rest."""
    report: dict[str, Any] = {}
    for arm in runs[0]:
        curves = [(run[arm]["curve"], run["uniform"]["curve"]) for run in runs]
        ratios = [ratio(*pair) for pair in curves]
        finals = [float(smoothed(curve)[1][-1]) for curve, _ in curves]
        base = [float(smoothed(uniform)[1][-1]) for _, uniform in curves]
        report[arm] = {
            "ratio": geometric(ratios)._asdict(),
            "ratios": ratios,
            "most": geometric([ratio(*pair, PART) for pair in curves])._asdict(),
            "final": float(np.mean(finals)),
            "difference": paired(np.subtract(finals, base).tolist())._asdict(),
            "informative": float(np.mean([run[arm]["informative"] for run in runs])),
            "steps": float(np.mean([run[arm]["steps"] for run in runs])),
            "seconds": float(np.mean([run[arm]["seconds"] for run in runs])),
        }
    return report


def benchmark(pools: Sequence[str], seeds: Sequence[int], steps: int, warm: int = WARM_UP_STEPS) -> dict[str, Any]:
    """All arms on all pools; what the trainers print goes to standard error."""
    found: dict[str, list[dict[str, Any]]] = {pool: [] for pool in pools}
    for seed in seeds:
        model = build_model(seed)
        warm_up(model, build_tokenizer(), seed, warm)
        for pool in pools:
            with contextlib.redirect_stdout(sys.stderr):
                found[pool].append({arm: run(pool, arm, seed, model, steps) for arm in ARMS})
            done = found[pool][-1]
            said = ", ".join(f"{arm} {ratio(done[arm]['curve'], done['uniform']['curve']):.2f}" for arm in done)
            print(f"{pool}, seed {seed}: ratios {said}", file=sys.stderr, flush=True)
    return {pool: {"arms": summarise(runs), "runs": runs} for pool, runs in found.items()}


def table(report: dict[str, Any]) -> str:
    """One line for each arm on each pool."""
    titles = ("rollouts, of uniform", "to 95% of its gain", "final", "difference", "informative")
    lines = [
        f"{'pool':<10}{'arm':<12}" + "".join(f"{title:>{width}}" for title, width in zip(titles, WIDTHS, strict=True))
    ]
    for pool, entry in report.items():
        for arm, figures in entry["arms"].items():
            cells = [
                str(Interval(**figures["ratio"])),
                str(Interval(**figures["most"])),
                f"{figures['final']:.3f}",
                Interval(**figures["difference"]).signed() if arm != "uniform" else "",
                f"{figures['informative']:.2f}",
            ]
            lines.append(f"{pool:<10}{arm:<12}" + "".join(f"{c:>{w}}" for c, w in zip(cells, WIDTHS, strict=True)))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--pools", nargs="+", choices=list(POOLS), default=list(POOLS))
    parser.add_argument("--json", type=Path, help="file to write everything to")
    options = parser.parse_args()
    report = benchmark(options.pools, range(options.first, options.first + options.seeds), options.steps)
    print(table(report))
    for pool, entry in report.items():
        for arm in ("curriculum", "matched"):
            figures = entry["arms"][arm]
            fast = figures["ratio"]["value"] <= 0.5 and figures["ratio"]["high"] < 1.0
            goal = fast if pool == "skewed" else figures["difference"]["low"] >= -0.02
            print(f"{pool}, {arm}: {'met' if goal else 'not met'}")
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
