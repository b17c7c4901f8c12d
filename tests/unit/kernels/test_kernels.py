from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel

import priorshift as ps
from priorshift.errors import InputError
from priorshift.kernels import Energy, FromFunction, Gaussian, Laplace, bandwidth_from_gamma
from priorshift.kernels.kernel import make_kernel

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


@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(2.0), Energy(), FromFunction(linear_kernel)])
def test_paired_values_are_the_diagonal_of_the_matrix(kernel):
    np.testing.assert_allclose(kernel.paired(X, Y), np.diag(kernel(X, Y)), rtol=1e-13)


def test_dimension_rule_is_one_over_the_number_of_features():
    assert make_kernel("gaussian", "dimension", X, 3).bandwidth == pytest.approx(np.sqrt(3 / 2))
    assert make_kernel("laplace", "dimension", X, 3).bandwidth == pytest.approx(3)


def test_median_rule_is_the_median_distance_of_the_kernels_own_metric():
    pairs = np.triu_indices(40, 1)
    assert make_kernel("gaussian", "median", X, 3).bandwidth == pytest.approx(np.median(cdist(X, X)[pairs]))
    assert make_kernel("laplace", "median", X, 3).bandwidth == pytest.approx(np.median(cdist(X, X, "cityblock")[pairs]))


def test_energy_kernel_has_no_bandwidth():
    assert make_kernel("energy", "dimension", np.zeros((3, 1)), 1) == Energy()
    with pytest.raises(InputError, match=r"2\.0.*'energy'"):
        make_kernel("energy", 2.0, np.zeros((3, 1)), 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: make_kernel("rbf", 1.0, X, 3),
            "kernel is 'rbf', but it must be one of 'gaussian', 'laplace'",
        ),
        (
            lambda: make_kernel("gaussian", "scott", X, 3),
            "bandwidth is 'scott', but it must be a positive number",
        ),
        (lambda: make_kernel("gaussian", 0.0, X, 3), "bandwidth is 0.0, but it must be a positive number"),
        (lambda: make_kernel("gaussian", np.nan, X, 3), "bandwidth is nan, but it must be a positive number"),
        (
            lambda: make_kernel("gaussian", "median", np.ones((9, 2)), 2),
            "bandwidth='median' gives 0, because at least half",
        ),
        (lambda: bandwidth_from_gamma(-1), "gamma is -1, but it must be a positive number"),
        (lambda: bandwidth_from_gamma(1, "energy"), "kernel is 'energy', but it must be one of"),
    ],
)
def test_a_setting_that_makes_no_kernel_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- kernels that users bring


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.3, 0.6, 150, 60, dimension=3, distance=2.0, random_state=0)


def estimate(sample, **settings):
    settings = {"random_state": 0, "n_bootstrap": 30, **settings}
    return ps.TCPU(0.3, **settings).fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (Laplace(3.0), {"kernel": "laplace", "bandwidth": 3.0}),
        (Gaussian(1.7), {"kernel": "gaussian", "bandwidth": 1.7}),
        (Energy(), {"kernel": "energy"}),
    ],
)
@pytest.mark.parametrize("how", [{}, {"interval": "bootstrap"}, {"pairs": 2000}, {"statistic": "plug-in"}])
def test_a_kernel_object_is_the_kernel_of_its_name(kernel, named, how, sample):
    assert estimate(sample, kernel=kernel, **how) == estimate(sample, **named, **how)


@pytest.mark.parametrize("function", [partial(rbf_kernel, gamma=0.4), lambda X, Y: rbf_kernel(X, Y, gamma=0.4)])
@pytest.mark.parametrize("how", [{}, {"interval": "bootstrap"}, {"pairs": 2000}, {"statistic": "plug-in"}])
def test_a_function_is_the_kernel_that_it_computes(function, how, sample):
    by_function = estimate(sample, kernel=function, **how)
    by_name = estimate(sample, bandwidth=bandwidth_from_gamma(0.4), **how)
    assert by_function.raw == pytest.approx(by_name.raw, abs=1e-12)
    assert by_function.standard_error == pytest.approx(by_name.standard_error, abs=1e-12)
    assert by_function.interval.low == pytest.approx(by_name.interval.low, abs=1e-12)
    assert by_function.interval.high == pytest.approx(by_name.interval.high, abs=1e-12)
    assert by_function.details["kernel"] == getattr(function, "__name__", "partial")
    assert by_function.details["bandwidth"] is None


