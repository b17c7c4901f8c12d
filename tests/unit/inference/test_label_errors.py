"""Labelled rows that are not positive: π′ = q − (q−π)R with q = 1 − ε, from what is known of π, ε and R."""

import json
import warnings

import numpy as np
import pytest
from exact_problems import random_problem
from scipy import stats

import priorshift as ps
from priorshift.cli import main
from priorshift.errors import InconsistentInputWarning, InputError, OutOfRangeWarning, WeakSeparationWarning
from priorshift.inference.confidence_curve import FiellerCurve, TabulatedCurve
from priorshift.inference.joint import JointRatios, RatioInfluence
from priorshift.inference.prior_knowledge import (
    DistributionPrior,
    MislabeledPrior,
    PointPrior,
    RangePrior,
    survey_prior,
    with_label_error,
)

PI, EPSILON = 0.2, 0.1


def draw(rows, prior, rng):
    """Rows of two well separated classes, with this share of positives."""
    return rng.normal(size=(rows, 3)) + 1.5 * (rng.random(rows) < prior)[:, None]


def sample(epsilon=EPSILON, pi=PI, target=0.6, seed=0, sizes=(300, 1000, 1000)):
    rng = np.random.default_rng(seed)
    P, U, T = (draw(rows, share, rng) for rows, share in zip(sizes, (1 - epsilon, pi, target), strict=True))
    return np.concatenate([P, U]), np.repeat([1, 0], sizes[:2]), T


S = sample()


@pytest.fixture(scope="module")
def witness():
    return ps.WitnessShift(PI, random_state=0).fit(*S[:2])


@pytest.fixture(scope="module")
def estimated():
    return ps.WitnessShift(random_state=0).fit(*S[:2])


def ends(estimate):
    return estimate.interval.low, estimate.interval.high


# ---- closed forms


@pytest.mark.parametrize("wrong", [0.5, 1, 2, 4])
@pytest.mark.parametrize("copies", [(1, 3, 2, 1), (1, 2, 1, 9), (1, 4, 9, 1)])
@pytest.mark.filterwarnings("ignore::priorshift.errors.WeakSeparationWarning")  # of a dozen rows
def test_exact_problems_with_label_errors_return_the_target_prior(wrong, copies):
    """The same points in P, U and T with weights, so that μ_P, μ_U and μ_T lie on one line exactly."""
    problem, (i, j, s, t) = random_problem(1, copies=copies), copies
    both = np.unique(problem.unlabeled, axis=0)
    is_positive = (both[:, None] == problem.positive[None]).all(axis=2).any(axis=1)
    # rows may be equal by chance, so the classes have as many points as rows of `both`
    k_pos, k_neg = int(is_positive.sum()), int((~is_positive).sum())

    def weights(positive, negative):
        return np.where(is_positive, positive, negative).astype(float)

    epsilon = wrong * k_neg / (8 * k_pos + wrong * k_neg)
    pi, truth = (a * k_pos / (a * k_pos + b * k_neg) for a, b in ((i, j), (s, t)))
    X, y = np.concatenate([both, both]), np.repeat([1, 0], len(both))
    tcpu = ps.TCPU(pi, label_error=epsilon, statistic="plug-in", interval=None)
    tcpu.fit(X, y, weights=np.concatenate([weights(8, wrong), weights(i, j)]))
    estimate = tcpu.estimate(both, weights=weights(s, t))
    assert estimate.raw == pytest.approx(truth, abs=1e-10)
    assert estimate.details["label_error"] == epsilon and estimate.source_prior == pi
    objective = tcpu.objective(both, [truth - 0.01, truth, truth + 0.01], weights=weights(s, t))
    assert objective[1] == pytest.approx(0.0, abs=1e-12)  # the projection fits, at the true prior
    assert objective[[0, 2]] == pytest.approx(1e-4 * estimate.separation, rel=1e-4)
    uncorrected = tcpu.set_params(label_error=None).estimate(both, weights=weights(s, t)).raw
    assert abs(uncorrected - truth) > 1e-3 or truth == pytest.approx(pi)


