"""Diagnosis of several classes: verdict, words and plain values."""

import json

import numpy as np
import pytest

import priorshift as ps
from priorshift.class_source import ClassSource
from priorshift.diagnosis.classes import ClassParts
from priorshift.errors import FewPositivesWarning, InputError, WeakSeparationWarning

PRIORS = {"a": 0.3, "b": 0.3}


def diagnose_rows(X, y, target, **settings):
    """Diagnose from rows and labels, which are empty for unlabelled rows."""
    classes = {str(name): X[y == name] for name in np.unique(y) if name}
    unlabeled = X[y == ""] if (y == "").any() else None
    return ps.diagnose(classes, unlabeled, target, **settings)


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(PRIORS, {"a": 0.2, "b": 0.5}, n_target=900, random_state=1)


@pytest.fixture(scope="module")
def diagnosis(sample):
    return diagnose_rows(sample.X, sample.y, sample.target, source_prior=PRIORS, random_state=0)


def add_new_class(target, rows=200):
    return np.concatenate([target, np.random.default_rng(0).normal(size=(rows, 10)) + 3 * np.eye(10)[0]])


def test_shares_that_nothing_contradicts_may_be_published(diagnosis):
    assert diagnosis.verdict.answer == "yes" and diagnosis.verdict.reasons == ()
    text = str(diagnosis)
    for part in ("May I publish these shares? Yes", "no evidence of a class", "not contradicted", "rest"):
        assert part in text
    assert "new_class_test" in json.dumps(diagnosis.to_dict())
    assert diagnosis._repr_html_().startswith("<")


def test_a_new_class_is_never_spread_silently_over_the_others(sample):
    target = add_new_class(sample.target)
    diagnosis = diagnose_rows(sample.X, sample.y, target, source_prior=PRIORS, random_state=0)
    assert diagnosis.verdict.answer == "no"
    assert diagnosis.verdict.reasons[0].startswith("Rows of the target look like none of the labelled classes nor")
    assert 0.03 < diagnosis.new_class_test.least_share < 200 / 1100
    assert len(diagnosis.new_class_test.rows) == 10 and min(diagnosis.new_class_test.rows) >= 900  # the new rows
    assert "Look up the classes" in diagnosis.next_steps[0]


def test_a_new_class_is_detected_without_a_rest(sample):
    X, y = np.concatenate([*sample.classes.values()]), np.repeat(["a", "b"], 200)
    both = ps.simulate.gaussian_classes({"a": 0.5, "b": 0.5}, {"a": 0.3, "b": 0.7}, n_target=900, random_state=1)
    diagnosis = diagnose_rows(X, y, both.target, rest=False, random_state=0)
    assert diagnosis.verdict.answer == "yes" and list(diagnosis.estimate) == ["a", "b"]
    found = diagnose_rows(X, y, add_new_class(both.target), rest=False, random_state=0).new_class_test
    assert found.is_detected and "none of the classes of the source" in found.text and "rest" not in found.text


def test_a_drift_is_doubted(sample):
    drifted = sample.target + 0.6 * np.eye(10)[3]
    diagnosis = diagnose_rows(sample.X, sample.y, drifted, source_prior=PRIORS, random_state=0)
    assert diagnosis.verdict.answer == "no" and diagnosis.verdict.doubts_label_shift


def test_few_labelled_rows_and_unknown_priors_ask_for_care(sample):
    y = np.where((sample.y == "a") & (np.cumsum(sample.y == "a") > 15), "unused", sample.y)
    used = y != "unused"
    with pytest.warns((WeakSeparationWarning, FewPositivesWarning)):
        diagnosis = diagnose_rows(sample.X[used], y[used], sample.target, random_state=0)
    reasons = " ".join(diagnosis.verdict.reasons)
    assert diagnosis.verdict.answer != "yes"
    assert "15 labelled rows" in reasons and "comes from source priors" in reasons


