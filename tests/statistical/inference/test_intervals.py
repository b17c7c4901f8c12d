import numpy as np
import pytest
from exact_problems import random_problem
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import priorshift as ps
from priorshift.embedding.gram import Embeddings, numerator, separation
from priorshift.errors import InputError, IntervalWarning, WeakSeparationWarning
from priorshift.inference import intervals
from priorshift.kernels import Energy, Gaussian
from priorshift.kernels.kernel import KERNELS


def embeddings(gram, sizes=(100, 400, 400), parts=None, plug_in=None, shared=0, kernel=None):
    gram = np.asarray(gram, dtype=float)
    parts = np.zeros((1, 3, 3, 3, 3)) if parts is None else parts
    plug_in = gram if plug_in is None else plug_in
    return Embeddings(gram, plug_in, parts, np.array([50.0]), sizes, shared, kernel or Gaussian(1.0))


def line(pi=0.2, target=0.6, length=1.0):
    """Means on a line: positives at 0, negatives at `length`."""
    means = length * np.array([0.0, 1 - pi, 1 - target])
    return np.outer(means, means)


coefficients = st.floats(-4, 4).map(lambda x: round(x, 3))


@given(a=coefficients, b=coefficients, c=coefficients)
def test_quadratic_inequality_agrees_with_a_fine_grid(a, b, c):
    grid = np.linspace(0, 1, 20_001)
    kept = grid[a * grid**2 + b * grid + c <= 0]
    found = intervals._where_not_positive(a, b, c, 1.0)
    if len(kept) > 1:
        assert found is not None
        assert found[0] == pytest.approx(kept[0], abs=1e-4)
        assert found[1] == pytest.approx(kept[-1], abs=1e-4)
    elif found is not None:
        assert found[1] - found[0] <= 1e-4 + 2e-16


@given(
    slopes=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    start=st.floats(-1, 1),
    bends=st.tuples(st.floats(0.1, 0.4), st.floats(0.5, 0.9)),
)
def test_piecewise_linear_inequality_agrees_with_a_fine_grid(slopes, start, bends):
    knots = np.array([0, *bends, 1])
    values = start + np.concatenate([[0], np.cumsum(np.diff(knots) * slopes)])
    grid = np.linspace(0, 1, 20_001)
    kept = grid[np.interp(grid, knots, values) <= 0]
    found = intervals._where_piecewise_not_positive(lambda t: float(np.interp(t, knots, values)), bends)
    if len(kept):
        assert found == pytest.approx((kept[0], kept[-1]), abs=1e-4)
    elif found is not None:
        assert found[1] - found[0] <= 1e-4


