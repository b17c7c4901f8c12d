import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit

from priorshift import audit
from priorshift.audit import Audit, audit_size, audited_share, read_audit
from priorshift.errors import InputError
from priorshift.io.labels import LEAST


def sample(rng, share, n, auc):
    """Labels, and their log odds by a normal score with that area under the curve."""
    y = rng.random(n) < share
    d = np.sqrt(2) * stats.norm.ppf(auc)
    score = rng.normal(size=n) + d * y
    return y, d * (score - d / 2) + np.log(share / (1 - share))


PREDICTIONS = {
    "useless": (0.5, expit),
    "medium": (0.8, expit),
    "strong": (0.98, expit),
    "of the wrong sign": (0.8, lambda odds: -expit(odds)),
    "not calibrated": (0.98, lambda odds: expit(0.4 * odds + 2)),
}


def first(k, y):
    """An audit of the first rows, which are in random order."""
    return Audit(np.arange(k), y[:k])


# an audit as users have it

MANY = [1, 0, None, 0] * 10
COLUMNS = {
    "list": MANY,
    "booleans": [None if value is None else bool(value) for value in MANY],
    "floats": np.array(MANY, dtype=float),
    "text": ["" if value is None else str(value) for value in MANY],
    "other text": ["NaN" if value is None else f" {bool(value)}" for value in MANY],
    "column": np.array(MANY, dtype=float)[:, None],
    "masked": np.ma.array([7 if value is None else value for value in MANY], mask=[value is None for value in MANY]),
    "pandas": pd.Series(MANY, dtype=object),
    "pandas Int64": pd.Series(MANY, dtype="Int64"),
    "pandas boolean": pd.Series(MANY, dtype="boolean"),
    "pandas string": pd.Series([None if value is None else str(value) for value in MANY], dtype="string"),
    "polars": pl.Series(MANY),
    "polars boolean": pl.Series([None if value is None else bool(value) for value in MANY]),
    "polars text": pl.Series([None if value is None else str(value) for value in MANY]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_audit_is_read_from_any_column(kind):
    read = read_audit(COLUMNS[kind], 40, "audit")
    assert len(read) == 30
    np.testing.assert_array_equal(read.index, [i for i in range(40) if i % 4 != 2])
    np.testing.assert_array_equal(read.positive, read.index % 4 == 0)
    assert read.positive.dtype == bool


def test_an_audit_of_all_rows_has_nothing_missing():
    positive = np.arange(12) < 5
    for column in (positive, positive.astype(int), positive.astype(float)):
        read = read_audit(column, 12)
        np.testing.assert_array_equal(read.index, np.arange(12))
        np.testing.assert_array_equal(read.positive, positive)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (MANY[:39], r"checked has shape \(39,\) but the sample has 40 rows; pass one entry for each row, empty where"),
        (None, r"checked has shape \(\) but the sample has 40 rows"),
        ([[1, 0], [1]] * 20, "checked has entries of different lengths; pass one entry for each row"),
        (
            ["yes", *MANY[1:]],
            r"checked holds 'yes' in row 0 \(counting from 0\), but 1 for a positive, 0 for a negative",
        ),
        ([*MANY[:4], 2, *MANY[5:]], "checked holds 2 in row 4 "),
        (np.array([*MANY[:4], 0.5, *MANY[5:]], dtype=float), "checked holds 0.5 in row 4 "),
        (np.array([*MANY[:4], np.inf, *MANY[5:]], dtype=float), "checked holds inf in row 4 "),
        ([-1, 1] * 20, "checked holds -1 in row 0 "),
        ([1] * 9 + [None] * 31, "checked has 9 rows with a class, but at least 10 are needed; look up more"),
    ],
)
def test_what_is_no_audit_is_refused(column, message):
    with pytest.raises(InputError, match=message):
        read_audit(column, 40, "checked")


# closed forms


@pytest.mark.parametrize("k", [50, 200])
@pytest.mark.parametrize("positives", [0, 1, 7, 49, 50])
def test_without_predictions_it_is_the_binomial_audit(k, positives):
    share = audited_share(first(k, np.arange(k) < positives), np.full(1000, 0.3))
    p = positives / k
    assert (share.value, share.weight, share.explained, share.labels, share.rows) == (p, 0.0, 0.0, k, (k, 1000))
    assert share.standard_error == pytest.approx(np.sqrt(p * (1 - p) / k))
    grid = np.linspace(0.001, 0.999, 99)
    binomial = stats.binom.logpmf(positives, k, grid)
    np.testing.assert_allclose(share.log_likelihood(grid), binomial - stats.binom.logpmf(positives, k, p), atol=1e-9)
    low, high = share.interval().low, share.interval().high
    exact = stats.binomtest(positives, k).proportion_ci(0.95, "exact")
    assert exact.low <= low <= p <= high <= exact.high

    def mid(p):  # P(X > x) + P(X = x)/2
        return stats.binom.sf(positives, k, p) + stats.binom.pmf(positives, k, p) / 2

    assert low == 0 if not positives else mid(low) == pytest.approx(0.025, rel=1e-8)
    assert high == 1 if positives == k else mid(high) == pytest.approx(0.975, rel=1e-8)


