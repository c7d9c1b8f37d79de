"""Fits of a score against compute: what is recovered, what is said to be unknown, what is refused."""

import json
import math

import numpy as np
import pytest

from curricula.errors import CurriculaValueError
from curricula.scaling import ScalingFit, evaluation_noise, fit
from curricula.scaling.curves import Exponentials, Gompertz, Sigmoids
from curricula.scaling.laws import sigmoid

COMPUTE = np.linspace(500, 6000, 25)
DENSE = np.linspace(500, 6000, 100)
TRUTH = sigmoid(COMPUTE, 0.6, 1.8, 2500, 0.2)


KNOWN = ScalingFit.of_parameters(0.6, 1.8, 2500)


def noisy(size=0.006, seed=0, truth=TRUTH):
    return truth + np.random.default_rng(seed).normal(0, size, len(truth))


# What ScaleRL (2510.13786) reports: C_mid, B, A.
REPORTED = {
    "8B": (2542, 1.92, 0.610),
    "batch 512": (2818, 1.77, 0.605),
    "batch 2048": (10909, 1.70, 0.645),
    "32k length": (11272, 1.89, 0.645),
    "Scout": (4242, 1.65, 0.710),
    "maths": (2896, 2.05, 0.595),
    "code": (1675, 1.09, 0.615),
}


class TestRecovers:
    @pytest.mark.parametrize("name", REPORTED)
    def test_reported_curves_are_fitted_back(self, name):
        midpoint, exponent, asymptote = REPORTED[name]
        compute, errors = np.geomspace(midpoint / 4, 4 * midpoint, 30), []
        for seed in range(20):
            rng = np.random.default_rng([seed, midpoint])
            score = rng.binomial(16_000, sigmoid(compute, asymptote, exponent, midpoint, 0.2)) / 16_000
            errors.append(fit(compute, score, r0=0.2, noise=evaluation_noise(score, 1000, 16)).asymptote - asymptote)
        assert np.mean(np.abs(errors) <= 0.02) >= 0.9

    def test_a_curve_without_noise_is_found(self):
        found = fit(COMPUTE, TRUTH)
        assert found.asymptote == pytest.approx(0.6, abs=0.005)
        assert found.exponent == pytest.approx(1.8, abs=0.03)
        assert found.midpoint == pytest.approx(2500, rel=0.02)
        assert found.r0 == pytest.approx(0.2, abs=0.005)
        assert found.start == 0

    def test_the_band_holds_the_truth_and_grows(self):
        mean, low, high = fit(COMPUTE, noisy(seed=1)).predict([6000, 24_000, 96_000])
        truth = sigmoid([6000, 24_000, 96_000], 0.6, 1.8, 2500, 0.2)
        assert ((low <= truth) & (truth <= high)).all()
        assert (np.diff(high - low) > 0).all()
        assert ((low <= mean) & (mean <= high)).all()

    def test_more_points_narrow_it(self):
        few, many = fit(COMPUTE[::4], noisy()[::4]), fit(COMPUTE, noisy(size=0.002))
        assert np.subtract(*many.interval("asymptote")) > np.subtract(*few.interval("asymptote"))

    def test_seeds_as_rows_are_as_good_as_replicates(self):
        rows = np.stack([noisy(0.01, seed) for seed in range(3)])
        by_rows = fit(COMPUTE, rows)
        by_points = fit(np.tile(COMPUTE, 3), rows.ravel())
        assert by_rows.asymptote == pytest.approx(by_points.asymptote, abs=1e-9)
        assert by_rows.interval("asymptote") == pytest.approx(by_points.interval("asymptote"), abs=1e-9)

    def test_correlated_deviations_are_seen_and_widen_the_band(self):
        rng = np.random.default_rng(3)
        deviations = [rng.normal()]
        for _ in range(59):
            deviations.append(0.8 * deviations[-1] + 0.6 * rng.normal())
        compute = np.linspace(500, 6000, 60)
        truth = sigmoid(compute, 0.6, 1.8, 2500, 0.2)
        related = fit(compute, truth + 0.012 * np.array(deviations))
        apart = fit(compute, truth + 0.012 * rng.permutation(deviations))
        assert related.correlation > 0.5 > apart.correlation
        assert np.subtract(*related.interval("asymptote")) < np.subtract(*apart.interval("asymptote"))

    def test_unequal_noise_is_heeded(self):
        noise = np.where(np.arange(25) < 15, 0.005, 0.1)
        score = np.where(np.arange(25) < 15, noisy(), 0.9)
        heeded = fit(COMPUTE, score, noise=noise, skip=None).predict(6000)[0]
        ignored = fit(COMPUTE, score, skip=None).predict(6000)[0]
        truth = TRUTH[-1]
        assert abs(heeded - truth) < 0.1 < abs(ignored - truth)

    def test_a_score_at_no_compute_tells_the_start(self):
        compute, score = np.r_[0, COMPUTE], np.r_[0.2, noisy()]
        with_it, without = fit(compute, score), fit(COMPUTE, noisy())
        assert np.subtract(*with_it.interval("r0")) > np.subtract(*without.interval("r0"))
        assert with_it.predict(0)[0] == pytest.approx(0.2, abs=0.02)

    @pytest.mark.parametrize("unit", [1e-12, 1e6, 1e21])
    def test_the_unit_of_compute_changes_nothing(self, unit):
        here, there = fit(COMPUTE, noisy()), fit(COMPUTE * unit, noisy())
        assert there.asymptote == pytest.approx(here.asymptote, abs=1e-6)
        assert there.midpoint / unit == pytest.approx(here.midpoint, rel=1e-6)
        assert fit(COMPUTE * unit, noisy(), method="grid").asymptote > 0.45

    def test_the_same_seed_gives_the_same_fit_and_no_global_generator_is_used(self):
        np.random.seed(0)  # noqa: NPY002
        expected = np.random.RandomState(0).uniform()
        one, two, other = (fit(COMPUTE, noisy(), seed=seed) for seed in (1, 1, 2))
        assert one.to_dict() == two.to_dict()
        assert other.asymptote == pytest.approx(one.asymptote, abs=0.005)
        assert np.random.uniform() == expected  # noqa: NPY002

    def test_order_and_double_rows_change_nothing(self):
        score = noisy()
        once = fit(COMPUTE, score)
        again = fit(np.r_[COMPUTE, COMPUTE][::-1], np.r_[score, score][::-1])
        assert again.asymptote == pytest.approx(once.asymptote, abs=1e-9)
        assert "counted once" in again.notes[0]

    def test_a_long_log_is_averaged(self):
        compute = np.linspace(500, 6000, 3000)
        found = fit(compute, noisy(0.05, truth=sigmoid(compute, 0.6, 1.8, 2500, 0.2)))
        assert len(found.observed) <= 400
        assert found.asymptote == pytest.approx(0.6, abs=0.03)