def test_standard_error_is_the_formula_of_the_influence_values():
    """ψ_U = ⟨φ−μ_U, b−2Ra⟩/D, ψ_P = ⟨φ−μ_P, (2R−1)a−b⟩/D, ψ_T = ⟨φ−μ_T, a⟩/D, written out."""
    s = ps.simulate.gaussian(0.2, 0.6, 120, 100, shared=False, random_state=0)
    pi = 0.2
    estimate = ps.TCPU(pi, statistic="plug-in", standardize=False).fit(s.X, s.y).estimate(s.target)
    kernel, samples = Gaussian(np.sqrt(5)), (s.positive, s.unlabeled, s.target)
    P, U, T = (lambda x, sample=sample: kernel(x, sample).mean(axis=1) for sample in samples)

    def a(x):
        return U(x) - P(x)

    def b(x):
        return T(x) - P(x)

    D = (U(s.unlabeled).mean() - 2 * U(s.positive).mean() + P(s.positive).mean()).item()
    R = (a(s.target).mean() - a(s.positive).mean()) / D
    psi = (
        (2 * R - 1) * a(s.positive) - b(s.positive),
        b(s.unlabeled) - 2 * R * a(s.unlabeled),
        a(s.target),
    )
    variance = sum(np.var(p / D, ddof=1) / len(p) for p in psi)
    assert estimate.negative_ratio == pytest.approx(R, rel=1e-10)
    assert estimate.standard_error == pytest.approx((1 - pi) * np.sqrt(variance), rel=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_standard_error_is_the_spread_of_the_estimate(shared):
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(300):
        s = ps.simulate.gaussian(0.2, 0.6, 400, 400, shared=shared, random_state=rng)
        runs.append(ps.TCPU(0.2).fit(s.X, s.y, shared=s.ids).estimate(s.target))
    spread = np.std([run.raw for run in runs], ddof=1)
    # 300 draws know a standard deviation to 4 %; a row counted twice or not at all would move it by more than 15 %
    assert np.mean([run.standard_error for run in runs]) == pytest.approx(spread, rel=0.12)
    assert abs(np.mean([run.raw for run in runs]) - 0.6) < 4 * spread / np.sqrt(300)


def test_unbiased_statistic_has_no_bias_where_the_plug_in_has_much():
    """18 positives: the plug-in shrinks 0.8 towards 0.1; the design's trial saw −0.148."""
    rng = np.random.default_rng(1)
    raw = {"unbiased": [], "plug-in": []}
    for _ in range(300):
        s = ps.simulate.gaussian(0.1, 0.8, 200, 200, random_state=rng)
        for statistic, values in raw.items():
            values.append(ps.TCPU(0.1, statistic=statistic).fit(s.X, s.y, shared=s.ids).estimate(s.target).raw)
    assert abs(np.mean(raw["unbiased"]) - 0.8) < 0.025  # +0.01 and four standard errors of 0.004
    assert np.mean(raw["plug-in"]) - 0.8 < -0.08


def test_delta_interval_is_a_test_inverted():
    """At each end of the interval the studentised statistic is exactly at its quantile."""
    s = ps.simulate.gaussian(0.2, 0.5, 200, 200, shared=False, random_state=0)
    pi = 0.2
    tcpu = ps.TCPU(pi, confidence=0.9).fit(s.X, s.y)
    made = tcpu._kernel_fit.embed(tcpu.read_target(s.target), tcpu.statistic, tcpu.pairs)
    interval = tcpu.estimate(s.target).interval
    N, D = numerator(made.gram), separation(made.gram)
    freedom = made.variance(intervals._N - N / D * intervals._D)[1]
    for end in (interval.low, interval.high):
        R = (1 - end) / (1 - pi)
        t = (N - R * D) / np.sqrt(made.variance(intervals._N - R * intervals._D)[0])
        assert abs(t) == pytest.approx(stats.t.ppf(0.95, freedom), rel=1e-9)


def test_delta_interval_of_an_unknown_separation_is_everything():
    parts = np.zeros((1, 3, 3, 3, 3))
    parts[0, 0, 0, 0, 0] = 10.0  # ⟨μ_P, μ_P⟩, and with it the separation and the numerator, is hardly known
    interval, _ = intervals.delta(embeddings(line(), parts=parts), 0.2, 0.95)
    assert (interval.low, interval.high) == (0, 1)


@pytest.mark.parametrize(("truth", "end"), [(-0.3, "low"), (1.3, "high")])
def test_raw_estimate_outside_the_unit_interval_gets_the_interval_of_the_nearer_end(truth, end):
    parts = np.zeros((1, 3, 3, 3, 3))
    parts[0, 1, 2, 1, 2] = parts[0, 1, 2, 2, 1] = parts[0, 2, 1, 1, 2] = parts[0, 2, 1, 2, 1] = 1e-3
    interval, plausible = intervals.delta(embeddings(line(target=truth), parts=parts), 0.2, 0.95)
    nearest = np.clip(truth, 0, 1)
    edge, _ = intervals.delta(embeddings(line(target=nearest), parts=parts), 0.2, 0.95)
    assert getattr(interval, end) == nearest
    assert interval.low == pytest.approx(edge.low, abs=1e-12)
    assert interval.high == pytest.approx(edge.high, abs=1e-12)
    assert interval.width > 0
    assert not plausible


def test_paper_bound_is_theorem_2():
    sizes, confidence = (300_000, 500_000, 400_000), 0.9
    interval = intervals.paper_bound(embeddings(line(0.2, 0.6, 0.8), sizes), 0.2, confidence)
    half = 4 * np.sqrt(np.log(3 / 0.1) / 300_000) / (0.8 * 0.8)
    assert (interval.low, interval.high) == pytest.approx((0.6 - half, 0.6 + half))


def test_paper_bound_refuses_a_confidence_that_the_theorem_does_not_reach():
    with pytest.raises(InputError, match=r"confidence is 0\.8.*0\.837"):
        intervals.paper_bound(embeddings(line()), 0.2, 0.8)


def test_sharp_bound_holds_every_prior_that_satisfies_its_own_bound():
    pi, raw, length, confidence = 0.2, 0.6, 0.8, 0.9
    m, n, t = sizes = (3_000, 9_000, 5_000)
    grid = np.linspace(0, 1, 100_001)
    error = np.abs(raw - grid) * length * (1 - pi)
    V = (1 - grid) ** 2 / n + (1 - pi) ** 2 / t + (grid - pi) ** 2 / m
    apart = grid[error <= np.sqrt(V) * (1 + np.sqrt(np.log(10)))]
    added = (1 - grid) / np.sqrt(n) + (1 - pi) / np.sqrt(t) + np.abs(grid - pi) / np.sqrt(m)
    together = grid[error <= added * (1 + np.sqrt(np.log(30)))]
    for kept, shared in ((apart, 0), (together, 7)):
        interval = intervals.sharp_bound(embeddings(line(pi, raw, length), sizes, shared=shared), pi, confidence)
        assert (interval.low, interval.high) == pytest.approx((kept[0], kept[-1]), abs=2e-5)


@pytest.mark.parametrize("shared", [0, 5])
def test_sharp_bound_is_narrower_than_the_papers(shared):
    made = embeddings(line(0.2, 0.6, 0.8), (200_000,) * 3, shared=shared)
    # 4√log(60) against (1 + √log 60)·(0.4 + 0.8 + 0.4) for added bounds, and less for one: a factor of 1.7 at least
    assert intervals.sharp_bound(made, 0.2, 0.95).width < intervals.paper_bound(made, 0.2, 0.95).width / 1.6


def test_deviation_of_a_mean_embedding_stays_within_its_bound():
    """‖μ̂ − μ‖ ≤ √(M/n)(1 + √log(1/δ)): the bound both rest on, on points whose mean embedding is known."""
    rng = np.random.default_rng(0)
    points, n, delta = rng.normal(size=(50, 2)), 30, 0.2
    K = Gaussian(0.3)(points, points)
    even = np.full(50, 1 / 50)
    above = 0
    for _ in range(500):
        w = np.bincount(rng.integers(0, 50, n), minlength=50) / n - even
        above += np.sqrt(w @ K @ w) > np.sqrt(1 / n) * (1 + np.sqrt(np.log(1 / delta)))
    assert above / 500 <= delta


@pytest.mark.parametrize("method", ["paper-bound", "sharp-bound"])
def test_vacuous_bound_says_so_with_its_numbers(method):
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, random_state=0)
    tcpu = ps.TCPU(0.2, interval=method).fit(s.X, s.y, shared=s.ids)
    with pytest.warns(IntervalWarning, match=f"{method} is vacuous.*33 positive.*167 unlabeled.*200"):
        interval = tcpu.estimate(s.target).interval
    assert (interval.low, interval.high, interval.method) == (0, 1, method)


