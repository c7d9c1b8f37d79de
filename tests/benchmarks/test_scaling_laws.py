"""A small run of the benchmark of fits: what it claims of the model average, on few curves of few cells."""

import json

import numpy as np
import pytest
import scaling_curves
import scaling_laws

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return scaling_laws.run(["paper", "low", "high", "gompertz"], curves=40, workers=2)


def test_errors_are_below_the_grids(found):
    assert np.mean([cell["bayes"]["ratio"] for cell in found.values()]) < 0.9
    for name, cell in found.items():
        assert cell["bayes"]["ratio_limits"][0] < 1.05, name


def test_bands_hold_what_they_say(found):
    coverage = {name: cell["bayes"]["coverage"] for name, cell in found.items()}
    assert 0.85 <= np.mean(list(coverage.values())) <= 0.98
    assert min(coverage.values()) > 0.78


def test_a_wide_band_does_not_win(found):
    scores = {m: np.mean([cell[m]["interval_score"] for cell in found.values()]) for m in scaling_laws.METHODS}
    assert min(scores, key=scores.get) == "bayes"


def test_real_curves_are_read_and_forecast(tmp_path):
    steps = np.arange(0, 280, 20)
    score = 28 + 8 * steps / (steps + 120)
    curve = tmp_path / "curve.csv"
    curve.write_text("Step,a\n" + "\n".join(f"{s},{v:.1f}" for s, v in zip(steps, score, strict=True)))
    points = [
        {
            "recipe": "grpo",
            "seed": seed,
            "compute": 10.0 * place,
            "score": 0.3 + 0.02 * place,
            "prompts": 50,
            "samples": 4,
        }
        for seed in (1, 2)
        for place in range(1, 9)
    ]
    recipes = tmp_path / "recipes.json"
    recipes.write_text(json.dumps({"points": points}))
    for real in (*scaling_curves.from_csv(curve, percent=True), *scaling_curves.from_recipes(recipes)):
        figures = scaling_curves.forecast(real)
        assert figures["methods"]["bayes"]["rmse"] < 0.05
        assert figures["methods"]["bayes"]["coverage"] > 0.5
