"""Decisions by the posteriors of several classes, and what to expect of them: against Bayes' rule and counts."""

import json

import numpy as np
import pytest

import priorshift as ps
from priorshift.adapt import shifted_posterior
from priorshift.class_decisions import decide_classes, read_costs
from priorshift.errors import InputError

SOURCE = {"a": 0.2, "b": 0.1}


@pytest.fixture(scope="module")
def fitted():
    s = ps.simulate.gaussian_classes(SOURCE, {"a": 0.1, "b": 0.4}, dimension=4, random_state=1)
    shift = ps.MulticlassShift(SOURCE, random_state=0).fit(s.X, s.y)
    return s, shift, shift.estimate(s.target)


@pytest.fixture(scope="module")
def base(fitted):
    s, shift, priors = fitted
    return shift.posteriors(s.target, dict.fromkeys(priors, 1 / 3))


def test_posteriors_for_other_shares_follow_by_bayes_rule(fitted, base):
    s, shift, priors = fitted
    decisions = decide_classes(base, priors)
    np.testing.assert_allclose(decisions.posteriors, shift.posteriors(s.target, priors), atol=1e-12)
    assert (decisions.names == shift.classes_[decisions.posteriors.argmax(axis=1)]).all()


def test_expectations_are_sums_of_posteriors_and_near_the_counts(fitted, base):
    s, _, priors = fitted
    decisions, y = decide_classes(base, priors), np.array(s.target_labels)
    for k, (name, expected) in enumerate(decisions.expected.items()):
        p, chosen = decisions.posteriors[:, k], decisions.decided == k
        assert expected.rows == pytest.approx(p.sum())
        assert expected.decisions.true_positives == pytest.approx(p[chosen].sum())
        assert expected.rows_interval.low < (y == name).sum() < expected.rows_interval.high
        right = ((y == name) & chosen).sum()
        interval = expected.decisions.true_positives_interval
        assert interval.low < right < interval.high
    plain = json.loads(json.dumps(decisions.to_dict(), allow_nan=False))
    assert plain["a"]["rows"] == decisions.expected["a"].rows
    assert str(decisions).splitlines()[0].split()[0] == "class" and len(str(decisions).splitlines()) == 4


def test_a_share_of_zero_is_never_decided_and_has_no_precision(fitted, base):
    priors = fitted[2]
    shares = {"a": 0.0, "b": 0.5, "rest": 0.5}
    results = {name: ps.PriorEstimate(**{**vars(one), "value": shares[name]}) for name, one in priors.items()}
    decisions = decide_classes(base, ps.ClassPriors(results))
    assert not (decisions.decided == 0).any() and np.isnan(decisions.expected["a"].decisions.precision)
    assert decisions.expected["a"].rows == 0 < decisions.expected["a"].rows_interval.high
    assert decisions.to_dict()["a"]["precision"] is None


def test_costs_minimise_the_expected_loss(fitted, base):
    priors = fitted[2]
    costs = {"a": 10.0}
    decisions = decide_classes(base, priors, costs)
    c = np.array([10.0, 1.0, 1.0])
    loss = (decisions.posteriors * c).sum(axis=1, keepdims=True) - decisions.posteriors * c  # of deciding for each
    np.testing.assert_array_equal(decisions.decided, loss.argmin(axis=1))
    for wrong in ({"c": 2.0}, {"a": 0.0}, {"a": np.inf}, {"a": "2"}):
        with pytest.raises(InputError, match="cost_ratio"):
            read_costs(wrong, ["a", "b"])


def test_two_classes_are_the_binary_correction():
    p = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    both = shifted_posterior(np.column_stack([p, 1 - p]), [0.2, 0.8], [0.6, 0.4])
    np.testing.assert_allclose(both[:, 0], shifted_posterior(p, 0.2, 0.6))
    np.testing.assert_allclose(both.sum(axis=1), 1)


def test_several_classes_by_bayes_rule_with_densities():
    rng = np.random.default_rng(0)
    f = rng.gamma(1.0, size=(50, 4))  # densities of four classes at 50 points
    source, target = rng.dirichlet(np.ones(4), 2)

    def posterior(shares):
        return f * shares / (f @ shares)[:, None]

    np.testing.assert_allclose(shifted_posterior(posterior(source), source, target), posterior(target))
    impossible = shifted_posterior([[1.0, 0.0, 0.0, 0.0]], source, [0.0, 0.5, 0.25, 0.25])
    np.testing.assert_allclose(impossible, [[0.0, 0.5, 0.25, 0.25]])


@pytest.mark.parametrize(
    ("p", "source", "target", "message"),
    [
        ([[0.5, 0.5]], [0.2, 0.3, 0.5], [0.5, 0.5], "a share for each column"),
        ([[0.5, 0.5]], [0.2, 0.8], 0.5, "target_prior has shape"),
        ([[0.5, 0.5]], [0.2, 0.7], [0.5, 0.5], "source_prior adds up to 0.9"),
        ([[0.5, 0.5]], [0.0, 1.0], [0.5, 0.5], "share of 0"),
        ([[0.5, 0.2]], [0.2, 0.8], [0.5, 0.5], "do not add up to 1"),
        (0.5, [0.2, 0.8], [0.5, 0.5], "shape"),
    ],
)
def test_wrong_matrices_are_refused(p, source, target, message):
    with pytest.raises(InputError, match=message):
        shifted_posterior(p, source, target)


def test_posteriors_refuse_shares_of_other_classes(fitted):
    s, shift, _ = fitted
    for wrong, message in (({"a": 1.0}, "a share for each"), ({"a": 0.5, "b": 0.6, "rest": 0.1}, "adds up to 1.2")):
        with pytest.raises(InputError, match=message):
            shift.posteriors(s.target, wrong)
