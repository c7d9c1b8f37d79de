"""What an outcome log adds to asking and telling: one write each, as a share of their own cost."""

import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool, open_log

GROUPS, SIZE, STEPS, WARM = 512, 16, 40, 8


@pytest.mark.slow
def test_a_log_adds_a_small_part_of_asking_and_telling(tmp_path: Path) -> None:
    made = [Curriculum(PromptPool([f"e{row % 8}" for row in range(20_000)]), seed=0) for _ in range(2)]
    log = open_log(made[1], tmp_path)
    rng, spent = np.random.default_rng(0), np.zeros((2, 2, STEPS))
    for step in range(STEPS):
        rewards = rng.integers(0, 2, (GROUPS, SIZE)) * 1.0
        tokens = rng.integers(10, 400, (GROUPS, SIZE))
        for which, curriculum in enumerate(made):
            start = time.thread_time()
            draws = curriculum.ask(GROUPS, group_size=SIZE)
            asked = time.thread_time()
            outcomes = [
                GroupOutcome(draw.ticket, rewards[place], tokens=tokens[place]) for place, draw in enumerate(draws)
            ]
            ready = time.thread_time()
            curriculum.tell(outcomes)
            spent[which, :, step] = asked - start, time.thread_time() - ready
    log.close()
    (ask, tell), (ask_logged, tell_logged) = [
        [statistics.median(kind[WARM:]) * 1e3 for kind in which.tolist()] for which in spent
    ]
    print(f"\nask {ask:.2f} ms, logged {ask_logged:.2f}; tell {tell:.2f} ms, logged {tell_logged:.2f}")
    assert ask_logged + tell_logged < 1.3 * (ask + tell)
