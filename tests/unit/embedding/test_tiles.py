import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from priorshift import threads
from priorshift.embedding.tiles import Rows, kernel_sums, weighted_kernel_sums
from priorshift.kernels import Energy, Gaussian, Laplace

KERNELS = [Gaussian(1.5), Laplace(2.0), Energy()]
SIZES = [(1, 1), (3, 700), (383, 385), (384, 384), (600, 300), (4200, 1300)]  # around the tile's 384 and 1152


def rows(n, p=3, seed=0, scale=1.0):
    X = np.random.default_rng([seed, n]).normal(size=(n, p)) * scale
    return Rows(X, np.zeros(p), np.ones(p))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_sums_are_those_of_the_whole_matrix(kernel, n, m):
    X, Y = rows(n), rows(m, seed=1)
    K = kernel(X.X, Y.X)
    by_row, by_column = kernel_sums(kernel, X, Y)
    np.testing.assert_allclose(by_row, K.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(by_column, K.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("n", [1, 2, 383, 384, 385, 2300, 4500])
def test_symmetric_sums_are_those_of_the_whole_matrix(kernel, n):
    X = rows(n)
    np.testing.assert_allclose(kernel_sums(kernel, X)[0], kernel(X.X, X.X).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize(("n", "m"), [(3, 700), (600, 300), (4200, 1300)])
def test_sums_over_rows_that_count_differently(kernel, n, m):
    X, Y = rows(n), rows(m, seed=1)
    w, v = (np.random.default_rng(k).uniform(0.1, 3, k) for k in (n, m))
    K = kernel(X.X, Y.X)
    by_row, by_column = kernel_sums(kernel, X, Y, weights=(w, v))
    np.testing.assert_allclose(by_row, K @ v, rtol=1e-12)
    np.testing.assert_allclose(by_column, w @ K, rtol=1e-12)
    np.testing.assert_allclose(kernel_sums(kernel, X, Y, weights=(w, None))[0], K.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(kernel_sums(kernel, X, weights=(w, w))[0], kernel(X.X, X.X) @ w, rtol=1e-12)
    counts, others = (np.random.default_rng(k).integers(0, 4, (k, 3)).astype(np.uint8) for k in (n, m))
    both = weighted_kernel_sums(kernel, X, counts, Y, others, weights=(w, v))
    np.testing.assert_allclose(both, np.einsum("ib,ij,jb->b", counts * w[:, None], K, others * v[:, None]), rtol=1e-12)


@pytest.mark.parametrize("p", [2, 10, 30])
def test_single_precision_tiles_are_exact_to_a_millionth(p):
    X, Y = rows(3000, p), rows(2000, p, seed=1)
    kernel = Gaussian(np.sqrt(p / 2))
    exact, single = (kernel_sums(kernel, X, Y, dtype=np.dtype(d)) for d in ("float64", "float32"))
    assert single[0].dtype == np.float64
    assert abs(single[0].sum() / exact[0].sum() - 1) < 1e-7
    np.testing.assert_allclose(single[0], exact[0], rtol=1e-6)
    np.testing.assert_allclose(single[1], exact[1], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("far", [50.0, 1e4, 1e9, 1e140])
def test_rows_far_out_neither_overflow_nor_lose_their_neighbours(dtype, far):
    X = rows(600).X.copy()
    X[::7] = far + np.arange(3)  # a heap of identical rows, a long way off
    X = Rows(X, np.zeros(3), np.ones(3))
    expected = Gaussian(1.0)(X.X, X.X).sum(axis=1)
    np.testing.assert_allclose(
        kernel_sums(Gaussian(1.0), X, dtype=np.dtype(dtype))[0], expected, rtol=1e-12 if dtype == "float64" else 2e-6
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("one_in", "other_one_in"), [(2, 300), (300, 2), (300, 50), (50, 50), (2, 2), (300, 10**6)])
def test_few_or_many_rows_far_out_give_the_sums_of_the_whole_matrix(dtype, one_in, other_one_in):
    """Some are treated on their own and some strips as a whole; both meet in a tile, neighbours among them."""
    X, Y = rows(1300, 4).X.copy(), rows(900, 4, seed=1).X.copy()
    X[::one_in] *= 30.0 * np.linspace(1, 2, len(X[::one_in]))[:, None]
    Y[::other_one_in] *= 30.0
    Y[:5], X[: 5 * one_in : one_in] = 200 + Y[:5], 200 + Y[:5]
    kernel, p = Gaussian(1.0), np.ones(4)
    X, Y = (Rows(part, np.zeros(4), p) for part in (X, Y))
    near = dict(rtol=1e-12 if dtype == "float64" else 1e-5, atol=1e-12)
    K = kernel(X.X, Y.X)
    for said, expected in zip(
        kernel_sums(kernel, X, Y, dtype=np.dtype(dtype)), (K.sum(axis=1), K.sum(axis=0)), strict=True
    ):
        np.testing.assert_allclose(said, expected, **near)
    np.testing.assert_allclose(kernel_sums(kernel, X, dtype=np.dtype(dtype))[0], kernel(X.X, X.X).sum(axis=1), **near)
    W, V = (np.random.default_rng(k).integers(0, 3, (len(part), 2)) for k, part in enumerate((X, Y)))
    np.testing.assert_allclose(weighted_kernel_sums(kernel, X, W, Y, V), np.einsum("ib,ij,jb->b", W, K, V), rtol=1e-10)


def test_a_few_rows_far_out_send_no_whole_tile_to_the_slow_route(monkeypatch):
    """Single precision was eight times slower than double on skewed columns: a row in each tile was too far out."""
    X = np.exp(1.5 * np.random.default_rng(0).normal(size=(3000, 30)))
    X = Rows(X, X.mean(axis=0), 1 / X.std(axis=0))
    pairs = []
    monkeypatch.setattr(
        "priorshift.kernels.kernel.cdist", lambda A, B, metric: pairs.append(len(A) * len(B)) or cdist(A, B, metric)
    )
    for dtype in ("float64", "float32"):
        kernel_sums(Gaussian(np.sqrt(15)), X, dtype=np.dtype(dtype))
    assert 0 < sum(pairs) < 0.01 * len(X) ** 2


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_threads_do_not_change_a_single_bit(kernel, monkeypatch):
    X, Y = rows(3000), rows(2000, seed=1)
    answers = []
    for count in (1, 2, 7):
        monkeypatch.setattr("priorshift.threads.available", lambda count=count: count)
        answers.append((*kernel_sums(kernel, X, Y), kernel_sums(kernel, X)[0]))
    assert len(answers) == 3
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_number_of_threads_follows_the_usual_variable(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.available() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert threads.available() >= 1


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize(("n", "m"), [(5, 3), (300, 700), (1500, 257)])
def test_weighted_sums_are_those_of_the_whole_matrix(kernel, n, m):
    rng = np.random.default_rng(2)
    X, Y = rows(n), rows(m, seed=1)
    W, V = rng.integers(0, 4, (n, 6)).astype(np.uint8), rng.integers(0, 4, (m, 6)).astype(np.uint8)
    crossed = np.einsum("ib,ij,jb->b", W.astype(float), kernel(X.X, Y.X), V.astype(float))
    within = np.einsum("ib,ij,jb->b", W.astype(float), kernel(X.X, X.X), W.astype(float))
    np.testing.assert_allclose(weighted_kernel_sums(kernel, X, W, Y, V), crossed, rtol=1e-12)
    np.testing.assert_allclose(weighted_kernel_sums(kernel, X, W), within, rtol=1e-12)


def test_rows_are_shifted_scaled_and_picked():
    X = np.arange(12.0).reshape(4, 3)
    picked = Rows(X, np.array([1.0, 0, 0]), np.array([2.0, 1, 0]), np.array([3, 0]))
    assert len(picked) == 2
    np.testing.assert_array_equal(picked[:], [[16, 10, 0], [-2, 1, 0]])


def test_memory_is_bounded_by_the_tiles(monkeypatch):
    monkeypatch.setattr("priorshift.threads.available", lambda: 4)  # each thread has a tile of its own
    X, Y = rows(30_000, 10), rows(30_000, 10, seed=1)
    tracemalloc.start()
    kernel_sums(Gaussian(2.0), X, Y, dtype=np.dtype("float32"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20  # the matrix itself would take 3.6 GB
