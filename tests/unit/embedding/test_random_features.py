import io
import zipfile

import numpy as np
import pytest
from exact_problems import random_problem

import priorshift as ps
from priorshift.embedding import random_features
from priorshift.embedding import random_features as feature_sums
from priorshift.embedding.random_features import RandomFeatures, kernel_details, uses_random_features
from priorshift.errors import InputError
from priorshift.io.scaling import Rows
from priorshift.kernels import Energy, FromFunction, Gaussian, Laplace

KERNELS = [Gaussian(1.5), Laplace(4.0)]
S = ps.simulate.gaussian(0.3, 0.6, 260, 200, dimension=4, shared=False, random_state=3)


def drawn(kernel=KERNELS[0], columns=4, features=64, seed=0):
    return RandomFeatures.draw(kernel, columns, features, np.random.default_rng(seed))


def rows(n, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def viewed(X):
    return Rows(X, np.zeros(X.shape[1]), np.ones(X.shape[1]))


# ---- the map


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_map_is_cosines_and_sines_of_length_one(kernel):
    z, X = drawn(kernel), 10 * rows(50)
    phase = X @ z.frequencies
    np.testing.assert_allclose(z.map(X), np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(32), atol=1e-14)
    np.testing.assert_allclose((z.map(X) ** 2).sum(axis=1), 1, rtol=1e-13)


def test_directions_are_orthogonal_in_blocks_and_lengths_those_of_normal_vectors():
    omega = drawn(Gaussian(1.0), columns=5, features=4000).frequencies
    for k in range(0, 2000, 5):
        products = omega[:, k : k + 5].T @ omega[:, k : k + 5]
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    # 2000 lengths squared of mean 5 and variance 10: four standard errors are 0.28
    assert (omega**2).sum(axis=0).mean() == pytest.approx(5, abs=0.28)
    assert (omega**2).sum(axis=0).var() == pytest.approx(10, rel=0.3)


def test_more_columns_than_frequencies():
    omega = drawn(Gaussian(1.0), columns=50, features=16).frequencies
    products = omega.T @ omega
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_is_met_on_average_and_the_error_falls_as_one_over_the_root(kernel):
    """Of 40 draws each: their mean has no bias, and 16 times the features have a quarter of the error."""
    X, Y = rows(8), rows(8, seed=1)
    exact, errors = kernel(X, Y), {}
    for size in (64, 1024):
        draws = np.array([drawn(kernel, features=size, seed=seed)(X, Y) for seed in range(40)])
        errors[size] = float(np.sqrt(((draws - exact) ** 2).mean()))
        assert np.abs(draws.mean(axis=0) - exact).max() < 4.5 * errors[size] / np.sqrt(40)
    assert errors[64] < 1 / np.sqrt(32)  # independent frequencies have at most √((1 + k(2d) − 2k²)/D)
    assert errors[1024] / errors[64] == pytest.approx(1 / 4, rel=0.25)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_ways_to_ask_agree(kernel):
    z, X, Y = drawn(kernel), rows(40), rows(30, seed=1)
    out = np.empty((40, 30))
    assert not z.tile(z.strip(X, out.dtype), z.strip(Y, out.dtype), out)
    np.testing.assert_allclose(out, z(X, Y), atol=1e-15)
    np.testing.assert_allclose(z.paired(X[:30], Y), np.diagonal(z(X[:30], Y)), atol=1e-14)
    assert (z.paired(X, X) == 1).all()
    assert z.bandwidth == kernel.bandwidth and z.name == f"{kernel.name} (64 random features)"
    assert kernel_details(z) == {
        "kernel": kernel.name,
        "bandwidth": kernel.bandwidth,
        "embedding": "64 random features",
    }


def test_a_large_number_of_pairs_goes_in_blocks(monkeypatch):
    z, X, Y = drawn(), rows(100), rows(100, seed=1)
    whole = z.paired(X, Y)
    monkeypatch.setattr(random_features, "_CELLS", 64 * 7)
    np.testing.assert_array_equal(z.paired(X, Y), whole)


def test_columns_among_others():
    z, X = drawn(columns=3), rows(10)
    kept = np.array([True, False, True, True])
    np.testing.assert_allclose(z.with_unused_columns(kept).map(X), z.map(X[:, kept]), atol=1e-15)


# ---- sums


def test_means_and_values_are_those_of_the_matrix(monkeypatch):
    monkeypatch.setattr(random_features, "_CELLS", 64 * 16)  # blocks of 16 rows
    z, X, Y, mass = drawn(), rows(101), rows(50, seed=1), np.random.default_rng(2).dirichlet(np.ones(50))
    mean = feature_sums.feature_mean(z, viewed(Y), mass)
    np.testing.assert_allclose(mean, mass @ z.map(Y), atol=1e-15)
    values = feature_sums.feature_values(z, viewed(X), np.stack([mean, 2 * mean]))
    np.testing.assert_allclose(values, np.outer(z(X, Y) @ mass, [1, 2]), atol=1e-14)
    counts = np.random.default_rng(3).integers(0, 4, (50, 6)).astype(np.uint8)
    replicated = feature_sums.bootstrap_means(z, viewed(Y), mass, counts)
    np.testing.assert_allclose(replicated, (counts * mass[:, None]).T @ z.map(Y), atol=1e-14)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    monkeypatch.setattr(random_features, "_CELLS", 64 * 16)
    z, X, mass = drawn(), rows(300), np.full(300, 1 / 300)
    made = []
    for count in (1, 3):
        monkeypatch.setattr("priorshift.threads.available", lambda count=count: count)
        mean = feature_sums.feature_mean(z, viewed(X), mass)
        made.append((mean, feature_sums.feature_values(z, viewed(X), mean[None])))
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_torch_gives_the_same_sums(monkeypatch):
    """On torch's own CPU, which stands for a GPU where there is none."""
    pytest.importorskip("torch")
    monkeypatch.setattr(feature_sums, "_GPU_CELLS", 64 * 16)  # four blocks
    z, X, mass = drawn(), viewed(rows(50)), np.random.default_rng(2).dirichlet(np.ones(50))
    mean = feature_sums.feature_mean(z, X, mass)
    np.testing.assert_allclose(feature_sums.feature_mean(z, X, mass, "cpu:0"), mean, atol=1e-14)
    values = feature_sums.feature_values(z, X, mean[None])
    np.testing.assert_allclose(feature_sums.feature_values(z, X, mean[None], "cpu:0"), values, atol=1e-14)


# ---- the estimator


def same(one, other, tolerance=1e-10):
    assert one.raw == pytest.approx(other.raw, abs=tolerance)
    assert one.standard_error == pytest.approx(other.standard_error, rel=tolerance)
    assert (one.interval.low, one.interval.high) == pytest.approx((other.interval.low, other.interval.high), rel=1e-9)
    assert one.separation == pytest.approx(other.separation, rel=tolerance)


@pytest.mark.parametrize("statistic", ["unbiased", "plug-in"])
@pytest.mark.parametrize("how", ["alone", "shared", "censoring", "groups", "bootstrap"])
@pytest.mark.filterwarnings("ignore::priorshift.errors.IntervalWarning")
def test_estimates_are_those_of_all_pairs_of_the_same_kernel(how, statistic):
    """A function of two matrices goes through the exact tiles, and knows nothing of means."""
    z = drawn()
    s = ps.simulate.gaussian(0.3, 0.6, 260, 200, dimension=4, shared=how == "shared", random_state=3)
    settings = {"statistic": statistic, "random_state": 1, "n_bootstrap": 50}
    told, asked = {}, {}
    if how == "shared":
        told = {"shared": s.ids}
    elif how == "censoring":
        settings |= {"scenario": "censoring"}
    elif how == "groups":  # one of them large enough for sums of its own, and one in source and target
        groups = np.concatenate([np.arange(len(s.y) - 80) // 3, np.full(80, 999)])
        told, asked = {"groups": groups}, {"groups": np.arange(len(s.target)) // 2 + 10}
    else:
        settings |= {"interval": "bootstrap"} if how == "bootstrap" else {}
    made, slow = (
        ps.TCPU(0.3, kernel=kernel, **settings).fit(s.X, s.y, **told).estimate(s.target, **asked)
        for kernel in (z, FromFunction(lambda X, Y: z(X, Y)))
    )
    same(made, slow)
    assert made.details["embedding"] == "64 random features" and slow.details["embedding"] == "exact"


def test_weights_with_own_pairs_taken_by_their_mean():
    """The Gram matrix is exact; of the influences, what a row's own pair does is averaged, a matter of 1/n."""
    z, rng = drawn(), np.random.default_rng(0)
    weights, of_target = rng.uniform(0.5, 2, len(S.y)), rng.uniform(0.5, 2, len(S.target))
    made, slow = (
        ps.TCPU(0.3, kernel=kernel).fit(S.X, S.y, weights=weights).estimate(S.target, weights=of_target)
        for kernel in (z, FromFunction(lambda X, Y: z(X, Y)))
    )
    assert made.raw == pytest.approx(slow.raw, abs=1e-12)
    assert made.standard_error == pytest.approx(slow.standard_error, rel=2e-3)


def test_pairs_are_drawn_of_the_same_kernel():
    made, exact = (
        ps.TCPU(0.3, embedding=embedding, features=4096, pairs=2000, random_state=0).fit(S.X, S.y).estimate(S.target)
        for embedding in ("random-features", "exact")
    )
    assert made.details["embedding"] == "4096 random features"
    assert made.raw == pytest.approx(exact.raw, abs=3 * exact.standard_error)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_any_number_of_features_returns_the_target_prior_where_label_shift_is_exact(kernel):
    problem = random_problem()
    for features in (16, 64):
        tcpu = ps.TCPU(problem.source_prior, kernel=kernel, statistic="plug-in", embedding="random-features",
                       features=features)  # fmt: skip
        assert tcpu.fit(problem.X, problem.y).estimate(problem.target).raw == pytest.approx(
            problem.target_prior, abs=1e-12
        )


def test_many_features_give_the_exact_estimate():
    """1 of 100 of the sampling error is left with 16384 features; the kernel's error is 1/√8192 at the most."""
    exact = ps.TCPU(0.3).fit(S.X, S.y).estimate(S.target)
    made = ps.TCPU(0.3, embedding="random-features", features=16384).fit(S.X, S.y).estimate(S.target)
    assert made.raw == pytest.approx(exact.raw, abs=0.15 * exact.standard_error)
    assert made.standard_error == pytest.approx(exact.standard_error, rel=0.05)


def test_the_objective_and_the_joint_influence_work_as_ever():
    tcpu = ps.TCPU(0.3, embedding="random-features", features=128).fit(S.X, S.y)
    estimate, influence = tcpu.estimate_jointly(tcpu.read_target(S.target))
    assert influence.ratio == estimate.negative_ratio
    lowest = tcpu.objective(S.target, estimate.raw)
    assert lowest < tcpu.objective(S.target, [estimate.raw - 0.01, estimate.raw + 0.01]).min()


def test_intervals_hold_the_truth():
    """A nominal 95 % in 100 samples; 85 is five standard errors below."""
    held = 0
    for seed in range(100):
        s = ps.simulate.gaussian(0.3, 0.6, 400, 300, dimension=3, shared=False, random_state=seed)
        tcpu = ps.TCPU(0.3, embedding="random-features", features=64, random_state=seed).fit(s.X, s.y)
        held += 0.6 in tcpu.estimate(s.target).interval
    assert held >= 85


def test_the_draw_is_decided_by_the_random_state_and_is_that_of_0_without():
    def frequencies(random_state):
        tcpu = ps.TCPU(0.3, embedding="random-features", features=32, random_state=random_state).fit(S.X, S.y)
        return tcpu.kernel_.frequencies

    np.testing.assert_array_equal(frequencies(None), frequencies(0))
    np.testing.assert_array_equal(frequencies(np.random.default_rng(5)), frequencies(5))
    assert not np.array_equal(frequencies(1), frequencies(0))


def test_columns_without_spread_get_no_frequency():
    X, T = (np.insert(rows, 1, 7.0, axis=1) for rows in (S.X, S.target))
    made = ps.TCPU(0.3, embedding="random-features", features=64).fit(X, S.y)
    plain = ps.TCPU(0.3, embedding="random-features", features=64).fit(S.X, S.y)
    assert (made.kernel_.frequencies[1] == 0).all()
    assert made.estimate(T).raw == pytest.approx(plain.estimate(S.target).raw, abs=1e-12)


def test_the_bandwidth_of_least_variance_is_chosen_on_the_kernel_itself():
    exact = ps.TCPU(0.3, bandwidth="variance").fit(S.X, S.y)
    made = ps.TCPU(0.3, bandwidth="variance", embedding="random-features", features=64).fit(S.X, S.y)
    assert made.kernel_.bandwidth == exact.kernel_.bandwidth == made.bandwidths_.chosen
    assert made.kernel_.kernel == exact.kernel_


# ---- which of the two


def test_auto_is_exact_up_to_a_size_that_takes_seconds():
    def chosen(kernel, rows, device="cpu", embedding="auto", **needs):
        return uses_random_features(embedding, kernel, rows, device, **needs)

    assert not chosen(Gaussian(1.0), 100_000) and chosen(Gaussian(1.0), 100_001)
    assert not chosen(Laplace(1.0), 30_000) and chosen(Laplace(1.0), 30_001)
    assert not chosen(Gaussian(1.0), 4_000_000, "cuda") and chosen(Gaussian(1.0), 4_000_001, "cuda")
    assert not chosen(Energy(), 10**9) and not chosen(FromFunction(np.dot), 10**9)
    assert not chosen(Gaussian(1.0), 10**9, exact=True)
    assert chosen(Gaussian(1.0), 10, embedding="random-features")
    assert not chosen(Gaussian(1.0), 10**9, embedding="exact")


def test_what_was_taken_is_said(monkeypatch):
    def embedding(**settings):
        return ps.TCPU(0.3, features=32, **settings).fit(S.X, S.y).estimate(S.target).details["embedding"]

    assert embedding() == "exact" and embedding(embedding="random-features") == "32 random features"
    monkeypatch.setattr(random_features, "_EXACT_ROWS", {Gaussian: (100, 100)})
    assert embedding() == "32 random features"
    assert (
        embedding(embedding="exact") == embedding(pairs=2000, random_state=0) == embedding(kernel="energy") == "exact"
    )


@pytest.mark.filterwarnings("ignore::priorshift.errors.IntervalWarning")
def test_bounds_are_of_the_kernel_itself(monkeypatch):
    monkeypatch.setattr(random_features, "_EXACT_ROWS", {Gaussian: (100, 100)})
    tcpu = ps.TCPU(0.3, interval="sharp-bound").fit(S.X, S.y)
    assert tcpu.estimate(S.target).details["embedding"] == "exact"
    with pytest.raises(InputError, match=r"embedding='exact'"):
        ps.TCPU(0.3, interval="sharp-bound", embedding="random-features").fit(S.X, S.y)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"embedding": "fast"}, "embedding is 'fast', but it must be one of 'auto', 'exact', 'random-features'"),
        ({"features": 8}, "features is 8, but it must be a whole number of at least 16"),
        ({"features": 101}, "features is 101.*even number"),
        ({"features": 64.0}, "features is 64.0"),
        ({"embedding": "random-features", "kernel": "energy"}, "'energy' has no random features"),
        ({"embedding": "random-features", "kernel": lambda X, Y: X @ Y.T}, "has no random features"),
    ],
)
@pytest.mark.parametrize("estimator", [ps.TCPU, ps.KernelRatio])
def test_what_cannot_be_is_said(estimator, settings, match):
    with pytest.raises(InputError, match=match):
        estimator(**settings).fit(S.X, S.y)


