"""Audits of several classes: dependence of the shares, Bayes' rule for a Dirichlet, and tests by the labels alone."""

import numpy as np
import pytest
from scipy import stats

from priorshift.audit import AuditedShare
from priorshift.errors import InconsistentInputWarning, InputError
from priorshift.inference.audit_combination import SampleAudit
from priorshift.inference.class_audit import ClassSampleAudit, combine_source_audit
from priorshift.inference.class_knowledge import LabelErrors, SourceShares
from priorshift.inference.prior_knowledge import PointPrior
from priorshift.io.labels import ClassAudit


def audit_of_labels(labels, rows, predicted=None, observation=None):
    """The audit of the first rows of an infinite population's sample, by classes 0, 1 and 2."""
    audit = ClassAudit(np.arange(len(labels)), np.asarray(labels))
    predicted = np.zeros((rows, 3)) if predicted is None else predicted
    observation = np.arange(rows) if observation is None else observation
    parts = np.full(rows, 1 / rows), observation
    return ClassSampleAudit._evaluate(audit, predicted, np.ones(rows, dtype=bool), parts, rows, None, np.zeros(3))


LABELS = np.repeat([0, 1, 2], [30, 12, 58])


def test_shares_without_predictions_are_those_of_the_labels_with_a_multinomial_correlation():
    audit = audit_of_labels(LABELS, 10_000)
    p = np.array([0.30, 0.12, 0.58])
    np.testing.assert_allclose(audit.values, p)
    covariance = np.diag(p) - np.outer(p, p)
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(audit.correlation, covariance / np.outer(spread, spread), atol=1e-12)


def test_predictions_that_distinguish_one_class_leave_the_other_two_opposite():
    """Class 2 is known of every row, so an error of one of the other shares is that of the other."""
    rng = np.random.default_rng(0)
    classes = rng.choice(3, 2000, p=[0.3, 0.2, 0.5])
    is_two = (classes == 2).astype(float)
    predicted = np.column_stack([0.6 * (1 - is_two), 0.4 * (1 - is_two), is_two])
    audit = audit_of_labels(classes[:200], 2000, predicted)
    assert audit.correlation[0, 1] < -0.8  # −0.33 without predictions
    assert audit.samples[2].share.labels > 5 * audit.samples[0].share.labels / 2


def test_a_dirichlet_and_an_audit_are_about_a_dirichlet_with_added_counts():
    """Bayes' rule, apart from Jeffreys' prior of the labels, which the binary combination does not add either."""
    alpha = np.array([20.0, 10.0, 70.0])
    audit = audit_of_labels(LABELS, 10**6)
    shares, audited = combine_source_audit(SourceShares.from_dirichlet(alpha), audit, ("a", "b"), LabelErrors())
    exact = stats.dirichlet(alpha + np.array([30, 12, 58]))
    np.testing.assert_allclose(shares.values, exact.mean()[:2], atol=2e-3)
    np.testing.assert_allclose([prior.error for prior in shares.priors], np.sqrt(exact.var()[:2]), rtol=0.02)
    correlation = shares.covariance[0, 1] / np.sqrt(shares.covariance[0, 0] * shares.covariance[1, 1])
    assert correlation == pytest.approx(-np.sqrt(50 * 22 / (150 * 178)), abs=0.01)  # of Dirichlet(50, 22, 128)
    assert shares.errors(np.ones(2))[2] == pytest.approx(np.sqrt(exact.var()[2]), rel=0.02)
    drawn = shares.draw(0, np.random.default_rng(0))
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(correlation, abs=0.15)  # 400 draws
    assert all(result.agrees for result in audited)


def test_an_audit_that_contradicts_a_source_prior_is_used_alone():
    audit = audit_of_labels(LABELS, 10**6)
    with pytest.warns(InconsistentInputWarning, match="source prior of 'b'"):
        shares, audited = combine_source_audit(
            SourceShares.from_dirichlet(np.array([300.0, 500, 200])), audit, "ab", LabelErrors()
        )
    assert not audited[1].agrees and shares.values[1] == pytest.approx(0.125, abs=0.01)


def test_an_audit_needs_an_uncertain_source_prior():
    shares = SourceShares((PointPrior(0.2), PointPrior(0.3)), (False, False))
    with pytest.raises(InputError, match="leave out one of them"):
        combine_source_audit(shares, audit_of_labels(LABELS, 1000), ("a", "b"), LabelErrors())


def test_the_test_of_all_shares_is_the_likelihood_ratio():
    audit, p, q = audit_of_labels(LABELS, 10**6), np.array([0.30, 0.12, 0.58]), np.array([0.4, 0.1, 0.5])
    statistic = 2 * 100 * float((p * np.log(p / q)).sum())
    assert audit.p_value(q) == pytest.approx(stats.chi2.sf(statistic, 2), rel=1e-3)
    assert audit.p_value(p) == pytest.approx(1) and audit.p_value(np.array([0.5, 0.5, 0.0])) == 0
    assert audit_of_labels(np.repeat([0, 1], 50), 1000).p_value(np.array([0.5, 0.5, 0.0])) == pytest.approx(1)


def test_the_noise_of_rows_that_are_known_to_be_of_other_classes():
    """The share of a class in the population, by simulation of a sample of which some rows are labelled."""
    rng = np.random.default_rng(0)
    known, excluded, phi, n, looked_up = 0.2, 0.3, 0.4, 400, 100
    counts = rng.multinomial(n, [known, excluded, 1 - known - excluded], 40_000) / n
    estimates = counts[:, 0] + counts[:, 2] * rng.binomial(looked_up, phi, 40_000) / looked_up
    share = AuditedShare(phi, 0.0, 0.0, 0.0, float(looked_up), (looked_up, int(n * 0.5)))
    sample = SampleAudit(share, n, known, excluded)
    assert sample.value == pytest.approx(known + 0.5 * phi)
    variance = 0.5**2 * phi * (1 - phi) / sample.of_population.labels
    assert variance == pytest.approx(estimates.var(), rel=0.05)  # Jeffreys' prior moves φ a little
