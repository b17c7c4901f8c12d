"""Curves from tables of tests, and distributions of a share on steps, against closed forms and scipy."""

import numpy as np
import pytest
from scipy import stats

from priorshift.inference.confidence_curve import FiellerCurve, TabulatedCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PiecewiseUniform, PointPrior, RangePrior

SURVEY = stats.beta(30, 170)


def tabulated(fieller, ratios=None):
    """The same tests, made one by one."""
    r = np.linspace(0, 40, 40_001) if ratios is None else ratios
    variance = fieller.variance - 2 * r * fieller.covariance + r**2 * fieller.denominator_variance
    return TabulatedCurve.from_tests(r, (fieller.ratio - r) / np.sqrt(variance), np.full(len(r), fieller.freedom))


def normal(ratio, error, ratios=None):
    return tabulated(FiellerCurve(ratio, error**2), ratios)


@pytest.mark.parametrize(
    "fieller",
    [
        FiellerCurve(0.5, 0.05**2),
        FiellerCurve(0.5, 0.05**2, freedom=6.0),
        FiellerCurve(0.9, 0.1**2, 0.005, 0.2**2, 30.0),
        FiellerCurve(0.3, 0.2**2, 0.0, 0.3**2, 12.0),  # R may be 0, or large
    ],
)
def test_of_fiellers_statistic_it_is_fiellers_curve(fieller):
    curve, r = tabulated(fieller), np.linspace(0, 30, 500)
    assert curve.is_known
    np.testing.assert_allclose(curve(r), fieller(r), atol=1e-6)
    np.testing.assert_allclose(curve([-0.1, 0.2, 0.7], 0.8, 1.0), fieller([-0.1, 0.2, 0.7], 0.8, 1.0), atol=1e-6)
    for known in (PointPrior(0.2), RangePrior(0.1, 0.3), DistributionPrior(SURVEY)):
        for confidence in (0.8, 0.95):
            assert known.interval(curve, confidence) == pytest.approx(known.interval(fieller, confidence), abs=1e-5)


@pytest.mark.parametrize("ratio", [-0.2, 1.5])
def test_an_estimate_beyond_an_end_counts_as_the_end(ratio):
    """Of a constant error, where that is the distribution around the nearer end, as Fieller's curve has it."""
    curve, fieller = normal(ratio, 0.1), FiellerCurve(ratio, 0.1**2)
    x = np.linspace(0, 1, 50)
    np.testing.assert_allclose(curve(x, 0.8, 1.0), fieller(x, 0.8, 1.0), atol=1e-6)
    assert curve.interval(0.2, 0.95) == pytest.approx(fieller.interval(0.2, 0.95), abs=1e-6)
    end = {-0.2: 1.0, 1.5: 0.0}[ratio]
    assert curve(1 - end, 0.8, 1.0) == pytest.approx(0.5)


def test_where_the_statistic_rises_again_the_curve_stays_level():
    r = np.linspace(0, 4, 401)
    falls = np.where(r < 1, 2 - 4 * r, -2 + (r - 1))  # from 2 to −2 at 1, then back up to 1
    curve = TabulatedCurve.from_tests(r, falls, np.full(401, np.inf))
    np.testing.assert_allclose(curve(r[r <= 1]), stats.norm.cdf(4 * r[r <= 1] - 2 - 0.0), atol=1e-9)
    np.testing.assert_allclose(curve([1, 2, 4, 100]), stats.norm.cdf(2), atol=1e-9)
    assert (np.diff(curve(np.linspace(0, 5, 999))) >= 0).all()
    assert curve.quantiles(0.95)[1] == pytest.approx((2 + 1.959964) / 4, abs=1e-4)  # rejected before it rises
    assert curve.quantiles(0.99)[1] == np.inf  # never
    assert curve.interval(0.0, 0.99)[0] == 0.0


def test_tails_far_out_do_not_cancel():
    """At 30 standard errors a distribution function is 1 in double precision, its tail is not."""
    curve = normal(-1.5, 0.05, np.linspace(0, 2, 2001))
    assert curve.level[0] == pytest.approx(30, rel=1e-6) and np.isfinite(curve.level).all()
    assert (np.diff(curve.level[:100]) > 0).all()  # beyond 37 a tail is no number any more, and the curve is level


@pytest.mark.parametrize(("ratio", "error"), [(0.5, 0.05), (0.5, 0.6), (1.2, 0.3), (-0.1, 0.2), (-1.0, 0.05), (3, 0.1)])
@pytest.mark.parametrize("pi", [0.05, 0.4])
def test_mean_is_that_of_the_truncated_distribution(ratio, error, pi):
    most = 1 / (1 - pi)
    truncated = stats.truncnorm(-ratio / error, (most - ratio) / error, ratio, error)
    curve = normal(ratio, error, np.linspace(0, 4, 20_001))
    assert curve.mean(pi) == pytest.approx(1 - (1 - pi) * truncated.mean(), abs=2e-4)


def test_mean_of_a_distribution_of_priors_is_the_mean_over_them():
    curve = normal(0.5, 0.3)
    priors, weights = np.array([0.1, 0.5, 0.7]), np.array([0.5, 0.3, 0.2])
    each = [curve.mean(pi) for pi in priors]
    assert curve.mean(priors, weights) == pytest.approx(weights @ each)
    assert curve.mean(priors) == pytest.approx(np.mean(each))
    assert np.ptp(each) > 0.1