@pytest.mark.parametrize("method", ["paper-bound", "sharp-bound"])
def test_unbounded_kernel_has_no_bound(method):
    s = ps.simulate.gaussian(0.2, 0.6, 200, 200, random_state=0)
    with pytest.raises(InputError, match=f"'{method}' .*bounded kernel.*'energy'"):
        ps.TCPU(0.2, kernel="energy", interval=method).fit(s.X, s.y).estimate(s.target)
    with pytest.raises(InputError, match=r"bounded kernel"):
        getattr(intervals, method.replace("-", "_"))(embeddings(line(), kernel=Energy()), 0.2, 0.95)


def test_bootstrap_is_the_quantiles_of_the_replicates():
    targets = np.linspace(0.4, 0.8, 101)
    grams = np.array([line(0.2, t) for t in targets])
    interval = intervals.bootstrap(grams, 0.2, 0.9, 0.6)
    assert (interval.low, interval.high) == pytest.approx((0.42, 0.78), abs=0.0041)  # one replicate further out


def test_bootstrap_replicates_without_an_estimate_widen_both_ends():
    grams = np.array([line(0.2, 0.6)] * 90 + [np.zeros((3, 3))] * 10)
    interval = intervals.bootstrap(grams, 0.2, 0.9, 0.6)
    assert (interval.low, interval.high) == (0, 1)