def test_perfect_predictions_leave_the_error_of_all_rows():
    y = np.random.default_rng(0).random(5000) < 0.3
    for predicted in (y, 1 - 2.0 * y):  # also on another scale and of the wrong sign
        share = audited_share(first(500, y), predicted)
        assert share.value == pytest.approx(y.mean())
        assert share.explained == pytest.approx(1)
        assert share.standard_error == pytest.approx(np.sqrt(y.mean() * (1 - y.mean()) / 5000))
    assert audited_share(first(5000, y), y).labels == pytest.approx(5000)
    assert 2000 < share.labels < 5000  # 500 labels do not prove perfection


def test_all_rows_looked_up_leave_nothing_to_predict():
    rng = np.random.default_rng(1)
    y, odds = sample(rng, 0.2, 300, 0.9)
    share = audited_share(first(300, y), odds)
    assert share.weight > 0
    assert share.value == pytest.approx(y.mean())
    assert share.labels == pytest.approx(300)


def test_the_estimate_is_no_less_than_the_positives_that_were_seen():
    rng = np.random.default_rng(2)
    y = np.arange(200) < 8
    f = y + rng.normal(scale=0.1, size=200)
    both = np.concatenate([f, np.full(800, -1.0)])  # as if the rest were less than negative
    assert audited_share(first(200, y), both).value == 8 / 1000
    assert audited_share(first(200, ~y), both).value == 1 - 8 / 1000


@pytest.mark.parametrize("auc", [0.6, 0.9])
def test_the_weight_is_the_brute_force_minimum_of_the_variance_shrunk_by_the_jackknife(auc):
    n, k = 1000, 80
    y, f = sample(np.random.default_rng(3), 0.3, n, auc)
    labels, predicted = y[:k].astype(float), f[:k]

    def variance(weight):
        return labels.var() / n + (1 / k - 1 / n) * (labels - weight * predicted).var()

    best = minimize_scalar(variance, tol=1e-12).x
    slopes = [np.polyfit(np.delete(predicted, i), np.delete(labels, i), 1)[0] for i in range(k)]
    noise = ((np.array(slopes) - best) ** 2).sum()
    share = audited_share(first(k, y), f)
    assert share.weight == pytest.approx(best * max(0, 1 - noise / best**2), rel=1e-5)
    assert share.value == pytest.approx(labels.mean() - share.weight * (predicted.mean() - f.mean()))
    assert share.explained == pytest.approx(1 - (labels - share.weight * predicted).var() / labels.var())
    V = labels.var() / n + (1 / k - 1 / n) * (labels - share.weight * predicted).var()
    V *= share.value * (1 - share.value) / labels.var()  # the error is that of the share found, not of the audit's
    assert share.standard_error == pytest.approx(np.sqrt(V))


def test_the_weight_leaves_clusters_out_whole():
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(200), 5)
    y, f = (np.repeat(part, 5) for part in sample(rng, 0.4, 200, 0.8))
    f = f + rng.normal(size=1000)
    index = rng.choice(1000, 100, replace=False)
    labels, predicted, of = y[index].astype(float), f[index], cluster[index]
    best = np.polyfit(predicted, labels, 1)[0]
    slopes = [np.polyfit(predicted[of != c], labels[of != c], 1)[0] for c in np.unique(of)]
    share = audited_share(Audit(index, y[index]), f, cluster)
    assert share.weight == pytest.approx(best * (1 - ((np.array(slopes) - best) ** 2).sum() / best**2))


def test_predictions_that_rest_on_one_label_have_no_weight():
    y = np.arange(500) == 7
    share = audited_share(first(100, y), y + 0.0)
    assert (share.weight, share.value, share.labels) == (0.0, 0.01, 100)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_the_answer_does_not_depend_on_the_scale_of_predictions_or_the_order_of_rows(name):
    rng = np.random.default_rng(5)
    auc, of = PREDICTIONS[name]
    y, odds = sample(rng, 0.2, 600, auc)
    f = of(odds)
    one = audited_share(first(90, y), f)
    order = rng.permutation(600)
    where = np.argsort(order)[:90]
    for other in (audited_share(first(90, y), 1000 - 7 * f), audited_share(Audit(where, y[:90]), f[order])):
        assert other.value == pytest.approx(one.value, rel=1e-9)
        assert other.labels == pytest.approx(one.labels, rel=1e-9)
    negatives = audited_share(first(90, ~y), f)
    assert negatives.value == pytest.approx(1 - one.value)
    assert negatives.interval(0.9).low == pytest.approx(1 - one.interval(0.9).high)