@pytest.mark.parametrize("method", [ps.WitnessShift, ps.TCPU])
def test_only_the_last_step_depends_on_a_known_label_error(method):
    X, y, T = S
    fitted = method(PI, random_state=0).fit(X, y)
    plain, corrected = fitted.estimate(T), fitted.set_params(label_error=EPSILON).estimate(T)
    R, factor = plain.negative_ratio, (1 - EPSILON - PI) / (1 - PI)
    assert corrected.negative_ratio == pytest.approx(R, rel=1e-9)
    assert corrected.raw == pytest.approx((1 - EPSILON) - (1 - EPSILON - PI) * R, rel=1e-9)
    assert corrected.standard_error == pytest.approx(factor * plain.standard_error, rel=1e-9)
    assert corrected.source_prior == PI
    for end, corrected_end in zip(ends(plain), ends(corrected), strict=True):
        at_end = (1 - end) / (1 - PI)  # R at this end
        assert corrected_end == pytest.approx((1 - EPSILON) - (1 - EPSILON - PI) * at_end, abs=2e-4)


@pytest.mark.parametrize("method", [ps.WitnessShift, ps.TCPU])
def test_no_errors_are_the_same_as_none(method):
    X, y, T = S
    fitted = method(PI, random_state=0).fit(X, y)
    plain, zero = fitted.estimate(T), fitted.set_params(label_error=0.0).estimate(T)
    assert (plain.value, ends(plain), plain.standard_error) == (zero.value, ends(zero), zero.standard_error)
    assert "label_error" not in plain.details and zero.details["label_error"] == 0


@pytest.mark.parametrize("method", [lambda: ps.WitnessShift(ps.KM2(), random_state=0), lambda: ps.TCPU(random_state=0)])
def test_an_estimated_source_prior_is_one_of_the_labelled_distribution(method):
    """What P and U show is κ = π/(1−ε), so π, π′ and everything else are 1−ε times what they are without errors."""
    X, y, T = S
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = method().fit(X, y)
        plain, corrected = fitted.estimate(T), fitted.set_params(label_error=EPSILON).estimate(T)
        kappa = method().fit(X, y).source_prior_
    for name in ("raw", "source_prior", "standard_error"):
        assert getattr(corrected, name) == pytest.approx((1 - EPSILON) * getattr(plain, name), rel=1e-6)
    assert ends(corrected) == pytest.approx([(1 - EPSILON) * end for end in ends(plain)], abs=2e-4)
    assert fitted.source_prior_ == pytest.approx((1 - EPSILON) * kappa, rel=1e-12)


