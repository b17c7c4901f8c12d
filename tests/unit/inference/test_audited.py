"""Audits, from a column of a table to the estimate: what a few labels do to the source prior and to the target's."""

import csv
import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, ndtr, ndtri
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.audit import AuditedShare
from priorshift.cli import main
from priorshift.errors import DuplicateRowsWarning, InconsistentInputWarning, InputError, WeakSeparationWarning
from priorshift.inference.audit_combination import (
    DOUBT_OF_TARGET,
    SampleAudit,
    _assisted_interval,
    combine_with_audit,
)
from priorshift.inference.confidence_curve import TabulatedCurve
from priorshift.inference.prior_knowledge import PiecewiseUniform
from priorshift.problem import Source

QUICK = dict(repeats=2, folds=3, random_state=0)


def sample_of(value, labels, rows, **more):
    k = min(int(labels), rows)
    return SampleAudit(AuditedShare(value, 0.0, 0.0, 0.0, labels, (k, rows)), rows, **more)


def looked_up(classes, k, before=0):
    """A column with the classes of the first k rows, after `before` others; rows are in random order."""
    column = np.full(before + len(classes), np.nan)
    column[before : before + k] = classes[:k]
    return column


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 1500, 1000, distance=0.6, shared=False, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSeparationWarning)
        return ps.WitnessShift(**QUICK).fit(sample.X, sample.y)


def source_audit(s, k):
    return looked_up(s.unlabeled_labels, k, len(s.positive))


# ---- a belief and an audit


@pytest.mark.parametrize(
    ("a", "b", "found", "labels"), [(40, 160, 30, 100), (2, 8, 0, 50), (5, 1, 20, 20), (1, 1, 3, 10)]
)
def test_a_belief_from_elsewhere_follows_bayes_rule(a, b, found, labels):
    """A Beta and a binomial likelihood, in closed form."""
    audited = combine_with_audit(stats.beta(a, b), sample_of(found / labels, labels, 5000), from_rows=False)
    exact = stats.beta(a + found, b + labels - found)
    assert audited.agrees and audited.distribution.mean() == pytest.approx(exact.mean(), abs=5e-4)
    levels = [0.005, 0.025, 0.5, 0.975, 0.995]
    np.testing.assert_allclose(audited.distribution.ppf(levels), exact.ppf(levels), atol=2e-3)


def test_an_audit_alone_is_jeffreys_posterior():
    audited = combine_with_audit(None, sample_of(0.3, 100, 10**7), from_rows=True)
    exact = stats.beta(30.5, 70.5)
    assert audited.alone and audited.by("Witness") == "audit"
    np.testing.assert_allclose(audited.distribution.ppf([0.025, 0.5, 0.975]), exact.ppf([0.025, 0.5, 0.975]), atol=1e-3)


def test_rows_are_not_counted_twice():
    """Scores that tell all classes make the belief and the audit the same n labels, which stay n together."""
    n = 1000
    belief = stats.beta(300.5, 700.5)
    audited = combine_with_audit(belief, sample_of(0.3, n, n), from_rows=True).distribution
    assert audited.mean() == pytest.approx(0.3, abs=1e-3)
    assert audited.std() == pytest.approx(belief.std(), rel=0.03)
    apart = combine_with_audit(belief, sample_of(0.3, n, n), from_rows=False).distribution  # which would be 2n of them
    assert apart.std() == pytest.approx(belief.std() / np.sqrt(2), rel=0.03)


def test_belief_and_audit_are_weighed_by_what_they_know_of_the_rows():
    """Gaussian beliefs of the share among the rows have a weighted mean, and the rows' noise is added once."""
    n, s_phi, k_phi = 4000, 0.02, 600.0
    mean, value = 0.30, 0.31
    noise = mean * (1 - mean) / n
    belief = stats.norm(mean, np.sqrt(s_phi**2 + noise))
    sample = sample_of(value, 1 / (1 / k_phi + 1 / n), n)
    audited = combine_with_audit(belief, sample, from_rows=True).distribution
    a = value * (1 - value) / k_phi
    weight = s_phi**2 / (s_phi**2 + a)
    assert audited.mean() == pytest.approx(mean + weight * (value - mean), abs=1e-3)
    # a twentieth of doubt, and the audit's own likelihood, are not Gaussian
    assert audited.std() == pytest.approx(np.sqrt(s_phi**2 * a / (s_phi**2 + a) + noise), rel=0.05)


