"""Splitting by fits gains over simple splits."""

import allocation
import pytest


@pytest.mark.slow
def test_a_split_by_fits_gains_over_simple_ones():
    found = allocation.run(60)
    assert found["gain"]["known"]["mean"] == 1
    assert found["gain"]["expected"]["mean"] > 0.85
    for name in allocation.BASELINES:
        assert found["against"][name]["limits"][0] > 0, name
