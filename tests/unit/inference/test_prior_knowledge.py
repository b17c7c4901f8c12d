"""What is known of the source prior, less than its value: a range, or a distribution."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.cli import main
from priorshift.cli.options import prior as parse_prior
from priorshift.cli.options import survey_counts
from priorshift.embedding.gram import Embeddings, _covariance, numerator, separation
from priorshift.embedding.samples import EmbeddedSample
from priorshift.errors import InputError, IntervalWarning, OutOfRangeWarning
from priorshift.inference import intervals
from priorshift.inference.confidence_curve import FiellerCurve
from priorshift.inference.prior_knowledge import DistributionPrior, PointPrior, RangePrior, read_prior, survey_prior
from priorshift.io.scaling import Rows
from priorshift.kernels import Gaussian

S = ps.simulate.gaussian(0.2, 0.6, 400, 400, shared=False, random_state=0)
SURVEY = stats.beta(37.5, 213.5)
SEEDS = range(60)  # of random_embeddings


def fitted(**settings):
    return ps.TCPU(0.2, random_state=0, **settings).fit(S.X, S.y)


def ends(interval):
    return interval.low, interval.high


def random_embeddings(seed):
    """Means with errors: well and badly known separations, estimates inside and beyond [0, 1]."""
    rng = np.random.default_rng(seed)
    means = np.concatenate([[np.zeros(3)], rng.normal(size=(2, 3))]) + 1
    influence = [rng.choice([0.02, 0.1, 0.3]) * rng.normal(size=(5, 3)) for _ in range(3)]
    samples = [
        EmbeddedSample(Rows(v, np.zeros(3), np.ones(3)), np.full(len(v), 1 / len(v)), 5 * k + np.arange(len(v)))
        for k, v in enumerate(influence)
    ]
    parts, freedom = _covariance(influence, samples)
    gram = means @ means.T
    return Embeddings(gram, gram, parts, 10 * freedom, (50, 50, 50), 0, Gaussian(1.0))


# ---- a range


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ends_of_a_range_have_the_extremes_of_all_intervals_in_it(seed):
    made, rng = random_embeddings(seed), np.random.default_rng([1, seed])
    known = RangePrior(*sorted(rng.random(2)))
    grid = np.linspace(known.low, known.high, 41)
    each = np.array([ends(intervals.delta(made, pi, 0.9)[0]) for pi in grid])
    assert each[[0, -1], 0].min() == pytest.approx(each[:, 0].min(), abs=1e-12)
    assert each[[0, -1], 1].max() == pytest.approx(each[:, 1].max(), abs=1e-12)
    by_curve = known.interval(intervals.curve(made), 0.9)
    # Student's quantiles of scipy 1.11 are no more exact
    assert by_curve == pytest.approx((each[:, 0].min(), each[:, 1].max()), abs=1e-8)


def test_those_random_problems_are_of_all_kinds():
    found = [intervals.delta(random_embeddings(seed), 0.1, 0.9) for seed in SEEDS]
    assert 5 < sum(not plausible for _, plausible in found) < 55
    assert {(made.low == 0, made.high == 1) for made, _ in found} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    curves = [intervals.curve(random_embeddings(seed)) for seed in SEEDS]
    assert any(curve.ratio < 0 for curve in curves) and any(curve.denominator_variance > 0.3 for curve in curves)


@pytest.mark.parametrize("interval", ["delta", "bootstrap", "paper-bound", "sharp-bound"])
@pytest.mark.filterwarnings("ignore::priorshift.errors.IntervalWarning")
def test_the_interval_of_a_range_is_the_union_of_those_of_the_known_priors_in_it(interval):
    confidence = 0.84 if interval == "paper-bound" else 0.3  # where a bound says something of few rows
    s = ps.simulate.gaussian(0.2, 0.6, 2000, 2000, dimension=3, distance=6.0, shared=False, random_state=0)
    tcpu = ps.TCPU(interval=interval, source_prior=0.2, n_bootstrap=50, confidence=confidence, random_state=0)
    tcpu.fit(s.X, s.y)
    each = [tcpu.set_params(source_prior=pi).estimate(s.target).interval for pi in np.linspace(0.1, 0.3, 9)]
    union = tcpu.set_params(source_prior=(0.1, 0.3)).estimate(s.target).interval
    assert ends(union) == pytest.approx((min(e.low for e in each), max(e.high for e in each)), abs=1e-12)
    assert union.method == interval and union.confidence == confidence
    assert union.width > each[0].width + 0.05 or interval == "paper-bound"


def test_a_range_is_used_at_its_middle_and_says_so():
    tcpu = fitted()
    at = tcpu.set_params(source_prior=0.2).estimate(S.target)
    estimate = tcpu.set_params(source_prior=(0.15, 0.25)).estimate(S.target)
    assert (estimate.raw, estimate.standard_error) == (at.raw, at.standard_error)
    assert (estimate.source_prior, estimate.source_prior_by) == (0.2, "range")
    assert estimate.details["source_prior_range"] == [0.15, 0.25]
    assert estimate.details["source_prior_standard_error"] is None
    assert at.details["source_prior_range"] is None
    assert str(estimate).endswith("(TCPU, source prior 0.15 to 0.25)")
    assert json.loads(json.dumps(estimate.to_dict())) == estimate.to_dict()
    assert tcpu.source_prior_ == 0.2 and tcpu.prior_estimator_ is None
    assert estimate.interval.low < at.interval.low < at.interval.high < estimate.interval.high


def test_a_range_of_no_width_is_a_known_prior_and_the_widest_one_is_allowed():
    tcpu = fitted()
    assert ends(tcpu.set_params(source_prior=(0.2, 0.2)).estimate(S.target).interval) == ends(
        tcpu.set_params(source_prior=0.2).estimate(S.target).interval
    )
    R = tcpu.negative_ratio(S.target).interval
    for interval in ("delta", "bootstrap"):
        widest = tcpu.set_params(source_prior=[0, 1], interval=interval).estimate(S.target).interval
        assert ends(widest) == pytest.approx((1 - R.high, 1.0), abs=1e-12 if interval == "delta" else 0.05)


@pytest.mark.parametrize("prior", [(0.01, 0.1), stats.beta(10, 190)])
def test_a_raw_estimate_beyond_the_unit_interval_for_every_prior_is_warned_of_once(prior):
    rng = np.random.default_rng(0)
    P, U = rng.normal(size=(100, 2)) + 3, rng.normal(size=(300, 2)) + 3 * (rng.random(300) < 0.5)[:, None]
    T = rng.normal(size=(300, 2))  # no positives, and half of them in the source: R is 2
    tcpu = ps.TCPU(prior).fit(np.concatenate([P, U]), np.repeat([1, 0], [100, 300]))
    with pytest.warns(OutOfRangeWarning, match=r"raw estimate −.*source prior \(0\.0") as said:
        estimate = tcpu.estimate(T)
    assert len(said) == 1
    assert estimate.value == estimate.interval.low == 0 < estimate.interval.high < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tcpu.set_params(source_prior=(0.01, 0.5)).estimate(T)  # it may be 0.5


def test_a_vacuous_bound_is_said_once():
    with pytest.warns(IntervalWarning) as said:
        assert ends(fitted(interval="sharp-bound").set_params(source_prior=(0.1, 0.2)).estimate(S.target).interval) == (
            0,
            1,
        )
    assert len(said) == 1


# ---- a distribution


def simulated(curve, distribution, draws=100_000):
    """Draws of 1 − (1−π)R, with R drawn through Fieller's test as it is written; what the curve misses is ∞."""
    rng = np.random.default_rng(0)
    r = np.concatenate([np.linspace(0, 5, 20_001), np.geomspace(5, 1e6, 2_000)[1:]])
    variance = curve.variance - 2 * r * curve.covariance + r**2 * curve.denominator_variance
    level = np.maximum.accumulate(stats.t.cdf((r - curve.ratio) / np.sqrt(variance), curve.freedom))
    R = np.interp(rng.random(draws), level, r, left=0.0, right=np.inf)
    return 1 - (1 - distribution.rvs(draws, random_state=rng)) * R


