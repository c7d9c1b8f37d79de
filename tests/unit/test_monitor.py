import numpy as np
import pytest

from curricula import Curriculum, GroupOutcome, PromptPool


def simulate(curriculum, rates, rounds, seed, n=8, group_size=8):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        draws = curriculum.ask(n, group_size=group_size)
        curriculum.tell([GroupOutcome(d.ticket, (rng.random(group_size) < rates[d.index]) * 1.0) for d in draws])
    return curriculum.metrics()


def test_three_rates_are_told_apart_and_the_corrected_one_is_the_pools():
    # Two environments of pass rates that are mostly 0 or 1: what is drawn is far from what is there.
    rng = np.random.default_rng(7)
    rates = np.concatenate([rng.beta(0.2, 0.6, 600), rng.beta(0.6, 0.2, 300)])
    names = ["hard"] * 600 + ["easy"] * 300
    errors, drawn = [], []
    for seed in range(8):
        curriculum = Curriculum(PromptPool(names), {"monitor": {"window": 2000}}, seed=seed)
        metrics = simulate(curriculum, rates, 150, seed)
        errors.append(
            [
                metrics["hard/success_corrected"] - rates[:600].mean(),
                metrics["easy/success_corrected"] - rates[600:].mean(),
                metrics["success_corrected"] - rates.mean(),
            ]
        )
        drawn.append([metrics["hard/success_drawn"] - rates[:600].mean(), metrics["easy/ess"]])
        assert metrics["hard/success_trained"] != metrics["hard/success_drawn"]
    spread = np.std(errors, axis=0) / np.sqrt(len(errors))
    assert (np.abs(np.mean(errors, axis=0)) < np.maximum(3.5 * spread, 0.01)).all()
    assert np.mean(np.abs(errors)) < 0.06
    assert np.mean(drawn, axis=0)[0] > 0.1
    assert np.mean(drawn, axis=0)[1] > 5


def test_declared_weights_are_the_base_mix():
    names, rates = ["a"] * 50 + ["b"] * 150, np.array([1.0] * 50 + [0.0] * 150)
    mild = {"curriculum": {"probe": 0.3, "temperature": 0.5}}  # enough chance for a rate in 40 asks
    by_size = simulate(Curriculum(PromptPool(names), mild), rates, 40, 0)
    assert by_size["success_corrected"] == pytest.approx(0.25, abs=0.05)
    weighted = simulate(Curriculum(PromptPool(names), {**mild, "environments": {"a": {"weight": 3}}}), rates, 40, 0)
    assert weighted["success_corrected"] == pytest.approx(0.75, abs=0.05)


def test_a_corrected_rate_is_left_out_below_an_effective_sample_of_five():
    curriculum = Curriculum(PromptPool(["a"] * 50))
    metrics = simulate(curriculum, np.full(50, 0.5), 1, 0, n=4)
    assert metrics["a/ess"] < 5
    sizes = []
    for _ in range(20):
        sizes.append(metrics["a/ess"])
        assert ("a/success_corrected" in metrics) == ("success_corrected" in metrics) == (sizes[-1] >= 5)
        metrics = simulate(curriculum, np.full(50, 0.5), 1, 0, n=4)
    assert max(sizes) > 5


def test_an_environment_that_was_never_told_has_counts_and_no_rates():
    metrics = Curriculum(PromptPool(["a", "b"])).metrics()
    assert metrics["a/kept"] == 0
    assert not [name for name in metrics if "success" in name or "share_drawn" in name]
    assert metrics["a/share"] == pytest.approx(0.5, abs=0.1)
    assert all(np.isfinite(value) for value in metrics.values())


def test_every_way_to_end_is_counted_apart():
    curriculum = Curriculum(PromptPool(["a"] * 50), {"curriculum": {"expiry": 2}})
    draws = curriculum.ask(9, group_size=3)
    tickets = [draw.ticket for draw in draws]
    outcomes = [
        GroupOutcome(tickets[0], [0, 1, 1], tokens=[5, 6, 7]),
        GroupOutcome(tickets[1], [1, 1, 1], tokens=[1, 2, np.nan]),
        GroupOutcome(tickets[2], [1, np.nan, np.nan]),
        GroupOutcome(tickets[3], [np.nan] * 3),
        GroupOutcome(tickets[4], [0, 0, 0], status="error"),
        GroupOutcome(tickets[5], [0, 1, 0], status="stale"),
        GroupOutcome(tickets[6], [0, 1, 0], status="cancelled"),
    ]
    reasons = [(verdict.keep, verdict.reason) for verdict in curriculum.tell(outcomes)]
    assert reasons[0] == (True, "informative")
    assert [reason for keep, reason in reasons[1:] if not keep] == [
        "zero_variance", "single", "unscorable", "error", "stale", "cancelled"
    ]  # fmt: skip
    curriculum.cancel([tickets[7]])
    for _ in range(3):
        curriculum.tell([GroupOutcome(draw.ticket, [0, 1]) for draw in curriculum.ask(1, group_size=2)])
    metrics = curriculum.metrics()
    counts = {name: metrics[f"a/{name}"] for name in ("zero_variance", "single", "unscorable", "error", "stale")}
    assert counts == dict.fromkeys(counts, 1)
    assert metrics["a/kept"] == 4
    assert metrics["a/cancelled"] == 2
    assert metrics["a/expired"] == metrics["expired"] == 1
    assert metrics["a/tokens"] == 21
    assert metrics["told"] == 10
    assert metrics["draws"] == 12
    assert metrics["in_flight"] == 0
    # Rates are over groups with a live member: 1/3 + ... of the three scored first, then the three of [0, 1].
    assert metrics["a/success_drawn"] == pytest.approx((2 / 3 + 1 + 1 + 3 * 0.5) / 6)
    assert metrics["a/success_trained"] == pytest.approx((2 / 3 + 3 * 0.5) / 4)
    assert metrics["informative"] == pytest.approx(4 / 6)


def test_windows_forget():
    curriculum = Curriculum(PromptPool(["a"] * 80), {"monitor": {"window": 8}})
    simulate(curriculum, np.zeros(80), 5, 0)
    metrics = simulate(curriculum, np.ones(80), 1, 0)
    assert metrics["a/success_drawn"] == 1
    assert metrics["a/zero_variance"] == 48


def test_shares_drawn_and_trained_differ_where_one_environment_is_filtered():
    metrics = simulate(Curriculum(PromptPool(["a", "b"] * 50)), np.tile([0.5, 0.0], 50), 30, 0)
    assert metrics["a/share_drawn"] + metrics["b/share_drawn"] == pytest.approx(1)
    assert metrics["a/share_trained"] == 1
    assert 0 < metrics["b/share_drawn"] < 0.5
