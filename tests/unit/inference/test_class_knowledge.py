"""What is known of several classes: joint source priors, counts of a survey, and label errors between classes."""

import numpy as np
import pytest
from scipy import stats

from priorshift.errors import InputError
from priorshift.inference.class_knowledge import (
    LabelErrors,
    SourceShares,
    read_class_priors,
    read_dirichlet,
    read_label_errors,
)
from priorshift.inference.composition import Composition
from priorshift.inference.prior_knowledge import PointPrior, RangePrior

NAMES = ("flu", "covid")
ALPHA = np.array([30.5, 12.5, 108.5])


def test_a_dirichlet_has_its_means_errors_and_correlation():
    shares = SourceShares.from_dirichlet(ALPHA)
    exact = stats.dirichlet(ALPHA)
    np.testing.assert_allclose(shares.values, exact.mean()[:2])
    np.testing.assert_allclose(shares.errors(np.ones(2)), np.sqrt(exact.var()), rtol=2e-3)  # of a discretisation
    drawn = shares.draw(0, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), exact.mean()[:2], rtol=2e-3)  # stratified, so hardly any noise
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(exact.var()[:2]), rtol=0.02)
    a, b, total = ALPHA[0], ALPHA[1], ALPHA.sum()
    expected = -np.sqrt(a * b / ((total - a) * (total - b)))
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(expected, abs=0.15)  # 400 draws: standard error 0.05


def test_counts_of_a_survey_are_a_dirichlet_under_jeffreys_prior():
    np.testing.assert_array_equal(read_dirichlet({"rest": 108, "covid": 12, "flu": 30}, NAMES), ALPHA)
    np.testing.assert_array_equal(read_dirichlet(stats.dirichlet(ALPHA), NAMES), ALPHA)
    assert read_dirichlet({"flu": 0.2}, NAMES) is None and read_dirichlet(None, NAMES) is None
    priors = read_class_priors({"flu": 30, "covid": 12, "rest": 108}, NAMES)
    assert priors["flu"].value == pytest.approx(30.5 / 151.5) and priors["covid"].by == "distribution"
    assert read_class_priors({"flu": 0.2}, NAMES)["covid"] is None


@pytest.mark.parametrize(
    ("source_prior", "words"),
    [
        ({"flu": 0.2, "covid": 0.1, "rest": 0.7}, "leave 'rest' out to pass shares"),
        ({"flu": 30, "rest": 108}, "whole number for each of 'flu', 'covid', 'rest'"),
        ({"flu": 30, "covid": -1, "rest": 108}, "whole number"),
        ({"flu": 0, "covid": 0, "rest": 0}, "whole number"),
        ({"flu": 30, "covid": 12, "strep": 3, "rest": 108}, "whole number"),
        ({"flu": 30, "covid": 12, "rest": 10**16}, "more than"),
        (stats.dirichlet([1, 2]), "of 2 shares, but there are 3"),
    ],
)
def test_wrong_joint_priors_are_refused(source_prior, words):
    with pytest.raises(InputError, match=words):
        read_class_priors(source_prior, NAMES)


def test_label_errors_are_a_matrix_of_shares():
    errors = read_label_errors({"flu": {"covid": 0.1, "rest": (0.0, 0.2)}, "covid": 0.05}, NAMES, rest=True)
    assert errors.cells == ((0, 1), (0, 2), (1, 2)) and errors.is_range == [False, True, False]
    np.testing.assert_allclose(errors.matrices(errors.values[None], 2, 3)[0], [[0.8, 0.1, 0.1], [0, 0.95, 0.05]])
    everywhere = read_label_errors(0.1, NAMES, rest=True)
    np.testing.assert_allclose(everywhere.matrices(everywhere.values[None], 2, 3)[0], [[0.9, 0, 0.1], [0, 0.9, 0.1]])
    assert read_label_errors(None, NAMES, rest=True).cells == ()
    full = read_label_errors({"flu": {"covid": 0.1}}, NAMES, rest=False)
    composition = Composition.without_rest(full, 2, np.random.default_rng(0))
    np.testing.assert_allclose(composition.central, [[0.9, 0.1], [0, 1]])


@pytest.mark.parametrize(
    ("label_error", "rest", "words"),
    [
        ({"strep": 0.1}, True, "'strep'"),
        ({"flu": {"strep": 0.1}}, True, "the other classes are 'covid', 'rest'"),
        ({"flu": {"flu": 0.1}}, True, "the other classes"),
        ({"flu": {"rest": 0.1}}, False, "the other classes are 'covid'"),
        ({"flu": {"covid": 0.6, "rest": 0.4}}, True, "adds up to 1"),
        ({"flu": {"covid": 1.2}}, True, "label_error is 1.2"),
        (0.1, False, "of which class the errors are"),
        ({"flu": 0.1}, False, "of which class the errors are"),
    ],
)
def test_wrong_label_errors_are_refused(label_error, rest, words):
    with pytest.raises(InputError, match=words):
        read_label_errors(label_error, NAMES, rest=rest)


def test_labels_that_say_nothing_are_refused():
    """A sample that has as much of another class as that class's own sample says nothing of either."""
    swapped = read_label_errors({"flu": {"covid": 0.5}, "covid": {"flu": 0.5}}, NAMES, rest=False)
    with pytest.raises(InputError, match="label_error is so large"):
        Composition.without_rest(swapped, 2, np.random.default_rng(0))
    errors = LabelErrors(((0, 2),), (PointPrior(0.85),))  # less of its class than the population, 0.2
    shares = SourceShares((PointPrior(0.2), PointPrior(0.3)), (False, False))
    with pytest.raises(InputError, match="label_error is so large"):
        Composition.with_rest(shares, errors, np.random.default_rng(0))


def test_ranges_of_label_errors_and_priors_are_taken_at_their_ends():
    shares = SourceShares((RangePrior(0.1, 0.3), PointPrior(0.3)), (False, False))
    errors = read_label_errors({"flu": {"covid": (0.0, 0.2)}}, NAMES, rest=True)
    composition = Composition.with_rest(shares, errors, np.random.default_rng(0))
    ends = {(float(W[0, 2, 0]), float(W[0, 0, 1])) for W in composition.alternatives}
    assert ends == {(0.1, 0.0), (0.1, 0.2), (0.3, 0.0), (0.3, 0.2)}
    np.testing.assert_allclose(composition.central, [[0.9, 0.1, 0], [0, 1, 0], [0.2, 0.3, 0.5]])
    cases = composition.region_cases
    np.testing.assert_allclose(cases.mean(axis=0), composition.central, atol=0.005)
    assert cases[:, 2, 0].min() == 0.1 and cases[:, 2, 0].max() == pytest.approx(0.3)


def test_an_estimated_prior_is_that_of_what_labelled_rows_consist_of():
    errors = read_label_errors({"flu": {"covid": 0.1, "rest": 0.1}}, NAMES, rest=True)
    shares = SourceShares((PointPrior(0.2), PointPrior(0.3)), (True, False))
    composition = Composition.with_rest(shares, errors, np.random.default_rng(0))
    np.testing.assert_allclose(composition.central[-1], [0.16, 0.3, 0.54])