class TestSkips:
    def test_a_transient_is_left_out_and_said(self):
        score = noisy()
        score[:3] += 0.15
        found = fit(COMPUTE, score)
        assert found.start == pytest.approx(COMPUTE[3])
        assert "3 of 25 points below a compute of" in found.notes[0]

    def test_a_clean_curve_is_whole(self):
        assert sum(fit(COMPUTE, noisy(seed=seed)).start > 0 for seed in range(20)) <= 1

    def test_noise_is_no_reason(self):
        score = (np.random.default_rng(0).uniform(size=25) < TRUTH).astype(float)
        assert fit(COMPUTE, score).start == 0

    def test_by_hand(self):
        found = fit(COMPUTE, noisy(), skip=1000.0)
        assert found.observed.compute.min() >= 1000
        assert fit(COMPUTE, noisy(), skip=None).start == 0


class TestSays:
    @pytest.mark.parametrize(
        ("name", "compute", "score"),
        [
            ("flat", COMPUTE, np.full(25, 0.3)),
            ("flat", COMPUTE, noisy(0.01, truth=np.full(25, 0.3))),
            ("flat", COMPUTE, np.random.default_rng(0).uniform(size=25)),
            ("falling", COMPUTE, noisy(0.01, truth=0.6 - 0.05 * np.log(COMPUTE / 500))),
            ("too_short", COMPUTE[:3], TRUTH[:3]),
            ("too_short", [100.0], [0.3]),
            ("too_short", [100.0] * 6, [0.3, 0.31, 0.32, 0.33, 0.34, 0.35]),
            ("no_bend", COMPUTE[:6], noisy()[:6]),
            ("noisy", DENSE, np.clip(noisy(0.22, truth=sigmoid(DENSE, 0.6, 1.8, 2500, 0.2)), 0, 1)),
            ("saturated", COMPUTE * 10, noisy(0.003, truth=sigmoid(COMPUTE * 10, 0.6, 2.5, 800, 0.1))),
        ],
    )
    def test_what_cannot_be_known_has_a_name(self, name, compute, score):
        assert name in fit(compute, score).reasons

    def test_a_clear_curve_leaves_nothing_unsaid(self):
        assert fit(COMPUTE * 3, noisy(0.004, truth=sigmoid(COMPUTE * 3, 0.6, 1.8, 2500, 0.2))).reasons == {}

    def test_a_law_that_is_not_told_from_the_sigmoid(self):
        compute = np.linspace(30, 1000, 30)
        score = 0.1 + 0.5 * (1 - np.exp(-compute / 621)) + np.random.default_rng(1).normal(0, 0.005, 30)
        found = fit(compute, score)
        assert found.interval("asymptote")[0] > 0.6
        assert "one that slows down faster tends to 0.601" in found.reasons["law_untold"]

    @pytest.mark.parametrize("noise", [0, 0.0005, np.full(30, 0.001)])
    @pytest.mark.parametrize("seed", [0, 2])
    def test_noise_far_below_the_scatter_is_left_aside(self, noise, seed):
        compute = np.linspace(100, 3000, 30)
        score = sigmoid(compute, 0.6, 1.8, 1500, 0.1) + np.random.default_rng(seed).normal(0, 0.01, 30)
        found, estimated = fit(compute, score, noise=noise), fit(compute, score)
        assert "was left aside" in found.reasons["noise_given"]
        assert found.predict(12_000) == estimated.predict(12_000)
        assert "noise_given" not in fit(compute, score, noise=0.005).reasons

    def test_no_noise_is_believed_where_there_is_none(self):
        assert "noise_given" not in fit(COMPUTE, TRUTH, noise=0).reasons

    def test_scores_below_the_start_that_was_given(self):
        assert "below_r0" in fit(COMPUTE, noisy(), r0=0.7).reasons

    @pytest.mark.parametrize("score", [np.zeros(25), np.full(25, 0.3), TRUTH[:1], TRUTH[:2]])
    def test_a_take_off_may_still_come(self, score):
        _, low, high = fit(COMPUTE[: len(score)], score).predict(60_000)
        assert high - low > 0.15

    def test_a_falling_curve_may_stay_or_fall_on(self):
        score = 0.6 - 0.05 * np.log(COMPUTE / 500)
        _, low, high = fit(COMPUTE, score).predict(24_000)
        assert low < score[-1] - 0.05
        assert high > score[-1] - 0.01

    @pytest.mark.parametrize("method", ["bayes", "grid", "power_law", "log_linear"])
    @pytest.mark.parametrize(
        "score", [np.zeros(25), np.ones(25), TRUTH[::-1], np.where(COMPUTE < 3000, 0.1, 0.9), np.tile([0, 1], 13)[:25]]
    )
    def test_no_curve_breaks_a_method(self, method, score):
        mean, low, high = fit(COMPUTE, score, method=method).predict([0, 1, 6000, 1e12])
        assert np.isfinite([mean, low, high]).all()
        assert ((low >= 0) & (high <= 1)).all() or method != "bayes"


