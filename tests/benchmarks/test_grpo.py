"""The benchmark of real GRPO in a tiny size: that it measures, not what."""

import pytest
from grpo import ARMS, MOST, benchmark, ratio, reach, table


@pytest.mark.slow
def test_all_arms_spend_the_same_rollouts() -> None:
    report = benchmark(["skewed"], [0], steps=6, warm=5)
    (runs,) = report["skewed"]["runs"]
    spent = {arm: runs[arm]["curve"][-1][0] for arm in ARMS}
    assert spent["uniform"] == spent["curriculum"] == 6 * 64
    assert spent["refill"] >= 6 * 64
    assert runs["refill"]["steps"] < 6
    assert len({runs[arm]["curve"][0] for arm in ARMS}) == 1
    assert table(report).count("\n") == len(ARMS)


def test_a_curve_is_read_where_it_crosses() -> None:
    uniform = [(0, 0.0), (100, 0.5), (200, 1.0), (300, 1.0)]
    assert reach(uniform, 0.5) == pytest.approx(100)
    assert reach(uniform, 2.0) == float("inf")
    assert ratio(uniform, uniform) == pytest.approx(1.0)
    assert ratio([(0, 0.0), (300, 0.1)], uniform) == pytest.approx(MOST * 300 / reach(uniform, 1.0))
    assert ratio([(0, 1.0), (300, 1.0)], uniform) == pytest.approx(1 / 300)
