import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import priorshift as ps
from priorshift.errors import (
    DuplicateRowsWarning,
    FewPositivesWarning,
    InputError,
    OverlapWarning,
    WeakSeparationWarning,
)
from priorshift.input.source import Source
from priorshift.mixture_prior import _guarded
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import cross_fit
from priorshift.scores.p_values import Ranks, p_values


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 1000, 1000, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    return ps.MixtureShift(random_state=0).fit(sample.X, sample.y, shared=sample.ids)


# ---- p-values and their mixture


def test_p_values_of_positives_are_uniform_whatever_the_score():
    rng = np.random.default_rng(0)
    positive, more = rng.exponential(size=400), rng.exponential(size=100_000)
    # over draws of the positives v is uniform on (k + ½)/(m + 1); of one draw the mean is known to 0.5/√(3·400)
    v = p_values(positive, more)
    assert v.mean() == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(1200))
    assert np.abs(np.sort(v) - np.linspace(0, 1, len(v))).max() < 1.7 / np.sqrt(400)  # Kolmogorov, one in a thousand


def test_weighted_ranks_are_p_values_of_repeated_rows():
    rng = np.random.default_rng(0)
    positive, scores = rng.integers(0, 9, 12).astype(float), rng.integers(-1, 10, 30).astype(float)
    weights = rng.poisson(1.0, 12)
    np.testing.assert_allclose(
        Ranks(positive, scores).p_values(weights), p_values(np.repeat(positive, weights), scores), rtol=1e-12
    )


def test_components_are_beta_densities():
    centre = (np.arange(mixture.BINS) + 0.5) / mixture.BINS
    assert len(mixture._ORDERS) > 3 and min(mixture._ORDERS) < 20
    for k, order in enumerate(mixture._ORDERS):
        g = mixture.density(np.eye(len(mixture._ORDERS))[k])
        assert g.mean() == pytest.approx(1)
        if order < 20:
            np.testing.assert_allclose(g, stats.beta(1, order).pdf(centre), rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("prior", [0.05, 0.3, 0.8])
def test_em_finds_the_maximum_of_the_likelihood(prior):
    rng = np.random.default_rng(0)
    v = np.where(rng.random(3000) < prior, rng.random(3000), rng.beta(1, 15, 3000))
    counts = mixture.histogram(v)
    pi, w = mixture.fit_one(counts, 3000)
    parts = np.concatenate([np.ones((mixture.BINS, 1)), mixture._BETA], axis=1)
    # optimality of a concave likelihood over shares: no component's mean of 1/f exceeds 1, and those in use reach it
    shares = np.concatenate([[pi], (1 - pi) * w])
    slope = parts.T @ (counts / (parts @ shares)) / counts.sum()
    assert slope.max() < 1 + 1e-3
    np.testing.assert_allclose(slope[shares > 0.05], 1, atol=2e-3)
    assert pi == pytest.approx(prior, abs=0.05)  # 3000 values know it to 0.02


def test_two_samples_share_their_negatives():
    rng = np.random.default_rng(0)
    samples = [np.where(rng.random(6000) < p, rng.random(6000), rng.beta(1, 15, 6000)) for p in (0.2, 0.7)]
    pi, new, _ = mixture.fit_two(*(mixture.histogram(v) for v in samples))
    assert (1 - new) / (1 - pi) == pytest.approx(0.3 / 0.8, abs=0.02)
    stacked = [np.stack([mixture.histogram(v)] * 3) for v in samples]
    np.testing.assert_allclose(mixture.fit_two(*stacked)[1], new)


def test_overlap_is_one_minus_auc():
    """The mean p-value of negatives: N(1, 1) against N(-1, 1) has 1 − AUC = Φ(−√2)."""
    rng = np.random.default_rng(0)
    population = np.concatenate([rng.normal(1, 1, 3000), rng.normal(-1, 1, 7000)])
    v = p_values(rng.normal(1, 1, 10_000), population)
    assert mixture.overlap(v.mean(), 0.3) == pytest.approx(stats.norm.cdf(-np.sqrt(2)), abs=0.01)


def test_guard_takes_the_smaller_where_classes_overlap():
    assert _guarded(0.5, 0.2, 0.0) == 0.5
    assert _guarded(0.5, 0.2, 1.0) == pytest.approx(0.2)
    assert _guarded(0.2, 0.5, 1.0) == 0.2
    assert _guarded(0.5, np.nan, 1.0) == 0.5


# ---- scores


def test_no_row_is_scored_by_a_model_that_has_seen_it():
    """Labels that are noise, and a model that learns by heart: held-out scores cannot tell them apart."""
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(400, 2)), rng.random(400) < 0.5
    sample = Source.read(X, labeled, None, scenario="case-control", standardize=False)
    (found,) = cross_fit(X, sample, DecisionTreeClassifier(random_state=0), 1, 5, rng)
    assert abs(found.positive.mean() - found.population.mean()) < 0.15  # in-sample it is 1
    assert len(found.models) == 5