class TestRefuses:
    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            ((COMPUTE, TRUTH * 100), {}, r"rates in \[0, 1\]; got 53.*divide percentages by 100"),
            ((COMPUTE, TRUTH - 2), {}, "map rewards to rates first"),
            ((-COMPUTE, TRUTH), {}, "finite numbers of 0 or more; got -500"),
            ((COMPUTE * np.nan, TRUTH), {}, "finite numbers of 0 or more; got nan"),
            ((COMPUTE * 1e100, TRUTH), {}, "compute from 1e-60 to 1e.60; got 5e.102; take another unit"),
            ((COMPUTE * 1e-100, TRUTH), {}, "compute from 1e-60 to 1e.60; got 5e-98; take another unit"),
            ((COMPUTE, TRUTH), {"noise": 1e300}, "standard errors of rates, up to 1e.06; got 1e.300"),
            ((COMPUTE, TRUTH * np.nan), {}, "a score that is a number at a compute above 0"),
            (([0.0], [0.2]), {}, "at a compute above 0"),
            (([], []), {}, "got none of 0"),
            ((COMPUTE, TRUTH[:3]), {}, r"compute \(25,\) and score \(3,\)"),
            ((COMPUTE, ["a"] * 25), {}, "expected numbers as score"),
            ((COMPUTE, np.where(COMPUTE > 5000, np.inf, TRUTH)), {}, "got inf"),
            ((COMPUTE, TRUTH), {"noise": -1}, "standard errors of 0 or more; got -1"),
            ((COMPUTE, TRUTH), {"noise": [0.1, 0.2]}, r"of shape \(25,\)"),
            ((COMPUTE, TRUTH), {"r0": 20}, "expected r0 as rates"),
            ((COMPUTE, TRUTH), {"method": "least squares"}, "one of bayes, grid, power_law, log_linear"),
            ((COMPUTE, TRUTH), {"skip": "early"}, 'expected skip as "auto"'),
            ((COMPUTE, TRUTH), {"skip": 1e9}, "expected skip to leave points"),
        ],
    )
    def test_in_one_line(self, arguments, options, message):
        with pytest.raises(CurriculaValueError, match=message) as caught:
            fit(*arguments, **options)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        "ask",
        [
            lambda: fit([10**400], [0.5]),
            lambda: fit(COMPUTE, TRUTH + 1j),
            lambda: fit(COMPUTE.astype("datetime64[s]"), TRUTH),
            lambda: fit(COMPUTE, TRUTH, r0="x"),
            lambda: fit(COMPUTE, TRUTH, r0=[0.2]),
            lambda: fit(COMPUTE, TRUTH, skip=[1]),
            lambda: fit(COMPUTE, TRUTH, seed=-1),
            lambda: fit(COMPUTE, TRUTH, seed="a"),
            lambda: KNOWN.predict("x"),
            lambda: KNOWN.predict(10**400),
            lambda: KNOWN.predict(1, level="x"),
            lambda: KNOWN.sample("x"),
            lambda: evaluation_noise(0.5, None),
            lambda: ScalingFit.of_parameters(2, 1, 10),
            lambda: ScalingFit.of_parameters(0.5, 1, 0),
            lambda: ScalingFit.of_parameters(0.5, -1, 10),
        ],
    )
    def test_what_is_no_number_in_one_line_too(self, ask):
        with pytest.raises(CurriculaValueError, match="expected") as caught:
            ask()
        assert "\n" not in str(caught.value)

    def test_what_is_masked_was_not_measured(self):
        masked = np.ma.masked_array(np.where(np.arange(25) == 3, 99, TRUTH), np.arange(25) == 3)
        assert "1 of 25 scores are NaN" in fit(COMPUTE, masked).notes[0]

    def test_questions_that_have_no_answer(self):
        found = fit(COMPUTE, TRUTH)
        for ask in (
            lambda: found.predict(-1),
            lambda: found.predict(math.nan),
            lambda: found.predict(1, level=1.0),
            lambda: found.interval("slope"),
            lambda: found.sample(0),
            lambda: evaluation_noise([0.5], 0),
        ):
            with pytest.raises(CurriculaValueError, match="expected"):
                ask()


