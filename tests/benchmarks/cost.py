"""What choosing costs: time of ask and tell, memory a prompt, and start-up, from 10 thousand to 20 million prompts.

    python tests/benchmarks/cost.py            a table
    python tests/benchmarks/cost.py --json     the same as JSON

A host that asks beside its steps, as `curricula_trl` does, waits for the judging of a tell alone: what was told is
learned from, and the next round is asked for, while the trainer trains.

Pools of all sizes are asked and told in turn, so that whatever else the machine does falls on all alike, and none
keeps its columns in the processor's caches between two steps, as none does between two steps of training.
"""

import argparse
import gc
import json
import os
import resource
import sys
import time
import tracemalloc
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from curricula import Curriculum, Draw, GroupOutcome, PromptPool

SIZES = (10_000, 1_000_000, 20_000_000)
GROUPS, GROUP_SIZE, ENVIRONMENTS = 512, 8, 8


@dataclass
class Run:
    """One pool, its curriculum, and what was measured of them; times are in milliseconds, memory in bytes."""

    size: int
    pool: PromptPool
    curriculum: Curriculum
    rates_N: np.ndarray
    figures: dict[str, float] = field(default_factory=dict)
    laps: dict[str, list[float]] = field(default_factory=dict)


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def columns(part: object, size: int) -> list[np.ndarray]:
    """Distinct arrays of `size` entries or more that an object of ours holds, however deep."""
    found: dict[int, np.ndarray] = {}
    seen: set[int] = set()
    todo: list[Any] = [part]
    while todo:
        value = todo.pop()
        if id(value) in seen or (isinstance(value, PromptPool) and value is not part):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.ndim and len(value) >= size:
                found[value.__array_interface__["data"][0]] = value
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, (list, tuple)) and len(value) < 1000:
            todo += value
        elif type(value).__module__.startswith("curricula"):
            todo += [getattr(value, name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]
            todo += getattr(value, "__dict__", {}).values()
    return list(found.values())


def start(size: int, seed: int) -> Run:
    """Build a pool of shuffled environments with content keys, and a curriculum on it; measure both."""
    rng = np.random.default_rng(seed)
    names = np.array([f"environment {number}" for number in range(ENVIRONMENTS)])
    codes = rng.integers(0, ENVIRONMENTS, size, dtype=np.int16)
    keys = np.frombuffer(rng.bytes(16 * size), dtype="S16")
    rates = rng.beta(0.3, 0.5, size).astype(np.float32)
    environments = _dictionary(codes, names)
    gc.collect()
    begin = time.perf_counter()
    pool = PromptPool(environments, keys=keys)
    built = time.perf_counter()
    assert pool.fingerprint
    fingerprinted = time.perf_counter()
    grown = resident()
    curriculum = Curriculum(pool, seed=seed)
    ended, untouched = time.perf_counter(), resident()
    touch(curriculum, size)
    covered = resident()
    curriculum = Curriculum(pool, seed=seed)
    curriculum.lazy = True
    owned = sum(column.nbytes for column in columns(pool, size) if column.ctypes.data != keys.ctypes.data)
    state = sum(column.nbytes for column in columns(curriculum, size))
    return Run(
        size,
        pool,
        curriculum,
        rates,
        {
            "pool_s": built - begin,
            "fingerprint_s": fingerprinted - built,
            "curriculum_s": ended - fingerprinted,
            "pool_bytes": owned / size,
            "state_bytes": state / size,
            "state_bytes_untouched": (untouched - grown) / size,
            "state_bytes_covered": (covered - grown) / size,
        },
    )


def step(run: Run, rng: np.random.Generator, kind: str) -> None:
    """One ask and one tell of all its groups; rewards are made between the two and not timed."""
    begin, busy = time.perf_counter(), time.thread_time()
    draws = run.curriculum.ask(GROUPS, group_size=GROUP_SIZE)
    asked, busy = time.perf_counter(), time.thread_time() - busy
    rewards_KG = rewards(run, draws, rng)
    tokens_KG = rng.integers(20, 400, rewards_KG.shape).astype(np.float64)
    made = time.perf_counter()
    outcomes = [
        GroupOutcome(draw.ticket, row, tokens=spent)
        for draw, row, spent in zip(draws, rewards_KG, tokens_KG, strict=True)
    ]
    boxed, told_from = time.perf_counter(), time.thread_time()
    run.curriculum.tell(outcomes)
    judged = time.perf_counter()
    run.curriculum.settle()
    told, busy = time.perf_counter(), busy + time.thread_time() - told_from
    for name, lap in (
        ("ask", asked - begin),
        ("outcomes", boxed - made),
        ("judge", judged - boxed),
        ("tell", told - boxed),
        ("both", asked - begin + told - boxed),
        ("busy", busy),
    ):
        run.laps.setdefault(f"{kind}_{name}", []).append(1e3 * lap)


def rewards(run: Run, draws: list[Draw], rng: np.random.Generator) -> np.ndarray:
    """Binary rewards of each draw's group, shape (K, G)."""
    rates = run.rates_N[[draw.index for draw in draws]]
    return (rng.random((len(draws), GROUP_SIZE)) < rates[:, None]) * 1.0


def touch(curriculum: Curriculum, size: int) -> None:
    """Write every page of the state, as full coverage does."""
    for column in columns(curriculum, size):
        column.view(np.uint8)[...] |= 0  # assigning an array to itself writes nothing


def told_bytes(size: int = 100_000, told: int = 5_000) -> float:
    """Bytes a prompt that a curriculum holds once every prompt of a pool was told."""
    rng = np.random.default_rng(0)
    names = np.array([f"environment {number}" for number in range(ENVIRONMENTS)])
    pool = PromptPool(_dictionary(rng.integers(0, ENVIRONMENTS, size, dtype=np.int16), names))
    tracemalloc.start()
    curriculum = Curriculum(pool)
    for start in range(0, size, told):
        rewards_KG = (rng.random((min(told, size - start), GROUP_SIZE)) < 0.5) * 1.0
        curriculum.tell(
            [GroupOutcome(None, row, tokens=row, index=start + place) for place, row in enumerate(rewards_KG)]
        )
    del rewards_KG
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / size


def weighted_choice(size: int, repeats: int, rng: np.random.Generator) -> list[float]:
    """Milliseconds that numpy takes to choose as many prompts by weights."""
    weights = rng.random(size)
    weights /= weights.sum()
    laps: list[float] = []
    for _ in range(repeats):
        begin = time.perf_counter()
        rng.choice(size, GROUPS, replace=False, p=weights)
        laps.append(1e3 * (time.perf_counter() - begin))
    return laps


def measure(sizes: tuple[int, ...] = SIZES, steps: int = 60, cold: int = 10, repeats: int = 5) -> dict[str, Any]:
    """Figures of each size, and the ratio of the largest to the smallest.

    Args:
        sizes: Prompts in each pool.
        steps: Timed steps of each pool once every page of its state was written.
        cold: The first steps of each pool, on state that was never touched.
        repeats: Of numpy's weighted choice.
    """
    rng = np.random.default_rng(0)
    runs = [start(size, seed) for seed, size in enumerate(sizes)]
    for _ in range(cold):
        for run in runs:
            step(run, rng, "cold")
    for run in runs:
        touch(run.curriculum, run.size)
    for kind, count in (("ignored", 10), ("warm", steps)):
        for _ in range(count):
            for run in runs:
                step(run, rng, kind)
    result: dict[str, Any] = {}
    for run in runs:
        laps = {name: values for name, values in run.laps.items() if not name.startswith("ignored")}
        laps["numpy"] = weighted_choice(run.size, repeats, rng)
        figures = dict(run.figures)
        figures["first_ms"] = run.laps["cold_both"][0]
        for name, values in laps.items():
            figures[f"{name}_median_ms"] = float(np.median(values))
            figures[f"{name}_p95_ms"] = float(np.quantile(values, 0.95))
        result[str(run.size)] = {name: round(value, 4) for name, value in figures.items()}
    small, large = result[str(sizes[0])], result[str(sizes[-1])]
    ratio = {kind: large[f"{kind}_both_median_ms"] / small[f"{kind}_both_median_ms"] for kind in ("cold", "warm")}
    return {
        "groups": GROUPS,
        "group_size": GROUP_SIZE,
        "environments": ENVIRONMENTS,
        "sizes": result,
        "told_bytes": round(told_bytes(), 2),
        "largest_to_smallest": {kind: round(value, 3) for kind, value in ratio.items()},
        "cpus": os.cpu_count(),
        "numpy": np.__version__,
    }


ROWS = (
    ("on the path of a step, ms", "warm_judge_median_ms"),
    ("  p95 ms", "warm_judge_p95_ms"),
    ("ask, median ms", "warm_ask_median_ms"),
    ("tell, median ms", "warm_tell_median_ms"),
    ("ask + tell, median ms", "warm_both_median_ms"),
    ("ask + tell, p95 ms", "warm_both_p95_ms"),
    ("  of a processor, median ms", "warm_busy_median_ms"),
    ("  untouched, median ms", "cold_both_median_ms"),
    ("  untouched, first, ms", "first_ms"),
    ("making outcomes, median ms", "warm_outcomes_median_ms"),
    ("numpy's weighted choice, ms", "numpy_median_ms"),
    ("pool, bytes a prompt", "pool_bytes"),
    ("state, bytes a prompt", "state_bytes"),
    ("  in memory, untouched", "state_bytes_untouched"),
    ("  in memory, all covered", "state_bytes_covered"),
    ("start-up: pool, s", "pool_s"),
    ("start-up: fingerprint, s", "fingerprint_s"),
    ("start-up: curriculum, s", "curriculum_s"),
)


def table(result: dict[str, Any]) -> str:
    """The figures as text, a column for each size."""
    sizes = result["sizes"]
    lines = [f"{result['groups']} groups of {result['group_size']}, {result['environments']} environments"]
    lines.append(f"{'prompts':30}" + "".join(f"{int(size):>14,}" for size in sizes))
    for title, name in ROWS:
        lines.append(f"{title:30}" + "".join(f"{figures[name]:14.2f}" for figures in sizes.values()))
    lines.append(f"state once all of 100,000 prompts were told: {result['told_bytes']:.1f} bytes a prompt")
    ratio = result["largest_to_smallest"]
    lines.append(f"ask + tell, largest to smallest pool: {ratio['warm']:.2f} (untouched: {ratio['cold']:.2f})")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="prompts in each pool")
    parser.add_argument("--steps", type=int, default=60, help="timed steps of each pool")
    arguments = parser.parse_args()
    result = measure(tuple(arguments.sizes), arguments.steps)
    print(json.dumps(result, indent=1) if arguments.json else table(result))


def _dictionary(codes: np.ndarray, names: np.ndarray) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        return names[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))


if __name__ == "__main__":
    sys.exit(main())
