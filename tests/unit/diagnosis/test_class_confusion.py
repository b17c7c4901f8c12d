"""How far classes are confused, against covariances for which the answer is known."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.class_priors import ClassPriors
from priorshift.diagnosis.class_confusion import class_confusion
from priorshift.results import Interval, PriorEstimate

SHARES = np.array([0.2, 0.3, 0.1, 0.4])
ROWS = 500
MULTINOMIAL = (np.diag(SHARES) - np.outer(SHARES, SHARES)) / ROWS  # of shares that are counted


def priors_with(covariance, prior_error=0.0):
    results = {}
    for name, share, variance in zip(("a", "b", "c", "rest"), SHARES, np.diag(covariance), strict=True):
        interval = Interval(0.0, 1.0, 0.95, "mixture")
        error = float(np.sqrt(variance + prior_error**2))
        results[name] = PriorEstimate(
            share, share, interval, error, 0.2, 1.0, np.nan, "Witness", (100, 1000, ROWS)
        )  # fmt: skip
    return ClassPriors(results, covariance=covariance)


def test_classes_that_are_counted_have_nothing_to_gain():
    confusion = class_confusion(priors_with(MULTINOMIAL))
    assert len(confusion.pairs) == 6
    assert all(abs(pair.gain) < 1e-9 for pair in confusion.pairs)
    assert confusion.confused == () and "distinguished well" in confusion.text


@pytest.mark.parametrize("prior_error", [0.0, 0.02])
def test_the_gain_is_what_confusion_costs(prior_error):
    """Confusion of a and c adds a variance along their difference; without it the variance is that of counts."""
    along = np.array([1.0, 0.0, -1.0, 0.0])
    covariance = MULTINOMIAL + 0.002 * np.outer(along, along)
    confusion = class_confusion(priors_with(covariance, prior_error))
    worst = confusion.pairs[0]
    assert (worst.first, worst.second) == ("a", "c") and worst.correlation < -0.7
    for k, gain in ((0, worst.first_gain), (2, worst.second_gain)):
        widths = np.sqrt([MULTINOMIAL[k, k] + prior_error**2, covariance[k, k] + prior_error**2])
        assert gain == pytest.approx(1 - widths[0] / widths[1])
    assert confusion.table()["a"]["c"] == worst.first_gain and confusion.to_dict()["gains"]["c"]["a"] > 0
    if not prior_error:
        assert confusion.confused == (worst,) and "'a' and 'c' can hardly be distinguished" in confusion.text


def test_classes_that_look_alike_are_named():
    """b and c have nearly the same distribution, a is far away."""
    rng = np.random.default_rng(0)
    means = {"a": 3.0, "b": 0.0, "c": 0.3}
    X = np.concatenate([rng.normal(size=(300, 3)) + mean for mean in means.values()])
    target = np.concatenate([rng.normal(size=(400, 3)) + mean for mean in means.values()])
    shift = ps.MulticlassShift(rest=False, random_state=0).fit(X, np.repeat([*means], 300))
    pairs = class_confusion(shift.estimate(target)).confused
    assert [(pair.first, pair.second) for pair in pairs] == [("b", "c")]
    assert pairs[0].correlation < -0.9 and pairs[0].gain > 0.5