class TestReads:
    def test_to_dict_is_json_even_where_there_is_no_number(self):
        for found in (fit(COMPUTE, TRUTH), fit(COMPUTE, TRUTH, method="log_linear"), fit(COMPUTE, TRUTH[::-1])):
            assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["points"] == 25

    def test_samples_are_the_posterior(self):
        found = fit(COMPUTE, noisy())
        curves = found.sample(500, seed=3)
        assert curves.weight == pytest.approx(np.full(500, 1 / 500))
        mean, low, high = found.predict([12_000])
        drawn = curves([12_000])[0]
        assert drawn.mean() == pytest.approx(mean[0], abs=0.005)
        assert np.mean((drawn >= low) & (drawn <= high)) == pytest.approx(0.9, abs=0.03)

    def test_one_number_is_answered_by_one(self):
        mean, low, high = fit(COMPUTE, TRUTH).predict(6000)
        assert mean.shape == low.shape == high.shape == ()

    def test_a_known_curve(self):
        known = ScalingFit.of_parameters(0.6, 1.8, 2500, r0=0.2)
        mean, low, high = known.predict(COMPUTE)
        assert mean == pytest.approx(TRUTH)
        assert low == pytest.approx(high)


class TestFoils:
    def test_the_grid_is_the_papers(self):
        found = fit(COMPUTE, noisy(), method="grid")
        steps = found.asymptote / 0.005
        assert steps == pytest.approx(round(steps))
        assert 0.45 <= found.asymptote <= 0.8

    def test_the_grid_says_where_it_ends(self):
        high = sigmoid(COMPUTE, 0.95, 2.5, 1500, 0.2)
        assert "edge" in fit(COMPUTE, high, method="grid").reasons

    def test_the_grid_is_least_squares(self):
        found = fit(COMPUTE, noisy(), r0=0.2, method="grid")
        best = np.square(found.predict(COMPUTE)[0] - noisy()).sum()
        for asymptote in np.arange(0.45, 0.8, 0.05):
            for midpoint in np.geomspace(100, 40_000, 30):
                for exponent in np.geomspace(0.3, 6, 20):
                    other = sigmoid(COMPUTE, asymptote, exponent, midpoint, 0.2)
                    assert np.square(other - noisy()).sum() > best * 0.98

    def test_a_power_law_is_found_where_it_is_one(self):
        score = 0.8 - 3 * COMPUTE**-0.4
        found = fit(COMPUTE, score, method="power_law", skip=None)
        assert found.asymptote == pytest.approx(0.8, abs=0.02)
        assert found.predict(60_000)[0] == pytest.approx(0.8 - 3 * 60_000**-0.4, abs=0.01)

    def test_a_line_is_found_where_it_is_one(self):
        score = 0.05 * np.log(COMPUTE)
        found = fit(COMPUTE, noisy(0.003, truth=score), method="log_linear", skip=None)
        assert found.predict(24_000)[0] == pytest.approx(0.05 * np.log(24_000), abs=0.02)
        assert math.isnan(found.asymptote)


