import authors
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer

import priorshift as ps
from priorshift.hull.gram_matrix import gram_matrix, mean_products, median_distance, search_bandwidth
from priorshift.hull.hull import FaceSolver, Hull


def hull(P, U, width=None):
    X = np.concatenate([P, U])
    K = gram_matrix(X, width or max(median_distance(X), 1e-3))
    positive = np.arange(len(X)) < len(P)
    p = np.where(positive, 1 / len(P), 0.0)
    return Hull(K, p, np.where(positive, 0.0, 1 / len(U)) - p)


def kkt(at, made):
    """How far the optimality conditions are from holding: weights on the simplex, and no point pulls."""
    Ka, Kp, _ = made.right.T
    g = made.K @ at.weights - at.ratio * Ka - Kp
    return max(abs(at.weights.sum() - 1), -at.weights.min(), float(g @ at.weights - g.min()))


def real():
    """Breast-cancer data: 40 malignant tumours against 200 of both kinds."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[y == 0][:40], X[-200:]


def problems():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(120, 4))
    one = rng.normal(size=(90, 1))
    return {
        "random": (rng.normal(size=(40, 4)) + 1, U),
        "one positive": (rng.normal(size=(1, 4)) + 1, U),
        "five positives": (rng.normal(size=(5, 4)) + 1, U),
        "many more unlabelled": (rng.normal(size=(6, 3)) + 1, rng.normal(size=(600, 3))),
        "many more positives": (rng.normal(size=(300, 3)) + 1, rng.normal(size=(20, 3))),
        "repeated rows": (np.repeat(rng.normal(size=(8, 4)) + 1, 5, axis=0), np.repeat(U[:30], 4, axis=0)),
        "P inside U": (U[:30], U),
        "P equal to U": (U, U),
        "tiny separation": (rng.normal(size=(80, 4)) + 1e-4, U),
        "one dimension": (rng.normal(size=(20, 1)) + 2, one),
        "real": real(),
        "discrete": (rng.integers(1, 4, (40, 2)).astype(float), rng.integers(0, 3, (90, 2)).astype(float)),
    }


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize("ratio", [1.05, 1.3, 2.0, 8.0])
def test_a_tight_solve_meets_its_optimality_conditions(name, ratio):
    made = hull(*problems()[name])
    at = made.project(ratio, tolerance=1e-10)
    assert kkt(at, made) < 1e-8


@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 30),
    n=st.integers(2, 60),
    features=st.integers(1, 5),
    shift=st.floats(0, 3),
    digits=st.sampled_from([0, 1, 8]),
    ratio=st.floats(1.01, 20),
)
@settings(max_examples=150)
def test_any_tight_solve_meets_its_optimality_conditions(seed, m, n, features, shift, digits, ratio):
    rng = np.random.default_rng(seed)
    P, U = (rng.normal(size=(k, features)).round(digits) for k in (m, n))
    made = hull(P + round(shift, digits), U)
    nearest = made.project(ratio, tolerance=1e-10)
    # the promise is relative to d²; copies of a point differ by the ridge of 1e-8, which matters only for large d
    assert kkt(nearest, made) < max(1e-8, 1.01e-10 * nearest.distance**2)


def test_distance_is_that_of_a_general_optimiser():
    P, U = problems()["five positives"]
    made = hull(P, U[:20])
    u = 1.6 * made.a + made.p

    def objective(v):
        return (u - v) @ made.K @ (u - v), 2 * made.K @ (v - u)

    start = np.full(25, 1 / 25)
    best = minimize(
        objective, start, jac=True, bounds=[(0, None)] * 25, method="SLSQP",
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1, "jac": lambda v: np.ones(25)},
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    assert made.project(1.6, tolerance=1e-10).distance == pytest.approx(np.sqrt(best.fun), rel=1e-6)


@pytest.mark.parametrize("name", ["random", "five positives", "repeated rows", "one dimension"])
def test_slope_is_that_of_the_distance(name):
    made = hull(*problems()[name])
    for ratio in (1.4, 2.0, 4.0):
        h = 1e-4
        low, at, high = (made.project(ratio + k * h, tolerance=1e-10) for k in (-1, 0, 1))
        assert at.slope == pytest.approx((high.distance - low.distance) / (2 * h), rel=1e-4)


@pytest.mark.parametrize("name", ["random", "five positives", "repeated rows", "one dimension", "discrete"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_slope_passes_where_it_is_said_to(name, share):
    made = hull(*problems()[name])
    wanted = share * made.separation
    at = made.find_slope(wanted, tolerance=1e-10)
    if at.ratio >= 100:
        assert made.project(100.0, tolerance=1e-10).slope <= wanted * (1 + 1e-6)
        return
    step = 2e-4 * at.ratio**2  # the promised accuracy, twice
    below, above = (made.project(max(at.ratio + k * step, 1.0001), tolerance=1e-10).slope for k in (-1, 1))
    if at.ratio > 1.01:  # else the slope is above from the start, and the prior is 0
        assert below <= wanted * (1 + 1e-9)
    assert above >= wanted * (1 - 1e-9)


def test_descent_alone_finds_what_pivoting_finds(monkeypatch):
    made = hull(*problems()["random"])
    quick = made.project(1.5, tolerance=1e-10)
    root = made.find_slope(0.5 * made.separation)
    monkeypatch.setattr("priorshift.hull.hull.Hull._pivot", lambda *_, **__: None)
    slow = made.project(1.5, tolerance=1e-10)
    assert slow.distance == pytest.approx(quick.distance, rel=1e-7)
    assert slow.slope == pytest.approx(quick.slope, rel=1e-6)
    assert slow.curvature == pytest.approx(quick.curvature, rel=1e-4)
    assert 1 - 1 / made.find_slope(0.5 * made.separation).ratio == pytest.approx(1 - 1 / root.ratio, abs=5e-4)


@pytest.mark.parametrize("pivots", [True, False])
def test_a_search_that_begins_at_one_goes_on(pivots, monkeypatch):
    """There three times λ − 1 is a step so small that it could be taken for the last one."""
    made = hull(*problems()["random"])
    wanted = 0.5 * made.separation
    root = made.find_slope(wanted).ratio
    if not pivots:
        monkeypatch.setattr("priorshift.hull.hull.Hull._pivot", lambda *_, **__: None)
    found = made.find_slope_from(1 + 1e-7, made.first_face, wanted, 100.0, None)
    assert found.ratio == pytest.approx(root, rel=1e-3)


@pytest.mark.parametrize("features", [2, 10])
def test_points_that_pull_most_are_enough(features):
    """Many points, of which working sets are taken, against the program on all points at a tight tolerance."""
    s = ps.simulate.gaussian(0.3, 0.5, 1000, 10, dimension=features, distance=1.5, random_state=0)
    made = hull(s.positive, s.unlabeled)
    wanted = 0.3 * made.separation
    quick = made.find_slope(wanted)
    tight = made.find_slope_from(1.3, made.first_face, wanted, 100.0, 1e-8)
    assert quick.converged
    assert 1 - 1 / quick.ratio == pytest.approx(1 - 1 / tight.ratio, abs=2e-4)


def test_faces_near_a_factor_are_solved_as_from_scratch():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 60))
    K, right = A @ A.T + np.eye(60), rng.normal(size=(60, 3))
    faces = FaceSolver(K, right)
    free = rng.random(60) < 0.6
    for _ in range(30):
        Z = faces.solve(free)
        F = np.flatnonzero(free)
        np.testing.assert_allclose(Z[F], np.linalg.solve(K[np.ix_(F, F)], right[F]), rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(Z[~free], 0)
        free = free ^ (rng.random(60) < 0.05)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 10])
def test_median_is_that_of_the_whole_matrix(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    assert median_distance(X) == pytest.approx(np.median(cdist(X, X)), rel=1e-14)


def scattered(kind):
    """More rows than are sorted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 3))
    if kind == "far apart":  # a difference of squares would have no digit left
        X += np.where(np.arange(len(X)) % 3, 1e9, -1e9)[:, None]
    elif kind == "an outlier":
        X[0] = 1e25
    elif kind == "whole numbers":
        X = X.round()
    return X