def test_ridge_regression_is_the_one_of_its_normal_equations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    labeled = np.arange(120) < 40
    X[labeled] += 1
    sample = Source.read(X, labeled, None, scenario="case-control", standardize=False)
    (found,) = cross_fit(X, sample, None, 1, 4, np.random.default_rng(1))
    # the model of a fold is linear in its features, so its score of the rows it left out can be made by hand
    fold = sample.deal(4, np.random.default_rng(1))
    model = found.models[2]
    F, y = model.features(X), np.where(labeled, 1.0, -1.0)
    w = np.where(labeled, 0.5 / 40, 0.5 / 80) * (fold != 2)
    residual = F.T @ (w * (y - F @ model.beta))
    ridge = residual / model.beta
    assert np.ptp(ridge) < 1e-6 and any(ridge[0] == pytest.approx(0.75 * r) for r in (1e-3, 1e-2, 1e-1))
    np.testing.assert_allclose(found.positive[fold[:40] == 2], (F @ model.beta)[:40][fold[:40] == 2])


def test_a_target_is_dealt_to_the_models_and_repeats_with_the_seed(fitted, sample):
    first, again = (
        fitted.prior_estimator_.scored_.repetitions[0].target(sample.target, np.random.default_rng(s)) for s in (1, 1)
    )
    other = fitted.prior_estimator_.scored_.repetitions[0].target(sample.target, np.random.default_rng(2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


# ---- the estimators


def test_both_priors_are_found(fitted, sample):
    estimate = fitted.estimate(sample.target)
    assert fitted.source_prior_ == pytest.approx(0.2, abs=0.05)
    assert estimate.value == pytest.approx(0.6, abs=0.07)
    assert 0.6 in estimate.interval and estimate.interval.width < 0.2
    assert estimate.raw == pytest.approx(1 - (1 - estimate.source_prior) * estimate.negative_ratio)
    assert estimate.verdict == "estimate"
    assert str(estimate).endswith(f"(Mixture, source prior {estimate.source_prior:.3g} by MixturePrior)")


def test_target_equal_to_the_source_has_its_prior(fitted, sample):
    assert fitted.estimate(sample.unlabeled).negative_ratio == pytest.approx(1, abs=0.1)
    assert fitted.estimate(sample.positive).value > 0.85


def test_a_known_prior_is_used(sample):
    estimate = ps.MixtureShift(0.2, random_state=0).fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target)
    assert estimate.source_prior == 0.2 and "by" not in str(estimate)
    assert estimate.raw == pytest.approx(1 - 0.8 * estimate.negative_ratio) and 0.6 in estimate.interval


@pytest.mark.filterwarnings("ignore::priorshift.errors.OverlapWarning")
def test_any_classifier_can_give_the_scores(sample):
    estimator = ps.MixtureShift(model=LogisticRegression(), repeats=2, random_state=0)
    assert estimator.fit(sample.X, sample.y, shared=sample.ids).estimate(sample.target).value == pytest.approx(
        0.6, abs=0.08
    )


def test_censoring_counts_the_labelled_rows_in_the_population():
    rng = np.random.default_rng(0)
    truth = rng.random(1500) < 0.4
    X = rng.normal(size=(1500, 3)) + 3 * truth[:, None]
    labeled = truth & (rng.random(1500) < 0.5)
    found = ps.MixturePrior(scenario="censoring", random_state=0).fit(X, labeled)
    assert found.prior_ == pytest.approx(0.4, abs=0.04)  # without them it would be 0.25


def test_overlap_makes_it_an_upper_bound_that_is_said():
    s = ps.simulate.gaussian(0.3, 0.6, 800, 800, dimension=2, distance=1, random_state=0)
    with pytest.warns(
        OverlapWarning, match=r"The classes overlap \(o = 0\.\d+, the implied 1 − AUC\), so the source prior"
    ):
        shift = ps.MixtureShift(random_state=0).fit(s.X, s.y, shared=s.ids)
    estimate = shift.estimate(s.target)
    assert shift.prior_estimator_.upper_bound_ and estimate.verdict == "upper bound"
    assert str(estimate).endswith(", an upper bound)")
    assert estimate.interval.high > 0.6 and 0.6 in estimate.interval
    assert estimate.interval.low < 1 - estimate.negative_ratio < estimate.value
    assert 0.3 < estimate.ratio_parts.kernel_weight <= 0.5
    known = ps.MixtureShift(0.3, random_state=0).fit(s.X, s.y, shared=s.ids).estimate(s.target)
    assert known.verdict == "estimate" and 0.6 in known.interval


def test_positives_like_the_population_give_an_answer_that_says_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), np.repeat([1, 0], 300)
    with pytest.warns(WeakSeparationWarning, match="unlabelled rows look like the 300 positives"):
        shift = ps.MixtureShift(random_state=1).fit(X, y)
    estimate = shift.estimate(rng.normal(size=(200, 3)))
    assert 0 <= estimate.value <= 1
    assert (estimate.interval.low, estimate.interval.high) == (0, 1)
    assert str(estimate).endswith(", the data cannot tell)")