def test_mean_where_nothing_is_left_inside():
    """Beyond all numbers it is the end; a curve that is level everywhere tells nothing, and no end is nearer."""
    r = np.linspace(0, 3, 301)
    assert normal(-9.0, 0.1, r).mean(0.3) == pytest.approx(1.0, abs=0.01)
    assert TabulatedCurve(r, np.linspace(50, 60, 301)).mean(0.3) == 1.0
    assert TabulatedCurve(r, np.linspace(-60, -50, 301)).mean(0.3) == 0.0
    for level in (-1.0, 0.0, 2.0, 9.0):
        assert TabulatedCurve(r, np.full(301, level)).mean(0.3) == 0.5


def test_quantiles_of_the_ratio():
    z = stats.norm.ppf(0.975)
    assert normal(0.5, 0.05).quantiles(0.95) == pytest.approx((0.5 - 0.05 * z, 0.5 + 0.05 * z), abs=1e-6)
    assert normal(0.05, 0.05).quantiles(0.95) == pytest.approx((0, 0.05 + 0.05 * z), abs=1e-6)
    assert normal(-0.2, 0.05).quantiles(0.95) == pytest.approx((0, 0.05 * z), abs=1e-6)  # as if R̂ were 0
    weak = tabulated(FiellerCurve(0.9, 0.1**2, 0.0, 0.7**2, 20.0))
    low, high = weak.quantiles(0.95)
    assert 0 < low < 0.9 and high == np.inf


def test_a_curve_with_a_level_that_is_no_number_says_nothing():
    curve = TabulatedCurve(np.array([0.0, 1.0]), np.array([np.nan, 1.0]))
    assert not curve.is_known and curve.interval(0.2, 0.95) == (0.0, 1.0)


# ---- a share on steps


def on_steps(distribution, steps=4000):
    edges = np.linspace(0, 1, steps + 1)
    return PiecewiseUniform(edges, np.diff(distribution.cdf(edges)))


def test_a_share_on_fine_steps_is_scipys():
    share, levels = on_steps(SURVEY), np.linspace(0.001, 0.999, 101)
    assert share.mean() == pytest.approx(SURVEY.mean(), abs=1e-6)
    assert share.std() == pytest.approx(SURVEY.std(), rel=1e-4)
    np.testing.assert_allclose(share.cdf([-1, 0, 0.1, 0.15, 0.9, 2]), SURVEY.cdf([-1, 0, 0.1, 0.15, 0.9, 2]), atol=1e-6)
    np.testing.assert_allclose(share.ppf(levels), SURVEY.ppf(levels), atol=3e-4)
    np.testing.assert_allclose(share.cdf(share.ppf(levels)), levels, atol=1e-12)
    assert DistributionPrior(share).interval(FiellerCurve(0.5, 0.0), 0.95) == pytest.approx(
        DistributionPrior(SURVEY).interval(FiellerCurve(0.5, 0.0), 0.95), abs=3e-4
    )


def test_a_share_even_on_coarse_steps_has_the_moments_of_uniforms():
    share = PiecewiseUniform(np.array([0.0, 0.2, 1.0]), np.array([0.5, 0.5]))
    first, second = stats.uniform(0, 0.2), stats.uniform(0.2, 0.8)
    assert share.mean() == pytest.approx((first.mean() + second.mean()) / 2)
    square = sum(part.var() + part.mean() ** 2 for part in (first, second)) / 2
    assert share.std() == pytest.approx(np.sqrt(square - share.mean() ** 2))


def test_no_quantile_lies_in_a_step_of_no_probability():
    share = PiecewiseUniform(np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), np.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    np.testing.assert_allclose(share.ppf([0, 0.25, 0.5, 0.75, 1]), [0.2, 0.3, 0.4, 0.7, 0.8], atol=1e-12)
    draws = np.concatenate([np.random.default_rng(0).uniform(*ends, 50_000) for ends in ((0.2, 0.4), (0.6, 0.8))])
    np.testing.assert_allclose(share.ppf([0.1, 0.4, 0.6, 0.9]), np.quantile(draws, [0.1, 0.4, 0.6, 0.9]), atol=2e-3)


def test_times_is_bayes_rule():
    """A Beta prior and k of n found: a Beta posterior."""
    prior = on_steps(stats.beta(2, 3))
    found = prior.times(stats.binom(50, prior.middles).logpmf(8))
    truth = stats.beta(2 + 8, 3 + 42)
    assert found.probabilities.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.ppf([0.025, 0.5, 0.975]), truth.ppf([0.025, 0.5, 0.975]), atol=3e-4)
    empty = PiecewiseUniform(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0])).times(np.array([5.0, -900.0]))
    np.testing.assert_array_equal(empty.probabilities, [0, 1])


def test_a_ratio_that_is_impossible_beyond_all_doubt_leaves_no_open_interval():
    """R is 2.27 ± 0.005, far above 1/(1 − π) = 1.43: π′ is 0, and not anything."""
    r = np.linspace(0, 4, 401)
    curve = TabulatedCurve.from_tests(r, (2.27 - r) / 0.005, np.full(401, 1e4))
    low, high = curve.interval(0.3, 0.95)
    assert low == 0 and high < 0.02


def test_statistics_without_any_error_leave_a_finite_curve():
    """Classes that are wholly apart: N − rD has no variance, and its statistic is about 1e150."""
    r = np.linspace(0, 4, 401)
    curve = TabulatedCurve.from_tests(r, (0.505 - r) * 1e150, np.full(401, 1e4))
    assert curve.is_known
    assert curve.interval(0.2, 0.95) == pytest.approx((0.596, 0.596), abs=0.01)