def test_bootstrap_interval_is_about_as_wide_as_the_delta_one():
    s = ps.simulate.gaussian(0.2, 0.5, 500, 500, random_state=0)
    tcpu = ps.TCPU(0.2, random_state=0).fit(s.X, s.y, shared=s.ids)
    delta = tcpu.estimate(s.target).interval
    bootstrap = tcpu.set_params(interval="bootstrap").estimate(s.target).interval
    assert bootstrap.width == pytest.approx(delta.width, rel=0.15)  # 500 replicates know a quantile to 5 %
    assert bootstrap.method == "bootstrap"


def test_required_sample_size_meets_both_conditions_of_theorem_1():
    accuracy, separation, confidence = 0.05, 0.3, 0.95
    N = ps.required_sample_size(accuracy, separation, confidence=confidence)
    delta, alpha = (1 - confidence) / 3, 1 / (1 + accuracy)
    enough = 16 * np.log(1 / delta) / ((1 - alpha) ** 2 * separation)
    error = 4 * np.sqrt(np.log(1 / delta) / N) / (alpha * np.sqrt(separation))
    assert enough <= N < enough + 1.001
    assert error == pytest.approx(accuracy, rel=1e-4)


def test_no_other_alpha_needs_fewer_rows():
    accuracy, separation, delta = 0.1, 0.3, 0.01
    alphas = np.linspace(0.01, 0.99, 981)
    condition = 16 * np.log(1 / delta) / ((1 - alphas) ** 2 * separation)
    precision = 16 * np.log(1 / delta) / (alphas**2 * accuracy**2 * separation)
    least = np.maximum(condition, precision).min()
    assert ps.required_sample_size(accuracy, separation, confidence=1 - 3 * delta) == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accuracy": 0}, "accuracy is 0, but it must lie between 0 and 1"),
        ({"separation": 0.0}, "separation is 0.0, but it must be positive"),
        ({"separation": float("nan")}, "separation is nan, but it must be positive"),
        ({"confidence": 0.5}, "confidence is 0.5, but Theorem 1 holds only from 0.837 to below 1"),
        ({"confidence": 1.0}, "confidence is 1.0, but Theorem 1 holds"),
        ({"kernel_bound": float("inf")}, "kernel_bound is inf, but it must be positive and finite"),
    ],
)
def test_required_sample_size_refuses_what_the_theorem_does_not_cover(arguments, message):
    with pytest.raises(InputError, match=message):
        ps.required_sample_size(**({"accuracy": 0.1, "separation": 0.2} | arguments))


# ---- the ratio of negatives, without a source prior


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("copies", [(1, 3, 2, 1), (2, 1, 1, 4), (1, 1, 1, 1)])
@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # a dozen rows
def test_ratio_of_exact_problems_is_that_of_their_priors(kernel, copies):
    problem = random_problem(copies=copies)
    tcpu = ps.TCPU(kernel=kernel, statistic="plug-in").fit(problem.X, problem.y)
    found = tcpu.negative_ratio(problem.target)
    assert found.value == pytest.approx((1 - problem.target_prior) / (1 - problem.source_prior), abs=1e-12)
    assert found.value in found.interval
    assert found.sizes == (len(problem.positive), len(problem.unlabeled), len(problem.target))