@pytest.mark.parametrize("distribution", [SURVEY, stats.beta(0.5, 10.5), stats.uniform(0.1, 0.4), stats.beta(40, 10)])
@pytest.mark.parametrize(
    "curve",
    [
        FiellerCurve(0.5, 0.05**2, freedom=8.0),
        FiellerCurve(0.5, 0.001**2),  # R all but known
        FiellerCurve(0.9, 0.1**2, 0.005, 0.2**2, 30.0),
        FiellerCurve(0.3, 0.2**2, 0.0, 0.3**2, 12.0),  # R may be 0
    ],
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_interval_of_a_distribution_is_that_of_a_simulation(curve, distribution, confidence):
    low, high = DistributionPrior(distribution).interval(curve, confidence)
    draws, tail = simulated(curve, distribution), (1 - confidence) / 2
    # four standard errors, and what cells of the distribution leave open where R has hardly an error
    tolerance = 4 * np.sqrt(tail / len(draws)) + 5e-4
    assert (
        np.mean(draws < low) == pytest.approx(tail, abs=tolerance) if low > 0 else np.mean(draws < 0) > tail - tolerance
    )
    assert (
        np.mean(draws > high) == pytest.approx(tail, abs=tolerance)
        if high < 1
        else np.mean(draws == 1) > tail - tolerance
    )


def test_a_separation_that_may_be_zero_takes_the_lower_end_to_zero():
    curve = FiellerCurve(0.9, 0.1**2, 0.0, 0.7**2, 20.0)
    assert 0.5 < curve(1e50) == curve(np.inf) < 0.95  # R may be arbitrarily large
    assert np.mean(simulated(curve, SURVEY) < 0) > 0.05
    for known in (PointPrior(0.15), RangePrior(0.1, 0.2), DistributionPrior(SURVEY)):
        low, high = known.interval(curve, 0.95)
        assert low == 0 < high < 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of scipy 1.15 and older, whose answer is right
@pytest.mark.parametrize("seed", SEEDS)
def test_a_very_narrow_distribution_is_a_known_prior(seed):
    """And so are the convention for estimates beyond [0, 1] and the curve where Fieller's set is unbounded."""
    made, pi = random_embeddings(seed), (0.1, 0.5)[seed % 2]
    narrow = DistributionPrior(stats.beta(1e12 * pi, 1e12 * (1 - pi))).interval(intervals.curve(made), 0.95)
    assert narrow == pytest.approx(ends(intervals.delta(made, pi, 0.95)[0]), abs=1e-5)


def test_a_distribution_widens_the_interval_and_the_standard_error_and_says_so():
    tcpu = fitted()
    at = tcpu.set_params(source_prior=float(SURVEY.mean())).estimate(S.target)
    estimate = tcpu.set_params(source_prior=SURVEY).estimate(S.target)
    assert estimate.raw == at.raw and estimate.source_prior == SURVEY.mean() == tcpu.source_prior_
    error = np.hypot(at.standard_error, at.negative_ratio * SURVEY.std())
    assert estimate.standard_error == pytest.approx(error, rel=1e-4)
    assert estimate.interval.width == pytest.approx(at.interval.width * error / at.standard_error, rel=0.03)
    assert estimate.source_prior_by == "distribution"
    assert estimate.details["source_prior_range"] == pytest.approx(SURVEY.ppf([0.025, 0.975]))
    assert estimate.details["source_prior_standard_error"] == pytest.approx(SURVEY.std(), rel=1e-3)
    assert str(estimate).endswith("(TCPU, source prior 0.149 ± 0.022)")
    assert json.loads(json.dumps(estimate.to_dict())) == estimate.to_dict()
    assert estimate.interval.method == "delta"


def test_the_bootstrap_draws_the_prior_too():
    tcpu = fitted(interval="bootstrap", n_bootstrap=2000).set_params(source_prior=stats.beta(20, 80))
    bootstrap = tcpu.estimate(S.target)
    delta = tcpu.set_params(interval="delta").estimate(S.target)
    assert bootstrap.interval.width == pytest.approx(delta.interval.width, rel=0.1)  # 2000 draws: 3 %
    alone = tcpu.set_params(interval="bootstrap", source_prior=0.2).estimate(S.target)
    assert bootstrap.interval.width > 1.1 * alone.interval.width
    assert bootstrap.interval.method == "bootstrap"


@pytest.mark.parametrize("confidence", [0.01, 0.2, 0.5])
def test_the_interval_of_a_skew_distribution_holds_the_estimate(confidence):
    estimate = fitted(confidence=confidence).set_params(source_prior=stats.beta(0.5, 10.5)).estimate(S.target)
    assert estimate.value in estimate.interval


def test_samples_of_a_posterior_are_a_distribution():
    draws = SURVEY.rvs(20_000, random_state=0)
    histogram = stats.rv_histogram(np.histogram(draws, bins=100))
    by_draws = fitted().set_params(source_prior=histogram()).estimate(S.target).interval
    exact = fitted().set_params(source_prior=SURVEY).estimate(S.target).interval
    assert ends(by_draws) == pytest.approx(ends(exact), abs=0.002)
    by_ends = fitted().set_params(source_prior=np.quantile(draws, [0.025, 0.975])).estimate(S.target)
    assert by_ends.source_prior_by == "range" and by_ends.details["source_prior_range"][0] == pytest.approx(
        0.108, abs=1e-3
    )


# ---- the curve


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_curve_at_the_ends_of_fiellers_interval_is_at_its_tails(confidence):
    tcpu = fitted(confidence=confidence)
    R = tcpu.negative_ratio(S.target)
    curve = intervals.curve(tcpu._kernel_fit.embed(tcpu.read_target(S.target), tcpu.statistic, tcpu.pairs))
    tail = (1 - confidence) / 2
    assert curve([R.interval.low, R.value, R.interval.high]) == pytest.approx([tail, 0.5, 1 - tail], abs=1e-9)
    estimate = tcpu.estimate(S.target)
    assert PointPrior(0.2).interval(curve, confidence) == pytest.approx(ends(estimate.interval), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_curve_never_falls_and_is_the_one_sided_test_up_to_its_turn(seed):
    made = random_embeddings(seed)
    curve, r = intervals.curve(made), np.linspace(0, 3, 3001)
    # but for the last digit of Student's distribution in scipy 1.15 and older
    assert (np.diff(curve(r)) > -2e-16).all() and curve(-1e-9) == 0
    assert curve(r[::100]).tolist() == [float(curve(x)) for x in r[::100]]
    N, D = numerator(made.gram), separation(made.gram)
    if N > 0:
        variance = np.array([made.variance(intervals._N - x * intervals._D)[0] for x in r[::100]])
        plain = stats.t.cdf((r[::100] * D - N) / np.sqrt(variance), curve.freedom)
        rises = np.append(np.diff(plain) > 0, False) & (plain[0] <= plain) & (plain < curve(1e90))
        assert curve(r[::100])[rises] == pytest.approx(plain[rises], abs=1e-12)
        assert rises.sum() > 3


def test_a_ratio_without_error_is_a_step_and_one_of_unknown_error_says_nothing():
    sure = FiellerCurve(0.5, 0.0)
    assert sure([0.4, 0.5, 0.6]).tolist() == [0, 0.5, 1]
    assert PointPrior(0.2).interval(sure, 0.95) == pytest.approx((0.6, 0.6), abs=1e-9)
    assert DistributionPrior(SURVEY).interval(sure, 0.95) == pytest.approx(
        1 - 0.5 * (1 - SURVEY.ppf([0.025, 0.975])), abs=2e-4
    )
    for curve in (
        FiellerCurve(np.nan, 0.1),
        FiellerCurve(0.5, np.inf),
        FiellerCurve(0.5, 0.1, freedom=np.nan),
    ):
        assert all(
            known.interval(curve, 0.9) == (0, 1)
            for known in (PointPrior(0.2), RangePrior(0, 1), DistributionPrior(SURVEY))
        )


# ---- coverage


def covered(known_from, truth=0.6, pi=0.2, repetitions=400):
    """How often the interval holds π′, with N and D drawn as normal variables and π looked for in surveys of 50."""
    rng = np.random.default_rng(0)
    covariance = np.array([[4e-4, 2e-4], [2e-4, 9e-4]])
    R, held = (1 - truth) / (1 - pi), 0
    for _ in range(repetitions):
        N, D = rng.multivariate_normal([R, 1.0], covariance)
        (n, c), (_, d) = covariance / D**2
        low, high = known_from(rng.binomial(50, pi)).interval(FiellerCurve(N / D, n, c, d), 0.9)
        held += low <= truth <= high
    return held / repetitions


def test_the_interval_with_a_survey_covers_as_often_as_it_says():
    # 400 repetitions know a share of 0.9 to 0.015
    assert covered(lambda k: DistributionPrior(stats.beta(k + 0.5, 50.5 - k))) == pytest.approx(0.9, abs=0.04)
    assert covered(lambda k: PointPrior((k + 0.5) / 51)) < 0.75  # as if the survey had no error


def test_the_interval_of_a_range_covers_for_every_prior_in_it():
    for pi in (0.1, 0.15, 0.2):
        assert covered(lambda _: RangePrior(0.1, 0.2), pi=pi, repetitions=200) > 0.9
    assert covered(lambda _: RangePrior(0.1, 0.2), pi=0.35, repetitions=200) < 0.5


# ---- settings


@pytest.mark.parametrize("prior", [(0.1, 0.2), [0.1, 0.2], np.array([0.1, 0.2]), SURVEY])
def test_knowledge_survives_clones_pickles_and_a_change_after_fit(prior):
    tcpu = ps.TCPU(prior, random_state=0)
    assert tcpu.get_params()["source_prior"] is prior and repr(tcpu)
    told = tcpu.fit(S.X, S.y).estimate(S.target)
    assert tcpu.source_prior is prior and tcpu._repr_html_()
    assert clone(tcpu).fit(S.X, S.y).estimate(S.target) == told
    assert pickle.loads(pickle.dumps(tcpu)).estimate(S.target) == told
    known = fitted()
    assert known.set_params(source_prior=prior).estimate(S.target) == told
    assert ps.estimate_prior(S.positive, S.unlabeled, S.target, method="tcpu", source_prior=prior) == told
    assert known.set_params(source_prior=0.2).estimate(S.target).source_prior_by == "given"
    with pytest.raises(InputError, match=r"source_prior was 0\.1.*TCPU"):
        tcpu.set_params(source_prior=None).estimate(S.target)


def test_knowledge_replaces_what_was_asked():
    tcpu = ps.TCPU(random_state=0).fit(S.X, S.y)
    assert ends(tcpu.set_params(source_prior=(0.1, 0.2)).estimate(S.target).interval) == ends(
        fitted().set_params(source_prior=(0.1, 0.2)).estimate(S.target).interval
    )
    assert tcpu.source_prior_ == pytest.approx(0.15) and tcpu.prior_estimator_ is None


def test_the_objective_and_its_picture_are_those_of_the_point():
    pytest.importorskip("matplotlib")
    tcpu = fitted().set_params(source_prior=(0.1, 0.3))
    np.testing.assert_array_equal(tcpu.objective(S.target, [0.5]), fitted().objective(S.target, [0.5]))
    ps.plots.objective(tcpu.estimate(S.target))


@pytest.mark.parametrize("prior", [(0.1, 0.3), stats.beta(20, 80)])
def test_decisions_are_made_with_the_point(prior):
    shifted, plain = (
        ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(given), random_state=0).fit(S.X, S.y).adapt(S.target)
        for given in (prior, 0.2)
    )
    assert shifted.source_prior_ == pytest.approx(0.2) and shifted.estimate_.source_prior == pytest.approx(0.2)
    assert shifted.threshold_ == pytest.approx(plain.threshold_)
    np.testing.assert_allclose(shifted.predict_proba(S.target), plain.predict_proba(S.target))
    pickle.loads(pickle.dumps(shifted)).predict(S.target)


# ---- what cannot be


RANGE = "but a range must be two increasing numbers from 0 to 1"
NOT_FROZEN = r"source_prior is scipy's .* without parameters"
NO_SHARE = r"of its mass outside \[0, 1\].*scipy.stats.beta"
IMPOSSIBLE = [
    ((0.2, 0.1), r"source_prior is \(0.2, 0.1\), " + RANGE),
    ((-0.1, 0.1), RANGE),
    ((0.5, 1.1), RANGE),
    ((0.1, float("nan")), RANGE),
    ((float("nan"), 0.1), RANGE),
    ((0, 0), RANGE),
    ([1, 1], RANGE),
    (("0.1", "0.2"), RANGE),
    ((False, True), RANGE),
    ((0.1,), RANGE),
    ((0.1, 0.2, 0.3), RANGE),
    ([0.1, [0.2]], RANGE),
    (np.array([0.3, 0.2]), r"source_prior is array\(\[0.3, 0.2\]\), " + RANGE),
    ("0.1-0.2", "source_prior is '0.1-0.2', but it must be a number strictly between 0 and 1"),
    ({0.1, 0.2}, "but it must be a number strictly between 0 and 1"),
    (np.array(0.2), "but it must be a number strictly between 0 and 1"),
    (stats.beta, "scipy's beta without parameters"),
    (stats.uniform, NOT_FROZEN),
    (stats.binom, NOT_FROZEN),
    (stats.rv_continuous, NOT_FROZEN),
    (stats.norm(0.15, 0.1), r"distribution with mean 0.15 and 0.067 " + NO_SHARE),
    (stats.norm(-3, 0.1), NO_SHARE),
    (stats.binom(250, 0.15), r"distribution with mean 37.5 and 1 " + NO_SHARE),
    (stats.beta(-1, 2), r"mean nan and nan " + NO_SHARE),
    (stats.beta([38, 20], 214), "not one distribution with a mean and a cdf"),
]  # fmt: skip


@pytest.mark.parametrize(("prior", "message"), IMPOSSIBLE)
def test_knowledge_that_cannot_be_is_refused_in_one_sentence(prior, message):
    with pytest.raises(InputError, match=message) as refused:
        ps.TCPU(prior).fit(S.X, S.y)
    with pytest.raises(InputError) as again:
        fitted().set_params(source_prior=prior).estimate(S.target)
    assert str(refused.value) == str(again.value) and str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_rounding_beyond_the_unit_interval_and_masses_at_its_ends_are_allowed():
    assert read_prior(stats.norm(0.15, 0.02)).range == pytest.approx((0.1108, 0.1892), abs=1e-4)
    assert read_prior(stats.bernoulli(0.2)).value == 0.2


@pytest.mark.parametrize(
    "estimator",
    [
        ps.DRPU(model=LogisticRegression()),
        ps.NNPUClassifier(),
        ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.2)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_that_need_a_number_say_so(estimator):
    name = type(estimator).__name__
    for prior, words in (((0.1, 0.2), r"a range \(0.1 to 0.2\)"), (SURVEY, r"a distribution \(0.149 ± 0.022\)")):
        message = rf"source_prior is {words}, but {name} .*number, such as 0.1"
        with pytest.raises(InputError, match=message):
            clone(estimator).set_params(source_prior=prior).fit(S.X, S.y)


def test_bounds_are_for_numbers_and_ranges():
    for interval in ("paper-bound", "sharp-bound"):
        with pytest.raises(
            InputError,
            match=f"'{interval}' .*distribution",
        ):
            ps.TCPU(SURVEY, interval=interval).fit(S.X, S.y)


# ---- the command line


@pytest.fixture
def files(tmp_path):
    arguments = []
    for name in ("positive", "unlabeled", "target"):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, getattr(S, name), delimiter=",", header=",".join("abcdefghij"[: S.X.shape[1]]), comments="")
        arguments += [f"--{name}", str(path)]
    return arguments


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("0.2", 0.2), ("1e-3", 1e-3), ("2E-1", 0.2), ("0.1-0.2", (0.1, 0.2)), ("0-1", (0.0, 1.0)), ("0-.5", (0.0, 0.5)),
        ("1e-3-2e-3", (1e-3, 2e-3)), ("1e-3-0.5", (1e-3, 0.5)), ("0.01-2e-1", (0.01, 0.2)), (".1 - .2", (0.1, 0.2)),
    ],
)  # fmt: skip
def test_numbers_and_ranges_are_read(text, prior):
    assert parse_prior(text) == prior


