import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_choosing_costs_about_the_same_from_any_pool(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import cost

    result = cost.measure((10_000, 1_000_000), steps=30)
    sys.stdout.write(f"\n{cost.table(result)}\n")
    large = result["sizes"]["1000000"]
    # A pass over the pool would make it a hundred; what is left is memory that no cache holds.
    assert result["largest_to_smallest"]["warm"] < 2
    assert large["pool_bytes"] + large["state_bytes"] <= 32 + 8
    assert large["state_bytes"] <= 32
