"""Interruption on two real processes, with each way to generate; rows of one group never go as copies of one prompt."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host import tokenizer
from interruption_host import FORCED, LETTERS, MIX, check_row, model
from launched import result
from needs import needs_vllm
from vllm_host import WIDTH

from curricula_trl.interruption.plan import Plan

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "integration" / "interruption_host.py"
SECTION = {**MIX["interruption"], "at": [12, 16]}
ARGUMENTS = {"per_device_train_batch_size": 2, "max_completion_length": 40, "max_steps": 12}


def run(folder: Path, ranks: int, *, config: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    arguments = {**ARGUMENTS, **spec.pop("arguments", {})}
    config = {"interruption": SECTION, **(config or {})}
    folder.mkdir(exist_ok=True)
    return result(
        folder / "out.json",
        ranks,
        script=SCRIPT,
        output=str(folder / "run"),
        arguments=arguments,
        config=config,
        **spec,
    )


def saved(folder: Path) -> str:
    model(hidden_size=WIDTH).save_pretrained(folder)
    tokenizer(LETTERS).save_pretrained(folder)
    return str(folder)


def check(found: dict[str, Any], *, one_round: bool = True) -> dict[str, int]:
    """Checks every rollout against the plan of its step; returns how they ended."""
    ways: dict[str, int] = {}
    assert found["alike"]
    if one_round:
        for version, rows in enumerate(found["rounds"]):
            limits = Plan(MIX["seed"], tuple(SECTION["at"])).limits(version, len(rows))
            for row, limit in zip(rows, limits, strict=True):
                way = check_row(row, limit, SECTION["answer"])
                ways[way] = ways.get(way, 0) + 1
        assert found["items"] == [sum(sum(row["mask"]) for row in rows) for rows in found["rounds"]]
    told = sum(value for name, value in found["metrics"].items() if name.endswith("/tokens"))
    assert told == sum(sum(row["mask"]) for rows in found["rounds"] for row in rows)
    return ways


def waiting(rows: list[dict[str, Any]]) -> int:
    return sum(row["interrupted"] for row in rows)


def agree(found: dict[str, Any], least: int = 5) -> None:
    """What the engine gave for tokens that it chose is what the trainer recomputes; the others have numbers."""
    checked = 0
    for row in (row for rows in found["rounds"] for row in rows):
        given, known = np.array(row["sampling_per_token_logps"]), np.array(row["old_per_token_logps"])
        assert len(given) == len(row["tokens"])
        assert np.isfinite(given).all()
        assert np.abs(given - known).max() < 1e-3
        checked += row["interrupted"]
    assert checked >= least


def test_ranks_of_unequal_need_take_the_same_steps(tmp_path: Path) -> None:
    found = run(tmp_path, 2)
    assert set(check(found)) == {"interrupted", "closed", "ended"}
    needs = [(waiting(rows[:2]), waiting(rows[2:])) for rows in found["rounds"]]
    assert any(one != other for one, other in needs)
    assert any(min(need) == 0 < max(need) for need in needs), needs


def test_the_plan_does_not_know_how_many_ranks_there_are(tmp_path: Path) -> None:
    one = run(tmp_path / "one", 1, arguments={"per_device_train_batch_size": 4, "max_steps": 2})
    two = run(tmp_path / "two", 2, arguments={"max_steps": 2})
    assert check(one)
    assert check(two)
    assert [row["prompt"] for row in one["rounds"][0]] == [row["prompt"] for row in two["rounds"][0]]


def test_a_resumed_run_of_two_ranks_is_the_same_with_refill_too(tmp_path: Path) -> None:
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    config = {"refill": {"rounds": 2}}
    whole = run(tmp_path / "a", 2, arguments=settings, config=config)
    resume = str(tmp_path / "a" / "run" / "checkpoint-2")
    again = run(tmp_path / "b", 2, arguments=settings, config=config, resume=resume)
    check(whole, one_round=False)
    assert len(whole["rounds"]) > 4
    assert again["rounds"] == whole["rounds"][-len(again["rounds"]) :]
    assert again["weights"] == whole["weights"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_vllm_in_the_process(tmp_path: Path, ranks: int) -> None:
    needs_vllm()
    engine = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 64, "max_steps": 6}
    rows = {"per_device_train_batch_size": 8 // ranks}
    found = run(tmp_path, ranks, model=saved(tmp_path / "model"), arguments={**engine, **rows})
    assert "interrupted" in check(found)
    agree(found)


@pytest.mark.parametrize("longest", [30, 42])
def test_an_engine_without_room_cuts_rollouts_off(tmp_path: Path, longest: int) -> None:
    needs_vllm()
    engine = {"use_vllm": True, "vllm_mode": "colocate", "max_steps": 4, "per_device_train_batch_size": 8}
    folder = Path(saved(tmp_path / "model"))
    shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**shape, "max_position_embeddings": longest}), encoding="utf-8")
    found = run(tmp_path, 1, model=str(folder), arguments=engine)
    rows = [row for rows in found["rounds"] for row in rows]
    assert max(len(row["prompt"]) + len(row["tokens"]) for row in rows) <= longest
    assert {row["interrupted"] for row in rows} == ({False} if longest == 30 else {True, False})
    for row in rows:
        assert sum(row["mask"]) == len(row["tokens"]) - (len(FORCED) if row["interrupted"] else 0)
        assert row["mask"][-1] == 1
    agree(found, least=0)


def test_a_vllm_server_and_two_ranks(tmp_path: Path) -> None:
    needs_vllm()
    from curricula_vllm.server import Server

    folder = saved(tmp_path / "model")
    options = ("--dtype", "float32", "--max-model-len", "64", "--logprobs-mode", "processed_logprobs")
    with Server(folder, *options) as server:
        engine = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": server.url, "max_steps": 6}
        found = run(tmp_path, 2, model=folder, arguments=engine)
    assert "interrupted" in check(found)
    agree(found)
    needs = [(waiting(rows[:2]), waiting(rows[2:])) for rows in found["rounds"]]
    assert any(one != other for one, other in needs)
