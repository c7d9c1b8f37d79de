"""README's table of metrics has every figure that there is, and no other."""

import re
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from curricula import Curriculum, GroupOutcome, PromptPool
from curricula.config import RefillConfig
from curricula_trl import clipping, refill
from curricula_trl.mismatch import Mismatch, Sides
from curricula_trl.ranks import Ranks

README = Path(__file__).parents[2] / "README.md"


def table() -> set[str]:
    """Names in the table, written out: of an environment where the first of their cell is."""
    text = README.read_text(encoding="utf-8").split("| name, after `curriculum/` | |\n|---|---|\n")[1]
    names: set[str] = set()
    for line in text[: text.index("\n\n")].splitlines():
        cell = re.findall("`(.+?)`", line.split("|")[1])
        if cell[0] == "clipping/decile_0":
            cell = [f"clipping/decile_{number}" for number in range(10)]
        of_environment = cell[0].startswith("NAME/")
        for name in cell:
            name = cell[0].rpartition("_")[0] + name if name.startswith("_") else name
            # The one figure that both an environment and the whole have stands twice in its cell.
            whole = not of_environment or f"NAME/{name}" in cell
            names.add(name if whole or name.startswith("NAME/") else f"NAME/{name}")
    return names


def logged(rewards: list[float]) -> set[str]:
    texts = [f"word {row % 3}" for row in range(400)]
    curriculum = Curriculum(PromptPool(["sums"] * 400, texts=texts), {"curriculum": {"expiry": 50}})
    curriculum.compute.begin(devices=1)
    for _ in range(8):
        draws = curriculum.ask(32, group_size=len(rewards))
        ends = {"truncated": [False, True, False, True], "interrupted": [True, False, False, True]}
        told = [GroupOutcome(d.ticket, np.roll(rewards, d.index), tokens=[4.0] * 4, **ends) for d in draws]
        curriculum.tell(told)
    curriculum.ask(1, group_size=4)
    names = {re.sub("^sums/", "NAME/", name) for name in curriculum.metrics()}
    return {re.sub("^predictor/hashed_text/", "predictor/TYPE/", name) for name in names}


def planned() -> set[str]:
    """Figures of a plan, which takes some asks."""
    curriculum = Curriculum(PromptPool(["sums", "maths"] * 200), {"curriculum": {"shares": "scaling"}})
    rng = np.random.default_rng(0)
    for _ in range(41):
        draws = curriculum.ask(32, group_size=4)
        curriculum.tell([GroupOutcome(draw.ticket, rng.integers(0, 2, 4) * 1.0) for draw in draws])
    names = {re.sub("^(sums|maths)/", "NAME/", name) for name in curriculum.metrics()}
    return {name for name in names if "plan" in name}


def test_the_table_of_metrics_is_complete_and_true() -> None:
    account = refill.Refill(RefillConfig(rounds=1), Ranks(Accelerator(cpu=True)))
    account.wasted = {"zero_variance": 1}
    counts = {re.sub("^wasted_.*", "wasted_CAUSE", name) for name in account.metrics()}
    window = np.ones((3, clipping.CELLS), dtype=np.int64)
    clipped = {name for loss in clipping.COUNTED for name in clipping.figures(window, loss)}
    near = torch.zeros(1, 2)
    compared = Mismatch(Ranks(Accelerator(cpu=True)), Sides("", ""))
    compared.watch({"completion_mask": near + 1, "old_per_token_logps": near, "sampling_per_token_logps": near})
    assert logged([0.0, 1.0, 1.0, 0.0]) | counts | clipped | set(compared.metrics()) | planned() == table()
    rewards = {name.replace("mean_reward", "success") for name in logged([0.0, 3.0, 1.0, 0.5])}
    assert rewards <= table()
