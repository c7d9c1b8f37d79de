"""The benchmark of simulated worlds in a small size: the table's claims that do not need many seeds."""

import numpy as np
import pytest
from rules.environments import environment_rules
from simulated import BASE, benchmark, geometric, makers, share, table

from curricula import PromptPool


@pytest.mark.slow
def test_references_lead_and_no_curriculum_is_below_uniform() -> None:
    worlds = ["skewed", "balanced", "steep"]
    names = ["oracle", "informed", "curriculum", "uniform", "dapo_refill", "mopps", "sec"]
    report = benchmark(worlds, names, range(3), [], steps=80, workers=1)
    print("\n" + table(report))
    gains = {
        world: {name: entry["gain"]["value"] for name, entry in report[world]["rules"].items()} for world in worlds
    }
    for world in worlds:
        assert gains[world][BASE] == 1.0
        assert gains[world]["oracle"] > gains[world]["informed"] > 1.1
        assert gains[world]["curriculum"] > 1.0
        assert gains[world]["dapo_refill"] < 1.05
        assert report[world]["rules"]["uniform"]["gain"]["value"] == pytest.approx(1.0, abs=0.15)
    assert gains["skewed"]["oracle"] > 2.0
    assert gains["balanced"]["oracle"] < 1.5


def test_every_rule_is_made_once_under_its_name() -> None:
    names = list(makers([]))
    assert names[:2] == ["oracle", "informed"]
    assert len(set(names)) == len(names)


def test_intervals_are_those_of_student_and_a_bootstrap() -> None:
    found = geometric([1.0, 4.0])
    assert found.value == pytest.approx(2.0)
    assert np.log(found.high / found.value) == pytest.approx(12.706 * np.log(2.0), rel=1e-3)
    part = share([1.5, 1.5, 1.5], [2.0, 2.0, 2.0], np.random.default_rng(0))
    assert part.value == pytest.approx(0.5)
    assert part.low == pytest.approx(0.5)


@pytest.mark.parametrize("kind", environment_rules(), ids=lambda kind: kind.name)
def test_environment_rules_prefer_what_differs(kind: type) -> None:
    """One environment of two is mastered, so its groups never differ; the other's rate rises, so it also progresses."""
    pool = PromptPool(["easy"] * 100 + ["half"] * 100)
    rule = kind(pool, 8, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for step in range(40):
        rows = rule.choose(16)
        assert len(set(rows.tolist())) == 16
        rate = np.where(rows < 100, 1.0, 0.2 + 0.01 * step)
        rule.observe(rows, (rng.random((16, 8)) < rate[:, None]).astype(np.float64))
    shares = rule.shares()
    assert shares.sum() == pytest.approx(1.0)
    assert shares[pool.code("half")] > 0.6
