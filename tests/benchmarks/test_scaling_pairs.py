"""The probability of a higher ceiling means what it says."""

import numpy as np
import pytest
import scaling_pairs


@pytest.mark.slow
def test_the_probability_of_a_higher_ceiling_is_reliable():
    found = scaling_pairs.run(500, ["mixed"])["mixed"]
    assert found["calibration_error"] < 0.07
    # Of ten intervals of 95%, one may miss.
    missed = sum(not tenth["limits"][0] <= tenth["said"] <= tenth["limits"][1] for tenth in found["tenths"])
    assert missed <= 2
    assert found["brier"] < 0.2 < found["brier_rule"]


@pytest.mark.slow
def test_it_is_reliable_of_recipes_whose_runs_differ():
    found = scaling_pairs.run(300, ["runs differ"])["runs differ"]
    assert found["calibration_error"] < max(0.05, found["calibration_error_by_chance"][1])
    sure = [tenth for tenth in found["tenths"] if not 0.1 < tenth["said"] < 0.9]
    assert sum(tenth["pairs"] for tenth in sure) > 60
    assert all(tenth["limits"][0] <= tenth["said"] <= tenth["limits"][1] for tenth in sure)


def test_its_figures_are_right():
    said = np.repeat([0.25, 0.75], 100)
    so = np.repeat([1.0, 0.0, 1.0, 0.0], [25, 75, 75, 25])
    found = scaling_pairs.figures(said, np.round(said), so)
    assert found["calibration_error"] == 0
    assert found["brier"] == pytest.approx(0.1875)
    assert found["rule_right"] == 0.75
    assert scaling_pairs.calibration_error(said, 1 - so) == pytest.approx(0.5)
    assert scaling_pairs.wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