def test_copies_of_rows_are_worth_no_more_than_one():
    y, f = sample(np.random.default_rng(6), 0.3, 400, 0.9)
    once = audited_share(first(100, y), f)
    index = np.concatenate([np.arange(100), 400 + np.arange(100)])
    both = audited_share(Audit(index, np.tile(y[:100], 2)), np.tile(f, 2), np.tile(np.arange(400), 2))
    assert both.value == pytest.approx(once.value)
    assert both.standard_error == pytest.approx(once.standard_error)
    assert both.labels == pytest.approx(once.labels, rel=0.05)  # twice the labels, four that are thought to be there
    none = audited_share(Audit(index, np.zeros(200, dtype=bool)), np.tile(f, 2), np.tile(np.arange(400), 2))
    assert none.labels == pytest.approx(100)
    apart = audited_share(first(100, y), f, [f"row {i}" for i in range(400)])
    assert dataclasses.astuple(apart)[:5] == pytest.approx(dataclasses.astuple(once)[:5], rel=1e-12)


def test_interval_and_likelihood_agree():
    y, f = sample(np.random.default_rng(7), 0.1, 2000, 0.95)
    share = audited_share(first(150, y), f)
    grid = np.linspace(0.0005, 0.9995, 4000)
    likelihood = np.exp(share.log_likelihood(grid))
    assert grid[likelihood.argmax()] == pytest.approx(share.value, abs=2e-4)
    assert share.log_likelihood(share.value) == 0
    posterior = likelihood / np.sqrt(grid * (1 - grid))  # Jeffreys' prior, which mid-P is close to
    cumulated = np.cumsum(posterior) / posterior.sum()
    interval = share.interval(0.9)
    low, high = np.interp([0.05, 0.95], cumulated, grid)
    assert (low, high) == pytest.approx((interval.low, interval.high), abs=0.03 * interval.width)
    assert (interval.method, interval.confidence) == ("audit", 0.9)
    assert share.interval(0.99).width > share.interval().width > interval.width
    assert share.value in share.interval(0.001)


# simulations


def repeated(rng, share, k, name, repetitions=300, n=1000):
    """Shares by audit and predictions, and by the audit alone."""
    auc, of = PREDICTIONS[name]
    answers = []
    for _ in range(repetitions):
        y, odds = sample(rng, share, n, auc)
        answers.append((audited_share(first(k, y), of(odds)), y[:k].mean()))
    powered, alone = zip(*answers, strict=True)
    return powered, np.array(alone)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("name", PREDICTIONS)
def test_intervals_hold_the_share_and_the_estimate_is_not_worse_than_the_audit_alone(name, share):
    """At 50 labels, where it is hardest; Wald's interval holds a share of 0.01 in 42% of samples."""
    powered, alone = repeated(np.random.default_rng(8), share, 50, name)
    held = np.mean([share in one.interval() for one in powered])
    assert held > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(powered))  # 0.91
    error = np.sqrt(np.mean([(one.value - share) ** 2 for one in powered]))
    assert error < 1.02 * np.sqrt(np.mean((alone - share) ** 2))


def test_good_predictions_halve_the_interval_and_the_error_is_as_told():
    powered, alone = repeated(np.random.default_rng(9), 0.4, 100, "strong")
    values = np.array([one.value for one in powered])
    assert values.std() < 0.6 * alone.std()
    assert values.mean() == pytest.approx(0.4, abs=4 * values.std() / np.sqrt(len(values)))
    told = np.sqrt(np.mean([one.standard_error**2 for one in powered]))
    assert told == pytest.approx(values.std(), rel=0.13)  # 300 values know a spread to 4%
    width = np.mean([one.interval().width for one in powered])
    wilson = [stats.binomtest(round(100 * p), 100).proportion_ci(0.95, "wilson") for p in alone]
    assert width < 0.65 * np.mean([w.high - w.low for w in wilson])


def test_positives_that_predictions_miss_are_in_the_interval():
    """Three positives in ten look like negatives; r is 1 in every audit that has none of them."""
    rng = np.random.default_rng(10)
    held, careless = [], []
    for _ in range(400):
        y = rng.random(1000) < 0.05
        f = np.where(y & (rng.random(1000) < 0.7), 0.95, 0.02) + rng.normal(scale=0.01, size=1000)
        share = audited_share(first(100, y), f)
        held.append(0.05 in share.interval())
        worth = audit._effective_labels(100, 1000, share.explained)
        low, high = audit._mid_p_interval(share.value, worth, 0.95)
        careless.append(low <= 0.05 <= high)
    assert np.mean(held) > 0.92
    assert np.mean(careless) < 0.86