@pytest.mark.parametrize("kind", ["normal", "far apart", "an outlier", "whole numbers"])
def test_median_of_many_rows_is_nearly_that_of_the_whole_matrix(kind):
    X = scattered(kind)
    # single precision has seven digits
    assert median_distance(X) == pytest.approx(np.median(cdist(X, X)), rel=1e-6)


def test_median_of_rows_of_which_most_are_alike_is_zero():
    assert median_distance(np.repeat([[0.0, 1.0], [1.0, 0.0]], [1000, 100], axis=0)) == 0


def test_products_of_means_are_those_of_the_whole_matrix():
    X = scattered("normal")
    positive = np.arange(len(X)) % 5 == 0
    weights = np.stack([positive / positive.sum(), ~positive / (~positive).sum()], axis=1)
    X[positive] += 0.5
    widths = np.array([0.1, 1.0, 8.0])
    direct = [weights.T @ np.exp(-cdist(X, X, "sqeuclidean") / 2 / h**2) @ weights for h in widths]
    np.testing.assert_allclose(mean_products(X, weights, widths), direct, rtol=1e-6)


def test_bandwidth_without_the_noise_of_few_rows_is_that_of_many():
    """Weak separation in many features: the diagonal makes a narrow kernel look best, up to some thousand rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 10))
    positive = np.arange(len(X)) < 700
    X[positive] += 0.06
    p, u = positive / positive.sum(), ~positive / (~positive).sum()
    middle = median_distance(X)
    assert search_bandwidth(X, p, u) < 0.5 * middle
    assert search_bandwidth(X, p, u, unbiased=True) > 0.9 * middle


@pytest.mark.parametrize("kind", ["normal", "an outlier"])
def test_gram_matrix_is_the_kernel_of_all_rows(kind):
    X = scattered(kind)[:300]
    K = np.exp(-cdist(X, X, "sqeuclidean") / 8)
    np.testing.assert_allclose(gram_matrix(X, 2.0), K + 1e-8 * np.eye(len(X)), atol=1e-13)


@pytest.mark.parametrize(("P", "U", "T", "answer"), authors.answered("km_bandwidth"))
def test_bandwidth_and_distances_are_the_authors(P, U, T, answer):
    X = np.concatenate([P, U])
    positive = np.arange(len(X)) < len(P)
    p, u = positive / len(P), ~positive / len(U)
    width = search_bandwidth(X, p, u)
    assert width == pytest.approx(answer["km_bandwidth"], rel=1e-6)
    made = hull(P, U, width)
    assert made.separation == pytest.approx(answer["km_separation"], abs=1e-6)
    assert len(answer["km_lambda"]) > 3
    for ratio, distance in zip(answer["km_lambda"], answer["km_distance"], strict=True):
        # the authors' solver leaves an absolute error of up to 2e-4 where d is small
        found = made.project(ratio, tolerance=1e-10).distance
        assert found == pytest.approx(distance, abs=2e-4 if ratio < 1.25 else 1e-5)


@pytest.mark.parametrize(("P", "U", "T", "answer"), authors.answered("km_bandwidth"))
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_priors_are_the_authors_within_their_bisection(P, U, T, answer):
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [len(P), len(U)])
    assert ps.KM1().fit(X, y).prior_ == pytest.approx(answer["km1_source"], abs=0.03)
    assert ps.KM2().fit(X, y).prior_ == pytest.approx(answer["km2_source"], abs=0.03)
    assert ps.KM2LS().fit(X, y).estimate(T).value == pytest.approx(answer["km2_target"], abs=0.03)