def test_another_embedding_needs_another_fit():
    tcpu = ps.TCPU(0.3).fit(S.X, S.y)
    for settings in ({"embedding": "random-features"}, {"embedding": "auto", "features": 64}):
        with pytest.raises(InputError, match=r"TCPU.*fit again"):
            tcpu.set_params(**settings).estimate(S.target)


def test_the_ratio_alone_knows_random_features_too():
    made = ps.KernelRatio(embedding="random-features", features=64).fit(S.X, S.y).negative_ratio(S.target)
    tcpu = ps.TCPU(0.3, embedding="random-features", features=64).fit(S.X, S.y).estimate(S.target)
    assert made.value == tcpu.negative_ratio


def test_a_stored_estimator_answers_alike(tmp_path):
    skops = pytest.importorskip("skops.io")
    tcpu = ps.TCPU(0.3, embedding="random-features", features=64).fit(S.X, S.y)
    skops.dump(tcpu, tmp_path / "tcpu.skops")
    loaded = skops.load(tmp_path / "tcpu.skops", trusted=list(ps.storage.TYPES))

    def arrays(content):
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            return sorted(file.read(name) for name in file.namelist() if name.endswith(".npy"))

    assert arrays(skops.dumps(loaded)) == arrays((tmp_path / "tcpu.skops").read_bytes()) != []
    # a product of matrices is rounded by the place of its rows in memory
    assert loaded.estimate(S.target).raw == pytest.approx(tcpu.estimate(S.target).raw, rel=1e-12)