def test_intervals_hold_the_share_of_clusters_only_if_told():
    rng = np.random.default_rng(11)
    cluster = np.repeat(np.arange(200), 5)
    held = []
    for _ in range(300):
        y, f = (np.repeat(part, 5) for part in sample(rng, 0.3, 200, 0.95))
        index = rng.choice(1000, 200, replace=False)
        one = Audit(index, y[index])
        held.append([0.3 in audited_share(one, f, c).interval() for c in (cluster, None)])
    told, untold = np.mean(held, axis=0)
    assert told > 0.92
    assert untold < 0.88


# planning


@pytest.mark.parametrize(("share", "auc"), [(0.1, None), (0.3, 0.9), (0.5, 0.98)])
def test_an_audit_of_the_size_planned_has_the_width_asked_for(share, auc):
    rng, n = np.random.default_rng(12), 1000
    y, odds = sample(rng, share, 200_000, auc or 0.5)
    explained = np.corrcoef(y, expit(odds))[0, 1] ** 2 if auc else 0.0
    k = audit_size(0.12, share, explained=explained, rows=n)
    widths = []
    for _ in range(100):
        y, odds = sample(rng, share, n, auc or 0.5)
        widths.append(audited_share(first(k, y), expit(odds) if auc else np.zeros(n)).interval().width)
    assert np.mean(widths) == pytest.approx(0.12, rel=0.05)  # a mean over shares that vary, most at 0.1


def test_a_size_is_the_smallest():
    for share in (0.02, 0.5):
        k = audit_size(0.1, share)
        width = [np.diff(audit._mid_p_interval(share, labels, 0.95)).item() for labels in (k - 1, k)]
        assert width[0] > 0.1 >= width[1]
    assert audit_size(0.9, 0.5) == LEAST


def test_a_size_is_that_of_the_normal_law_where_labels_are_many():
    z = stats.norm.ppf(0.975)
    assert audit_size(0.01, 0.5) == pytest.approx((z / 0.01) ** 2, rel=1e-3)
    assert audit_size(0.01, 0.5, explained=0.8) == pytest.approx(0.2 * (z / 0.01) ** 2, rel=1e-2)
    n, K = 50_000, (z / 0.01) ** 2
    assert audit_size(0.01, 0.5, explained=0.8, rows=n) == pytest.approx(0.2 / (1 / K - 0.8 / n), rel=1e-2)
    assert audit_size(0.01, 0.5, confidence=0.5) < audit_size(0.01, 0.5)


def test_a_width_that_no_audit_reaches_is_refused_with_the_smallest():
    with pytest.raises(InputError, match=r"400 rows.*0\.0978"):
        audit_size(0.05, 0.5, explained=0.9, rows=400)
    assert audit_size(0.098, 0.5, explained=0.9, rows=400) <= 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "width is 0, but it must lie between 0 and 1; pass the width of the interval"),
        ({"width": "wide"}, "width is 'wide', but it must be a number"),
        ({"share": 1}, "share is 1, but it must be a number strictly between 0 and 1"),
        ({"explained": 1.2}, "explained is 1.2"),
        ({"rows": 5}, "rows is 5, but it must be a whole number of at least 10"),
        ({"confidence": 95}, "confidence is 95"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        audit_size(**{"width": 0.1, "share": 0.2, **arguments})


@pytest.mark.parametrize(
    ("predicted", "cluster", "message"),
    [
        (np.zeros((100, 2)), None, r"predicted has shape \(100, 2\), but one number for each row"),
        (["high"] * 100, None, "predicted contains values that are not numbers"),
        (np.full(100, np.nan), None, "predicted holds NaN or numbers too large to square"),
        (np.zeros(30), None, r"predicted has 30 rows, but row 49 was audited"),
        (np.zeros(100), np.zeros(99), r"cluster has shape \(99,\) but predicted has 100 rows"),
        (np.zeros(100), np.arange(100) // 10, "the audited rows are of 5 clusters, but at least 10 are needed"),
    ],
)
def test_predictions_that_cannot_be_are_refused(predicted, cluster, message):
    with pytest.raises(InputError, match=message):
        audited_share(first(50, np.arange(50) < 5), predicted, cluster)


def test_shares_outside_the_unit_interval_have_no_likelihood():
    share = audited_share(first(50, np.arange(50) < 5), np.zeros(100))
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        share.log_likelihood([0.2, 1.2])
    with pytest.raises(InputError, match=r"confidence is 0"):
        share.interval(0)
    assert share.log_likelihood([[0.0, 1.0]]).tolist() == [[-np.inf, -np.inf]]
