"""How long a pilot must be: the answer is what simulated pilots say, and moves as it should."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inputs_cli import call

from curricula import CurriculaValueError
from curricula.cli.scaling.design import warnings_of
from curricula.scaling import ScalingFit, fit, pilots
from curricula.scaling.laws import sigmoid
from curricula.scaling.pilots import SURE, Design, Pilot, design, lengths_at_most

GUESS = ScalingFit.of_parameters(0.61, 1.92, 2542, r0=0.2)


@pytest.mark.slow
def test_the_shortest_length_is_narrow_and_the_one_before_is_not() -> None:
    looked: list[float] = []
    found = design(GUESS, spacing=100, prompts=1000, samples=16, simulations=20, on_pilot=looked.append)
    assert found.shortest is not None
    by_length = {pilot.length: pilot for pilot in found.pilots}
    assert Counter(looked) == dict.fromkeys(by_length, 20)
    assert len(by_length) <= lengths_at_most()
    assert by_length[found.shortest].narrow >= SURE
    assert all(pilot.narrow < SURE for pilot in found.pilots if pilot.length < found.shortest)
    assert by_length[found.shortest].half_width <= 0.02
    widths = [pilot.half_width for pilot in found.pilots]
    assert widths == sorted(widths, reverse=True)
    # Most bands hold the truth, and errors are within them.
    assert np.mean([pilot.coverage for pilot in found.pilots]) > 0.8
    assert all(pilot.rmse < 2 * pilot.half_width for pilot in found.pilots)
    # About the midpoint twice over: before it no ceiling can be seen.
    assert GUESS.midpoint < found.shortest < 4 * GUESS.midpoint


@pytest.mark.slow
def test_noise_and_a_narrower_band_take_longer() -> None:
    easy = design(GUESS, spacing=200, noise=0.005, width=0.04, simulations=10).shortest
    noisy = design(GUESS, spacing=200, noise=0.02, width=0.04, simulations=10).shortest
    narrow = design(GUESS, spacing=200, noise=0.005, width=0.01, simulations=10).shortest
    assert easy is not None
    assert noisy is not None
    assert narrow is not None
    assert easy < noisy
    assert easy < narrow


def test_a_seed_gives_the_same_and_no_length_is_said_so() -> None:
    given = {"spacing": 250, "noise": 0.02, "horizon": 4000.0, "width": 0.002, "simulations": 6}
    first, again = design(GUESS, **given), design(GUESS, **given)
    assert first.shortest is None
    assert first.to_dict() == again.to_dict()
    assert len(first.pilots) >= 2
    assert max(pilot.length for pilot in first.pilots) == 4000


def test_points_so_far_are_gone_on_from() -> None:
    compute = np.arange(200, 3001, 200.0)
    score = sigmoid(compute, 0.61, 1.92, 2542, 0.2) + np.random.default_rng(0).normal(0, 0.005, len(compute))
    so_far = fit(compute, score)
    found = design(so_far, spacing=400, horizon=8000, width=0.04, simulations=8)
    assert all(pilot.length > 3000 for pilot in found.pilots)
    last = found.pilots[-1]
    assert last.points == len(compute) + round((last.length - 3000) / 400)
    # The truth is not one curve: what is not known of it is drawn.
    assert found.truth.std() > 0.005
    assert found.shortest is not None


def test_seeds_stay_apart_in_what_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = np.stack([np.arange(200, 3001, 200.0), np.arange(230, 3031, 200.0)])
    offsets = np.array([[0.03], [-0.03]])
    score = sigmoid(compute, 0.61, 1.92, 2542, 0.2) + offsets + np.random.default_rng(0).normal(0, 0.005, (2, 15))
    so_far = fit(compute, score)
    seen: list[ScalingFit] = []

    def watched(*given: Any, **more: Any) -> ScalingFit:
        seen.append(fit(*given, **more))
        return seen[-1]

    monkeypatch.setattr(pilots, "fit", watched)
    found = design(so_far, spacing=400, horizon=8000, width=0.5 - 1e-9, simulations=2)
    for made in seen:
        first, second = (made.observed.compute[made.observed.series == seed] for seed in (0, 1))
        np.testing.assert_array_equal(first, compute[0])
        np.testing.assert_array_equal(second[:15], compute[1])
        assert second[15:].tolist() == [3030 + 400.0 * k for k in range(1, len(second) - 14)]
    assert found.pilots[0].points == len(seen[-1].observed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"spacing": 0.0}, "expected spacing as a finite number above 0; got 0"),
        ({"width": 2.0}, "expected width as half of a band of scores, below .5; got 2"),
        ({"noise": None}, "expected noise, or prompts of an evaluation; got neither"),
        ({"prompts": 10}, "expected either noise or prompts; got both"),
        ({"longest": 300.0}, "expected a longest length of 600 or more, 6 evaluations 100 apart; got 300"),
        ({"spacing": 0.1}, "expected at most 5,000 evaluations up to 50840; got 508,400"),
        ({"spacing": 1e-50}, "expected at most 5,000 evaluations up to 50840; got 5.08e+54"),
        ({"spacing": 1e-300}, "expected spacing from 1e-60 to 1e+60; got 1e-300; take another unit"),
        ({"longest": 1e308}, "expected longest from 1e-60 to 1e+60; got 1e+308; take another unit"),
        ({"noise": 3.0}, "expected noise as a standard error of rates, up to 1; got 3"),
        ({"simulations": 0}, "expected 1 or more simulations"),
    ],
)
def test_what_cannot_be_designed_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(CurriculaValueError) as caught:
        design(GUESS, **{"spacing": 100, "noise": 0.01, **given})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_prints_a_table_and_a_sentence(tmp_path: Path) -> None:
    guess = ("--asymptote", ".6", "--midpoint", "1000", "--exponent", "2", "--r0", ".2")
    rest = ("--spacing", "200", "--noise", ".01", "--width", ".05", "--horizon", "4000", "--pilots", "6")
    printed = call("scaling", "design", *guess, *rest, "--plot", str(tmp_path / "d.png"))
    assert "holds the truth" in printed
    assert "its band is ±0.05 or narrower in 80% of cases" in printed
    assert "warning" not in printed
    assert (tmp_path / "d.png").stat().st_size > 10_000
    found = json.loads(call("scaling", "design", *guess, *rest, "--json"))
    assert found["shortest"] in [pilot["length"] for pilot in found["pilots"]]
    percent = ("--asymptote", "60", "--midpoint", "1000", "--exponent", "2", "--r0", "20", "--percent")
    rest = ("--spacing", "200", "--noise", "1", "--width", "5", "--horizon", "4000", "--pilots", "6")
    assert json.loads(call("scaling", "design", *percent, *rest, "--json")) == found


def test_a_band_that_is_too_narrow_and_pilots_far_off_are_said() -> None:
    short = Pilot(5000, 50, 0.014, 0.98, 0.75, 0.0137, 0.0059, 0.0)
    long = Pilot(50_000, 500, 0.0005, 0.95, 0.85, 0.0218, 0.0003, 0.05)
    made = Design(5000, (short, long), 0.02, None, 40, np.full(40, 0.6))
    warning, note = warnings_of(made, "rollouts")
    assert "held the truth in 75% of these pilots only" in warning
    assert "at 50,000 rollouts it held it in 85%" in warning
    assert "in 5% of the pilots of 50,000 rollouts the last third seemed to leave the law by chance" in note
    sound = Design(5000, (replace(short, coverage=0.9),), 0.02, None, 40, np.full(40, 0.6))
    assert warnings_of(sound, "rollouts") == []


def test_a_score_of_nothing_at_no_compute_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = np.arange(200, 3001, 200.0)
    rows = zip(compute, sigmoid(compute, 0.6, 2.0, 1500, 0.0), strict=True)
    file = tmp_path / "c.csv"
    file.write_text("compute,score\n" + "".join(f"{x},{y}\n" for x, y in rows), encoding="utf-8")
    known: list[float | None] = []

    def watched(curve: ScalingFit, **_: Any) -> Any:
        known.append(curve.observed.r0)
        raise CurriculaValueError("enough")

    monkeypatch.setattr("curricula.cli.scaling.design.design", watched)
    for options in ((), ("--r0", "0"), ("--r0", "0.01")):
        with pytest.raises(CurriculaValueError, match="enough"):
            call("scaling", "design", str(file), "--spacing", "200", *options)
    assert known == [None, 0.0, 0.01]