def test_intervals_of_all_kinds_are_those_of_the_scaled_problem():
    """With κ = π/q in place of π, every interval of π′/q is that of a problem without label errors."""
    X, y, T = S
    q = 1 - EPSILON
    for kind in ("delta", "bootstrap", "sharp-bound"):
        tcpu = ps.TCPU(PI / q, interval=kind, statistic="plug-in", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaled = tcpu.fit(X, y).estimate(T)
            corrected = tcpu.set_params(source_prior=PI, label_error=EPSILON).estimate(T)
        if kind == "sharp-bound":  # vacuous here, but not above 1
            assert 0 <= corrected.interval.low < corrected.interval.high <= 1
            continue
        assert ends(corrected) == pytest.approx([q * end for end in ends(scaled)], abs=1e-9)


def test_the_sharp_bound_with_label_errors_contains_the_truth_and_shrinks():
    rng = np.random.default_rng(0)
    widths = []
    for rows in (1000, 4000):
        P, U, T = (8 * (rng.random((rows, 1)) < share) for share in (0.9, 0.2, 0.6))
        tcpu = ps.TCPU(0.2, label_error=0.1, interval="sharp-bound", bandwidth=1.0, standardize=False)
        estimate = tcpu.fit(np.concatenate([P, U]), np.repeat([1, 0], rows)).estimate(T)
        assert 0.6 in estimate.interval
        widths.append(estimate.interval.width)
    assert widths[1] < 0.55 * widths[0] < 0.5


# ---- what is known of ε and π, against simulation


CURVE = FiellerCurve(0.5, 0.05**2)
KNOWN_PRIORS = {"point": PointPrior(0.2), "survey": DistributionPrior(stats.beta(20, 80))}


def tabulated(curve):
    r = np.linspace(-3, 6, 2000)
    return TabulatedCurve.from_tests(r, (curve.ratio - r) / np.sqrt(curve.variance), np.full(len(r), np.inf))


def simulated(known, ratio=0.5, error=0.05, draws=200_000):
    rng = np.random.default_rng(0)
    q = 1 - known.label_error.distribution.rvs(draws, random_state=rng)
    prior = known.prior
    pi = prior.value if prior.is_point else prior.distribution.rvs(draws, random_state=rng)
    pi = q * pi if known.is_relative else pi
    possible = q > pi
    return np.clip(q - (q - pi) * rng.normal(ratio, error, draws), 0, 1)[possible]


@pytest.mark.parametrize("prior", KNOWN_PRIORS)
@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("epsilon", [stats.beta(5.5, 45.5), stats.beta(15.5, 35.5)])
def test_the_interval_with_a_distribution_of_errors_is_that_of_a_simulation(prior, is_relative, epsilon):
    known = with_label_error(KNOWN_PRIORS[prior], epsilon, is_relative=is_relative)
    assert isinstance(known, MislabeledPrior)
    draws = simulated(known)
    expected = np.quantile(draws, [0.025, 0.975])
    assert known.interval(CURVE, 0.95) == pytest.approx(expected, abs=2e-3)
    curve = tabulated(CURVE)
    assert known.interval(curve, 0.95) == pytest.approx(expected, abs=2e-3)
    assert known.mean(curve) == pytest.approx(draws.mean(), abs=1e-3)
    # the delta method, at the means
    error = np.hypot((known.purity - known.value) * 0.05, known.spread(0.5))
    assert error == pytest.approx(draws.std(), rel=0.05)
    edges = np.linspace(0, 1, 21)
    shares = np.histogram(draws, edges)[0] / len(draws)
    assert curve.probabilities(edges, *known.whole_case) == pytest.approx(shares, abs=5e-3)


@pytest.mark.parametrize("prior", [PointPrior(0.2), RangePrior(0.1, 0.3), DistributionPrior(stats.beta(20, 80))])
@pytest.mark.parametrize("is_relative", [False, True])
def test_a_range_of_errors_is_the_union_of_the_intervals_at_its_ends(prior, is_relative):
    low, high = with_label_error(prior, (0.05, 0.2), is_relative=is_relative).interval(CURVE, 0.95)
    at_ends = [with_label_error(prior, e, is_relative=is_relative).interval(CURVE, 0.95) for e in (0.05, 0.2)]
    assert (low, high) == (min(end[0] for end in at_ends), max(end[1] for end in at_ends))
    inside = with_label_error(prior, 0.13, is_relative=is_relative).interval(CURVE, 0.95)
    assert low < inside[0] and inside[1] < high


def test_a_target_richer_in_positives_than_the_labelled_rows_has_a_negative_ratio():
    X, y, T = sample(epsilon=0.3, target=0.85, seed=2, sizes=(600, 2000, 2000))
    for method in (ps.WitnessShift, ps.TCPU):
        estimate = method(PI, label_error=0.3, confidence=0.999, random_state=0).fit(X, y).estimate(T)
        assert estimate.negative_ratio < 0 and 0.85 in estimate.interval
        assert estimate.interval.low > 0.7 and estimate.value < 1
    assert estimate.negative_ratio == pytest.approx((0.7 - 0.85) / (0.7 - PI), abs=0.25)


def covered(knowledge, repetitions=400, truth=0.6, epsilon=0.1, checked=50, error=0.02):
    """Share of intervals that contain the truth, for R̂ normal and a check of 50 labelled rows."""
    rng = np.random.default_rng(0)
    R = (1 - epsilon - truth) / (1 - epsilon - PI)
    hits = 0
    for _ in range(repetitions):
        curve = FiellerCurve(rng.normal(R, error), error**2)
        low, high = with_label_error(PointPrior(PI), knowledge(int(rng.binomial(checked, epsilon)))).interval(
            curve, 0.95
        )
        hits += low <= truth <= high
    return hits / repetitions


def test_intervals_cover_with_the_error_of_an_audit_and_not_without_it():
    assert covered(lambda _: 0.1) == pytest.approx(0.95, abs=0.03)
    assert covered(lambda k: survey_prior(k, 50)) == pytest.approx(0.95, abs=0.03)
    assert covered(lambda _: (0.05, 0.15)) > 0.97
    assert covered(lambda k: k / 50) < 0.7  # as if the audit had no error
    assert covered(lambda _: None) < 0.1


# ---- several targets


def test_the_covariance_of_several_targets_is_that_of_a_simulation():
    rng, R, spread = np.random.default_rng(0), np.array([0.4, 0.9]), 0.03
    for is_relative in (False, True):
        known = with_label_error(DistributionPrior(stats.beta(40, 160)), stats.beta(20, 180), is_relative=is_relative)
        parts = [RatioInfluence(r, FiellerCurve(r, spread**2), known, np.zeros(1), spread**2, np.inf) for r in R]
        joint = JointRatios.from_influences(parts, known.value)
        q = 1 - stats.beta(20, 180).rvs(100_000, random_state=rng)
        pi = stats.beta(40, 160).rvs(100_000, random_state=rng)
        pi = q * pi if is_relative else pi
        ratios = rng.normal(R, spread, (100_000, 2))
        draws = q[:, None] - (q - pi)[:, None] * ratios
        np.testing.assert_allclose(joint.raw_covariance(known.value, known.purity), np.cov(draws.T), rtol=0.05)
        estimate, interval, error, _ = joint.difference(0, 1, 0.95)
        gaps = draws[:, 1] - draws[:, 0]
        assert estimate == pytest.approx((known.purity - known.value) * (R[0] - R[1]), rel=1e-12)
        assert error == pytest.approx(gaps.std(), rel=0.03)
        assert (interval.low, interval.high) == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=3e-3)


