import numpy as np
import pytest

from priorshift.adapt import decide, shifted_posterior, shifted_threshold
from priorshift.errors import InputError

PRIORS = [0.1, 0.2, 0.5, 0.8]


def population(prior, n, rng):
    y = rng.random(n) < prior
    return rng.normal(size=(n, 2)) + y[:, None], y


def posterior(X, prior):
    """P(Y=1|x) for N(0, I) against N(1, I) in two dimensions."""
    return 1 / (1 + (1 - prior) / prior * np.exp(1 - X.sum(axis=1)))


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_corrected_posterior_is_the_targets(source, target):
    X, _ = population(target, 200, np.random.default_rng(0))
    np.testing.assert_allclose(
        shifted_posterior(posterior(X, source), source, target), posterior(X, target), rtol=1e-12
    )


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_threshold_is_where_the_corrected_posterior_is_one_half(source, target):
    threshold = shifted_threshold(source, target)
    assert shifted_posterior(threshold, source, target) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("source", PRIORS)
@pytest.mark.parametrize("target", PRIORS)
def test_simulation_decides_for_our_threshold_and_against_the_printed_one(source, target):
    X, y = population(target, 200_000, np.random.default_rng(1))
    p = posterior(X, source)

    def accuracy(threshold):
        return np.mean((p > threshold) == y)

    printed = (1 - source) * target / ((1 - target) * source + (1 - source) * target)
    ours = accuracy(shifted_threshold(source, target))
    if source == target:
        assert ours == accuracy(0.5) == accuracy(printed)
        return
    # ours is the Bayes rule of the target; 200,000 rows know a difference of accuracies to 0.001
    assert ours > accuracy(0.5)
    assert ours > accuracy(printed) + 0.01


def test_priors_at_the_ends_decide_for_everything():
    assert shifted_threshold(0.2, 1.0) == 0
    assert shifted_threshold(0.2, 0.0) == 1
    np.testing.assert_array_equal(shifted_posterior([0.0, 0.3, 1.0], 0.2, 1.0), [1, 1, 1])
    np.testing.assert_array_equal(shifted_posterior([0.0, 0.3, 1.0], 0.2, 0.0), [0, 0, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shifted_threshold(0, 0.5), "source_prior is 0, but it must be a number strictly between 0 and 1"),
        (lambda: shifted_threshold(0.5, 1.5), "target_prior is 1.5, but it must be a number from 0 to 1"),
        (lambda: shifted_posterior([0.5, 1.5], 0.2, 0.5), r"p holds numbers outside \[0, 1\] or NaN; pass posterior"),
        (lambda: shifted_posterior([np.nan], 0.2, 0.5), "p holds numbers outside"),
    ],
)
def test_what_is_no_probability_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def posteriors(rows=5000, seed=0):
    """Calibrated posteriors of rows of a rare class, and the classes."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.2, 8, rows)
    return p, rng.random(rows) < p


@pytest.mark.parametrize(
    "rule", [{"cost_ratio": 5}, {"cost_ratio": 20}, {"top": 100}, {"precision": 0.3}, {"recall": 0.8}]
)
def test_expectations_of_decisions_hold(rule):
    covered = np.zeros(3)
    for seed in range(100):
        p, y = posteriors(2000, seed)
        found = decide(p, (p, p), 0.95, **rule)
        truth = (y[found.is_positive].sum(), y[found.is_positive].mean(), y[found.is_positive].sum() / y.sum())
        intervals = found.true_positives_interval, found.precision_interval, found.recall_interval
        covered += [
            interval.low - 1e-9 <= t <= interval.high + 1e-9 for t, interval in zip(truth, intervals, strict=True)
        ]
        assert (p[found.is_positive] >= found.threshold).all()
    assert (covered >= 88).all()  # of 100 at 95%; fewer happen once in a thousand times


def test_each_rule_does_what_it_says():
    p, _ = posteriors()
    assert decide(p, (p, p), 0.95, top=100).is_positive.sum() == 100
    assert decide(p, (p, p), 0.95, top=10**9).is_positive.all()
    np.testing.assert_array_equal(decide(p, (p, p), 0.95, cost_ratio=19).is_positive, p > 0.05)
    precise = decide(p, (p, p), 0.95, precision=0.3)
    assert (
        precise.precision >= 0.3 and np.sort(p)[-precise.is_positive.sum() - 1 :].mean() < 0.3
    )  # one more is too many
    complete = decide(p, (p, p), 0.95, recall=0.8)
    assert complete.recall >= 0.8 > np.sort(p)[-complete.is_positive.sum() + 1 :].sum() / p.sum()
    nothing = decide(p / 2, (p / 2, p / 2), 0.95, precision=0.99)
    assert not nothing.is_positive.any() and "none of 5000 rows" in str(nothing)


def test_the_error_of_the_target_prior_widens_what_is_expected():
    p, _ = posteriors()
    narrow, wide = decide(p, (p, p), 0.95, top=200), decide(p, (p / 2, np.minimum(2 * p, 1)), 0.95, top=200)
    assert wide.true_positives == narrow.true_positives
    assert wide.precision_interval.low < narrow.precision_interval.low
    assert wide.precision_interval.high > narrow.precision_interval.high


@pytest.mark.parametrize(
    ("rule", "keyword"),
    [
        ({"top": 5, "recall": 0.5}, "exclude"),
        ({"top": 2.5}, "whole number"),
        ({"top": 10**400}, "whole number"),
        ({"top": float("nan")}, "whole number"),
        ({"cost_ratio": float("inf")}, "positive number"),
        ({"cost_ratio": 0}, "positive number"),
        ({"precision": 1.2}, "at most 1"),
        ({"recall": "all"}, "recall"),
    ],
)
def test_rules_that_cannot_be_used(rule, keyword):
    with pytest.raises(InputError, match=keyword):
        decide(np.array([0.1, 0.2]), (np.zeros(2), np.ones(2)), 0.95, **rule)


def test_more_rows_than_there_are_may_be_positive():
    found = decide(np.array([0.1, 0.2]), (np.zeros(2), np.ones(2)), 0.95, top=10**30)
    assert found.is_positive.all()


def test_a_prior_of_zero_at_an_end_leaves_the_recall_open():
    """Just above 0 the recall of a handful of positives can be anything, and so it is at 0."""
    p, _ = posteriors()
    for least in (0.0, 1e-9):
        found = decide(p, (least * p, p), 0.95, top=200)
        assert (found.recall_interval.low, found.recall_interval.high) == pytest.approx((0, 1), abs=1e-6)


def test_counts_are_whole_in_the_interval_of_true_positives():
    rng = np.random.default_rng(0)
    for rows, share in ((1, 0.2), (5, 0.1), (20, 0.05)):
        p = np.full(rows, share)
        interval = decide(p, (p, p), 0.95, top=rows).true_positives_interval
        covered = np.mean([interval.low <= rng.binomial(rows, share) <= interval.high for _ in range(1000)])
        assert covered >= 0.93


def test_equal_posteriors_are_ordered_by_score_and_rounding_loses_no_row():
    p, scores = np.full(1000, 0.3), np.arange(1000.0)
    assert decide(p, (p, p), 0.95, scores, top=3).is_positive[-3:].all()
    for value in (0.1, 0.3, 0.7):
        p = np.full(1000, value)
        assert decide(p, (p, p), 0.95, precision=value).is_positive.all()
