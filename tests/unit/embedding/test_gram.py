import numpy as np
import pytest

from priorshift.embedding import P, T, U
from priorshift.embedding.gram import SourceEmbedding
from priorshift.embedding.samples import EmbeddedSample, self_pairs
from priorshift.embedding.tiles import Rows
from priorshift.errors import InputError
from priorshift.io.observations import PriorInfluence
from priorshift.kernels import Energy, FromFunction, Gaussian, Laplace


def linear(X, Y):
    return X @ Y.T


KERNELS = [Gaussian(1.5), Laplace(2.0), Energy(), FromFunction(linear)]  # of the last, k(x, x) is not one number
KINDS = ["apart", "shared", "weights", "groups", "everything"]


def rows(X):
    return Rows(X, np.zeros(X.shape[1]), np.ones(X.shape[1]))


def samples(kind="apart", sizes=(6, 9, 7), seed=0):
    """P, U and T; with "shared", rows 1 and 4 of P are rows 0 and the last of U.

    "groups" are of one row to four, some in two samples and one in all three; "everything" has weights too.
    """
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(k, 2)) for k in sizes]
    m, n, t = sizes
    number = [np.arange(m), m + np.arange(n), m + n + np.arange(t)]
    if kind == "shared":
        X[U][[0, -1]] = X[P][[1, 4]]
        number[U][[0, -1]] = number[P][[1, 4]]
    if kind in ("groups", "everything"):
        number[P] = number[P] // 2
        number[U] = m + np.arange(n) // 4
        number[T] = m + n + np.arange(t) // 3
        number[U][:2], number[T][:1] = number[P][0], number[P][0]  # a group in all three
        number[T][-1] = number[U][-1]
        number[P][-1] = number[U][-3]
    mass = [np.full(k, 1 / k) for k in sizes]
    if kind in ("weights", "everything"):
        mass = [rng.uniform(0.5, 3, k) for k in sizes]
        mass = [m / m.sum() for m in mass]
    return [EmbeddedSample(rows(x), w, k) for x, w, k in zip(X, mass, number, strict=True)]


def slow_gram(kernel, samples, statistic):
    """Double loops over the pairs that the statistic keeps."""
    gram = np.empty((3, 3))
    for j, X in enumerate(samples):
        for k, Y in enumerate(samples):
            total = weight = 0.0
            for a in range(len(X)):
                for b in range(len(Y)):
                    if statistic == "plug-in" or X.observation[a] != Y.observation[b]:
                        w = X.mass[a] * Y.mass[b]
                        total += w * kernel(X.rows[[a]], Y.rows[[b]]).item()
                        weight += w
            gram[j, k] = total / weight
    return gram


