import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import priorshift as ps
from priorshift.errors import DuplicateRowsWarning, InputError, WeakSeparationWarning
from priorshift.problem import Source
from priorshift.scores import mixture
from priorshift.scores.cross_fitting import cross_fit, scores_by_fold
from priorshift.scores.mixture import p_values


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 1000, 1000, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    return ps.WitnessShift(random_state=0).fit(sample.X, sample.y, shared=sample.ids)


# ---- p-values and their mixture


def test_p_values_of_positives_are_uniform_whatever_the_score():
    rng = np.random.default_rng(0)
    positive, more = rng.exponential(size=400), rng.exponential(size=100_000)
    # over draws of the positives v is uniform on (k + ½)/(m + 1); of one draw the mean is known to 0.5/√(3·400)
    v = p_values(positive, more)
    assert v.mean() == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(1200))
    assert np.abs(np.sort(v) - np.linspace(0, 1, len(v))).max() < 1.7 / np.sqrt(400)  # Kolmogorov, one in a thousand


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


# ---- scores


def test_no_row_is_scored_by_a_model_that_has_seen_it():
    """Labels that are noise, and a model that learns by heart: held-out scores cannot tell them apart."""
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(400, 2)), rng.random(400) < 0.5
    sample = Source.from_labels(X, labeled, scenario="case-control", standardize=False)
    (found,) = cross_fit(X, sample, DecisionTreeClassifier(random_state=0), 1, 5, rng)
    assert abs(found.positive.mean() - found.population.mean()) < 0.15  # in-sample it is 1
    assert len(found.models) == 5


def test_ridge_regression_is_the_one_of_its_normal_equations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    labeled = np.arange(120) < 40
    X[labeled] += 1
    sample = Source.from_labels(X, labeled, scenario="case-control", standardize=False)
    (found,) = cross_fit(X, sample, None, 1, 4, np.random.default_rng(1))
    # the model of a fold is linear in its features, so its score of the rows it left out can be made by hand
    fold = sample.deal_folds(4, np.random.default_rng(1))
    model = found.models[2]
    angle = X @ (2 * model.half)
    F = np.column_stack([np.cos(angle) / 10, np.sin(angle) / 10, np.ones(120)])  # of a hundred frequencies
    y = np.where(labeled, 1.0, -1.0)
    w = np.where(labeled, 0.5 / 40, 0.5 / 80) * (fold != 2)
    residual = F.T @ (w * (y - F @ model.beta))
    ridge = residual / model.beta
    assert np.ptp(ridge) < 1e-6 and any(ridge[0] == pytest.approx(0.75 * r) for r in (1e-3, 1e-2, 1e-1))
    np.testing.assert_allclose(found.positive[fold[:40] == 2], (F @ model.beta)[:40][fold[:40] == 2])


def test_a_target_is_dealt_to_the_models_and_repeats_with_the_seed(fitted, sample):
    repetition, no_group = fitted.prior_estimator_.scored_.repetitions[0], np.full(len(sample.target), -1)

    def scores(of_source, seed):
        return scores_by_fold(
            sample.target, repetition.assign_folds(of_source, np.random.default_rng(seed)), repetition.models
        )

    first, again, other = (scores(no_group, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5
    known = scores(np.full(len(sample.target), 7), 2)
    np.testing.assert_allclose(known, repetition.models[repetition.fold[7]](sample.target), rtol=0, atol=0.501 * 2**-36)


# ---- the estimators


def test_picture(fitted, sample):
    ax = ps.plots.mixture(fitted, sample.target)
    said = "source prior in use {:.3g}"
    assert ax.get_legend().get_title().get_text() == said.format(fitted.estimate(sample.target).source_prior)
    alone = ps.plots.mixture(fitted)
    assert (len(ax.lines), len(alone.lines)) == (4, 2) and alone.get_xlabel() == "p-value among the positives"
    assert alone.get_legend().get_title().get_text() == said.format(fitted.source_prior_)


class BadScores(LogisticRegression):
    def decision_function(self, X):
        return np.full(len(X), np.inf)


def test_scores_that_are_no_numbers_are_refused(sample):
    with pytest.raises(InputError, match=r"BadScores"):
        ps.MixturePrior(model=BadScores()).fit(sample.X, sample.y)


@pytest.mark.slow
def test_hard_problems_get_a_value_an_interval_and_a_verdict():
    """A few of each kind; experiments/studies/hard.py has 200."""
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from experiments.studies.hard import KINDS, measure

    lines = [line for number in range(2 * len(KINDS)) for line in measure(number)]
    assert len(lines) == 2 * len(KINDS)
    assert all(0 <= line["low"] <= line["value"] <= line["high"] <= 1 for line in lines)
    assert not any(line["other_warnings"] for line in lines)
    assert {line["verdict"] for line in lines} <= {"estimate", "few positives", "nothing"}
    assert np.mean([line["holds"] for line in lines]) > 0.7


def test_one_discrete_column_repeats_itself_by_chance():
    rng = np.random.default_rng(0)

    def draw(n, prior):
        y = rng.random(n) < prior
        return np.round(np.where(y, rng.beta(6, 2, n), rng.beta(2, 6, n)), 2)[:, None]

    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateRowsWarning)
        warnings.simplefilter("ignore", WeakSeparationWarning)
        estimate = ps.estimate_prior(draw(300, 1.0), draw(1000, 0.2), draw(1000, 0.5), random_state=0)
    assert 0.5 in estimate.interval and estimate.interval.width < 0.3


def test_a_picture_of_the_wrong_kind_is_refused(fitted, sample):
    with pytest.raises(InputError, match="no objective"):
        ps.plots.objective(fitted.estimate(sample.target))


def test_positives_that_are_one_observation_are_refused(sample):
    X = np.concatenate([sample.unlabeled[:1], sample.unlabeled[:1], sample.unlabeled])
    with pytest.raises(InputError, match=r"2 rows of positive"):
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
    with pytest.raises(InputError, match=r"\(\d+, 1\)"):
        ps.MixturePrior(model=OneColumn()).fit(sample.X, sample.y)