def test_a_small_audit_leaves_a_sharp_belief_as_it_is():
    belief = stats.beta(300, 700)
    audited = combine_with_audit(belief, sample_of(0.3, 12, 2000), from_rows=True).distribution
    assert audited.mean() == pytest.approx(belief.mean(), abs=3e-3)
    levels = [0.025, 0.975]
    np.testing.assert_allclose(audited.ppf(levels) - 0.3, belief.ppf(levels) - 0.3, rtol=0.1)


@pytest.mark.parametrize("from_rows", [True, False])
def test_a_contradiction_is_found_at_its_level_and_the_audit_is_left(from_rows):
    belief, share = stats.beta(200, 800), 100
    for value, agrees in ((0.2, True), (0.3, True), (0.36, False), (0.5, False)):
        sample = sample_of(value, share, 10**6)
        audited = combine_with_audit(belief, sample, from_rows=from_rows)
        theta = np.linspace(0, 1, 200_001)  # P(belief > audit), by the sum over a fine grid
        above = np.sum(np.diff(belief.cdf(theta)) * betainc(share * value + 0.5, share * (1 - value) + 0.5, theta[1:]))
        assert (2 * min(above, 1 - above) < 0.001) == (not agrees)
        assert audited.agrees == agrees
        if not agrees:
            alone = combine_with_audit(None, sample, from_rows=from_rows).distribution
            assert audited.distribution.mean() == alone.mean() == pytest.approx(value, abs=0.01)


def test_an_overconfident_belief_gives_way_before_it_is_contradicted():
    """Between agreement and contradiction the estimate moves from the belief to the audit."""
    belief = stats.norm(0.2, 0.01)
    means = [combine_with_audit(belief, sample_of(v, 100, 10**5), from_rows=True) for v in (0.2, 0.25, 0.3, 0.34, 0.6)]
    values = [m.distribution.mean() for m in means]
    assert [m.agrees for m in means][::4] == [True, False]
    assert values == sorted(values)
    assert values[1] < 0.22 and values[4] == pytest.approx(0.6, abs=0.02)


def test_known_positives_are_no_part_of_the_audit():
    """Of 1000 rows 200 are labelled, and 80 of the 800 others are positive: 280 in all."""
    sample = SampleAudit(AuditedShare(0.1, 0.0, 0.0, 0.0, 800.0, (800, 800)), 1000, known=0.2)
    alone = combine_with_audit(None, sample, from_rows=True).distribution
    assert sample.value == pytest.approx(0.28)
    assert alone.mean() == pytest.approx(0.28, abs=2e-3)
    assert alone.std() == pytest.approx(np.sqrt(0.28 * 0.72 / 1000), rel=0.03)
    survey = combine_with_audit(
        stats.beta(1, 1), sample, from_rows=False
    ).distribution  # the noise of 200 in 1000 counts
    assert survey.std() == pytest.approx(np.sqrt(0.28 * 0.72 / 1000), rel=0.05)


def test_the_curve_on_steps_has_the_mean_of_the_curve():
    r = np.linspace(0, 3, 301)
    edges = np.linspace(0, 1, 2001)
    for centre, pi in ((0.5, 0.2), (1.2, [0.1, 0.2, 0.4]), (0.02, 0.3), (2.5, 0.6)):
        curve = TabulatedCurve.from_tests(r, (centre - r) / 0.1, np.full(len(r), np.inf))
        share = PiecewiseUniform(edges, curve.probabilities(edges, pi))
        assert share.probabilities.sum() == pytest.approx(1)
        assert share.mean() == pytest.approx(curve.mean(pi), abs=1e-3)


def test_a_distribution_on_other_steps_is_the_same_one():
    share = PiecewiseUniform(np.array([0.0, 0.2, 1.0]), np.array([0.5, 0.5]))
    finer = share.on(np.linspace(0, 1, 51))
    assert finer.mean() == pytest.approx(share.mean())
    np.testing.assert_allclose(finer.ppf([0.1, 0.5, 0.9]), share.ppf([0.1, 0.5, 0.9]))


# ---- the target


def test_an_audit_of_all_target_rows_is_the_truth_of_the_rows(sample, fitted):
    answer = fitted.estimate(sample.target, audit=sample.target_labels)
    share, n = sample.target_labels.mean(), len(sample.target)
    assert answer.value == pytest.approx(share, abs=2e-3)
    assert answer.standard_error == pytest.approx(np.sqrt(share * (1 - share) / n), rel=0.05)
    assert share in answer.interval and answer.interval.method in ("witness and audit", "audit")