@pytest.mark.parametrize("counts", [(37, 250), (0, 10), (10, 10), (1, 1)])
def test_counts_are_jeffreys_beta(counts):
    k, n = counts
    read = survey_prior(**survey_counts(f"{k}/{n}"))
    assert read.mean() == pytest.approx((k + 0.5) / (n + 1))
    assert read.ppf(0.3) == stats.beta(k + 0.5, n - k + 0.5).ppf(0.3)


@pytest.mark.parametrize("rows", [10**16, 10**400])
def test_counts_that_no_survey_has_are_refused(rows):
    with pytest.raises(InputError, match=r"^the survey has more than 1e\+15 rows; check its counts"):
        survey_prior(1, rows)


@pytest.mark.parametrize(
    ("option", "prior"), [(["--source-prior", "0.1-0.2"], (0.1, 0.2)), (["--source-prior-counts", "37/250"], SURVEY)]
)
def test_the_command_line_takes_ranges_and_counts(files, option, prior, tmp_path, capsys):
    assert main(["estimate", *files, *option, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    told = ps.WitnessShift(prior, random_state=0).fit(S.X, S.y).estimate(S.target)
    assert said["method"] == told.method == "Witness"
    assert ends(ps.Interval(**said["interval"])) == pytest.approx(ends(told.interval), abs=1e-9)
    assert said["details"]["source_prior_range"] == pytest.approx(told.details["source_prior_range"])
    assert said["source_prior_by"] == told.source_prior_by
    assert main(["estimate", *files, *option]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"source prior {read_prior(prior)})")
    output = tmp_path / "decided.csv"
    assert main(["adapt", *files, *option, "--classifier", "logistic", "--output", str(output), "--json"]) == 0
    adapted = json.loads(capsys.readouterr().out)
    assert adapted["source_prior"] == adapted["estimate"]["source_prior"] == pytest.approx(told.source_prior)
    assert output.exists()


@pytest.mark.parametrize("command", ["estimate", "adapt"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--source-prior", "a-b"], "'a-b' cannot be read; expected a number such as 0.2, a range such as 0.1-0.2, or 0-0.2"),
        (["--source-prior", "0.1-"], "'0.1-' cannot be read; expected a number such as 0.2, a range"),
        (["--source-prior", "10%-a fifth"], "cannot be read; expected a number such as 0.2, a range"),
        (["--source-prior", "0.2-0.1"], "source_prior is (0.2, 0.1), but a range must be"),
        (["--source-prior", "10-20"], "source_prior is (10.0, 20.0), but a range must be"),
        (["--source-prior", "nan-0.2"], "source_prior is (nan, 0.2), but a range must be"),
        (["--source-prior-counts", "300/250"], "'300/250' is not a survey result; pass the number of positives"),
        (["--source-prior-counts", "0/0"], "'0/0' is not a survey result"),
        (["--source-prior-counts", "37"], "'37' is not a survey result; pass"),
        (["--source-prior-counts", "3.5/10"], "'3.5/10' is not a survey result"),
        (["--source-prior-counts=-1/10"], "'-1/10' is not a survey result"),
        (["--source-prior", "0.2", "--source-prior-counts", "37/250"], "together with another source prior"),
        (["--source-prior", "0.1-0.2", "--method", "drpu"], "source_prior is a range (0.1 to 0.2), but DRPU"),
        (["--source-prior-counts", "3/20", "--method", "tcpu", "--interval", "paper-bound"],
         "not a distribution"),
    ],
)  # fmt: skip
def test_wrong_knowledge_ends_the_command_with_one_sentence(files, command, options, message, tmp_path, capsys):
    if "DRPU" in message:
        pytest.importorskip("torch")
    output = tmp_path / "out.csv"
    more = ["--classifier", "logistic", "--output", str(output)] if command == "adapt" else []
    try:
        code = main([command, *files, *more, *options])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr()
    assert code == 2 and said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith("priorshift: ") and message in said.err
    assert not output.exists()


def test_a_result_without_details_prints_all_the_same():
    estimate = fitted().estimate(S.target)
    for by in ("range", "distribution"):
        assert str(replace(estimate, source_prior_by=by, details={})).endswith(f"source prior 0.2 by {by})")


@pytest.mark.parametrize("estimator", [ps.TCPU, ps.WitnessShift])
def test_what_was_asked_is_known_again_after_a_pickle(estimator):
    """An object whose repr has its address, such as a generator, is compared with itself."""
    sample = ps.simulate.gaussian(0.3, 0.6, 300, 200, shared=False, random_state=0)
    asked = ps.KM2(random_state=np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator(asked, random_state=0).fit(sample.X, sample.y)
        assert pickle.loads(pickle.dumps(fitted)).estimate(sample.target) == fitted.estimate(sample.target)
        fitted.set_params(source_prior=ps.KM2(random_state=1))
        with pytest.raises(InputError, match=r"source_prior was KM2"):
            fitted.estimate(sample.target)


def test_a_range_from_zero_is_an_upper_limit(tmp_path, capsys):
    assert str(RangePrior(0.0, 0.1)) == "at most 0.1" and str(RangePrior(0.25, 1.0)) == "at least 0.25"
    assert "source prior at most 0.3)" in str(
        ps.WitnessShift((0, 0.3), random_state=0).fit(S.X, S.y).estimate(S.target)
    )
    assert parse_prior("0-0.3") == (0.0, 0.3)
    paths = []
    for name, rows in (("positive", S.positive), ("unlabeled", S.unlabeled), ("target", S.target)):
        paths += [f"--{name}", str(tmp_path / f"{name}.csv")]
        np.savetxt(paths[-1], rows, delimiter=",", header=",".join("abcdefghij"), comments="")
    assert main(["estimate", *paths, "--source-prior", "0-0.3"]) == 0
    assert "source prior at most 0.3" in capsys.readouterr().out
    text = ps.diagnose(S.positive, S.unlabeled, S.target, source_prior=(0, 0.3), random_state=0).identification.text
    assert "at most 0.30 as given" in text
