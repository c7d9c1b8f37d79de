"""Cases S1 to S3, and the filters that act before generation: held back, and never shut out."""

import numpy as np
import pytest

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool
from curricula.choosing.sampling import PADDING, draw_weights, even_parts, inclusion_probabilities, systematic

CAP = {"type": "pass_rate_cap", "above": 0.9, "review": 0.02}
PREDICTED = {"type": "predicted_zero_variance", "below": 0.2, "probe": 0.01}
ZERO = {"type": "zero_variance"}


def make(prompts, filters, **mix):
    return Curriculum(PromptPool(["a"] * prompts), {"curriculum": {"filters": filters, **mix}}, seed=3)


def teach(curriculum, *lessons, times=6):
    """Tells rows with their rewards, all of them at each time: what came of some is seen beside the others."""
    for _ in range(times):
        curriculum.tell([GroupOutcome(None, rewards, index=row) for rows, rewards in lessons for row in rows])


PASSED, MIXED, FAILED = [1] * 8, [0, 1] * 4, [0] * 8


def rates(curriculum, rows, asks, n=8):
    """How often these rows were drawn, relative to an even draw; every group is told as it was believed."""
    chosen = drawn = 0
    rows = set(rows)
    for _ in range(asks):
        draws = curriculum.ask(n, group_size=8)
        chosen += sum(draw.index in rows for draw in draws)
        drawn += n
        curriculum.cancel([draw.ticket for draw in draws])
    return chosen / drawn * len(curriculum.pool) / len(rows)


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_chance_sum_to_the_candidates_and_never_draw_one_twice(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, 5)
    counts = np.array([rng.integers(1, size + 1) for size in sizes])
    scores = np.full((5, 30), PADDING)
    for row, size in enumerate(sizes):
        scores[row, :size] = np.where(rng.random(size) < 0.7, -rng.choice([0.01, 0.02, 0.5], size), rng.random(size))
    scores[0, : sizes[0]] = -0.02
    parts = even_parts(scores, counts, sizes, 0.05)
    np.testing.assert_allclose(parts.sum(axis=1), sizes)
    assert (parts * counts[:, None] / sizes[:, None] <= 1 + 1e-9).all()
    assert ((parts > 0) == (scores > PADDING)).all()
    worth = np.where(scores > PADDING, np.maximum(scores, 0.0), PADDING)
    chance = inclusion_probabilities(draw_weights(worth, counts, 0.05), counts, sizes, 0.05, parts)
    np.testing.assert_allclose(chance.sum(axis=1), counts)
    assert (chance <= 1 + 1e-9).all()
    assert ((chance > 0) == (scores > PADDING)).all()
    flat = np.concatenate([chance[row, :size] for row, size in enumerate(sizes)])
    assert len(systematic(flat, sizes, counts, rng)) == counts.sum()


def test_nothing_held_back_changes_nothing():
    assert even_parts(np.array([[0.0, 1.0, PADDING]]), np.array([1]), np.array([2]), 0.05) is None
    draws = []
    for filters in ([ZERO], [{**CAP, "above": 1}, {**PREDICTED, "below": 0}, ZERO]):
        curriculum = make(200, filters)
        teach(curriculum, (range(50), PASSED))
        draws.append([draw.index for draw in curriculum.ask(20, group_size=8)])
    assert draws[0] == draws[1]


@pytest.mark.parametrize("believed", [[1] * 8, [0] * 8])
@pytest.mark.parametrize("filters", [[ZERO], [CAP, ZERO], [PREDICTED, CAP, ZERO], []])
def test_a_pool_that_is_wholly_mastered_or_hopeless_still_gives_draws(believed, filters):
    """S1: the pool never shrinks; with every prompt solved, or none ever, asks give as many prompts as before."""
    curriculum = make(40, filters)
    teach(curriculum, (range(40), believed))
    seen: set[int] = set()
    for _ in range(60):
        draws = curriculum.ask(8, group_size=8)
        assert len({draw.index for draw in draws}) == 8
        assert all(0 < draw.propensity <= 1 for draw in draws)
        seen |= {draw.index for draw in draws}
        curriculum.tell([GroupOutcome(draw.ticket, believed) for draw in draws])
    assert seen == set(range(40))


@pytest.mark.parametrize(("candidates", "mastered"), [(16, 20), (16, 300), (64, 380)])
def test_what_is_mastered_is_reviewed_at_the_stated_rate(candidates, mastered):
    """S2: a mastered prompt's rate falls to that of a review, as long as anything else can be drawn."""
    curriculum = make(400, [CAP, ZERO], candidates=candidates)
    teach(curriculum, (range(mastered), PASSED), (range(mastered, 400), MIXED))
    assert curriculum.beliefs([0]).mean > 0.9
    rate = rates(curriculum, range(mastered), 2000)
    expected = 0.02 * 8 * 2000 * mastered / 400
    assert abs(rate / 0.02 - 1) < 5 / np.sqrt(expected)


def test_what_is_hopeless_is_probed_at_the_stated_rate():
    """Predicted zero variance: the same of prompts that never pass, at its own rate."""
    curriculum = make(400, [PREDICTED, CAP, ZERO])
    teach(curriculum, (range(200), FAILED), (range(200, 400), MIXED))
    assert rates(curriculum, range(200), 3000) == pytest.approx(0.01, rel=0.4)


