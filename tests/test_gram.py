import numpy as np
import pytest

from priorshift.embedding.gram import NO_PAIRS, P, SourceEmbedding, T, U
from priorshift.embedding.incomplete import embed_pairs
from priorshift.embedding.tiles import Rows
from priorshift.errors import InputError
from priorshift.kernels import Energy, FromFunction, Gaussian, Laplace


def linear(X, Y):
    return X @ Y.T


KERNELS = [Gaussian(1.5), Laplace(2.0), Energy(), FromFunction(linear)]  # of the last, k(x, x) is not one number
DOUBLE = np.dtype(float)


def rows(X):
    return Rows(X, np.zeros(X.shape[1]), np.ones(X.shape[1]))


def samples(m=6, n=9, t=7, shared=True, seed=0):
    """P, U and T; with `shared`, rows 1 and 4 of P are rows 0 and 8 of U."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(k, 2)) for k in (m, n, t)]
    pairs = NO_PAIRS
    if shared:
        pairs = np.array([[1, 0], [4, n - 1]])
        X[U][pairs[:, 1]] = X[P][pairs[:, 0]]
    return X, pairs


def slow_gram(kernel, X, pairs, statistic):
    """Double loops over the pairs that the statistic keeps."""
    same = set(map(tuple, pairs.tolist()))
    gram = np.empty((3, 3))
    for j in range(3):
        for k in range(3):
            values = []
            for a in range(len(X[j])):
                for b in range(len(X[k])):
                    itself = (j == k and a == b) or ((j, k) == (P, U) and (a, b) in same)
                    itself = itself or ((j, k) == (U, P) and (b, a) in same)
                    if statistic == "plug-in" or not itself:
                        values.append(kernel(X[j][a : a + 1], X[k][b : b + 1]).item())
            gram[j, k] = np.mean(values)
    return gram


def source(kernel, X, pairs):
    return SourceEmbedding(kernel, rows(X[P]), rows(X[U]), pairs, DOUBLE)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
@pytest.mark.parametrize("shared", [True, False])
def test_gram_matrix_agrees_with_double_loops_over_the_pairs_it_keeps(kernel, statistic, shared):
    X, pairs = samples(shared=shared)
    embeddings = source(kernel, X, pairs).embed(rows(X[T]), statistic, target_norm=True)
    np.testing.assert_allclose(embeddings.gram, slow_gram(kernel, X, pairs, statistic), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(embeddings.plug_in, slow_gram(kernel, X, pairs, "plug-in"), rtol=1e-12, atol=1e-14)
    assert embeddings.sizes == (6, 9, 7)


def test_norm_of_the_target_is_left_out_unless_asked_for():
    X, pairs = samples()
    made = source(KERNELS[0], X, pairs)
    without, whole = made.embed(rows(X[T])), made.embed(rows(X[T]), target_norm=True)
    assert np.isnan(without.gram[T, T])
    np.testing.assert_array_equal(without.gram[:, :2], whole.gram[:, :2])
    with pytest.raises(ValueError, match="norm of the target's mean was not computed"):
        without.variance(np.eye(3))


def weighted_gram(kernel, X, weights):
    """Plug-in Gram matrix of weighted samples, whose weights of each sample add up to one."""
    return np.array([[weights[j] @ kernel(X[j], X[k]) @ weights[k] for k in range(3)] for j in range(3)])


@pytest.mark.parametrize("shared", [True, False])
def test_covariance_is_that_of_numerical_influences(shared):
    """Each observation's influence by a difference quotient: a little more weight on it, and see what moves."""
    kernel = KERNELS[0]
    X, pairs = samples(shared=shared)
    parts = source(kernel, X, pairs).embed(rows(X[T]), "plug-in", target_norm=True).parts
    sizes = [len(x) for x in X]
    even = [np.full(n, 1 / n) for n in sizes]
    partner = {("P", p): ("U", u) for p, u in pairs.tolist()}
    observations = [[("P", i)] + [partner[k] for k in [("P", i)] if k in partner] for i in range(sizes[P])]
    observations += [[("U", i)] for i in range(sizes[U]) if ("U", i) not in partner.values()]
    observations += [[("T", i)] for i in range(sizes[T])]
    expected = np.zeros((3, 3, 3, 3))
    step = 1e-6
    for observation in observations:
        moved = []
        for sign in (1, -1):
            weights = [w.copy() for w in even]
            for name, i in observation:
                k = "PUT".index(name)
                # the small-sample factor √(n/(n−1)) belongs to each sample's own influence
                push = sign * step * np.sqrt(sizes[k] / (sizes[k] - 1))
                weights[k] *= 1 - push / sizes[k]
                weights[k][i] += push / sizes[k]
            moved.append(weighted_gram(kernel, X, weights))
        influence = (moved[0] - moved[1]) / (2 * step)
        expected += np.einsum("ab,cd->abcd", influence, influence)
    np.testing.assert_allclose(parts.sum(axis=0), expected, atol=1e-9)