def test_more_labels_narrow_the_interval(sample, fitted):
    without = fitted.estimate(sample.target)
    widths = [without.interval.width]
    for k in (50, 200, 1000):
        answer = fitted.estimate(sample.target, audit=looked_up(sample.target_labels, k))
        widths.append(answer.interval.width)
        assert sample.target_labels.mean() in answer.interval
        assert answer.details["audit"]["target"]["rows"] == [k, 1000]
        assert (answer.raw, answer.negative_ratio) == (without.raw, without.negative_ratio)
    assert widths == sorted(widths, reverse=True) and widths[-1] < widths[0] / 2
    assert "audit" not in without.details


def test_what_is_printed_and_what_json_has(sample, fitted):
    answer = fitted.estimate(sample.target, audit=looked_up(sample.target_labels, 100))
    assert re.fullmatch(
        r"target prior 0\.\d{3}, 95% interval 0\.\d{3} to 0\.\d{3} \(Witness and audit, source prior 0\.\d+ by "
        r"MixturePrior\)",
        str(answer),
    )
    told = json.loads(json.dumps(answer.to_dict()))["details"]["audit"]["target"]
    assert set(told) == {"rows", "value", "standard_error", "explained", "agrees"}
    assert told["agrees"] is True and 0 < told["standard_error"] < 0.06 and 0 <= told["explained"] <= 1


@pytest.mark.parametrize("known", [0.2, (0.15, 0.25), stats.beta(40, 160)], ids=["number", "range", "distribution"])
def test_whatever_is_known_of_the_source_prior_a_target_can_be_audited(sample, known):
    witness = ps.WitnessShift(known, **QUICK).fit(sample.X, sample.y)
    before = witness.estimate(sample.target)
    after = witness.estimate(sample.target, audit=looked_up(sample.target_labels, 200))
    assert after.interval.width < before.interval.width
    assert sample.target_labels.mean() in after.interval
    assert after.source_prior_by == before.source_prior_by


def test_where_positives_cannot_be_told_from_the_rest_the_audit_is_all_there_is():
    rng = np.random.default_rng(1)
    X, target, classes = rng.normal(size=(300, 3)), rng.normal(size=(400, 3)), rng.random(400) < 0.3
    witness = ps.WitnessShift(0.5, **QUICK).fit(X, np.arange(300) < 60)
    with pytest.warns(WeakSeparationWarning, match=r"audit alone"):
        answer = witness.estimate(target, audit=looked_up(classes, 200))
    assert answer.interval.method == "audit" and str(answer).endswith("(audit, source prior 0.5)")
    assert answer.status == "ok"
    assert answer.value == pytest.approx(classes[:200].mean(), abs=0.03)


def test_a_target_that_contradicts_label_shift_is_warned_of_and_the_audit_followed(sample):
    witness = ps.WitnessShift(0.2, **QUICK).fit(sample.X, sample.y)
    wrong = ~sample.target_labels  # as if positives looked like negatives
    with pytest.warns(
        InconsistentInputWarning,
        match=r"150 of 1000.*contradicts.*target prior is 0\.\d{3}",
    ):
        answer = witness.estimate(sample.target, audit=looked_up(wrong, 150))
    assert answer.value == pytest.approx(wrong.mean(), abs=0.1)
    assert answer.details["audit"]["target"]["agrees"] is False
    assert "(audit, source prior 0.2)" in str(answer)


# ---- the source


def test_an_audit_of_all_unlabelled_rows_is_the_truth_of_the_rows(sample):
    share, n = sample.unlabeled_labels.mean(), len(sample.unlabeled)
    found = ps.MixturePrior(**QUICK).fit(sample.X, sample.y, audit=source_audit(sample, n))
    assert found.prior_ == pytest.approx(share, abs=2e-3)
    assert found.standard_error_ == pytest.approx(np.sqrt(share * (1 - share) / n), rel=0.05)


