"""The benchmark of recipes in a tiny size: that it measures, not what."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipes import ARMS, HELD_OUT, ROLLOUTS, SAMPLES, benchmark, plot, summarise, table


@pytest.mark.slow
def test_all_recipes_spend_the_same_rollouts(tmp_path: Path) -> None:
    report = json.loads(json.dumps(benchmark([0], generations=2, every=1, warm=60)))
    by_arm = {arm: [point for point in report["points"] if point["recipe"] == arm] for arm in ARMS}
    for points in by_arm.values():
        assert [point["compute"] for point in points] == [0, ROLLOUTS, 2 * ROLLOUTS]
        assert {point["n"] for point in points} == {3 * HELD_OUT * SAMPLES}
        assert points[0]["tokens"] == 0 < points[1]["tokens"] < points[2]["tokens"]
        assert {"recipe", "seed", "compute", "score", "n"} <= set(points[0])
    assert len({points[0]["score"] for points in by_arm.values()}) == 1, "all arms begin alike"
    for done in report["runs"]:
        assert done["steps"] == 16
        assert np.mean(done["deciles"]) == pytest.approx(done["clipped"], abs=1e-9)
        assert (done["clipped"] > 0) == (done["recipe"] in ("grpo", "dapo", "gspo")), done
    assert table(report).count("\n") == len(ARMS)
    plot(report, tmp_path / "recipes.png")
    assert (tmp_path / "recipes.png").stat().st_size > 10_000


def test_differences_are_paired_by_seed() -> None:
    points: list[dict[str, Any]] = [
        {"recipe": arm, "seed": seed, "compute": compute, "tokens": 9, "score": 0.1 * seed + 0.01 * place, "n": 4}
        for place, arm in enumerate(ARMS)
        for seed in (3, 5)
        for compute in (0, 1, 2, 3)
    ]
    # Before the last three examinations: no part of the final score.
    points[0]["score"] = 0.9
    runs = [
        {"recipe": arm, "seed": seed, "deciles": [0.0] * 9 + [0.5], "clipped": 0.05, "truncated": 0.0}
        for arm in ARMS
        for seed in (3, 5)
    ]
    found = summarise({"points": points, "runs": runs})
    assert found["grpo"]["final"] == pytest.approx(0.4)
    assert found["cispo"]["difference"] == pytest.approx((0.03, 0.03, 0.03))
    assert found["gspo"]["deciles"][-1] == 0.5