def test_an_estimator_as_method_gives_the_same_diagnosis(sample, diagnosis):
    shift = ps.MulticlassShift(PRIORS, random_state=0)
    by_method = diagnose_rows(sample.X, sample.y, sample.target, method=shift)
    assert by_method.to_dict() == diagnosis.to_dict()
    assert by_method.settings == {"source_prior": PRIORS, "random_state": 0}
    assert [(use.name, use.use) for use in by_method.columns[:1]] == [("0", "feature")]
    source = ClassSource.from_labels(sample.X, sample.y, scenario="case-control", standardize=True, rest=True)
    target = shift.fit_classes(source).read_target(sample.target)
    with pytest.raises(InputError, match="rows of the source"):
        ClassParts.compute(shift, source.without_rows(), target, shift.estimate_target(target))


def test_several_targets_are_diagnosed_by_one_fit(sample):
    targets = {"old": sample.target[:450], "new": add_new_class(sample.target[450:])}
    classes, unlabeled = {name: sample.X[sample.y == name] for name in PRIORS}, sample.X[sample.y == ""]
    diagnoses = ps.diagnose_targets(classes, unlabeled, targets, source_prior=PRIORS, random_state=0)
    alone = ps.diagnose(classes, unlabeled, targets["new"], source_prior=PRIORS, random_state=0)
    assert diagnoses["new"].estimate["a"].raw == alone.estimate["a"].raw
    assert diagnoses["new"].new_class_test.p_value == alone.new_class_test.p_value
    plain = json.loads(json.dumps(diagnoses.to_dict(), allow_nan=False))
    p_values = [diagnosis.new_class_test.p_value for diagnosis in diagnoses.values()]
    adjusted = [plain["targets"][name]["new_class_adjusted_p_value"] for name in targets]
    assert adjusted[1] == pytest.approx(2 * p_values[1]) and adjusted[0] >= p_values[0]  # Holm
    assert [diagnosis.verdict.answer for diagnosis in diagnoses.values()] == ["yes", "no"]
    assert "adjusted for 2 targets" in diagnoses["new"].verdict.reasons[0]
    assert len(diagnoses.records()) == 6 and len(plain["differences"]) == 3 and plain["equality"]
    lines = str(diagnoses).splitlines()
    assert lines[1].split()[:3] == ["old", "a", "yes"] and "new: Rows of the target look like none" in str(diagnoses)
    assert diagnoses._repr_html_().startswith("<")


def test_wrong_use_is_refused(sample):
    with pytest.raises(InputError, match="km2-ls"):
        diagnose_rows(sample.X, sample.y, sample.target, method="km2-ls")
    with pytest.raises(InputError, match="source_prior"):
        diagnose_rows(sample.X, sample.y, sample.target, method=ps.MulticlassShift(), source_prior=PRIORS)
    with pytest.raises(InputError, match="True or False"):
        diagnose_rows(sample.X, sample.y, sample.target, rest="no")


def test_diagnose_takes_a_mapping_of_classes_as_estimate_prior_does():
    priors = {"a": 0.3, "b": 0.3}
    s = ps.simulate.gaussian_classes(priors, {"a": 0.2, "b": 0.5}, n_source=400, n_target=400, random_state=0)
    found = ps.diagnose(s.classes, s.unlabeled, s.target, source_prior=priors, random_state=0)
    expected = ps.estimate_prior(s.classes, s.unlabeled, s.target, source_prior=priors, random_state=0)
    assert found.estimate["a"] == expected["a"]
    with pytest.raises(InputError, match="threshold"):
        ps.diagnose(s.classes, s.unlabeled, s.target, source_prior=priors, threshold=0.1)
    one = {"a": s.classes["a"]}
    alone = ps.diagnose(one, s.unlabeled, s.target, source_prior={"a": 0.3}, random_state=0)
    plain = ps.diagnose(s.classes["a"], s.unlabeled, s.target, source_prior=0.3, random_state=0)
    assert alone.estimate == plain.estimate and isinstance(alone, ps.Diagnosis)
    with pytest.raises(InputError, match="at least two"):
        ps.diagnose(s.classes["a"], s.unlabeled, s.target, source_prior=0.3, rest=False)
