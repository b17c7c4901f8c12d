import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from priorshift.errors import InputError
from priorshift.kernels import Energy, Gaussian, Laplace, bandwidth_from_gamma, make_kernel

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(40, 3)) + 1


@pytest.mark.parametrize("gamma", [0.1, 1.0, 7.5])
def test_kernels_mean_what_scikit_learn_means(gamma):
    gaussian = Gaussian(bandwidth_from_gamma(gamma))
    laplace = Laplace(bandwidth_from_gamma(gamma, "laplace"))
    np.testing.assert_allclose(gaussian(X, Y), rbf_kernel(X, Y, gamma=gamma), rtol=1e-12)
    np.testing.assert_allclose(laplace(X, Y), laplacian_kernel(X, Y, gamma=gamma), rtol=1e-12)


def test_gaussian_bandwidth_is_the_standard_deviation_of_the_bell():
    assert Gaussian(2.0)(np.array([[0.0]]), np.array([[2.0]])).item() == pytest.approx(np.exp(-0.5), rel=1e-15)


def test_energy_kernel_is_minus_the_distance():
    np.testing.assert_allclose(Energy()(X, Y), -cdist(X, Y))


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(2.0), Energy()])
def test_paired_values_are_the_diagonal_of_the_matrix(kernel):
    np.testing.assert_allclose(kernel.paired(X, Y), np.diag(kernel(X, Y)), rtol=1e-13)


def test_dimension_rule_is_one_over_the_number_of_features():
    assert make_kernel("gaussian", "dimension", X, 3).bandwidth == pytest.approx(np.sqrt(3 / 2))
    assert make_kernel("laplace", "dimension", X, 3).bandwidth == pytest.approx(3)


def test_median_rule_is_the_median_distance_of_the_kernels_own_metric():
    pairs = np.triu_indices(40, 1)
    assert make_kernel("gaussian", "median", X, 3).bandwidth == pytest.approx(np.median(cdist(X, X)[pairs]))
    assert make_kernel("laplace", "median", X, 3).bandwidth == pytest.approx(np.median(cdist(X, X, "cityblock")[pairs]))


def test_energy_kernel_ignores_the_bandwidth():
    assert make_kernel("energy", 3.0, X, 3) == Energy()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: make_kernel("rbf", 1.0, X, 3),
            "kernel is 'rbf', but it must be one of 'gaussian', 'laplace'",
        ),
        (
            lambda: make_kernel("gaussian", "scott", X, 3),
            "bandwidth is 'scott', but it must be a positive number or one of",
        ),
        (lambda: make_kernel("gaussian", 0.0, X, 3), "bandwidth is 0.0, but it must be a positive number"),
        (lambda: make_kernel("gaussian", np.nan, X, 3), "bandwidth is nan, but it must be a positive number"),
        (
            lambda: make_kernel("gaussian", "median", np.ones((9, 2)), 2),
            "bandwidth='median' gives 0, because at least half",
        ),
        (lambda: bandwidth_from_gamma(-1), "gamma is -1, but it must be a positive number"),
        (lambda: bandwidth_from_gamma(1, "energy"), "gamma has no meaning for the kernel 'energy'"),
    ],
)
def test_a_setting_that_makes_no_kernel_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