@pytest.mark.parametrize("label_error", [EPSILON, (0.05, 0.15), stats.beta(5.5, 45.5)])
@pytest.mark.parametrize("method", ["witness", "tcpu"])
def test_differences_of_targets_scale_with_the_distance_of_labelled_and_unlabelled_rows(label_error, method):
    X, y, T = S
    targets = {"first": T[:500], "second": draw(500, 0.3, np.random.default_rng(5))}
    options = {"source_prior": PI, "method": method, "random_state": 0}
    plain = ps.estimate_priors(X[y == 1], X[y == 0], targets, **options)
    corrected = ps.estimate_priors(X[y == 1], X[y == 0], targets, label_error=label_error, **options)
    purity = 1 - corrected["first"].details["label_error"]
    before, after = plain.differences()[0], corrected.differences()[0]
    assert after.estimate == pytest.approx((purity - PI) / (1 - PI) * before.estimate, rel=1e-6)
    assert after.p_value == pytest.approx(before.p_value, rel=1e-3)  # of equal ratios, which needs neither π nor ε
    assert after.interval.low < after.estimate < after.interval.high
    if label_error != EPSILON:
        known = ps.estimate_priors(X[y == 1], X[y == 0], targets, label_error=1 - purity, **options)
        assert after.interval.width > known.differences()[0].interval.width
    ratio = corrected["second"].raw / corrected["first"].raw
    assert after.ratio == pytest.approx(ratio, rel=1e-6) and ratio in after.ratio_interval
    for name, estimate in corrected.items():
        assert corrected.band[name].low <= estimate.interval.low