@pytest.mark.filterwarnings("ignore::priorshift.errors.OverlapWarning")
def test_few_positives_are_said(sample):
    few = np.r_[:5, len(sample.positive) : len(sample.X)]
    with pytest.warns(FewPositivesWarning, match="The prior rests on 5 positive rows; take it as a guess"):
        shift = ps.MixtureShift(random_state=0).fit(sample.X[few], sample.y[few])
    estimate = shift.estimate(sample.target)
    assert estimate.verdict == "few positives" and str(estimate).endswith(", a guess from few positives)")


def test_bootstrap_shares_the_weight_of_a_shared_row():
    """P is U's first half: with the shared rows told, a resampled P is found again in the resampled U."""
    s = ps.simulate.gaussian(0.5, 0.5, 400, 10, shared=False, random_state=0)
    X = np.concatenate([s.unlabeled[s.unlabeled_labels], s.unlabeled])
    m = int(s.unlabeled_labels.sum())
    y, ids = (
        np.repeat([1, 0], [m, len(s.unlabeled)]),
        np.r_[np.flatnonzero(s.unlabeled_labels), np.arange(len(s.unlabeled))],
    )
    told = ps.MixturePrior(random_state=0).fit(X, y, shared=ids)
    untold = ps.MixturePrior(random_state=0).fit(X, y)
    assert told.standard_error_ < 0.9 * untold.standard_error_


def test_picture(fitted, sample):
    ax = ps.plots.mixture(fitted, sample.target)
    assert len(ax.lines) == 4 and "overlap" in ax.get_title()
    assert ps.plots.mixture(fitted).get_xlabel() == "p-value among the positives"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": 3}, "model is 3, but it must be None or an estimator with fit, get_params, predict"),
        ({"source_prior": ps.KM2()}, r"source_prior is KM2\(\), but it must be a number"),
    ],
)
def test_settings_that_cannot_be_used(settings, message, sample):
    with pytest.raises(InputError, match=message):
        ps.MixtureShift(**settings).fit(sample.X, sample.y)


class BadScores(LogisticRegression):
    def decision_function(self, X):
        return np.full(len(X), np.inf)


def test_scores_that_are_no_numbers_are_refused(sample):
    with pytest.raises(InputError, match=r"BadScores gave scores of shape .* not finite"):
        ps.MixturePrior(model=BadScores()).fit(sample.X, sample.y)


def test_copies_are_one_observation_and_said():
    """Three copies of every row know no more than one: the answer is that of the rows, not three times as sure."""
    s = ps.simulate.gaussian(0.3, 0.6, 300, 300, shared=False, random_state=0)
    once = ps.MixtureShift(random_state=0).fit(s.X, s.y).estimate(s.target)
    X, y, target = (np.repeat(part, 3, axis=0) for part in (s.X, s.y, s.target))
    with pytest.warns(
        DuplicateRowsWarning, match="600 of 900 source rows are copies of others, in columns that do not repeat"
    ):
        tripled = ps.MixtureShift(random_state=0).fit(X, y).estimate(target)
    assert tripled.value == pytest.approx(once.value, abs=0.08)
    assert tripled.standard_error == pytest.approx(once.standard_error, rel=0.4)