def test_a_mastered_prompt_that_is_failed_comes_back():
    """S2: after a regression its review fails, its belief falls below the cap, and its rate rises again."""
    curriculum = make(100, [CAP, ZERO])
    teach(curriculum, (range(60), PASSED), (range(60, 100), FAILED))
    before = rates(curriculum, range(10), 800)
    assert before < 0.06
    teach(curriculum, (range(10), [0, 1, 0, 1, 0, 0, 1, 0]), times=3)
    assert (curriculum.beliefs(range(10)).mean < 0.9).all()
    assert rates(curriculum, range(10), 800) > 5 * before


def test_propensities_are_those_of_the_draws():
    """Held back or not, a prompt is drawn as often as its propensity says."""
    filters = [{**CAP, "review": 0.05}, {**PREDICTED, "probe": 0.03}, ZERO]
    curriculum = make(60, filters, probe=0.1)
    teach(curriculum, (range(30), PASSED), (range(30, 50), MIXED), (range(50, 60), FAILED))
    counts, stated = np.zeros(60), np.full(60, np.nan)
    asks = 4000
    for _ in range(asks):
        draws = curriculum.ask(6, group_size=8)
        for draw in draws:
            counts[draw.index] += 1
            stated[draw.index] = draw.propensity
        curriculum.cancel([draw.ticket for draw in draws])
    assert not np.isnan(stated).any()
    assert stated.sum() == pytest.approx(6.0)
    deviation = (counts - asks * stated) / np.sqrt(asks * stated * (1 - stated) + 1e-9)
    assert np.abs(deviation).max() < 4.5


def test_reviews_and_probes_are_called_so():
    curriculum = make(100, [CAP, PREDICTED, ZERO])
    teach(curriculum, (range(50), PASSED), (range(50, 60), FAILED), (range(60, 100), MIXED))
    reasons: dict[str, set[str]] = {"mastered": set(), "hopeless": set()}
    for _ in range(500):
        draws = curriculum.ask(8, group_size=8)
        for draw in draws:
            if draw.index < 60:
                reasons["mastered" if draw.index < 50 else "hopeless"].add(draw.reason)
        curriculum.cancel([draw.ticket for draw in draws])
    assert reasons == {"mastered": {"review"}, "hopeless": {"probe"}}


def test_without_rates_there_is_no_pass_rate_to_cap():
    """In informative mode beliefs are about informative groups: the cap holds nothing back, a prediction does."""
    shaped = [0.0, 5.0] * 4
    curriculum = make(100, [CAP, PREDICTED, ZERO])
    teach(curriculum, (range(50), shaped), (range(50, 100), [3.0] * 8))
    assert curriculum.success_mode == "informative"
    assert rates(curriculum, range(50), 500) > 1.9


def test_errors_teach_nothing_and_are_counted_apart():
    """S3: a failure of infrastructure is no reward of 0."""
    curriculum = make(9, [ZERO])
    before = curriculum.beliefs(range(9))
    draws = curriculum.ask(4, group_size=4)
    statuses = ["error", "stale", "cancelled", "error"]
    verdicts = curriculum.tell(
        [GroupOutcome(draw.ticket, [0] * 4, status=status) for draw, status in zip(draws, statuses, strict=True)]
    )
    assert [verdict.reason for verdict in verdicts] == statuses
    assert not any(verdict.keep for verdict in verdicts)
    after = curriculum.beliefs(range(9))
    np.testing.assert_array_equal(before.mean, after.mean)
    np.testing.assert_array_equal(before.std, after.std)
    metrics = curriculum.metrics()
    assert (metrics["a/error"], metrics["a/stale"], metrics["a/cancelled"]) == (2, 1, 1)
    assert metrics["a/zero_variance"] == metrics["a/unscorable"] == metrics["coverage"] == 0


def test_what_is_held_for_a_batch_is_not_drawn_for_it():
    curriculum = make(10, [ZERO])
    with curriculum.holding([0, 1, 1, 2]):
        draws = curriculum.ask(7, group_size=4)
        assert {draw.index for draw in draws} == set(range(3, 10))
        (again,) = curriculum.ask(1, group_size=4)
        assert again.reason == "repeat"
    # The repeat may be one of those that were held.
    left = {0, 1, 2} - {again.index}
    assert {draw.index for draw in curriculum.ask(len(left), group_size=4)} == left
    for wrong in ([10], [-1], [0.5]):
        with pytest.raises(CurriculaValueError, match="holding: expected"), curriculum.holding(wrong):
            pass


def test_two_groups_that_are_pending_when_prompts_run_out_are_kept():
    """R2: three accepted, one rejected, two still out and no prompt left: the three are trained, the two are kept."""
    curriculum = make(6, [ZERO])
    draws = curriculum.ask(6, group_size=4)
    verdicts = curriculum.tell(
        [GroupOutcome(draw.ticket, [0, 1, 1, 0]) for draw in draws[:3]] + [GroupOutcome(draws[3].ticket, [1] * 4)]
    )
    assert [verdict.keep for verdict in verdicts] == [True, True, True, False]
    with curriculum.holding([draw.index for draw in draws[:4]]):
        (again,) = curriculum.ask(1, group_size=4)
    assert again.reason == "repeat"
    late = curriculum.tell([GroupOutcome(draw.ticket, [0, 1, 0, 1]) for draw in draws[4:]])
    assert [verdict.keep for verdict in late] == [True, True]