def test_strata_take_a_known_label_error_and_no_other():
    X, y, T = S

    def with_stratum(rows):
        return {f"x{k}": rows[:, k] for k in range(3)} | {"stratum": np.where(np.arange(len(rows)) % 2, "a", "b")}

    pd = pytest.importorskip("pandas")
    tables = [pd.DataFrame(with_stratum(rows)) for rows in (X[y == 1], X[y == 0], T)]
    options = {"stratify": "stratum", "source_prior": PI, "random_state": 0}
    plain = ps.estimate_priors(*tables, **options)
    known = ps.estimate_priors(*tables, label_error=EPSILON, **options)
    assert known.pooled.raw == pytest.approx(1 - EPSILON - (1 - EPSILON - PI) / (1 - PI) * (1 - plain.pooled.raw))
    assert known.pooled.interval.width < plain.pooled.interval.width
    with pytest.raises(InputError, match="strata"):
        ps.estimate_priors(*tables, label_error=(0.05, 0.1), **options)


# ---- audits, scenarios and counts


def test_an_audit_of_the_target_is_combined_with_the_corrected_estimate(witness):
    rng = np.random.default_rng(3)
    labels = rng.random(1000) < 0.6
    T = rng.normal(size=(1000, 3)) + 1.5 * labels[:, None]
    audit = np.where(np.arange(1000) < 100, labels, np.nan)
    try:
        for error in (EPSILON, (0.05, 0.15), stats.beta(5.5, 45.5)):
            estimate = witness.set_params(label_error=error).estimate(T, audit=audit)
            assert estimate.details["audit"]["target"]["agrees"] and 0.6 in estimate.interval
            assert estimate.interval.method == "witness and audit"
        X, y, _ = sample(epsilon=0.3, seed=4)
        wrong = ps.WitnessShift(PI, random_state=0).fit(X, y)
        with pytest.warns(InconsistentInputWarning, match="audit"):  # without the label errors they disagree
            wrong.estimate(T, audit=audit)
        assert wrong.set_params(label_error=0.3).estimate(T, audit=audit).details["audit"]["target"]["agrees"]
    finally:
        witness.set_params(label_error=None)


def test_an_audit_of_the_source_goes_with_a_given_prior_only():
    X, y, T = S
    audit = np.full(len(X), np.nan)
    audit[300:400] = np.arange(100) < 20
    shift = ps.WitnessShift(stats.uniform(0, 1), label_error=EPSILON, random_state=0).fit(X, y, audit=audit)
    estimate = shift.estimate(T)
    assert 0.6 in estimate.interval and estimate.source_prior_by == "distribution and audit"
    with pytest.raises(InputError, match="estimated source prior"):
        ps.WitnessShift(label_error=EPSILON, random_state=0).fit(X, y, audit=audit).estimate(T)
    censored = ps.WitnessShift(stats.uniform(0, 1), label_error=EPSILON, scenario="censoring", random_state=0)
    with pytest.raises(InputError, match="censoring"):
        censored.fit(X, y, audit=audit).estimate(T)


@pytest.mark.parametrize("method", [ps.WitnessShift, ps.TCPU])
def test_label_errors_under_censoring(method):
    """One sample of the population: 60% of its positives are labelled, and so are some of its negatives."""
    rng = np.random.default_rng(1)
    is_positive = rng.random(3000) < 0.3
    X = rng.normal(size=(3000, 3)) + 1.5 * is_positive[:, None]
    labeled = np.where(is_positive, rng.random(3000) < 0.6, rng.random(3000) < 0.03)
    error = float((~is_positive[labeled]).mean())
    T = draw(2000, 0.7, rng)
    shift = method(0.3, label_error=error, scenario="censoring", random_state=0).fit(X, labeled.astype(int))
    assert 0.7 in shift.estimate(T).interval
    assert 0.7 not in shift.set_params(label_error=None).estimate(T).interval


