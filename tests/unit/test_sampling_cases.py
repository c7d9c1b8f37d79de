"""Cases S1 to S8 through the default mix: what it draws in the end, whatever it believed before."""

import random

import numpy as np
import pyarrow as pa
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool

MASTERED, FRONTIER, HOPELESS = range(60), range(60, 72), range(72, 100)


class Learner:
    """A hundred prompts whose pass rates stand still until somebody changes them."""

    def __init__(self, config=None, seed=1):
        self.rates = np.repeat([1.0, 0.5, 0.0], [60, 12, 28])
        self.curriculum = Curriculum(PromptPool(["a"] * 100), config, seed=seed)
        self.rng = np.random.default_rng(seed)

    def step(self, n=8):
        draws = self.curriculum.ask(n, group_size=8)
        rewards = [(self.rng.random(8) < self.rates[draw.index]) * 1.0 for draw in draws]
        self.curriculum.tell([GroupOutcome(d.ticket, r) for d, r in zip(draws, rewards, strict=True)])
        return draws


@pytest.mark.parametrize("solved", [1.0, 0.0])
def test_s1_with_every_prompt_solved_or_none_draws_go_on_and_none_is_absorbed(solved):
    made = Learner()
    made.rates[:] = solved
    seen = np.zeros(100)
    for step in range(1500):
        draws = made.step()
        assert len({draw.index for draw in draws}) == 8
        if step >= 200:
            np.add.at(seen, [draw.index for draw in draws], 1)
    assert made.curriculum.metrics()["repeats"] == 0
    # Expected by chance alone: 1300 * 8 * .02 / 100 = 2 each.
    assert (seen > 0).mean() > 0.8
    assert seen.mean() == pytest.approx(104)


def test_s2_what_is_mastered_falls_to_the_rate_of_a_probe_and_comes_back_when_it_fails_its_own():
    made = Learner()
    for _ in range(150):
        made.step()
    hits = np.zeros(100)
    for _ in range(500):
        np.add.at(hits, [draw.index for draw in made.step()], 1)
    even = 500 * 8 / 100
    assert hits[FRONTIER].mean() > 5 * even
    # A twelfth part of the frontier is 12 of 100 prompts, of which a batch takes 8.
    assert 0.005 < hits[MASTERED].mean() / even < 0.06
    assert hits[HOPELESS].mean() / even < 0.2
    returned = {}
    for changed in (MASTERED[:10], HOPELESS[:10]):
        made.rates[changed] = 0.5
    probes = dict.fromkeys([*MASTERED[:10], *HOPELESS[:10]], 0)
    for _ in range(1500):
        for draw in made.step():
            if draw.index in probes and draw.index not in returned:
                if draw.reason == "signal":
                    returned[draw.index] = probes[draw.index]
                else:
                    probes[draw.index] += 1
    back = [returned.get(row, 99) for row in probes if probes[row] or row in returned]
    assert len(back) >= 16
    assert max(back) <= 3


def test_s4_the_same_seed_is_the_same_stream_and_global_generators_are_left_alone():
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  the global generator is what is watched
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    streams = []
    for _ in range(2):
        made = Learner(seed=4)
        streams.append([(d.index, d.reason, d.propensity) for _ in range(20) for d in made.step()])
    assert streams[0] == streams[1]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_s6_a_declared_order_goes_from_easy_to_hard_after_a_warm_up_by_chance():
    rates = np.linspace(0.02, 0.98, 200)
    schedule = {"warm_up": 1600, "easy_to_hard": 3200, "first": 0.9, "width": 0.1}
    curriculum = Curriculum(PromptPool(["a"] * 200), {"curriculum": {"schedule": schedule}}, seed=0)
    rng, means, hits = np.random.default_rng(0), [], np.zeros(200)
    for step in range(400):
        draws = curriculum.ask(16, group_size=8)
        if step < 100:
            np.add.at(hits, [draw.index for draw in draws], 1)
        means.append(np.mean([rates[draw.index] for draw in draws]))
        curriculum.tell([GroupOutcome(d.ticket, (rng.random(8) < rates[d.index]) * 1.0) for d in draws])
    # By chance each is drawn 8 times, more or less.
    assert hits.mean() == 8
    assert (hits > 0).all()
    assert hits.std() < 4
    assert np.mean(means[:100]) == pytest.approx(0.5, abs=0.05)
    thirds = [np.mean(means[start : start + 30]) for start in (102, 180, 265)]
    assert thirds[0] > 0.75
    assert thirds[0] > thirds[1] + 0.07
    assert thirds[1] > thirds[2] + 0.03
    assert np.mean(means[310:]) == pytest.approx(0.5, abs=0.08)


def test_s6_a_warm_up_leaves_environments_their_base_mix():
    mix = {"curriculum": {"schedule": {"warm_up": 1000}}}
    curriculum = Curriculum(PromptPool(["a"] * 300 + ["b"] * 100), mix, seed=0)
    drawn = []
    for _ in range(60):
        draws = curriculum.ask(16, group_size=4)
        drawn += [draw.environment == "a" for draw in draws]
        curriculum.tell([GroupOutcome(d.ticket, [0, 1, 1, 0] if d.environment == "b" else [1] * 4) for d in draws])
    assert np.mean(drawn) == pytest.approx(0.75, abs=0.01)


def test_s7_more_categories_than_floats_can_tell_apart():
    size = (1 << 24) + 1000
    pool = PromptPool(pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, dtype=np.int8)), ["a"]))
    curriculum, seen = Curriculum(pool, seed=0), []
    for _ in range(8):
        draws = curriculum.ask(256, group_size=4)
        seen += [draw.index for draw in draws if draw.reason == "explore"]
        curriculum.tell([GroupOutcome(draw.ticket, [0, 0, 0, 0]) for draw in draws])
    assert len({*seen}) == len(seen) > 400
    assert np.mean(seen) == pytest.approx(size / 2, rel=0.05)
    assert max(seen) > 0.99 * size


def test_s8_a_group_of_one_is_evidence_of_one():
    """One live rollout of a group moves the belief by what one rollout says, and four of four say more."""
    moved = []
    for live in range(5):
        curriculum = Curriculum(PromptPool(["a"] * 50), seed=0)
        if live:
            curriculum.tell([GroupOutcome(None, [1.0] * live + [np.nan] * (4 - live), index=0)])
        moved.append(curriculum.beliefs([0]).mean[0])
    assert np.all(np.diff(moved) > 0)
    assert moved[1] < 0.8