def test_an_audit_of_the_source_narrows_what_the_tables_leave_open(sample, fitted):
    audit = source_audit(sample, 150)
    before, after = fitted.prior_estimator_, ps.WitnessShift(**QUICK).fit(sample.X, sample.y, audit=audit)
    prior = after.prior_estimator_  # without a warning of the overlap, which the audit has closed
    assert prior.standard_error_ < before.standard_error_ and after.source_prior_ == prior.prior_
    assert prior.interval_[0] < 0.2 < prior.interval_[1]
    answer = after.estimate(sample.target)
    assert answer.source_prior_by == prior.audit_.by("MixturePrior") == "MixturePrior and audit"
    assert re.search(r"\(Witness, source prior 0\.\d+ by MixturePrior and audit\)$", str(answer))
    assert answer.interval.width < fitted.estimate(sample.target).interval.width
    assert answer.details["audit"]["source"]["rows"] == [150, len(sample.unlabeled)]
    twice = after.estimate(sample.target, audit=looked_up(sample.target_labels, 150))
    assert set(twice.details["audit"]) == {"source", "target"} and twice.interval.width < answer.interval.width


def test_a_distribution_of_the_source_prior_is_updated(sample):
    """Scores explain something, so the audit is worth more than its labels; it is no less than Bayes' rule says."""
    audit, survey = source_audit(sample, 150), stats.beta(20, 80)
    witness = ps.WitnessShift(survey, **QUICK).fit(sample.X, sample.y, audit=audit)
    answer = witness.estimate(sample.target)
    found = int(np.nansum(audit))
    exact = stats.beta(20 + found, 80 + 150 - found)
    assert answer.source_prior_by == "distribution and audit"
    assert answer.source_prior == witness.source_prior_ == pytest.approx(exact.mean(), abs=0.03)
    assert answer.details["source_prior_standard_error"] < 1.02 * exact.std()
    with pytest.warns(InconsistentInputWarning, match=r"contradicts.*source prior is 0\.[12]\d\d"):
        wrong = witness.set_params(source_prior=stats.beta(80, 20)).estimate(sample.target)
    assert wrong.source_prior_by == "audit" and wrong.source_prior == pytest.approx(0.2, abs=0.07)


