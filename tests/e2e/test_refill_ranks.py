"""Refill on two real processes: equal rounds whatever each rank lacks, one batch, and an exact resume."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import launch, result

Group = tuple[str, list[float]]


def steps(rounds: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rounds of each step; the last one of a step has what is trained on."""
    found: list[list[dict[str, Any]]] = [[]]
    for round_ in rounds:
        found[-1].append(round_)
        if "trained" in round_:
            found.append([])
    return found[:-1]


def groups(round_: dict[str, Any], size: int) -> list[Group]:
    return list(zip(round_["prompts"][::size], np.reshape(round_["rewards"], (-1, size)).tolist(), strict=True))


def kept(group: Group) -> bool:
    return max(group[1]) > min(group[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows", "scale"),
    [
        (4, 8, "batch"),  # whole groups on each rank
        (4, 6, "batch"),  # a group lies on both
        (3, 6, "group"),  # an odd number of groups does not divide over the ranks: one more is generated, and kept
    ],
)
def test_the_deficit_is_filled_whichever_rank_has_it(tmp_path: Path, size: int, rows: int, scale: str) -> None:
    """R3, R8, R2: on every rank the same rounds of the least size that divides; what is over is trained on next."""
    arguments = {"num_generations": size, "per_device_train_batch_size": rows, "max_steps": 12, "scale_rewards": scale}
    # With some seeds every step lacks an even number of groups, and none is left over.
    spec = {"arguments": arguments, "config": {"refill": {"rounds": 4}, "seed": 1}}
    found = result(tmp_path / "out.json", 2, output=str(tmp_path / "run"), **spec)
    assert found["alike"]
    total = rows * 2 // size
    deficits: set[tuple[int, int]] = set()
    spare: list[Group] = []
    for played in steps(found["rounds"]):
        good = [kept(group) for group in groups(played[0], size)]
        deficits.add((good[: total // 2].count(False), good[total // 2 :].count(False)))
        missing = good.count(False) - min(good.count(False), len(spare))
        told = groups(played[0], size)
        for round_ in played[1:]:
            again = groups(round_, size)
            assert len(again) == missing + (missing * size) % 2
            missing = max(0, missing - sum(map(kept, again)))
            told += again
        assert len(played) == 5 or missing == 0
        trained, advantages = played[-1]["trained"], np.reshape(played[-1]["advantages"], (-1, size))
        prompts = trained[::size]
        assert trained == [prompt for prompt in prompts for _ in range(size)]
        assert len(prompts) == total
        known = [group for group in spare + told if kept(group) and group[0] in prompts]
        spread = np.std([rewards for _, rewards in known], ddof=1) if known else 1.0
        for prompt, row in zip(prompts, advantages, strict=True):
            expected = [np.zeros(size)] * (missing > 0)
            for rewards in (np.array(rewards) for name, rewards in known if name == prompt):
                scaled = (spread if scale == "batch" else rewards.std(ddof=1)) + 1e-4
                expected.append((rewards - rewards.mean()) / scaled)
            assert any(np.allclose(row, values, atol=1e-3) for values in expected)
        spare = [group for group in told if kept(group) and group[0] not in prompts]
    assert any(one != other for one, other in deficits), "expected deficits that differ by rank"
    last = [entry for entry in found["log"] if "loss" in entry][-1]
    assert last["curriculum/refill_rounds"] == len(found["rounds"])
    assert (last["curriculum/refill_carried"] > 0) == (size == 3)


@pytest.mark.slow
def test_a_refilled_run_of_two_ranks_resumes_exactly(tmp_path: Path) -> None:
    """In the middle of a block, with groups that wait for the next step."""
    arguments = {"num_generations": 3, "per_device_train_batch_size": 6, "steps_per_generation": 2, "max_steps": 12}
    arguments |= {"save_strategy": "steps", "save_steps": 1}
    spec = {"arguments": arguments, "config": {"refill": {"rounds": 6, "on_exhaustion": "pad", "batch": "variable"}}}
    whole = result(tmp_path / "whole.json", 2, output=str(tmp_path / "whole"), **spec)
    assert whole["alike"]
    waiting = [
        checkpoint.name
        for checkpoint in sorted((tmp_path / "whole").glob("checkpoint-*"))
        if (checkpoint / "curricula" / "spare-0.safetensors").exists()
    ]
    assert waiting, "expected a checkpoint with spare groups"
    for name in {waiting[0], "checkpoint-4"}:
        checkpoint = tmp_path / "whole" / name
        rest = result(
            tmp_path / f"{name}.json", 2, output=str(tmp_path / f"from-{name}"), resume=str(checkpoint), **spec
        )
        assert rest["weights"] == whole["weights"]
        assert rest["rounds"] == whole["rounds"][len(whole["rounds"]) - len(rest["rounds"]) :]
        final = [[entry for entry in run["log"] if "loss" in entry][-1] for run in (whole, rest)]
        clock = {"curriculum/wall_time", "curriculum/gpu_hours"}
        names = [name for name in final[0] if name.startswith("curriculum/") and name not in clock]
        assert {name: final[0][name] for name in names} == {name: final[1].get(name) for name in names}


@pytest.mark.slow
def test_exhaustion_ends_both_ranks(tmp_path: Path) -> None:
    """R1: the error is the same on every rank, and none of them hangs."""
    config = {"refill": {"rounds": 1, "on_exhaustion": "raise"}}
    arguments = {"per_device_train_batch_size": 16, "max_steps": 3}
    code, text = launch(
        tmp_path / "out.json", 2, output=str(tmp_path / "run"), arguments=arguments, config=config, timeout=120
    )
    assert code != 0
    assert text.count("groups too few after 1 further rounds") >= 2
    assert not (tmp_path / "out.json").exists()