def source(kernel, samples):
    first = max(samples[P].observation.max(), samples[U].observation.max()) + 1
    return SourceEmbedding(kernel, samples[P], samples[U], 0, int(first), "float64")


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
@pytest.mark.parametrize("kind", KINDS)
def test_gram_matrix_agrees_with_double_loops_over_the_pairs_it_keeps(kernel, statistic, kind):
    X = samples(kind)
    embeddings = source(kernel, X).embed(X[T], statistic, target_norm=True)
    np.testing.assert_allclose(embeddings.gram, slow_gram(kernel, X, statistic), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(embeddings.plug_in, slow_gram(kernel, X, "plug-in"), rtol=1e-12, atol=1e-14)
    assert embeddings.sizes == (6, 9, 7)
    assert embeddings.is_iid == (kind in ("apart", "shared"))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_large_group_is_left_out_whole(kernel, share):
    """A group of half of the rows, by tiles, beside small ones, by pairs: as a mask over the whole matrix has it."""
    rng = np.random.default_rng(0)
    n, m = 800, 500
    X, Y = (
        EmbeddedSample(
            rows(rng.normal(size=(k, 40))), np.full(k, 1 / k), np.where(rng.random(k) < share, 0, 1 + np.arange(k) // 3)
        )
        for k in (n, m)
    )
    for A, B in ((X, Y), (X, X)):
        same = A.observation[:, None] == B.observation
        K = kernel(A.rows[:], B.rows[:]) * same
        of_A, of_B = self_pairs(kernel, A, B)
        np.testing.assert_allclose(of_A.sums, K @ B.mass, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(of_B.sums, A.mass @ K, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(of_A.mass, same @ B.mass, rtol=1e-12)
        np.testing.assert_allclose(of_B.mass, A.mass @ same, rtol=1e-12)


def test_norm_of_the_target_is_left_out_unless_asked_for():
    X = samples("shared")
    made = source(KERNELS[0], X)
    without, whole = made.embed(X[T]), made.embed(X[T], target_norm=True)
    assert np.isnan(without.gram[T, T])
    np.testing.assert_array_equal(without.gram[:, :2], whole.gram[:, :2])
    with pytest.raises(ValueError, match=r"target's mean"):
        without.variance(np.eye(3))


def weighted_gram(kernel, X, weights):
    """Plug-in Gram matrix of weighted samples, whose weights of each sample add up to one."""
    return np.array(
        [[weights[j] @ kernel(X[j].rows[:], X[k].rows[:]) @ weights[k] for k in range(3)] for j in range(3)]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_is_that_of_numerical_influences(kind):
    """Each observation's influence by a difference quotient: a little more weight on it, and see what moves."""
    kernel, X = KERNELS[0], samples(kind)
    made = source(kernel, X).embed(X[T], "plug-in", target_norm=True)
    worth = []  # observations of equal weight in each sample
    for sample in X:
        total = [sum(sample.mass[sample.observation == o]) for o in set(sample.observation.tolist())]
        worth.append(1 / sum(w**2 for w in total))
    np.testing.assert_allclose(made.freedom[:3], np.array(worth) - 1, rtol=1e-12)
    rng = np.random.default_rng(1)
    q = [rng.normal(size=len(x)) for x in X[:2]]  # influences on a prior
    expected, with_prior, of_prior = np.zeros((3, 3, 3, 3)), np.zeros((3, 3)), 0.0
    step = 1e-6
    for observation in set(np.concatenate([x.observation for x in X]).tolist()):
        moved = []
        for sign in (1, -1):
            weights = [x.mass.copy() for x in X]
            for k, x in enumerate(X):
                for i in np.flatnonzero(x.observation == observation):
                    # the small-sample factor √(n/(n−1)) belongs to each sample's own influence
                    push = sign * step * np.sqrt(worth[k] / (worth[k] - 1)) * x.mass[i]
                    weights[k] -= push * x.mass
                    weights[k][i] += push
            moved.append(weighted_gram(kernel, X, weights))
        influence = (moved[0] - moved[1]) / (2 * step)
        expected += np.einsum("ab,cd->abcd", influence, influence)
        move = sum(q[k][X[k].observation == observation].sum() for k in (P, U))
        with_prior += move * influence
        of_prior += move**2
    np.testing.assert_allclose(made.parts.sum(axis=0), expected, atol=1e-9)
    prior = PriorInfluence(*q, X[P].observation, X[U].observation)
    with_it = source(kernel, X).embed(X[T], "plug-in", target_norm=True, prior=prior)
    np.testing.assert_allclose(with_it.prior_covariance, with_prior, atol=1e-8)
    assert with_it.prior_variance == prior.variance == pytest.approx(of_prior)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
def test_bootstrap_grams_are_those_of_the_observations_drawn(kind, statistic):
    """Draw the observations themselves, build the Gram matrix by loops, and compare."""
    kernel, X = KERNELS[0], samples(kind)
    prior = PriorInfluence(np.arange(6.0), np.arange(9.0) - 2, X[P].observation, X[U].observation)
    grams, moved = source(kernel, X).bootstrap(X[T], statistic, 4, np.random.default_rng(5), prior)
    rng = np.random.default_rng(5)
    in_order = [list(dict.fromkeys(x.observation.tolist())) for x in X]
    alone_in_target = [o for o in in_order[T] if o not in in_order[P] + in_order[U]]
    alone_in_positive = [o for o in in_order[P] if o not in in_order[U]]
    drawn = [[] for _ in range(4)]  # observations, as often as they are drawn
    for numbers in (in_order[U], alone_in_target, alone_in_positive):
        for b in range(4):
            drawn[b] += [numbers[i] for i in rng.integers(0, len(numbers), len(numbers))]
    for b in range(4):
        for j, k in [(P, P), (U, U), (P, U), (P, T), (U, T)]:
            total = weight = 0.0
            for one in drawn[b]:
                for other in drawn[b]:
                    if statistic == "unbiased" and one == other:
                        continue
                    for a in np.flatnonzero(X[j].observation == one):
                        for c in np.flatnonzero(X[k].observation == other):
                            w = X[j].mass[a] * X[k].mass[c]
                            total += w * kernel(X[j].rows[[a]], X[k].rows[[c]]).item()
                            weight += w
            assert grams[b, j, k] == pytest.approx(total / weight, rel=1e-12)
        often = [[drawn[b].count(o) for o in x.observation.tolist()] for x in X[:2]]
        move = sum(q * (c - 1) for q, c in zip(prior.positive, often[P], strict=True))
        move += sum(q * (c - 1) for q, c in zip(prior.unlabeled, often[U], strict=True))
        assert moved[b] == pytest.approx(move)


LARGER = (60, 90, 70)


@pytest.mark.parametrize("kind", KINDS)
def test_incomplete_statistic_approaches_the_complete_one(kind):
    X = samples(kind, LARGER)
    exact = source(KERNELS[0], X).embed(X[T], target_norm=True)
    some = source(KERNELS[0], X).embed_pairs(X[T], 400_000, np.random.default_rng(0), target_norm=True)
    np.testing.assert_allclose(some.gram, exact.gram, atol=0.002)  # four standard errors of 400,000 pairs
    # the factor n/(n−1), at most of 18 groups, is not in the incomplete one
    variance, unbiased = (made.parts.sum(axis=0)[U, T, U, T] for made in (some, exact))
    assert variance == pytest.approx(unbiased, rel=0.05 if kind in ("apart", "shared") else 0.08)


@pytest.mark.parametrize("kind", KINDS)
def test_incomplete_statistic_never_pairs_an_observation_with_itself(kind):
    """With a kernel that is 1 within an observation and 0 elsewhere, every kept pair gives 0."""
    X = [EmbeddedSample(rows(x.observation[:, None].astype(float)), x.mass, x.observation) for x in samples(kind)]
    some = source(Gaussian(1e-6), X).embed_pairs(X[T], 5000, np.random.default_rng(0), target_norm=True)
    np.testing.assert_array_equal(some.gram, np.zeros((3, 3)))


def test_incomplete_statistic_draws_pairs_by_what_they_count():
    """Of a column that is 1 in one row, k(x, y) = x + y has the mean of the masses, on both sides."""
    X = samples("weights")
    for one in X:
        one.rows.X[:] = 0
    X[P].rows.X[2] = 1
    kernel = FromFunction(lambda A, B: A[:, :1] + B[:, 0])
    some = source(kernel, X).embed_pairs(X[T], 100_000, np.random.default_rng(0))
    w = X[P].mass
    assert some.gram[P, U] == pytest.approx(w[2], abs=0.005)  # three standard errors of 100,000 draws
    assert some.gram[P, P] == pytest.approx(2 * w[2] * (1 - w[2]) / (1 - w @ w), abs=0.005)


def test_incomplete_statistic_with_no_pair_left_is_refused():
    X = samples(sizes=(2, 2, 5))
    X[U].observation[0] = X[P].observation[0]
    made, draws = source(KERNELS[0], X), np.random.default_rng(11)
    message = "all 1 sampled pairs of positive and unlabeled rows"
    said = []
    for _ in range(80):
        try:
            made.embed_pairs(X[T], 1, draws)
        except InputError as error:
            said.append(str(error))
    assert all(message in one for one in said)
    assert 5 < len(said) < 40  # one pair of four is that one


@pytest.mark.parametrize("kind", ["apart", "everything"])
def test_incomplete_statistic_knows_its_own_spread(kind):
    """The variance over fresh data and fresh pairs is what the covariance says."""
    A = np.array([[1.0, -1, -0.5], [-1, 0, 0.5], [-0.5, 0.5, 0]])  # any symmetric combination without ⟨μ_T, μ_T⟩
    values, variances = [], []
    fixed = samples(kind, (80, 120, 100))
    for seed in range(400):
        rng = np.random.default_rng(seed)
        effect = rng.normal(size=(1000, 2))  # of an observation
        X = [
            EmbeddedSample(rows(effect[x.observation] + 0.5 * rng.normal(size=(len(x), 2))), x.mass, x.observation)
            for x in fixed
        ]
        some = source(KERNELS[0], X).embed_pairs(X[T], 500, rng)
        values.append(np.nansum(A * np.nan_to_num(some.gram)))
        variances.append(some.variance(A)[0])
    # 400 draws know a variance to 7 %, hence 20 %
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.2)