def test_counts_of_scores_and_sketches_take_label_errors():
    X, y, T = S
    samples = {"positive": X[y == 1], "unlabeled": X[y == 0], "target": T}
    model = ps.sketch.ScoreModel.fit(X[y == 1], X[y == 0], random_state=0)
    counted = {name: ps.sketch.Histogram.from_sample(rows, model) for name, rows in samples.items()}
    design = ps.sketch.Sketch.from_sample(X[y == 0], random_state=0)
    sketched = {name: ps.sketch.Sketch.from_sample(rows, like=design) for name, rows in samples.items()}
    for kinds, method in ((counted, "witness"), (sketched, "tcpu")):
        estimate = ps.estimate_prior(*kinds.values(), source_prior=PI, label_error=EPSILON, method=method)
        assert estimate.raw == pytest.approx(0.9 - 0.7 * estimate.negative_ratio) and 0.6 in estimate.interval


# ---- refusals, warnings and words


@pytest.mark.parametrize(
    ("label_error", "words"),
    [
        (1.0, "0 to below 1"),
        (-0.1, "0 to below 1"),
        ("few", "0 to below 1"),
        (True, "0 to below 1"),
        ((0.2, 0.1), "two increasing numbers"),
        ((0.5, 1.0), "two increasing numbers"),
        ((0.1, 0.2, 0.3), "two increasing numbers"),
        (stats.beta, "without parameters"),
        (stats.norm(0.1, 0.2), "outside"),
        (0.8, "above the source prior"),
        ((0.1, 0.85), "above the source prior"),
        (stats.beta(80, 10), "above the source prior"),
    ],
)
@pytest.mark.parametrize("method", [ps.WitnessShift, ps.TCPU])
def test_impossible_label_errors_are_refused(label_error, words, method):
    with pytest.raises(InputError, match=words) as refused:
        method(PI, label_error=label_error).fit(*S[:2])
    assert "label_error" in str(refused.value)


def test_methods_without_label_errors_refuse_them():
    X, y, T = S
    with pytest.raises(InputError, match="label_error"):
        ps.estimate_prior(X[y == 1], X[y == 0], T, label_error=0.1, method="km2-ls")
    with pytest.raises(InputError, match="label_error"):
        ps.TCPU(PI, label_error=stats.beta(2, 20), interval="sharp-bound").fit(X, y)


def test_labelled_rows_that_are_hardly_richer_in_positives_are_warned_of(witness):
    try:
        with pytest.warns(InconsistentInputWarning, match=r"only 0\.23, hardly more than the source prior \(0\.2\)"):
            witness.set_params(label_error=0.77).estimate(S[2])
        with pytest.warns(InconsistentInputWarning, match="left out"):
            witness.set_params(label_error=stats.beta(3, 2)).estimate(S[2])
    finally:
        witness.set_params(label_error=None)


def test_an_estimate_outside_the_unit_interval_for_every_label_error_is_warned_of():
    rng = np.random.default_rng(0)
    P, U, T = draw(300, 0.9, rng), draw(1000, 0.5, rng), draw(1000, 0.0, rng)
    X, y = np.concatenate([P, U]), np.repeat([1, 0], [300, 1000])
    for method in (ps.WitnessShift, ps.TCPU):
        shift = method(0.1, label_error=(0.05, 0.15), random_state=0).fit(X, y)
        with pytest.warns(OutOfRangeWarning, match="raw estimate −"):
            shift.estimate(T)
        shift.set_params(source_prior=0.5).estimate(T)