class TestLaws:
    @pytest.mark.parametrize("law", [Sigmoids, Exponentials, Gompertz])
    def test_share_inverse_slope_and_peak_agree(self, law):
        z = np.linspace(-4, 2, 200)
        share = law.share(z)
        assert law.share(np.zeros(1)) == pytest.approx(0.5)
        assert law.inverse(share) == pytest.approx(z, abs=1e-6)
        assert np.gradient(share, z)[1:-1] == pytest.approx(law.slope(z)[1:-1], abs=1e-3)
        assert law.share(np.array([-np.inf, 800])) == pytest.approx([0, 1])
        exponent = np.array([1.5, 2.5])
        compute = np.geomspace(0.01, 10, 20_000)
        rate = exponent * law.slope(exponent * np.log(compute)[:, None]) / compute[:, None]
        steepest = np.exp(law.steepest(exponent) / exponent)
        assert compute[rate.argmax(axis=0)] == pytest.approx(steepest, rel=1e-3)

    def test_a_curve_that_is_no_sigmoid_is_told_from_one(self):
        compute = np.linspace(300, 8000, 60)
        score = 0.2 + 0.5 * (1 - 2 ** -((compute / 1500) ** 1.3))
        found = fit(compute, noisy(0.003, truth=score), skip=None)
        assert found.sigmoid < 0.1 < 0.9 < found.bounded
        assert "other_law" in found.reasons
        _, low, high = found.predict(20_000)
        assert low <= 0.7 <= high


LONG = np.linspace(500, 16_000, 40)


def long(seed=0, **changes):
    law = {"asymptote": 0.6, "exponent": 1.8, "midpoint": 3000, "r0": 0.2} | changes
    return noisy(0.006, seed, sigmoid(LONG, **law))


class TestLeavesItsLaw:
    @pytest.mark.parametrize("seed", range(3))
    def test_a_collapse_is_said_and_may_go_on(self, seed):
        score = long(seed)
        score[-8:] -= np.linspace(0, 0.28, 8)
        found = fit(LONG, score)
        _, low, high = found.predict(32_000)
        assert "leaves_law" in found.reasons
        assert low < 0.3 < 0.45 < high

    @pytest.mark.parametrize("seed", range(3))
    def test_a_fall_after_the_rise_is_said(self, seed):
        score = long(seed)
        score[20:] -= np.linspace(0, 0.12, 20)
        assert {"leaves_law", "related"} & set(fit(LONG, score).reasons)

    def test_curves_that_keep_to_it_are_not_accused(self):
        kept = [fit(LONG, long(seed, midpoint=2000 + 500 * seed)).reasons for seed in range(20)]
        assert not any("leaves_law" in said for said in kept)