def test_an_estimator_with_a_distribution_is_updated_like_the_default(sample, fitted):
    audit = source_audit(sample, 150)
    with pytest.warns(WeakSeparationWarning):  # what it leaves open
        ps.WitnessShift(ps.MixturePrior(**QUICK), **QUICK).fit(sample.X, sample.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # and what the audit answers
        asked = ps.WitnessShift(ps.MixturePrior(**QUICK), **QUICK).fit(sample.X, sample.y, audit=audit)
    assert asked.estimate(sample.target).source_prior_by == "MixturePrior and audit"
    assert asked.source_prior_ == pytest.approx(0.2, abs=0.05)
    assert asked._estimated.distribution.std() < fitted.prior_estimator_.standard_error_


@pytest.mark.parametrize(("known", "said"), [(0.2, "0.2"), ((0.1, 0.3), "0.1 to 0.3")])
def test_a_prior_that_is_given_leaves_an_audit_of_the_source_nothing_to_tell(sample, known, said):
    message = f"audit of unlabelled rows.*given as {said}"
    with pytest.raises(InputError, match=message):
        ps.WitnessShift(known, **QUICK).fit(sample.X, sample.y, audit=source_audit(sample, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        witness = ps.WitnessShift(**QUICK).fit(sample.X, sample.y, audit=source_audit(sample, 50))
    with pytest.raises(InputError, match=message):
        witness.set_params(source_prior=known).estimate(sample.target)


def test_an_estimator_without_a_distribution_cannot_be_audited(sample):
    with pytest.raises(InputError, match=r"KM2.*prior_distribution_"):
        ps.WitnessShift(ps.KM2(), **QUICK).fit(sample.X, sample.y, audit=source_audit(sample, 50))


def test_a_source_that_contradicts_its_positives_is_warned_of_and_the_audit_followed():
    s = ps.simulate.gaussian(0.2, 0.6, 1000, 500, distance=1.0, shared=False, random_state=0)
    with pytest.warns(InconsistentInputWarning, match=r"contradicts.*source prior is 0\.8"):
        found = ps.MixturePrior(**QUICK).fit(s.X, s.y, audit=looked_up(~s.unlabeled_labels, 100, len(s.positive)))
    assert found.prior_ == pytest.approx(0.8, abs=0.1) and found.audit_.alone
    assert found.audit_.alone and not found.audit_.agrees


def test_under_censoring_the_labelled_rows_are_known(sample):
    """The audit is of the rest, which holds fewer positives than the population."""
    rng = np.random.default_rng(3)
    classes = rng.random(1500) < 0.4
    X = rng.normal(size=(1500, 5)) + classes[:, None]
    y = classes & (rng.random(1500) < 0.5)
    audit = np.where(rng.random(1500) < 0.2, classes, np.nan)
    audit[y] = np.nan
    found = ps.MixturePrior(scenario="censoring", **QUICK).fit(X, y, audit=audit)
    assert found.audit_.sample.known == pytest.approx(y.mean())
    assert found.prior_ == pytest.approx(0.4, abs=0.04)
    whole = ps.MixturePrior(scenario="censoring", **QUICK).fit(X, y, audit=np.where(y, np.nan, classes))
    assert whole.prior_ == pytest.approx(classes.mean(), abs=2e-3)


def test_shared_rows_are_known_without_an_audit():
    """Whether the audit skips them or not, it says the same."""
    s = ps.simulate.gaussian(0.3, 0.6, 1000, 500, random_state=0)
    shared = np.isin(s.unlabeled_ids, s.positive_ids)
    audit = source_audit(s, 300)
    skipping = audit.copy()
    skipping[len(s.positive) :][shared] = np.nan
    both = [ps.MixturePrior(**QUICK).fit(s.X, s.y, shared=s.ids, audit=a) for a in (audit, skipping)]
    assert both[0].prior_ == both[1].prior_
    assert both[0].audit_.sample.known == pytest.approx(shared.mean()) and shared.any()
    denied = audit.copy()
    denied[len(s.positive) + np.flatnonzero(shared)[0]] = 0
    with pytest.raises(InputError, match=r"same observation"):
        ps.MixturePrior(**QUICK).fit(s.X, s.y, shared=s.ids, audit=denied)


# ---- what is refused


def test_a_labelled_positive_may_be_confirmed_and_not_denied(sample):
    audit = source_audit(sample, 50)
    audit[:5] = 1
    source = Source.from_labels(sample.X, sample.y, audit=audit, scenario="case-control", standardize=True)
    assert len(source.audit) == 50 and np.nansum(source.audit_column == 1) == sample.unlabeled_labels[:50].sum()
    audit[3] = 0
    with pytest.raises(InputError, match=r"audit.*row 3 .*labelled positive"):
        ps.WitnessShift(**QUICK).fit(sample.X, sample.y, audit=audit)


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        (np.zeros(5), r"audit of target has shape \(5,\) but the sample has 1000 rows; pass one entry for each row"),
        (
            np.full(1000, 2.0),
            "audit of target holds 2.0 in row 0 .counting from 0., but 1 for a positive, 0 for a negative",
        ),
        (np.r_[np.ones(3), np.full(997, np.nan)], "audit has 3 rows with a class, but at least 10 are needed; look up"),
    ],
)
def test_an_audit_that_cannot_be_read(sample, fitted, audit, message):
    with pytest.raises(InputError, match=message):
        fitted.estimate(sample.target, audit=audit)


def test_an_audit_of_positives_alone_is_none_of_the_unlabelled_rows(sample):
    audit = np.where(sample.y == 1, 1, np.nan)
    with pytest.raises(InputError, match=r"0 rows.*at least 10"):
        ps.WitnessShift(**QUICK).fit(sample.X, sample.y, audit=audit)


@pytest.mark.parametrize(
    "estimator",
    [ps.TCPU(0.2), ps.KM1(), ps.KM2(), ps.KM2LS(), ps.KernelRatio(), ps.DRPU(model=LogisticRegression()),
     ps.NNPUClassifier(0.2), ps.ShiftedClassifier(LogisticRegression(), ps.TCPU(0.2))],
    ids=lambda e: type(e).__name__,
)  # fmt: skip
def test_estimators_without_a_use_for_an_audit_refuse_it(sample, estimator):
    name = "TCPU" if isinstance(estimator, ps.ShiftedClassifier) else type(estimator).__name__
    message = f"^{name} takes no audit"
    with pytest.raises(InputError, match=message):
        clone(estimator).fit(sample.X, sample.y, audit=source_audit(sample, 50))
    if hasattr(estimator, "estimate") and not isinstance(estimator, ps.NNPUClassifier):
        fitted = clone(estimator).fit(sample.X, sample.y)
        with pytest.raises(InputError, match=message):
            fitted.estimate(sample.target, audit=looked_up(sample.target_labels, 50))


@pytest.mark.parametrize("method", ["tcpu", "km2-ls", "drpu"])
@pytest.mark.parametrize("table", ["unlabeled", "target"])
def test_methods_without_a_use_for_an_audit_refuse_it(sample, method, table):
    classes = {"unlabeled": sample.unlabeled_labels, "target": sample.target_labels}[table]
    with pytest.raises(InputError, match=r"takes no audit"):
        ps.estimate_prior(
            sample.positive, sample.unlabeled, sample.target, method=method, audit={table: looked_up(classes, 50)}
        )


def test_an_estimator_of_a_user_without_an_audit_refuses_it(sample):
    class Half(BaseEstimator):
        def fit(self, X, y):
            return self

        def estimate(self, X_target):
            return 0.5

    with pytest.raises(InputError, match=r"Half takes no audit"):
        ps.estimate_prior(
            sample.positive, sample.unlabeled, sample.target, method=Half(),
            audit={"target": looked_up(sample.target_labels, 50)},
        )  # fmt: skip


# ---- tables


def frames(s, k=(150, 100), library=pd):
    """The three tables with a column of what was looked up; the positives have none."""
    made = []
    for rows, classes, looked in ((s.unlabeled, s.unlabeled_labels, k[0]), (s.target, s.target_labels, k[1])):
        columns = dict(zip("abcdefghij", rows.T, strict=True))
        if looked is not None:
            cells = [int(c) if i < looked else None for i, c in enumerate(classes)]
            columns["seen"] = cells if library is pl else np.array(cells, dtype=object)
        made.append(library.DataFrame(columns))
    return library.DataFrame(dict(zip("abcdefghij", s.positive.T, strict=True))), *made


@pytest.mark.slow
def test_a_column_or_the_values_give_the_answer_of_the_estimator(sample):
    expected = ps.WitnessShift(random_state=0).fit(sample.X, sample.y, audit=source_audit(sample, 150))
    expected = expected.estimate(sample.target, audit=looked_up(sample.target_labels, 100)).to_dict()
    values = {"unlabeled": looked_up(sample.unlabeled_labels, 150), "target": looked_up(sample.target_labels, 100)}
    arrays = sample.positive, sample.unlabeled, sample.target
    assert ps.estimate_prior(*arrays, audit=values, random_state=0).to_dict() == expected
    for library in (pd, pl):
        tables = frames(sample, library=library)
        copies = [t.copy() if library is pd else t.clone() for t in tables]
        assert ps.estimate_prior(*tables, audit="seen", random_state=0).to_dict() == expected
        assert all(a.equals(b) for a, b in zip(tables, copies, strict=True))  # nothing of the caller's is changed


def test_a_column_may_stand_in_one_table(sample):
    for k, which in (((150, None), "source"), ((None, 100), "target"), ((150, 0), "source"), ((0, 100), "target")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakSeparationWarning)
            answer = ps.estimate_prior(*frames(sample, k), audit="seen", random_state=0)
        assert set(answer.details["audit"]) == {which}


def test_what_cannot_be_an_audit_of_tables(sample):
    tables = frames(sample)
    with pytest.raises(InputError, match=r"'looked'"):
        ps.estimate_prior(*(t.drop(columns="seen", errors="ignore") for t in tables), audit="looked")
    with pytest.raises(InputError, match=r"'seen'.*class"):
        ps.estimate_prior(*frames(sample, (0, 0)), audit="seen")
    wrong = tables[2].assign(seen=np.where(np.arange(1000) == 7, "yes", ""))
    with pytest.raises(InputError, match=r"'seen'.*'yes'.*row 7"):
        ps.estimate_prior(*tables[:2], wrong, audit="seen")
    with pytest.raises(InputError, match=r"audit holds 'positive'"):
        ps.estimate_prior(*tables, audit={"positive": np.ones(3)})
    with pytest.raises(InputError, match=r"audit is of type int"):
        ps.estimate_prior(*tables, audit=3)
    with pytest.raises(InputError, match=r"'seen'.*audit.*shared"):
        ps.estimate_prior(*tables, audit="seen", shared="seen")
    with pytest.raises(InputError, match=r"'seen'.*audit.*dropped"):
        ps.estimate_prior(*tables, audit="seen", drop="seen")


def test_data_of_the_caller_are_untouched_and_answers_repeat(sample):
    audit, other = source_audit(sample, 150), looked_up(sample.target_labels, 100)
    given = sample.X, sample.y, audit, sample.target, other
    copies = [part.copy() for part in given]
    for part in given:
        part.setflags(write=False)
    answers = []
    for _ in range(2):
        witness = ps.WitnessShift(**QUICK).fit(*given[:2], audit=audit)
        answers += [witness.estimate(sample.target, audit=other).to_dict() for _ in range(2)]
    assert all(answer == answers[0] for answer in answers)
    for part, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


# ---- the shell


def write(path, frame):
    with path.open("w", newline="") as file:
        rows = [["" if pd.isna(cell) else cell for cell in row] for row in frame.itertuples(index=False)]
        csv.writer(file).writerows([frame.columns, *rows])
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_with_empty_cells_goes_through_the_shell(sample, kind, tmp_path, capsys):
    files = []
    for option, frame in zip(("--positive", "--unlabeled", "--target"), frames(sample), strict=True):
        path = tmp_path / f"{option[2:]}.{kind}"
        if kind == "csv":
            write(path, frame)
        else:
            frame.assign(**({"seen": frame["seen"].astype("Int8")} if "seen" in frame else {})).to_parquet(path)
        files += [option, str(path)]
    assert main(["estimate", *files, "--audit-column", "seen", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = ps.estimate_prior(*frames(sample), audit="seen", random_state=0).to_dict()
    assert told["value"] == pytest.approx(expected["value"], rel=1e-9)
    assert told["details"]["audit"]["target"]["rows"] == [100, 1000]
    assert told["source_prior_by"] == "MixturePrior and audit"


def test_one_source_table_may_have_the_column_too(sample, tmp_path, capsys):
    source = pd.DataFrame(sample.X, columns=list("abcdefghij")).assign(labeled=sample.y)
    seen = source_audit(sample, 150)
    seen[:20] = 1
    target = frames(sample)[2]
    files = ["--source", write(tmp_path / "s.csv", source.assign(seen=seen)), "--label-column", "labeled"]
    files += ["--target", write(tmp_path / "t.csv", target)]
    assert main(["estimate", *files, "--audit-column", "seen"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("by MixturePrior and audit)\n") and "(Witness and audit" in said


def test_decisions_follow_an_audit(sample, tmp_path, capsys):
    files = []
    for option, frame in zip(("--positive", "--unlabeled", "--target"), frames(sample), strict=True):
        files += [option, write(tmp_path / f"{option[2:]}.csv", frame)]
    output = tmp_path / "decided.csv"
    options = ["--audit-column", "seen", "--output", str(output), "--classifier", "logistic", "--json"]
    assert main(["adapt", *files, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["estimate"]["details"]["audit"]["target"]["rows"] == [100, 1000]
    header, *rows = output.read_text().splitlines()
    assert header.endswith("seen,posterior,decision") and len(rows) == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--audit-column", "seen", "--drop", "seen"], "--audit-column and --drop name the same column, 'seen'"),
        (["--audit-column", "seen", "--id-column", "seen"], "--audit-column and --id-column name the same column"),
        (["--audit-column", "looked"], "no table has a column 'looked'"),
        (["--audit-column", "seen", "--method", "tcpu"], "TCPU takes no audit; leave it out"),
    ],
)
def test_wrong_use_on_the_shell_is_one_sentence(sample, tmp_path, capsys, options, message):
    k = (150, 100) if "seen" in options else (None, None)
    files = []
    for option, frame in zip(("--positive", "--unlabeled", "--target"), frames(sample, k), strict=True):
        files += [option, write(tmp_path / f"{option[2:]}.csv", frame)]
    assert main(["estimate", *files, *options]) == 2
    said = re.sub(r"\(\S+csv\)", "(…)", capsys.readouterr().err)
    assert said.startswith("priorshift: ") and message in said and said.count("\n") == 1


def test_an_audit_of_copies_counts_observations():
    """Every row three times: labels of copies are one label each."""
    rng = np.random.default_rng(0)
    classes = rng.random(400) < 0.3
    rows = rng.normal(size=(400, 4)) + 2 * classes[:, None]
    tripled, of_rows = np.repeat(rows, 3, axis=0), np.repeat(classes, 3)
    P = rng.normal(size=(100, 4)) + 2
    witness = ps.WitnessShift(0.3, **QUICK).fit(np.r_[P, rng.normal(size=(300, 4)) + 2 * (np.arange(300) < 90)[:, None]],
                                               np.arange(400) < 100)  # fmt: skip
    with pytest.warns(DuplicateRowsWarning, match=r"800 of 1200"):
        answer = witness.estimate(tripled, audit=of_rows)
    error = np.sqrt(0.3 * 0.7 / 400)
    assert answer.standard_error == pytest.approx(error, rel=0.25)


# ---- an interval of the target's prior that holds by the labels alone


def _prior_of_rows(mean, spread, doubt):
    """A normal prior mixed with Jeffreys', on fine steps."""
    normal = stats.norm(mean, spread)
    edges = np.unique(np.concatenate([np.linspace(0, 1, 401), np.clip(mean + spread * np.linspace(-5, 5, 151), 0, 1)]))
    return PiecewiseUniform(edges, (1 - doubt) * np.diff(normal.cdf(edges)) + doubt * np.diff(betainc(0.5, 0.5, edges)))


@pytest.mark.parametrize("labels", [10, 30, 100])
@pytest.mark.parametrize("mean", [0.02, 0.2, 0.5, 0.9])
def test_the_interval_holds_whatever_the_tables_say(labels, mean):
    """Coverage is the sum of binomial probabilities over the counts whose interval contains the truth."""
    prior = _prior_of_rows(mean, 0.03, 0.5)
    counts = np.arange(labels + 1)
    shares = [sample_of(count / labels, labels, 10**7).of_rows for count in counts]
    ends = np.array([_assisted_interval(prior, share, 0.05) for share in shares])
    for truth in (0.03, 0.11, 0.3, 0.52, 0.8):
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        assert stats.binom.pmf(counts[inside], labels, truth).sum() >= 0.945  # 0.95, and the width of a step


def test_the_interval_is_yu_and_hoffs_where_everything_is_normal():
    """Ends solve Φ((y−θ)/σ) = αs(θ) or 1 − α(1−s(θ)), with s(θ) = g⁻¹(2σ(θ−μ)/τ²) for a normal prior N(μ, τ²)."""
    labels, mean, spread, value, alpha = 40_000, 0.3, 0.004, 0.302, 0.05
    sigma = np.sqrt(value * (1 - value) / labels)
    g = lambda s: ndtri(alpha * s) - ndtri(alpha * (1 - s))  # noqa: E731

    def share(theta):
        return brentq(lambda s: g(s) - 2 * sigma * (theta - mean) / spread**2, 1e-12, 1 - 1e-12)

    low = brentq(lambda t: ndtr((t - value) / sigma) - alpha * (1 - share(t)), value - 4 * sigma, value)
    high = brentq(lambda t: ndtr((value - t) / sigma) - alpha * share(t), value, value + 4 * sigma)
    edges = np.linspace(mean - 6 * spread, mean + 6 * spread, 4001)
    prior = PiecewiseUniform(edges, np.diff(stats.norm(mean, spread).cdf(edges)))
    found = _assisted_interval(prior, sample_of(value, labels, 10**9).of_rows, alpha)
    np.testing.assert_allclose(found, (low, high), atol=0.03 * sigma)


def test_an_audit_that_confirms_the_tables_shortens_the_interval_of_the_labels():
    sample = sample_of(0.3, 60, 10**6)
    alone = combine_with_audit(None, sample, from_rows=True)
    confirmed = combine_with_audit(stats.norm(0.3, 0.01), sample, from_rows=True, doubt=DOUBT_OF_TARGET)
    widths = [high - low for low, high in (audited.interval(0.95) for audited in (confirmed, alone))]
    assert 0.8 * widths[1] < widths[0] < 0.95 * widths[1]
    disputed = combine_with_audit(stats.norm(0.42, 0.01), sample, from_rows=True, doubt=DOUBT_OF_TARGET)
    low, high = disputed.interval(0.95)
    assert disputed.agrees and low < 0.25 and high > 0.42  # it contains what the tables say


def test_the_noise_of_the_rows_is_in_the_interval():
    """If all rows are audited, what is left is that they are a sample of the population."""
    n = 400
    audited = combine_with_audit(stats.beta(121, 281), sample_of(0.3, n, n), from_rows=True, doubt=DOUBT_OF_TARGET)
    low, high = audited.interval(0.95)
    np.testing.assert_allclose((low, high), stats.beta(120.5, 280.5).ppf([0.025, 0.975]), atol=0.006)