@pytest.mark.parametrize("told", [True, False], ids=["shared rows told", "none told"])
def test_a_linear_kernel_leaves_out_each_rows_own_square(told):
    """k(x, x) = ‖x‖² is another number for every row; the means over all other pairs by double loops."""
    s = ps.simulate.gaussian(0.3, 0.6, 60, 25, dimension=2, distance=3.0, random_state=2)
    same = {(p, u) for p, i in enumerate(s.positive_ids) for u, j in enumerate(s.unlabeled_ids) if told and i == j}
    assert (len(same) > 5) == told
    tcpu = ps.TCPU(0.3, kernel=linear_kernel, standardize=False)
    found = tcpu.fit(s.X, s.y, **({"shared": s.ids} if told else {})).estimate(s.target)
    # rows are centred by the population's mean, and a linear kernel sees where the origin is
    P, U, T = (rows - s.unlabeled.mean(axis=0) for rows in (s.positive, s.unlabeled, s.target))

    def mean(A, B, skip):
        return np.mean([a @ b for i, a in enumerate(A) for j, b in enumerate(B) if not skip(i, j)])

    def never(i, j):
        return False

    PP, UU = (mean(A, A, lambda i, j: i == j) for A in (P, U))
    PU, PT, UT = mean(P, U, lambda i, j: (i, j) in same), mean(P, T, never), mean(U, T, never)
    D, N = UU - 2 * PU + PP, UT - PU - PT + PP
    assert found.separation == pytest.approx(D, rel=1e-12)
    assert found.negative_ratio == pytest.approx(N / D, rel=1e-11)
    assert found.raw == pytest.approx(1 - 0.7 * N / D, rel=1e-11)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"kernel": lambda X, Y: X[:, 0]},
            r"the kernel <lambda> gave an array of shape \(64,\), .* \(64, 64\)",
        ),
        ({"kernel": lambda X, Y: X @ Y.T * np.nan}, "the kernel <lambda> gave .* finite"),
        (
            {"kernel": lambda X, Y: X[:, :1] + 0 * Y[:, :1].T},
            r"the kernel <lambda> is not symmetric",
        ),
        (
            {"kernel": Laplace},
            r"kernel is <class .*Laplace'>, but it must be one of 'gaussian', .* such as kernels.Laplace\(3.0\), or a func",
        ),
        (
            {"kernel": FromFunction(lambda X, Y: X[:, :1] + 0 * Y[:, :1].T)},
            r"the kernel <lambda> is not symmetric",
        ),
        ({"kernel": 3}, "kernel is 3, but it must be one of 'gaussian', 'laplace', 'energy', a kernel such as"),
        ({"kernel": Laplace(3.0), "bandwidth": 2.0}, "bandwidth is 2.0, but a kernel object has its own"),
        ({"kernel": linear_kernel, "bandwidth": 2.0}, "bandwidth is 2.0, but a kernel object has its own"),
        ({"kernel": Laplace(-3.0)}, "bandwidth is -3.0, but it must be a positive number"),
    ],
)
def test_what_is_no_kernel_is_refused_by_fit(settings, message, sample):
    with pytest.raises(InputError, match=message):
        ps.TCPU(0.3, **settings).fit(sample.X, sample.y)


def test_a_function_that_fails_on_later_rows_only_is_refused_too(sample):
    """Only some rows are looked at beforehand; every tile is checked as it is made."""

    def few(X, Y):
        return X @ Y.T if len(X) == len(Y) else np.ones((60, 3))

    with pytest.raises(InputError, match=r"few .*\(60, 3\)"):
        ps.TCPU(0.3, kernel=few).fit(sample.X, sample.y).estimate(sample.target)


@pytest.mark.parametrize("kernel", [Laplace(3.0), Energy(), linear_kernel, partial(rbf_kernel, gamma=0.4)])
def test_an_estimator_with_a_kernel_of_its_own_can_be_cloned(kernel, sample):
    tcpu = ps.TCPU(0.3, kernel=kernel).fit(sample.X, sample.y)
    again = clone(tcpu)
    assert type(again.kernel) is type(kernel) and repr(again) == repr(clone(again))
    assert again.fit(sample.X, sample.y).estimate(sample.target) == tcpu.estimate(sample.target)


@pytest.mark.parametrize("interval", ["paper-bound", "sharp-bound"])
@pytest.mark.parametrize("kernel", ["energy", Energy(), linear_kernel], ids=["name", "object", "function"])
def test_bounds_refuse_a_kernel_that_may_be_unbounded_at_fit(kernel, interval, sample):
    with pytest.raises(InputError, match=f"'{interval}' .*bounded kernel.*'(energy|linear_kernel)'"):
        ps.TCPU(0.3, kernel=kernel, interval=interval).fit(sample.X, sample.y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": Gaussian(None)}, "bandwidth is None, but it must be a positive number"),
        ({"kernel": lambda X, Y: "x"}, "failed .* matrix of numbers"),
        (
            {"kernel": Gaussian(1.0), "bandwidth": "median"},
            "bandwidth is 'median', but a kernel object has its own",
        ),
        ({"kernel": "energy", "bandwidth": "median"}, "bandwidth is 'median', but the kernel 'energy' has none"),
    ],
)
def test_kernels_and_bandwidths_that_contradict_each_other_are_refused(settings, message, sample):
    with pytest.raises(InputError, match=message):
        ps.TCPU(0.3, **settings).fit(sample.X, sample.y)