def test_the_label_error_is_printed(witness):
    try:
        for error, words in (
            (0.05, "5% label errors"),
            ((0.02, 0.1), "2 to 10% label errors"),
            ((0.0, 0.1), "at most 10% label errors"),
            (stats.beta(5.5, 45.5), "10.8 ± 4.3% label errors"),
        ):
            estimate = witness.set_params(label_error=error).estimate(S[2])
            assert str(estimate).endswith(f"(Witness, source prior 0.2, {words})")
            json.dumps(estimate.to_dict())
    finally:
        witness.set_params(label_error=None)
    assert "label" not in str(witness.estimate(S[2]))


# ---- diagnosis and command line


def test_the_sensitivity_says_what_label_errors_would_change():
    X, y, T = S
    tables = X[y == 1], X[y == 0], T
    plain = ps.diagnose(*tables, source_prior=PI, threshold=0.5, random_state=0)
    reference, assumed = plain.sensitivity.label_errors
    corrected = ps.estimate_prior(*tables, source_prior=PI, label_error=0.05, random_state=0)
    assert reference.value == plain.estimate.value and assumed.name == "5% label errors"
    assert assumed.value == pytest.approx(corrected.value, abs=1e-9)
    assert (assumed.low, assumed.high) == pytest.approx(ends(corrected), abs=1e-4)
    assert "If 5% of the labelled rows were not positive, the target prior would be 0." in plain.sensitivity.text
    assert "5% label errors" in plain.sensitivity.table()

    given = ps.diagnose(*tables, source_prior=PI, label_error=EPSILON, threshold=0.5, random_state=0)
    assert given.sensitivity.label_errors[1].value == pytest.approx(plain.estimate.value, abs=1e-9)
    assert "If all labelled rows were positive" in given.sensitivity.text
    # the prior at which the estimate is the threshold, and the estimate at the prior in use
    turning = given.sensitivity.turning_prior
    R = given.estimate.negative_ratio
    assert 0.9 - (0.9 - turning) * R == pytest.approx(0.5, abs=1e-9)
    at_use = next(point for point in given.sensitivity.source_priors if point.source_prior == PI)
    assert at_use.value == pytest.approx(given.estimate.value, abs=1e-12)
    assert all(point.source_prior < 0.9 for point in given.sensitivity.source_priors)
    assert given.planning.components["label_error"] == 0
    json.dumps(given.to_dict())
    uncertain = ps.diagnose(*tables, source_prior=PI, label_error=stats.beta(5.5, 45.5), random_state=0)
    assert uncertain.planning.components["label_error"] > 0.2
    assert uncertain.planning.width == pytest.approx(uncertain.estimate.interval.width, abs=1e-9)
    assert uncertain.planning.expected_width == pytest.approx(uncertain.planning.width, rel=0.15)


def test_label_errors_of_an_estimated_source_prior_in_a_diagnosis():
    X, y, T = S
    plain = ps.diagnose(X[y == 1], X[y == 0], T, random_state=0)
    _, assumed = plain.sensitivity.label_errors
    with_errors = ps.diagnose(X[y == 1], X[y == 0], T, label_error=0.05, random_state=0)
    assert assumed.value == pytest.approx(with_errors.estimate.value, abs=0.01)
    given = ps.diagnose(X[y == 1], X[y == 0], T, label_error=EPSILON, random_state=0)
    assert given.identification.largest_prior == pytest.approx(0.9 * plain.identification.largest_prior, rel=1e-9)
    assert given.sensitivity.label_errors[1].value == pytest.approx(plain.estimate.value, abs=0.01)


