"""The target as an affine mixture of samples: exact problems, simulated errors, and sibling formulas."""

import numpy as np
import pytest

from priorshift.inference.affine_mixture import AffineMixture, SampleValues


def values(h, mass=None, observation=None, start=0):
    rows = len(h)
    mass = np.full(rows, 1 / rows) if mass is None else mass / mass.sum()
    observation = start + np.arange(rows) if observation is None else observation
    return SampleValues(np.asarray(h, dtype=float), mass, observation, float(1 / (mass @ mass)))


def problem(rng, coefficients, rows, functions):
    """Samples of h that are normal around different means, and a target drawn from their mixture."""
    means = np.random.default_rng(3).normal(size=(functions + 1, functions))
    samples = [mean + 0.5 * rng.normal(size=(n, functions)) for mean, n in zip(means, rows, strict=False)]
    drawn = rng.choice(functions + 1, size=rows[-1], p=coefficients)
    target = means[drawn] + 0.5 * rng.normal(size=(rows[-1], functions))
    return samples, target


def estimate(samples, target):
    start, numbered = 0, []
    for sample in (*samples, target):
        numbered.append(values(sample, start=start))
        start += len(sample)
    return AffineMixture.from_values(numbered[:-1], numbered[-1])


@pytest.mark.parametrize("functions", [1, 2, 3, 5])
def test_weights_that_make_the_target_a_mixture_give_its_coefficients(functions):
    rng = np.random.default_rng(functions)
    points = rng.normal(size=(200, functions))
    masses = rng.dirichlet(np.ones(200), size=functions + 1)
    coefficients = rng.dirichlet(np.ones(functions + 1))
    samples = [values(points, mass, start=1000 * k) for k, mass in enumerate(masses)]
    found = AffineMixture.from_values(samples, values(points, coefficients @ masses, start=10_000))
    np.testing.assert_allclose(found.coefficients, coefficients, atol=1e-10)
    assert found.region_statistic(coefficients) == pytest.approx(0, abs=1e-9)
    assert found.p_value(coefficients) == pytest.approx(1)


@pytest.mark.parametrize("functions", [1, 3])
def test_errors_are_those_of_a_simulation_and_intervals_cover(functions):
    truth = np.full(functions + 1, 1 / (functions + 1))
    rows = [80] * functions + [200, 300]
    composition = np.append(np.eye(functions)[0], 0.3)
    share = float(composition @ truth)
    estimates, errors, covered, in_region = [], [], [], []
    for seed in range(400):
        mixture = estimate(*problem(np.random.default_rng(seed), truth, rows, functions))
        estimates.append(mixture.share(composition))
        errors.append(mixture.standard_error(composition))
        low, high = mixture.curve(composition).interval(0.95)
        covered.append(low <= share <= high)
        in_region.append(mixture.p_value(truth) >= 0.05)
    assert np.mean(estimates) == pytest.approx(share, abs=4 * np.std(estimates) / 20)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.1)
    assert 0.92 <= np.mean(covered) <= 0.98 and 0.92 <= np.mean(in_region) <= 0.98


def test_one_function_is_the_ratio_of_two_differences_with_fiellers_interval():
    """With one labelled class, b_base = R = (E_T h − E_P h)/(E_U h − E_P h)."""
    [P, U], T = problem(np.random.default_rng(0), [0.3, 0.7], [60, 200, 300], 1)
    mixture = estimate([P, U], T)
    assert mixture.coefficients[-1] == pytest.approx((T.mean() - P.mean()) / (U.mean() - P.mean()), rel=1e-12)
    R, D = mixture.coefficients[-1], U.mean() - P.mean()
    variance = T.var(ddof=1) / 300 + R**2 * U.var(ddof=1) / 200 + (1 - R) ** 2 * P.var(ddof=1) / 60
    assert mixture.standard_error([0.0, 1.0]) == pytest.approx(np.sqrt(variance) / abs(D), rel=1e-10)


def test_rows_in_two_samples_and_groups_enter_the_error_once():
    rng = np.random.default_rng(0)
    samples, target = problem(rng, [0.2, 0.3, 0.5], [60, 60, 200, 100], 2)
    numbers = [np.arange(60), 1000 + np.arange(60), np.arange(200)]  # the first class is in the base
    shared = AffineMixture.from_values(
        [values(h, observation=number) for h, number in zip(samples, numbers, strict=True)], values(target, start=5000)
    )
    apart = estimate(samples, target)
    np.testing.assert_allclose(shared.coefficients, apart.coefficients)
    b = shared.coefficients
    influence = np.zeros((1260, 2))
    for weight, h, number in zip(b, samples, numbers, strict=True):
        n = len(h)
        influence[number] += weight * np.sqrt(n / (n - 1)) * (h - h.mean(axis=0)) / n
    expected = influence.T @ influence + apart.target_variance
    np.testing.assert_allclose(shared.variance(b), expected, rtol=1e-10)
    pairs = values(np.repeat(target, 2, axis=0), observation=np.repeat(5000 + np.arange(100), 2))
    doubled = AffineMixture.from_values([values(h, start=1000 * k) for k, h in enumerate(samples)], pairs)
    # a group of two equal rows counts as one row, up to n/(n − 1)
    np.testing.assert_allclose(doubled.target_variance, apart.target_variance, rtol=0.01)


def test_samples_that_cannot_be_distinguished_give_wide_intervals_that_cover():
    widths, covered = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        near = [rng.normal(0.02 * k, 1, size=(100, 1)) for k in range(2)]  # two classes that hardly differ
        target = rng.normal(0.01, 1, size=(100, 1))
        low, high = estimate(near, target).curve([1.0, 0.0]).interval(0.95)
        widths.append(high - low)
        covered.append(low <= 0.5 <= high)
    assert np.median(widths) > 0.9 and np.mean(covered) >= 0.93


def test_an_estimate_outside_the_range_has_an_interval_that_is_not_empty():
    samples = [np.array([[0.0], [0.1], [-0.1]]), np.array([[1.0], [1.1], [0.9]])]
    mixture = estimate(samples, np.array([[2.0], [2.1], [1.9]]))
    assert mixture.share([0.0, 1.0]) > 1
    low, high = mixture.curve([0.0, 1.0]).interval(0.95)
    assert 0 <= low < high == 1


def test_several_cases_are_averaged():
    mixture = estimate(*problem(np.random.default_rng(1), [0.3, 0.7], [100, 300, 300], 1))
    cases = np.array([[1.0, 0.1], [1.0, 0.4]])
    low, high = mixture.curve(cases).interval(0.9)
    single = [mixture.curve(case).interval(0.9) for case in cases]
    assert min(s[0] for s in single) < low < high < max(s[1] for s in single)
    only_first = mixture.curve(cases).interval(0.9, np.array([1.0, 0.0]))
    np.testing.assert_allclose(only_first, single[0], atol=1e-9)