def test_hard_problems_get_a_value_an_interval_and_a_verdict():
    """A few of each kind; experiments/studies/hard.py has 200."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from experiments.studies.hard import KINDS, measure

    lines = [line for number in range(2 * len(KINDS)) for line in measure(number)]
    assert len(lines) == 2 * len(KINDS)
    assert all(0 <= line["low"] <= line["value"] <= line["high"] <= 1 for line in lines)
    assert not any(line["other_warnings"] for line in lines)
    assert {line["verdict"] for line in lines} <= {"estimate", "upper bound", "few positives", "nothing"}
    assert np.mean([line["holds"] for line in lines]) > 0.7


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize(("rows", "prior"), [(20, 0.05), (20, 0.95), (50, 0.97)])
def test_intervals_near_the_ends_are_never_of_no_width_and_cover(rows, prior):
    s = ps.simulate.gaussian(0.3, 0.5, 600, 10, distance=3, shared=False, random_state=1)
    shift = ps.MixtureShift(random_state=0).fit(s.X, s.y)
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(30):
        labels = rng.random(rows) < prior
        ends = shift.estimate(rng.normal(size=(rows, 10)) + 3 * labels[:, None]).interval
        assert ends.width > 0.05
        covered.append(prior in ends)
    assert np.mean(covered) >= 0.83  # at 95%, 25 of 30 or fewer happen once in a hundred times
    whole = shift.estimate(s.positive)
    assert whole.interval.low < 1 == whole.interval.high and np.isfinite(whole.standard_error)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_interval_covers_in_small_samples():
    """36 draws over the grid; experiments/studies/coverage_mixture.py has thousands."""
    covered = []
    for seed, (pi, target) in enumerate([(0.1, 0.8), (0.2, 0.4), (0.5, 0.2)] * 12):
        s = ps.simulate.gaussian(pi, target, 200, 200, random_state=seed)
        shift = ps.MixtureShift(repeats=2, random_state=seed).fit(s.X, s.y, shared=s.ids)
        covered.append(target in shift.estimate(s.target).interval)
    assert np.mean(covered) >= 0.83  # at 95%, 30 of 36 or fewer happen once in a hundred times


def test_one_discrete_column_repeats_itself_by_chance():
    rng = np.random.default_rng(0)

    def draw(n, prior):
        y = rng.random(n) < prior
        return np.round(np.where(y, rng.beta(6, 2, n), rng.beta(2, 6, n)), 2)[:, None]

    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateRowsWarning)
        warnings.simplefilter("ignore", OverlapWarning)
        estimate = ps.estimate_prior(draw(300, 1.0), draw(1000, 0.2), draw(1000, 0.5), random_state=0)
    assert 0.5 in estimate.interval and estimate.interval.width < 0.3


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_rows_that_km2_cannot_use_leave_the_mixture_alone():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.random(100) < 0.9, rng.random(300) < 0.3])[:, None].astype(float)
    found = ps.MixturePrior(random_state=0).fit(X, np.repeat([1, 0], [100, 300]))
    assert np.isnan(found.km2_prior_) and 0 <= found.prior_ <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_the_kernel_ratio_of_thinned_rows_is_that_of_all():
    """Under censoring labelled and unlabelled rows are the population together, so both are thinned alike."""
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.5
    X = rng.normal(size=(3000, 2)) + 1.5 * truth[:, None]
    labeled = truth & (rng.random(3000) < 0.8)
    labels = rng.random(1000) < 0.2
    target = rng.normal(size=(1000, 2)) + 1.5 * labels[:, None]
    ratios = [
        ps.MixtureShift(scenario="censoring", max_rows=rows, random_state=0).fit(X, labeled).estimate(target)
        .ratio_parts.kernel for rows in (4000, 600)
    ]  # fmt: skip
    assert ratios[0] == pytest.approx(1.6, abs=0.15)
    assert ratios[1] == pytest.approx(ratios[0], abs=0.2)


def test_settings_changed_after_fit(fitted, sample):
    shift = ps.MixtureShift(random_state=0).fit(sample.X, sample.y, shared=sample.ids)
    known = shift.set_params(source_prior=0.2).estimate(sample.target)
    assert known.source_prior == 0.2 and known.raw == pytest.approx(1 - 0.8 * known.negative_ratio)
    other = (
        ps.MixtureShift(0.2, random_state=0).fit(sample.X, sample.y, shared=sample.ids).set_params(source_prior=None)
    )
    with pytest.raises(
        InputError, match="source_prior was a number when MixtureShift was fitted and is none now; fit again"
    ):
        other.estimate(sample.target)


def test_a_picture_of_the_wrong_kind_is_refused(fitted, sample):
    with pytest.raises(InputError, match=r"Mixture has no objective to draw; plots\.mixture, plots\.level_sets"):
        ps.plots.objective(fitted.estimate(sample.target))


def test_positives_that_are_one_observation_are_refused(sample):
    X = np.concatenate([sample.unlabeled[:1], sample.unlabeled[:1], sample.unlabeled])
    with pytest.raises(InputError, match="the 2 positive rows are one observation, but at least 2 are needed"):
        ps.MixturePrior().fit(X, np.arange(len(X)) < 2, shared="identical")


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_more_positives_than_others_are_dealt_to_fewer_folds(sample):
    X = np.concatenate([sample.positive[:40], sample.positive[:3], sample.unlabeled[:3]])
    ids = np.r_[:40, :3, 100:103]
    assert np.isfinite(ps.MixturePrior(random_state=0).fit(X, np.arange(46) < 40, shared=ids).prior_)


class OneColumn(DecisionTreeClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, :1]


def test_probabilities_of_one_column_are_refused(sample):
    with pytest.raises(InputError, match=r"OneColumn gave scores of shape \(\d+, 1\)"):
        ps.MixturePrior(model=OneColumn()).fit(sample.X, sample.y)
