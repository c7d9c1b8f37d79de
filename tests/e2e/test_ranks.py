"""Two real processes: rank 0 owns the state, the others follow, and a fault on any of them ends all of them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import launch, result
from needs import needs_vllm


@pytest.mark.slow
def test_two_ranks_draw_alike_and_groups_straddle_them(tmp_path: Path) -> None:
    # 6 rows a rank in groups of 4: the middle one of three groups has rows on both.
    arguments = {"per_device_train_batch_size": 6, "max_steps": 3}
    two = result(tmp_path / "two.json", 2, output=str(tmp_path / "two"), arguments=arguments)
    for round_ in two["rounds"]:
        prompts = round_["prompts"]
        assert len(prompts) == 12
        groups = [prompts[start : start + 4] for start in range(0, 12, 4)]
        assert all(len(set(group)) == 1 for group in groups)
        assert len({group[0] for group in groups}) == 3
        rewards = np.array(round_["rewards"]).reshape(3, 4)
        expected = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)
        np.testing.assert_allclose(np.reshape(round_["advantages"], (3, 4)), expected, atol=1e-4)
    logged = two["log"][-2]
    assert logged["curriculum/told"] == 9
    assert logged["curriculum/rollouts"] == 36
    assert logged["curriculum/gpu_hours"] == pytest.approx(2 * logged["curriculum/wall_time"] / 3600)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_dropped_groups_get_no_advantage_whichever_rank_holds_them(tmp_path: Path, ranks: int) -> None:
    # Twelve rows in groups of four, on one rank or six on each of two: what counts must not depend on it.
    arguments = {"per_device_train_batch_size": 12 // ranks, "max_steps": 3}
    spec = {"output": str(tmp_path / "run"), "arguments": arguments, "shaped": True}
    found = result(tmp_path / "out.json", ranks, config={"success": {"reward": "reward"}}, **spec)
    kinds = set()
    for round_ in found["rounds"]:
        rewards, successes, advantages = (
            np.reshape(round_[name], (3, 4)) for name in ("rewards", "successes", "advantages")
        )
        spread = rewards.std(1, ddof=1, keepdims=True)
        expected = (rewards - rewards.mean(1, keepdims=True)) / (spread + 1e-4)
        alike = successes.max(1) == successes.min(1)
        expected[alike] = 0.0
        np.testing.assert_allclose(advantages, expected, atol=1e-3)
        kinds |= set(zip(alike.tolist(), (spread[:, 0] > 0).tolist(), strict=True))
    assert (True, True) in kinds, "expected a group of equal success and unequal reward"


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"steps_per_generation": 3}], ids=str)
def test_resume_on_two_ranks_is_exact(tmp_path: Path, settings: dict[str, Any]) -> None:
    arguments = {
        "per_device_train_batch_size": 6,
        "max_steps": 5,
        "save_strategy": "steps",
        "save_steps": 1,
        **settings,
    }
    whole = result(tmp_path / "whole.json", 2, output=str(tmp_path / "whole"), arguments=arguments)
    for step in (1, 4):
        checkpoint = tmp_path / "whole" / f"checkpoint-{step}"
        rest = result(
            tmp_path / f"{step}.json",
            2,
            output=str(tmp_path / f"from-{step}"),
            arguments=arguments,
            resume=str(checkpoint),
        )
        assert rest["weights"] == whole["weights"]
        assert rest["rounds"] == whole["rounds"][len(whole["rounds"]) - len(rest["rounds"]) :]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("other rows", "rank 1: row .* of its data set has key"),
        ("fewer rows", "ranks disagree about the size of the data set"),
        ("rank 0 fails", "planted on rank 0"),
        ("other verdicts", "ranks disagree about the verdicts: rank 1 differs from rank 0 of 2"),
    ],
)
def test_fault_on_one_rank_ends_all(tmp_path: Path, fault: str, message: str) -> None:
    code, text = launch(tmp_path / "out.json", 2, output=str(tmp_path / "run"), fault=fault, arguments={"max_steps": 3})
    assert code != 0
    assert re.search(message, text), text[-4000:]
    assert "rank 0 failed, so this rank stops too: OSError: planted on rank 0" in text or fault != "rank 0 fails"
    assert not (tmp_path / "out.json").exists()


@pytest.mark.slow
def test_a_server_that_goes_while_a_run_is_attached_ends_all_ranks(tmp_path: Path) -> None:
    needs_vllm()
    out, script = tmp_path / "out.json", Path(__file__).parents[1] / "integration" / "served_host.py"
    code, text = launch(out, 2, script=script, folder=str(tmp_path), timeout=200)
    assert code == 0, text[-4000:]
    *failed, last = json.loads(out.read_text(encoding="utf-8"))
    assert last[0] == "attached, 0 answers left"
    assert len(failed) > 2, "it is asked more than once"
    assert all("the server is gone" in said for ranks in failed for said in ranks), failed
