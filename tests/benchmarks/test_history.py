"""The replay of a history, on a made-up one."""

import json

import history
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from forecasts import auc, forecast_scores
from intervals import Resamples, interval
from replay import GROUP_SIZE, build, groups, read_history, replay, seen_from_elsewhere
from rules import Greedy, Uniform


def made_up(prompts=160, visits=12, seed=0):
    """Pass rates in eighths: hopeless, frontier and mastered prompts that slowly get better."""
    rng = np.random.default_rng(seed)
    logits = rng.choice([-6.0, 0.0, 6.0], prompts, p=[0.3, 0.4, 0.3]) + rng.normal(0.0, 1.0, prompts)
    rates = 1 / (1 + np.exp(-(logits[:, None] + 0.03 * np.arange(visits))))
    return rng.binomial(GROUP_SIZE, rates) / GROUP_SIZE


def write(path, rates, short=3):
    """In random order, the last `short` prompts without their last visit."""
    prompt, visit = np.indices(rates.shape)
    kept = (prompt < len(rates) - short) | (visit < rates.shape[1] - 1)
    order = np.random.default_rng(1).permutation(int(kept.sum()))
    columns = {"prompt": prompt[kept], "visit": visit[kept], "pass_rate": rates[kept]}
    pyarrow.parquet.write_table(pyarrow.table({name: column[order] for name, column in columns.items()}), path)
    return path


def test_prompts_with_fewer_visits_are_left_out(tmp_path):
    rates = made_up()
    path = write(tmp_path / "history.parquet", rates)
    np.testing.assert_array_equal(read_history(path, 12), rates[:-3])
    np.testing.assert_array_equal(read_history(path, 5), rates[:, :5])
    with pytest.raises(ValueError, match="expected prompts with 13 visits; got at most 12"):
        read_history(path, 13)


def test_only_the_visits_of_chosen_prompts_are_seen_once_a_pass():
    rates = made_up()
    looked = []

    class Spy(Uniform):
        def observe(self, rows, successes_KG, tokens_KG=None):
            looked.append((rows, successes_KG))
            super().observe(rows, successes_KG, tokens_KG)

    run = replay(build(Spy, len(rates), 0), rates, 0.5)
    assert [rows.size for rows, _ in looked] == [32, 32, 16] * 12
    for visit in range(12):
        rows = np.concatenate([rows for rows, _ in looked[3 * visit : 3 * visit + 3]])
        seen = np.concatenate([seen for _, seen in looked[3 * visit : 3 * visit + 3]])
        assert np.unique(rows).size == 80
        np.testing.assert_array_equal(seen.mean(axis=1), rates[rows, visit])
    assert run.drawn_N.sum() == 12 * 80
    assert run.coverage_V[0] == 0.5
    mixed = np.concatenate([seen.std(axis=1) > 0 for _, seen in looked])
    assert run.informative_share == pytest.approx(mixed.mean())


def test_hindsight_leaves_the_group_itself_out():
    rates = made_up()
    changed = rates.copy()
    changed[:, 5] = 1.0 - changed[:, 5]
    ours, theirs = seen_from_elsewhere(rates), seen_from_elsewhere(changed)
    np.testing.assert_allclose(ours[:, 5], theirs[:, 5])
    assert not np.allclose(ours[:, 4], theirs[:, 4])


def test_intervals_are_paired_and_cover():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(60):
        whole = rng.poisson(4.0, (5, 200)).astype(float)
        part = rng.binomial(whole.astype(int), rng.beta(2.0, 2.0, 200)).astype(float)
        resamples = Resamples(200, 5, 300, rng)
        value, resampled = resamples.ratios(part, whole)
        low, high = interval(value, resampled)[1:]
        inside += low <= 0.5 <= high
        assert interval(0.0, resampled - resamples.ratios(part, whole)[1]) == (0.0, 0.0, 0.0)
    assert inside >= 52


def test_auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 5, 60) / 4, rng.random(60) < 0.4
    above = scores[positive][:, None] - scores[~positive]
    assert auc(scores, positive) == pytest.approx(((above > 0) + 0.5 * (above == 0)).mean())


def test_forecasts_know_more_than_the_share_of_mixed_groups():
    rates = made_up()
    mixed = ((rates[:, 1:] > 0.0) & (rates[:, 1:] < 1.0)).mean()
    scores = forecast_scores(rates)
    assert all(score["brier"] < 0.8 * mixed * (1.0 - mixed) for score in scores.values())
    assert all(0.5 < score["auc"] <= 1.0 for score in scores.values())
    assert scores["curriculum"]["brier"] < scores["dps"]["brier"]


def test_a_group_has_as_many_ones_as_its_rate_says():
    np.testing.assert_array_equal(groups(np.array([0.0, 0.375, 1.0])).sum(axis=1), [0, 3, 8])


def test_the_command_prints_tables_and_writes_json(tmp_path, capsys):
    path, out = write(tmp_path / "history.parquet", made_up()), tmp_path / "out.json"
    arguments = [str(path), "--visits", "12", "--budget", "0.25", "0.5", "--seeds", "3", "--json", str(out)]
    assert history.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "157 prompts, 12 visits" in printed
    assert printed.count("goal ") == 3
    found = json.loads(out.read_text())
    assert [entry["budget"] for entry in found["budgets"]] == [0.25, 0.5]
    for entry in found["budgets"]:
        rules = entry["rules"]
        assert rules["greedy"]["minus_uniform"]["low"] > 0.1
        assert rules["curriculum"]["minus_uniform"]["low"] > 0.1
        assert rules["hindsight"]["yield"]["value"] > rules["mopps"]["yield"]["value"]
        assert all(len(rule["coverage"]) == 12 for rule in rules.values())
    assert history.tuned_decay(made_up(), 0.25, 1) in history.DECAYS
    assert rules["greedy"]["minus_greedy"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_a_greedy_rule_with_evidence_beats_uniform():
    rates = made_up()
    greedy, uniform = (replay(build(kind, len(rates), 0), rates, 0.25) for kind in (Greedy, Uniform))
    assert greedy.informative_share > uniform.informative_share + 0.1
