"""Intervals of metrics in the target: simulations of two normal classes, whose metrics are known."""

import numpy as np
import pytest
from scipy import stats

import priorshift as ps
from priorshift.adapt import target_metrics
from priorshift.errors import InputError

METRICS = ("decided_positive", "recall", "false_positive_rate", "precision", "accuracy", "auc")
DISTANCE, THRESHOLD = 2.0, 1.0


def draw(rng, rows, prior):
    """Scores of a population: N(2, 1) for positives, N(0, 1) for negatives."""
    return rng.normal(size=rows) + DISTANCE * (rng.random(rows) < prior)


def true_metrics(prior):
    recall, rate = stats.norm.sf(THRESHOLD - DISTANCE), stats.norm.sf(THRESHOLD)
    q = prior * recall + (1 - prior) * rate
    accuracy = prior * recall + (1 - prior) * (1 - rate)
    return dict(zip(METRICS, (q, recall, rate, prior * recall / q, accuracy, stats.norm.cdf(2**0.5)), strict=True))


def interval(metrics, name):
    return getattr(metrics, f"{name}_interval")


def coverage(draws, prior):
    found = {}
    for name, truth in true_metrics(prior).items():
        found[name] = np.mean([truth in interval(metrics, name) for metrics in draws])
    return found


@pytest.mark.parametrize("prior", [0.05, 0.3, 0.7])
def test_with_a_known_prior_intervals_have_their_nominal_coverage(prior):
    """1000 draws: a standard error of 0.7% at 95%. The limits are those at four of them, and 1% for small samples."""
    rng = np.random.default_rng(0)
    draws = [
        target_metrics(draw(rng, 150, 1.0), draw(rng, 500, prior), prior, THRESHOLD) for _ in range(1000)
    ]  # fmt: skip
    assert all(0.91 < share < 0.985 for share in coverage(draws, prior).values()), coverage(draws, prior)


@pytest.mark.parametrize("prior", [0.1, 0.6])
def test_with_an_estimated_prior_intervals_cover_and_would_not_without_its_error(prior):
    """150 draws: a standard error of 1.8% at 95%."""
    rng, with_error, without = np.random.default_rng(1), [], []
    for _ in range(150):
        X, T = np.concatenate([draw(rng, 60, 1.0), draw(rng, 300, 0.3)]), draw(rng, 3000, prior)
        estimate = ps.TCPU(0.3).fit(X[:, None], np.repeat([1, 0], [60, 300])).estimate(T[:, None])
        positive = draw(rng, 1000, 1.0)
        for draws, known in ((with_error, estimate.interval), (without, None)):
            draws.append(target_metrics(positive, T, estimate.value, THRESHOLD, target_prior_interval=known))
    assert all(share > 0.9 for share in coverage(with_error, prior).values()), coverage(with_error, prior)
    assert coverage(without, prior)["precision"] < 0.7


def test_ends_are_those_of_wilson_and_of_the_prior():
    positive, target = np.arange(20.0), np.arange(50.0) / 2
    metrics = target_metrics(positive, target, 0.4, threshold=12.5)
    for name, successes, rows in (("recall", 7, 20), ("decided_positive", 24, 50)):
        expected = stats.binomtest(successes, rows).proportion_ci(0.95, "wilson")
        assert (interval(metrics, name).low, interval(metrics, name).high) == pytest.approx(tuple(expected))
    many = [np.repeat(scores, 10**5) for scores in (positive, target)]  # only the prior is uncertain
    metrics = target_metrics(*many, 0.4, 12.5, target_prior_interval=ps.Interval(0.3, 0.6, 0.9, "witness"))
    recall, q = metrics.recall, metrics.decided_positive
    precision, accuracy = metrics.precision_interval, metrics.accuracy_interval
    assert (precision.low, precision.high) == pytest.approx((0.3 * recall / q, 0.6 * recall / q), abs=2e-3)
    ends = sorted(1 - prior - q + 2 * prior * recall for prior in (0.3, 0.6))
    assert [accuracy.low, accuracy.high] == pytest.approx(ends, abs=2e-3)
    assert precision.confidence == 0.9


def test_the_error_of_auc_is_that_of_delong():
    rng = np.random.default_rng(2)
    positive, negative = draw(rng, 60, 1.0), draw(rng, 80, 0.0)
    metrics = target_metrics(positive, negative, 0.0, THRESHOLD)  # all target rows are negative, so AUC is exceedance
    wins = (positive[:, None] > negative).astype(float)
    error = np.sqrt(wins.mean(axis=1).var(ddof=1) / 60 + wins.mean(axis=0).var(ddof=1) / 80)
    assert metrics.auc == pytest.approx(wins.mean())
    assert metrics.auc_interval.high - metrics.auc == pytest.approx(min(1.959964 * error, 1 - metrics.auc))
    assert metrics.auc - metrics.auc_interval.low == pytest.approx(1.959964 * error)


@pytest.mark.parametrize("prior", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("threshold", [-10.0, 1.0, 10.0])
def test_intervals_lie_within_zero_and_one_at_every_extreme(prior, threshold):
    metrics = target_metrics(
        [0.5, 2.0], [0.0, 1.5, 3.0], prior, threshold, target_prior_interval=ps.Interval(0.0, 1.0, 0.95, "none")
    )
    for name in METRICS:
        ends = interval(metrics, name)
        assert 0 <= ends.low <= ends.high <= 1
        if np.isnan(getattr(metrics, name)):
            assert (ends.low, ends.high) == (0, 1)


def test_an_interval_of_the_prior_outside_zero_and_one_is_refused():
    with pytest.raises(InputError, match="target_prior_interval"):
        target_metrics([1.0], [1.0], 0.5, 0.5, target_prior_interval=ps.Interval(-0.1, 0.5, 0.95, "delta"))


def test_a_shifted_classifier_passes_the_interval_of_its_estimate_on():
    from sklearn.linear_model import LogisticRegression

    s = ps.simulate.gaussian(0.3, 0.6, 400, 400, shared=False, random_state=0)
    shifted = ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.3), random_state=0).fit(s.X, s.y).adapt(s.target)
    held_out = np.random.default_rng(0).normal(s.positive.mean(axis=0), 1, (300, s.X.shape[1]))
    estimated, prior = shifted.metrics(held_out, s.target), shifted.target_prior_
    known = shifted.adapt_to(prior).metrics(held_out, s.target)
    assert estimated.precision == known.precision
    assert estimated.precision_interval.width > known.precision_interval.width > 0