def test_the_posterior_of_the_source_prior_accounts_for_label_errors():
    """With 30% negatives among the labelled rows, the shapes of the models differ; the median was half of the truth."""
    errors, without = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        P, U = (
            rng.normal(size=(n, 3)) + 2 * (rng.random((n, 1)) < share) * np.eye(3)[0]
            for n, share in ((400, 0.7), (2000, 0.2))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakSeparationWarning)
            mixture = ps.MixturePrior(random_state=0).fit(np.concatenate([P, U]), np.repeat([1, 0], [400, 2000]))
        corrected = mixture.with_label_error(0.3)
        assert corrected.with_label_error(0.3) is corrected and mixture.with_label_error(0.0) is mixture
        assert 0.7 * corrected.interval_[0] < 0.2 < 0.7 * corrected.interval_[1]
        errors.append(0.7 * corrected.prior_ - 0.2)
        without.append(0.7 * mixture.prior_ - 0.2)
    assert abs(np.mean(errors)) < 0.04 < -np.mean(without)


def test_p_values_among_wrong_labels_have_the_density_of_the_models():
    """The density of v = (1−ε)u + εG(u) for negatives, by simulation."""
    from scipy.special import ndtr

    from priorshift.scores.posterior import _DISTANCES, _LOG_SPREADS, _shapes

    epsilon, rng = 0.3, np.random.default_rng(0)
    shapes = _shapes(999, None, epsilon)
    k = 5 * len(_LOG_SPREADS) + 2  # one normal with log s = 0
    negatives = rng.normal(size=200_000) - _DISTANCES[5]
    v = (1 - epsilon) * ndtr(negatives) + epsilon * ndtr(negatives + _DISTANCES[5])
    counts = np.histogram(v, shapes.edges)[0] / 200_000
    np.testing.assert_allclose(shapes.density[k] * shapes.widths, counts, atol=0.003)
    np.testing.assert_allclose((shapes.density * shapes.widths).sum(axis=1), 1.0, atol=1e-9)


@pytest.fixture
def files(tmp_path):
    X, y, T = S
    arguments = []
    for name, rows in (("positive", X[y == 1]), ("unlabeled", X[y == 0]), ("target", T)):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, rows, delimiter=",", header="a,b,c", comments="")
        arguments += [f"--{name}", str(path)]
    return [*arguments, "--source-prior", str(PI)]


@pytest.mark.parametrize(
    ("options", "label_error"),
    [
        (["--label-error", "0.1"], 0.1),
        (["--label-error", "10%"], 0.1),
        (["--label-error", "0.05-0.15"], (0.05, 0.15)),
        (["--label-error-counts", "5/50"], stats.beta(5.5, 45.5)),
    ],
)
def test_the_command_line_takes_label_errors(options, label_error, files, witness, capsys):
    assert main(["estimate", *files, *options, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    try:
        expected = witness.set_params(label_error=label_error).estimate(S[2])
    finally:
        witness.set_params(label_error=None)
    assert printed["raw"] == pytest.approx(expected.raw, abs=1e-6)
    assert printed["interval"]["high"] == pytest.approx(expected.interval.high, abs=1e-5)
    assert printed["details"]["label_error"] == pytest.approx(expected.details["label_error"])


@pytest.mark.parametrize(
    "options",
    [
        ["--label-error", "1.2"],
        ["--label-error", "few"],
        ["--label-error", "0.9"],
        ["--label-error-counts", "60/50"],
        ["--label-error", "0.1", "--label-error-counts", "5/50"],
        ["--label-error", "0.1", "--method", "km2-ls"],
    ],
)
def test_wrong_label_errors_are_one_sentence_and_exit_2(options, files, capsys):
    try:
        code = main(["estimate", *(files[:-2] if "km2-ls" in options else files), *options])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr()
    assert code == 2 and not said.out and "Traceback" not in said.err
    assert "label" in said.err


def test_a_report_names_the_label_errors(files, tmp_path, capsys):
    page = tmp_path / "report.html"
    assert main(["report", *files, "--label-error-counts", "5/50", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "label errors" in text and "If all labelled rows were positive" in text