class TestPriors:
    def test_are_those_that_are_stated(self):
        found = fit([1000.0, 1001.0], [0.5, 0.5], noise=1e4)
        family = found.curves.families[0]
        weight = family.weight
        asymptote = weight @ family.asymptote
        assert found.sigmoid == pytest.approx(0.77, abs=0.03)
        assert found.bounded == pytest.approx(0.85, abs=0.03)
        assert asymptote == pytest.approx(0.85 * 0.6 + 0.15 * 2 / 3, abs=0.02)
        assert np.sqrt(weight @ (family.asymptote - asymptote) ** 2) == pytest.approx(0.205, abs=0.02)
        assert weight @ (family.r0 / family.asymptote) == pytest.approx(0.5, abs=0.02)
        logs = np.log(family.exponent)
        assert weight @ logs == pytest.approx(np.log(1.5), abs=0.03)
        assert np.sqrt(weight @ (logs - weight @ logs) ** 2) == pytest.approx(0.45, abs=0.03)
        beyond = weight[family.midpoint > 1001].sum()
        rest = (1 - 10**-0.4) / 0.4
        assert beyond == pytest.approx(rest / (rest + np.log(10)), abs=0.03)

    def test_with_a_start_that_is_known(self):
        family = fit([1000.0, 1001.0], [0.5, 0.5], noise=1e4, r0=0.3).curves.families[0]
        assert (family.r0 == 0.3).all()
        grid = np.linspace(0.3, 1, 10_001)
        density = 0.85 * 12 * grid * (1 - grid) + 0.15 * 2
        assert family.weight @ family.asymptote == pytest.approx((grid * density).sum() / density.sum(), abs=0.02)

    @pytest.mark.parametrize("ceiling", [0.99, 1.0])
    def test_an_environment_may_be_solved(self, ceiling):
        truth = sigmoid(LONG, ceiling, 2, 3500, 0.1)
        score = np.random.default_rng(1).binomial(4000, truth) / 4000
        _, low, high = fit(LONG, score, noise=evaluation_noise(truth, 4000)).predict(64_000)
        assert low - 0.003 <= sigmoid(64_000, ceiling, 2, 3500, 0.1) <= high + 0.003

    def test_curves_that_point_above_one_have_enough_draws(self):
        compute = np.linspace(500, 6000, 30)
        score = noisy(0.004, truth=0.05 + 0.5 * (compute / 6000) ** 1.5)
        weight = fit(compute, score).curves.families[0].weight
        assert 1 / np.square(weight).sum() > 100


class TestReplicates:
    def test_coarse_scores_are_no_double_rows(self):
        rng = np.random.default_rng(0)
        compute = np.repeat(LONG, 50)
        score = (rng.uniform(size=2000) < sigmoid(compute, 0.6, 1.8, 3000, 0.2)).astype(float)
        found = fit(compute, score)
        assert found.predict(16_000)[0] == pytest.approx(sigmoid(16_000, 0.6, 1.8, 3000, 0.2), abs=0.06)
        assert not any("counted once" in note for note in found.notes)

    def test_many_seeds_are_averaged_before_places_are(self):
        rng = np.random.default_rng(0)
        rows = sigmoid(LONG, 0.6, 1.8, 3000, 0.2) + rng.normal(0, 0.02, (60, 40))
        found = fit(LONG, rows)
        assert len(np.unique(found.observed.compute)) == 40
        assert found.asymptote == pytest.approx(0.6, abs=0.03)

    def test_a_start_before_the_format_is_learnt_is_left_out(self):
        score = np.r_[0.02, noisy(truth=sigmoid(COMPUTE, 0.6, 1.8, 2500, 0.25))]
        found = fit(np.r_[0, COMPUTE], score)
        assert found.start == COMPUTE[0]
        assert found.predict(24_000)[0] == fit(COMPUTE, score[1:]).predict(24_000)[0]

    def test_few_prompts_do_not_pull_a_fit_down(self):
        errors = []
        for seed in range(15):
            rng = np.random.default_rng(seed)
            score = rng.binomial(30, np.full(25, 0.3)) / 30
            mean = fit(COMPUTE, score, noise=evaluation_noise(score, 30)).predict(6000)[0]
            errors.append(mean - 0.3)
        assert abs(np.mean(errors)) < 0.025