@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
def test_bootstrap_grams_are_those_of_the_resampled_rows(statistic):
    """Draw the rows themselves, build the Gram matrix by loops, and compare."""
    kernel = KERNELS[0]
    X, pairs = samples()
    grams, moved = source(kernel, X, pairs).bootstrap(rows(X[T]), statistic, 4, np.random.default_rng(5))
    np.testing.assert_array_equal(moved, 0)  # the prior is known
    rng = np.random.default_rng(5)
    draws_u = [rng.integers(0, 9, 9) for _ in range(4)]
    draws_t = [rng.integers(0, 7, 7) for _ in range(4)]
    alone = np.array([0, 2, 3, 5])
    draws_p = [alone[rng.integers(0, 4, 4)] for _ in range(4)]
    for b in range(4):
        drawn_u, drawn_t = draws_u[b].tolist(), draws_t[b].tolist()
        drawn_p = draws_p[b].tolist() + [p for p, u in pairs.tolist() for _ in range(drawn_u.count(u))]
        drawn = {P: drawn_p, U: drawn_u, T: drawn_t}
        name = {(U, u): ("P", p) for p, u in pairs.tolist()}
        for j, k in [(P, P), (U, U), (P, U), (P, T), (U, T)]:
            values = [
                kernel(X[j][a : a + 1], X[k][c : c + 1]).item()
                for a in drawn[j]
                for c in drawn[k]
                if statistic == "plug-in" or name.get((j, a), ("PUT"[j], a)) != name.get((k, c), ("PUT"[k], c))
            ]
            assert grams[b, j, k] == pytest.approx(np.mean(values), rel=1e-12)


def test_incomplete_statistic_approaches_the_complete_one():
    X, pairs = samples(60, 90, 70)
    exact = source(KERNELS[0], X, pairs).embed(rows(X[T]), target_norm=True)
    some = embed_pairs(source(KERNELS[0], X, pairs), rows(X[T]), 400_000, np.random.default_rng(0), target_norm=True)
    np.testing.assert_allclose(some.gram, exact.gram, atol=0.002)  # four standard errors of 400,000 pairs
    assert some.parts.sum(axis=0)[U, T, U, T] == pytest.approx(exact.parts.sum(axis=0)[U, T, U, T], rel=0.05)


def test_incomplete_statistic_never_pairs_an_observation_with_itself():
    """With a kernel that is 1 at zero and 0 elsewhere, every kept pair of distinct rows gives 0."""
    X, pairs = samples()
    some = embed_pairs(source(Gaussian(1e-6), X, pairs), rows(X[T]), 5000, np.random.default_rng(0), target_norm=True)
    np.testing.assert_array_equal(some.gram, np.zeros((3, 3)))


def test_incomplete_statistic_with_no_pair_left_is_refused():
    X, _ = samples(2, 2, 5, shared=False)
    all_but_one = np.array([[0, 0], [0, 1], [1, 0]])
    draws = np.random.default_rng(3)  # its first pair is one of the three
    with pytest.raises(InputError, match="all 1 sampled pairs of a positive and an unlabeled row are one observation"):
        embed_pairs(source(KERNELS[0], X, all_but_one), rows(X[T]), 1, draws)


def test_incomplete_statistic_knows_its_own_spread():
    """The variance over fresh data and fresh pairs is what the covariance says."""
    A = np.array([[1.0, -1, -0.5], [-1, 0, 0.5], [-0.5, 0.5, 0]])  # any symmetric combination without ⟨μ_T, μ_T⟩
    values, variances = [], []
    for seed in range(400):
        X, _ = samples(40, 60, 50, shared=False, seed=seed)
        some = embed_pairs(source(KERNELS[0], X, NO_PAIRS), rows(X[T]), 500, np.random.default_rng(seed))
        values.append(np.nansum(A * np.nan_to_num(some.gram)))
        variances.append(some.variance(A)[0])
    # 400 draws know a variance to 7 %, hence 20 %
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.2)