@pytest.mark.parametrize("pi", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("options", [{}, {"pairs": 5000, "random_state": 0}, {"statistic": "plug-in"}])
def test_interval_of_the_ratio_is_that_of_the_estimate_for_any_known_prior(pi, options):
    s = ps.simulate.gaussian(0.2, 0.5, 400, 400, random_state=0)
    tcpu = ps.TCPU(pi, confidence=0.8, **options).fit(s.X, s.y, shared=s.ids)
    R, estimate = tcpu.negative_ratio(s.target), tcpu.estimate(s.target)
    assert 0 < estimate.interval.low < estimate.interval.high < 1  # not cut off, where the two would differ
    assert R.value == estimate.negative_ratio and R.separation == estimate.separation
    assert R.interval.low < R.value < R.interval.high
    assert estimate.interval.low == pytest.approx(1 - (1 - pi) * R.interval.high, abs=1e-12)
    assert estimate.interval.high == pytest.approx(1 - (1 - pi) * R.interval.low, abs=1e-12)
    assert estimate.standard_error == pytest.approx((1 - pi) * R.standard_error, rel=1e-12)
    assert R.interval.confidence == 0.8 and R.interval.method == "delta"


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_interval_of_the_ratio_is_a_test_inverted(confidence):
    """At each end the studentised statistic is exactly at its quantile."""
    s = ps.simulate.gaussian(0.2, 0.5, 200, 200, shared=False, random_state=0)
    tcpu = ps.TCPU(confidence=confidence).fit(s.X, s.y)
    made = tcpu._kernel_fit.embed(tcpu.read_target(s.target), tcpu.statistic, tcpu.pairs)
    found = tcpu.negative_ratio(s.target)
    N, D = numerator(made.gram), separation(made.gram)
    freedom = made.variance(intervals._N - N / D * intervals._D)[1]
    assert 0 < found.interval.low < found.value < found.interval.high < np.inf
    for end, sign in ((found.interval.low, 1), (found.interval.high, -1)):
        t = (N - end * D) / np.sqrt(made.variance(intervals._N - end * intervals._D)[0])
        assert t == pytest.approx(sign * stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-9)
    spread = np.sqrt(made.variance(intervals._N - found.value * intervals._D)[0])
    assert found.standard_error == pytest.approx(spread / D, rel=1e-12)


def test_a_separation_that_may_be_zero_allows_any_ratio():
    parts = np.zeros((1, 3, 3, 3, 3))
    parts[0, 0, 0, 0, 0] = 10.0  # ⟨μ_P, μ_P⟩, and with it the separation, is hardly known
    _, interval = intervals.ratio_error_and_interval(embeddings(line(), parts=parts), 0.95)
    assert (interval.low, interval.high) == (0, np.inf)
    rng = np.random.default_rng(1)
    P, U, T = rng.normal(size=(20, 3)) + 0.2, rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    found = ps.KernelRatio().fit(np.concatenate([P, U]), np.repeat([1, 0], [20, 60]))
    with pytest.warns(WeakSeparationWarning, match="hardly apart"):
        found = found.negative_ratio(T)
    assert np.isfinite(found.value) and found.separation > 0
    assert (found.interval.low, found.interval.high) == (0, np.inf)


def test_without_separation_there_is_no_ratio_and_every_one_is_possible():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(60, 3)), rng.normal(size=(40, 3))
    X[30:] = X[:30]  # P equal to U
    tcpu = ps.KernelRatio().fit(X, np.repeat([1, 0], 30))
    with pytest.warns(WeakSeparationWarning, match=r"30 positive.* 30 unlabeled"):
        found = tcpu.negative_ratio(T)
    assert np.isnan(found.value) and np.isnan(found.standard_error)
    assert (found.interval.low, found.interval.high) == (0, np.inf)


def test_a_ratio_below_zero_gets_the_interval_of_zero():
    """As an estimate beyond 1 gets that of 1: never one of no width, which would pretend that the data are certain."""
    rng = np.random.default_rng(0)
    P, U = rng.normal(size=(200, 2)) + 1, rng.normal(size=(400, 2)) + (rng.random(400) < 0.3)[:, None]
    T = rng.normal(size=(300, 2)) + 2  # beyond the positives
    tcpu = ps.TCPU(0.3).fit(np.concatenate([P, U]), np.repeat([1, 0], [200, 400]))
    with pytest.warns(ps.errors.OutOfRangeWarning):
        estimate = tcpu.estimate(T)
    found = tcpu.negative_ratio(T)
    assert found.value < 0 and estimate.interval.high == 1 > estimate.interval.low
    assert found.interval.low == 0
    assert found.interval.high == pytest.approx((1 - estimate.interval.low) / 0.7, abs=1e-9)
