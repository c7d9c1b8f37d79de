from typing import Any

import numpy as np
import pytest

from curricula.inclusion import inclusion
from curricula.sampling import draw_weights, inclusion_probabilities, sample_range, systematic

WORTH = np.random.default_rng(1).lognormal(size=60)


def chances(scores_EM: Any, counts_E: Any, sizes_E: Any) -> Any:
    return inclusion_probabilities(draw_weights(scores_EM, counts_E, 0.3), counts_E, sizes_E, 0.1)


def brute(expected: float, per_draw: int, taken: np.ndarray, asks: int) -> np.ndarray:
    rng, drawn = np.random.default_rng(2), np.zeros(60)
    for _ in range(asks):
        count = int(expected + rng.random())
        if not count:
            continue
        free = 60 - taken.size
        candidates = sample_range(0, 60, taken, min(free, count * per_draw), rng)
        counts, sizes = np.array([count]), np.array([candidates.size])
        drawn[candidates[systematic(chances(WORTH[candidates][None], counts, sizes), counts, rng)]] += 1
    return drawn / asks


@pytest.mark.parametrize(("expected", "per_draw"), [(2.0, 100), (2.5, 100), (0.4, 100), (2.0, 5), (3.5, 6), (0.4, 9)])
def test_it_is_how_often_asks_draw_a_prompt(expected: float, per_draw: int) -> None:
    taken = np.array([3, 4, 31])
    found = brute(expected, per_draw, taken, 6_000)
    rng = np.random.default_rng(3)
    stated = np.mean(
        [
            inclusion(np.arange(60), (0, 60), taken, expected, per_draw, lambda p: WORTH[p], chances, rng)
            for _ in range(20)
        ],
        axis=0,
    )
    assert stated.sum() == pytest.approx(expected, rel=0.05)
    assert np.abs(stated - found).max() < 5 * np.sqrt(0.25 / 6_000) + 0.01
    assert stated[taken].tolist() == [0, 0, 0]


def test_what_is_not_eligible_has_no_chance_and_few_prompts_are_all_drawn() -> None:
    rng = np.random.default_rng(0)
    asked = np.array([5, 12, 7, 7])
    found = inclusion(asked, (5, 10), np.array([7]), 4.0, 64, lambda p: WORTH[p], chances, rng)
    assert found.tolist() == [1, 0, 0, 0]
    assert inclusion(asked, (5, 10), np.array([], dtype=np.int64), 0.0, 64, lambda p: WORTH[p], chances, rng).sum() == 0
