import json
import re

"""What every estimator promises, asked of each in the same words; what is special to one is asked in its own file."""

import pickle
import random
import subprocess
import sys
import warnings
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

import priorshift as ps
from priorshift.base import PUClassifier, TargetPriorEstimator
from priorshift.errors import ColumnWarning, InputError, LabelOrderWarning
from priorshift.problem import Source

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")  # few rows, quick settings

S = ps.simulate.gaussian(0.3, 0.6, 120, 60, dimension=3, distance=2.0, random_state=0)
X, Y, IDS, TARGET = S.X, S.y, S.ids, S.target
OTHER = S.target[::-1] + 0.5  # another target


@dataclass(frozen=True)
class Case:
    """An estimator with settings that make it quick."""

    cls: type
    settings: dict = field(default_factory=dict)
    torch: bool = False

    def make(self, **more):
        return self.cls(**{**self.settings, **more})


SCORES = dict(repeats=1, folds=2)
NETWORK = dict(hidden=(4,), max_epochs=2)
CASES = {
    "TCPU": Case(ps.TCPU, dict(source_prior=0.3)),
    "TCPU asking KM2": Case(ps.TCPU),
    "TCPU asking KM2 in groups": Case(ps.TCPU, dict(source_prior=ps.KM2(max_rows=60))),
    "TCPU range": Case(ps.TCPU, dict(source_prior=(0.2, 0.4))),
    "TCPU bootstrap": Case(ps.TCPU, dict(source_prior=0.3, interval="bootstrap", n_bootstrap=20)),
    "TCPU pairs": Case(ps.TCPU, dict(source_prior=0.3, pairs=500)),
    "TCPU paper bound": Case(ps.TCPU, dict(source_prior=0.3, interval="paper-bound")),
    "TCPU sharp bound": Case(ps.TCPU, dict(source_prior=0.3, interval="sharp-bound")),
    "KM1": Case(ps.KM1),
    "KM2": Case(ps.KM2),
    "KM2 in groups": Case(ps.KM2, dict(max_rows=60)),
    "KM2LS": Case(ps.KM2LS),
    "KM2LS in groups": Case(ps.KM2LS, dict(max_rows=60)),
    "MixturePrior": Case(ps.MixturePrior, SCORES),
    "WitnessShift": Case(ps.WitnessShift, SCORES),
    "WitnessShift given": Case(ps.WitnessShift, dict(source_prior=0.3, **SCORES)),
    "WitnessShift range": Case(ps.WitnessShift, dict(source_prior=(0.2, 0.4), **SCORES)),
    "WitnessShift asking KM2": Case(ps.WitnessShift, dict(source_prior=ps.KM2(), **SCORES)),
    "DRPU model": Case(ps.DRPU, dict(model=LogisticRegression(), n_bootstrap=20)),
    "DRPU network": Case(ps.DRPU, dict(source_prior=0.3, n_bootstrap=20, **NETWORK), torch=True),
    "NNPUClassifier": Case(ps.NNPUClassifier, dict(source_prior=0.3, folds=2, **NETWORK), torch=True),
    "ShiftedClassifier": Case(
        ps.ShiftedClassifier,
        dict(classifier=LogisticRegression(), prior_estimator=ps.WitnessShift(**SCORES), folds=2),
    ),
}
FIRST_OF_CLASS = {case.cls: name for name, case in reversed(CASES.items())}.values()
NOTHING_RANDOM = {
    "TCPU",
    "TCPU range",
    "TCPU asking KM2",
    "TCPU asking KM2 in groups",
    "TCPU paper bound",
    "TCPU sharp bound",
    "KM1",
    "KM2",
    "KM2 in groups",
    "KM2LS",
    "KM2LS in groups",
}
# Methods that read rows after fit: of which estimator, and what their messages call the table. A target is a sample,
# and needs two rows; X are single rows to be scored.
READERS = [
    *((name, "estimate", "target") for name, case in CASES.items() if issubclass(case.cls, TargetPriorEstimator)),
    ("TCPU", "negative_ratio", "target"),
    ("TCPU", "objective", "target"),
    ("WitnessShift", "p_values", "target"),
    ("WitnessShift", "negative_ratio", "target"),
    ("DRPU model", "share_curve", "target"),
    ("DRPU network", "share_curve", "target"),
    ("DRPU network", "density_ratio", "X"),
    ("NNPUClassifier", "decision_function", "X"),
    ("NNPUClassifier", "predict_proba", "X"),
    ("NNPUClassifier", "predict", "X"),
    ("ShiftedClassifier", "adapt", "target"),
    ("ShiftedClassifier", "predict_proba", "X"),
    ("ShiftedClassifier", "predict", "X"),
]


def chosen(name):
    if CASES[name].torch:
        pytest.importorskip("torch")
    return CASES[name]


@pytest.fixture(params=CASES)
def name(request):
    chosen(request.param)
    return request.param


@pytest.fixture(params=FIRST_OF_CLASS)
def first_of_class(request):
    """Labels are read by a class, whatever its settings are."""
    chosen(request.param)
    return request.param


@pytest.fixture
def case(name):
    return CASES[name]


@pytest.fixture(params=READERS, ids=lambda reader: f"{reader[0]} {reader[1]}")
def reader(request):
    chosen(request.param[0])
    return request.param


@cache
def fitted(name, seed=0):
    """One fit for all tests that do not change it."""
    return CASES[name].make(random_state=seed).fit(X, Y, shared=IDS)


@cache
def answer_without_ids(name):
    """What a fit answers that knows of no shared rows."""
    return answer(CASES[name].make(random_state=0).fit(X, Y))


@cache
def fitted_on_names(name):
    return CASES[name].make(random_state=0).fit(frame(X), Y)


def frame(rows, columns="abc"):
    return pd.DataFrame(rows[:, ["abc".index(c) for c in columns]], columns=list(columns))


def read(estimator, method, rows):
    return estimator.objective(rows, [0.2, 0.7]) if method == "objective" else getattr(estimator, method)(rows)


def answer(estimator, target=TARGET):
    """All that an estimator says, in plain numbers."""
    if isinstance(estimator, TargetPriorEstimator):
        return estimator.estimate(target).to_dict()
    if isinstance(estimator, ps.ShiftedClassifier):
        adapted = estimator.adapt(target)
        return {"estimate": adapted.estimate_.to_dict(), "posterior": adapted.predict_proba(target).tolist()}
    if isinstance(estimator, PUClassifier):
        return {"posterior": estimator.predict_proba(target).tolist()}
    return {"prior": estimator.prior_, "standard error": estimator.standard_error_}


def numbers(said):
    """The numbers in an answer, in their order; None, a number that does not exist, as NaN."""
    if is_dataclass(said):
        return numbers(vars(said))
    if isinstance(said, dict):
        return [number for item in said.values() for number in numbers(item)]
    if isinstance(said, (list, tuple, np.ndarray)):
        return [number for item in said for number in numbers(item)]
    if said is None:
        return [np.nan]
    return [float(said)] if isinstance(said, (int, float, np.number)) else []


def nearly(one, two):
    """Up to the rounding of sums in another order."""
    assert len(numbers(one)) > 1
    np.testing.assert_allclose(numbers(one), numbers(two), rtol=1e-9, atol=1e-12)


def test_an_answer_is_more_than_one_number(name):
    """Comparisons of answers below compare something: numbers that exist."""
    said = [number for number in numbers(answer(fitted(name))) if np.isfinite(number)]
    assert len(said) >= 2 and len(set(said)) >= 2


# ---- parameters


def test_init_stores_what_it_is_given_and_nothing_else(case):
    names = list(case.cls._get_param_names())
    given = {parameter: object() for parameter in names}
    made = case.cls(**given)
    assert vars(made) == given and all(vars(made)[parameter] is given[parameter] for parameter in names)


def test_fit_returns_the_estimator_and_changes_no_parameter(case):
    estimator = case.make(random_state=0)
    before = dict(vars(estimator))
    assert estimator.fit(X, Y) is estimator
    answer(estimator)
    assert all(getattr(estimator, parameter) is value for parameter, value in before.items())
    nested = estimator.get_params()
    assert {key: repr(value) for key, value in nested.items()} == {
        key: repr(value) for key, value in case.make(random_state=0).get_params().items()
    }


IMPOSSIBLE = {  # what it must be, and what it is not
    "source_prior": (
        "be a number strictly between 0 and 1, such as 0.2.",
        (0, 1, -1, 1.5, float("nan"), "half", True, ps.KM2),
    ),
    "confidence": (
        "be a number strictly between 0 and 1, such as 0.95.",
        (0, 1.0, 2, -0.1, float("nan"), "high", True),
    ),
    "n_bootstrap": ("be a whole number of at least 20.", (19, 2.5, "many", True)),
    "scenario": ("be one of 'case-control', 'censoring'.", ("cohort", None, 3)),
    "random_state": ("be None, a whole number from 0 on or a numpy Generator.", (-1, "x", 1.5)),
    "max_rows": ("be a whole number of at least 10.", (9, 2.5)),
    "fit_rows": ("be a whole number of at least 10.", (9, 2.5)),
    "folds": ("be a whole number of at least 2.", (1, 2.5)),
    "repeats": ("be a whole number of at least 1.", (0, 2.5)),
}


def impossible():
    for name in reversed(FIRST_OF_CLASS):
        for parameter, (_, values) in IMPOSSIBLE.items():
            if parameter in CASES[name].cls._get_param_names():
                for value in values:
                    yield pytest.param(name, parameter, value, id=f"{name} {parameter}={value!r}")


@pytest.mark.parametrize(("name", "parameter", "value"), list(impossible()))
def test_a_parameter_that_cannot_be_is_refused_by_fit_in_one_sentence(name, parameter, value):
    estimator = chosen(name).make(**{parameter: value})
    with pytest.raises(InputError) as refused:
        estimator.fit(X, Y)
    assert str(refused.value) == f"{parameter} is {value!r}, but it must {IMPOSSIBLE[parameter][0]}"
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_the_impossible_was_asked_of_every_class_that_has_the_parameter():
    asked = {parameter: {CASES[p.values[0]].cls.__name__ for p in impossible() if p.values[1] == parameter}
             for parameter in IMPOSSIBLE}  # fmt: skip
    assert asked["source_prior"] == {"TCPU", "WitnessShift", "DRPU", "NNPUClassifier", "ShiftedClassifier"}
    assert asked["confidence"] == {"TCPU", "KM2LS", "WitnessShift", "DRPU"}
    assert asked["n_bootstrap"] == {"TCPU", "DRPU"}
    assert asked["scenario"] == {"TCPU", "KM1", "KM2", "MixturePrior", "WitnessShift", "DRPU", "NNPUClassifier"}
    assert asked["random_state"] == {case.cls.__name__ for case in CASES.values()}


# ---- the source


def with_cell(rows, value, dtype=float):
    rows = rows.astype(dtype)
    rows[1, 2] = value
    return rows


BAD_ROWS = {
    "NaN": (with_cell(X, np.nan), r"X .*NaN.* row 1 .*column 2"),
    "infinity": (with_cell(X, -np.inf), r"X .*inf.* row 1 "),
    "too large": (with_cell(X, 1e308), r"X holds 1e\+308 in row 1 "),
    "text": (with_cell(X, "a", object), r"X holds 'a' in row 1 .*column 2"),
    "an empty cell": (with_cell(X, None, object), "X .*empty cell.* row 1"),
    "masked": (np.ma.masked_equal(X, X[0, 0]), "X .*empty cell.* row 0"),
    "ragged": ([[1, 2, 3], [4, 5]] * (len(X) // 2), "X has rows of different lengths"),
    "one dimension": (X[:, 0], "X has 1 dimension.*Reshape your data"),
    "no rows": (X[:0], r"X has 0 row\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    "no columns": (X[:, :0], r"X has 0 feature\(s\) .* while a minimum of 1 is required"),
    "sparse": (scipy.sparse.csr_array((40_000, 10_000)), "X .*40000 × 10000.* 2.98 GiB"),
    "complex": (X * 1j, "Complex data not supported: X"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_rows_that_cannot_be_used_are_refused_by_fit(case, kind):
    rows, message = BAD_ROWS[kind]
    with pytest.raises(InputError, match=message):
        case.make().fit(rows, Y)


MANY = np.arange(len(Y))
BAD_LABELS = {
    "one positive": (MANY == 0, "positive has 1 row"),
    "one unlabelled": (MANY != 0, "unlabeled has 1 row"),
    "none": (None, "requires y to be passed, but the target y is None"),
    "all positive": (np.ones_like(Y), r"y holds one class \(1\)"),
    "all unlabelled": (np.zeros_like(Y), r"y holds one class \(0\)"),
    "many values": (MANY, r"y holds 120 values \(0, 1, 2, 3, 4\)"),
    "continuous": (MANY + 0.5, r"y holds 120 continuous values \(0.5, 1.5, 2.5"),
    "NaN": (np.where(Y == 1, 1, np.nan), "y contains NaN"),
    "three words": (np.array(["a", "b", "c"])[MANY % 3], "y holds 'a'"),
    "too few": (Y[:2], r"y has shape \(2,\).* 120 rows"),
    "two columns": (np.stack([Y, Y], axis=1), r"y has shape \(120, 2\).* 120 rows"),
    "masked": (np.ma.masked_equal(Y, 1), "y has masked cells"),
    "ragged": ([[1], [1, 2]] * (len(Y) // 2), "y has entries of different lengths"),
}


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_labels_that_do_not_tell_positives_are_refused_by_fit(case, kind):
    labels, message = BAD_LABELS[kind]
    with pytest.raises(InputError, match=message):
        case.make().fit(X, labels)


def test_two_words_are_labels_of_a_classifier_with_a_warning_and_of_no_other(name, case):
    words = np.where(Y == 1, "yes", "no")
    if not issubclass(case.cls, PUClassifier):
        with pytest.raises(InputError, match=r"y holds '(yes|no)'"):
            case.make().fit(X, words)
        with pytest.raises(InputError, match=r"y holds ''"):  # the one that is no number
            case.make().fit(X, np.where(Y == 1, "1", ""))
        return
    with pytest.warns(LabelOrderWarning, match=r"'yes'"):
        classifier = case.make(random_state=0).fit(X, words, shared=IDS)
    with pytest.raises(InputError, match="positive_label"):
        ps.TCPU().fit(X, words)
    assert classifier.classes_.tolist() == ["no", "yes"]
    assert answer(classifier) == answer(fitted(name))
    np.testing.assert_array_equal(classifier.predict(OTHER) == "yes", fitted(name).predict(OTHER) == 1)


NAMED = {
    "words": ("fraud", "ok"),
    "the smaller number": (0, 1),
    "nothing for the rest": ("fraud", None),
    "empty text for the rest": ("fraud", ""),
    "NaN for the rest": (3.0, np.nan),
}


@pytest.mark.parametrize("kind", NAMED)
def test_the_value_that_is_named_means_positive(first_of_class, kind):
    name, case = first_of_class, CASES[first_of_class]
    positive, other = NAMED[kind]
    labels = np.array([positive if label else other for label in Y], dtype=object)
    if None not in (positive, other) and type(positive) is type(other):
        labels = labels.astype(type(positive))
    estimator = case.make(random_state=0).fit(X, labels, shared=IDS, positive_label=positive)
    assert answer(estimator) == answer(fitted(name))
    missing = other is None or other != other or other == ""
    assert estimator.classes_.tolist() == [None if missing else other, positive]
    if isinstance(estimator, PUClassifier):
        np.testing.assert_array_equal(estimator.predict(OTHER) == positive, fitted(name).predict(OTHER) == 1)


@pytest.mark.parametrize(
    ("labels", "positive", "message"),
    [
        (np.where(Y == 1, "fraud", "ok"), "Fraud", r"^positive_label is 'Fraud'.*'fraud', 'ok'"),
        (np.array(["ok", "fraud", "n/a"])[np.arange(len(Y)) % 3], "fraud", r"^y holds 'ok', 'fraud', None"),
        (np.where(Y == 1, "fraud", "fraud"), "fraud", r"^y holds 'fraud'"),
        (Y, 2, "^positive_label is 2.* 1, 0"),
    ],
)  # fmt: skip
def test_a_name_that_does_not_tell_positives_is_refused(labels, positive, message):
    with pytest.raises(InputError, match=message):
        ps.TCPU(0.3).fit(X, labels, positive_label=positive)


@pytest.mark.parametrize("values", [(1, -1), (True, False), (2.0, 1.0), (7, -2)])
def test_the_larger_label_means_positive(first_of_class, values):
    name, case = first_of_class, CASES[first_of_class]
    estimator = case.make(random_state=0).fit(X, np.where(Y == 1, *values), shared=IDS)
    assert estimator.classes_.tolist() == sorted(values)
    assert answer(estimator) == answer(fitted(name))
    if isinstance(estimator, PUClassifier):
        assert set(estimator.predict(TARGET)) <= set(values)


BAD_SHARED = {
    "a word": ("same", "shared is 'same'"),
    "too few": ([1, 2], r"shared has shape \(2,\).* 120 rows"),
    "one id for all": (np.zeros(120), "rows of positive are one observation"),
    "missing ids": (np.full(120, np.nan), r"id in row 0 "),
}


@pytest.mark.parametrize("kind", BAD_SHARED)
def test_a_wrong_word_on_shared_rows_is_refused_by_fit(case, kind):
    shared, message = BAD_SHARED[kind]
    with pytest.raises(InputError, match=message):
        case.make().fit(X, Y, shared=shared)


@pytest.mark.parametrize("shared", ["identical", IDS], ids=["identical", "ids"])
def test_shared_is_known_under_censoring_and_refused(name, case, shared):
    censored = clone(case.make())
    scenarios = [key for key in censored.get_params() if key.split("__")[-1] == "scenario"]  # its own and its parts'
    if not scenarios:
        assert name in ("KM2LS", "KM2LS in groups")  # which does not use the unlabelled rows
        return
    censored.set_params(**dict.fromkeys(scenarios, "censoring"))
    with pytest.raises(InputError, match=r"scenario='censoring'"):
        censored.fit(X, Y, shared=shared)
    assert len(numbers(answer(censored.fit(X, Y)))) > 1


def test_a_source_that_was_read_before_gives_the_same_fit(name, case):
    estimator = case.make(random_state=0)
    scale = getattr(estimator, "standardize", False)
    source = Source.from_labels(X, Y, shared=IDS, scenario="case-control", standardize=scale)
    assert estimator.fit_source(source) is estimator
    assert answer(estimator) == answer(fitted(name))


def test_an_interrupted_fit_to_a_source_that_was_read_before_leaves_no_fit(case, monkeypatch):
    estimator = case.make(random_state=0).fit(X, Y)
    source = Source.from_labels(X, Y, scenario="case-control", standardize=getattr(estimator, "standardize", False))
    interrupt(monkeypatch, case.cls)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit_source(source)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert {name for name in vars(estimator) if name.endswith("_")} <= FITTED_BEFORE_WORK


# ---- the target


@pytest.mark.parametrize(
    "kind", ["NaN", "infinity", "too large", "text", "masked", "one dimension", "no rows", "sparse"]
)
def test_rows_that_cannot_be_used_are_refused_after_fit(reader, kind):
    name, method, table = reader
    rows, message = BAD_ROWS[kind]
    with pytest.raises(InputError, match=message.replace("X ", f"{table} ", 1).replace("pass X.", f"pass {table}.")):
        read(fitted(name), method, rows)


def test_one_row_is_no_sample_and_may_be_scored(reader):
    name, method, table = reader
    if table == "X":
        assert len(read(fitted(name), method, TARGET[:1])) == 1
        return
    with pytest.raises(InputError, match=r"target has 1 row"):
        read(fitted(name), method, TARGET[:1])


def test_other_columns_than_the_fitted_ones_are_refused(reader):
    name, method, table = reader
    with pytest.raises(InputError, match=rf"^{table} has 2 features.* 3"):
        read(fitted(name), method, TARGET[:, :2])
    named = fitted_on_names(name)
    with pytest.raises(InputError, match=f"^{table} .*'b'"):
        read(named, method, frame(TARGET, "ca"))
    with pytest.raises(InputError, match=f"^{table} .*'b'.*'B'"):
        read(named, method, frame(TARGET).rename(columns={"b": "B"}))
    with pytest.raises(InputError, match=f"^{table} .*'d'"):
        read(named, method, frame(TARGET).assign(d=1.0))


def said_of(estimator, method, rows):
    """What a method returns, as numbers."""
    said = read(estimator, method, rows)
    return np.array(numbers([said.target_prior_, said.threshold_] if said is estimator else said))


def test_columns_in_another_order_give_the_same_answer(reader):
    name, method, _ = reader
    named = fitted_on_names(name)
    assert named.feature_names_in_.tolist() == ["a", "b", "c"] and named.n_features_in_ == 3
    in_order = said_of(named, method, frame(TARGET))
    for given in (frame(TARGET, "cab"), frame(TARGET, "bac"), TARGET):
        np.testing.assert_allclose(said_of(named, method, given), in_order, rtol=1e-12, atol=1e-12)
    exchanged = said_of(named, method, TARGET[:, [2, 0, 1]])  # without names, another table
    assert len(in_order) > 1 and not np.allclose(exchanged, in_order, equal_nan=True)


def test_names_of_columns_change_no_number(name):
    nearly(answer(fitted_on_names(name), frame(TARGET, "cab")), answer_without_ids(name))


def constant(rows, value=7.0):
    return np.column_stack([rows, np.full(len(rows), value)])


@cache
def fitted_with_constant(name):
    return CASES[name].make(random_state=0).fit(constant(X), Y)


LEAVING_OUT = [reader for reader in READERS if (reader[0], reader[2]) != ("ShiftedClassifier", "X")]  # has all columns


@pytest.mark.parametrize(("name", "method", "table"), LEAVING_OUT)
def test_a_left_out_column_that_varies_in_the_target_is_warned_of(name, method, table):
    chosen(name)
    estimator = fitted_with_constant(name)
    varying = constant(TARGET)
    varying[3, 3] = 8.0
    with pytest.warns(ColumnWarning, match=f"column 3.*{table}"):
        with_warning = said_of(estimator, method, varying)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        without = said_of(estimator, method, constant(TARGET))
    np.testing.assert_array_equal(with_warning, without)  # it is left out indeed


def test_a_left_out_column_that_varies_among_the_positives_is_warned_of_by_fit(name, case):
    varying = constant(X)
    varying[Y == 1, 3] += np.arange((Y == 1).sum())
    with pytest.warns(ColumnWarning, match=r"column 3.* X"):
        estimator = case.make(random_state=0).fit(varying, Y)
    if case.cls is not ps.ShiftedClassifier:  # whose classifier has it
        assert answer(estimator, constant(TARGET)) == answer(fitted_with_constant(name), constant(TARGET))


# ---- before a fit, and when one fails


@pytest.mark.parametrize(("name", "ask"), [
    *((name, lambda e, method=method: read(e, method, TARGET)) for name, method, _ in READERS),
    ("KM1", lambda e: e.curve()),
    ("KM2", lambda e: e.curve()),
    ("TCPU", lambda e: e.source_prior_),
    ("TCPU asking KM2", lambda e: e.source_prior_),
    ("TCPU asking KM2", lambda e: e.prior_estimator_),
    ("DRPU model", lambda e: e.share_curve()),
    ("ShiftedClassifier", lambda e: e.adapt_to(0.5)),
    ("ShiftedClassifier", lambda e: e.metrics(TARGET, TARGET)),
])  # fmt: skip
def test_before_fit_there_is_no_answer(name, ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(CASES[name].make())


FITTED_BEFORE_WORK = {"classes_", "n_features_in_", "feature_names_in_"}


def interrupt(monkeypatch, cls, after=False):
    """Ctrl-C in the middle of a fit: before its work, or when all of it is done but the last line."""
    real = cls._fit

    def interrupted(self, source, rng):
        if after:
            real(self, source, rng)
        raise KeyboardInterrupt

    monkeypatch.setattr(cls, "_fit", interrupted)


@pytest.mark.parametrize("after", [False, True], ids=["before its work", "after its work"])
@pytest.mark.parametrize("earlier", [False, True], ids=["first fit", "second fit"])
def test_an_interrupted_fit_leaves_no_fit(name, case, monkeypatch, earlier, after):
    estimator = case.make(random_state=0)
    if earlier:
        estimator.fit(frame(OTHER), np.arange(len(OTHER)) % 2)
        answer(estimator, frame(OTHER))
    interrupt(monkeypatch, case.cls, after)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    if not after:  # nothing of the earlier one either
        assert {attribute for attribute in vars(estimator) if attribute.endswith("_")} <= FITTED_BEFORE_WORK
    methods = {method for reader, method, _ in READERS if CASES[reader].cls is case.cls}
    for method in methods:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            read(estimator, method, TARGET)
    assert bool(methods) == (case.cls not in (ps.KM1, ps.KM2, ps.MixturePrior))
    monkeypatch.undo()
    nearly(answer(estimator.fit(X, Y)), answer_without_ids(name))


def test_a_fit_that_refuses_its_rows_forgets_the_earlier_one(case):
    estimator = case.make(random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="contains NaN"):
        estimator.fit(with_cell(X, np.nan), Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_a_second_fit_forgets_the_first(name, case):
    estimator = case.make(random_state=0).fit(frame(OTHER)[["a", "b"]], np.arange(len(OTHER)) % 2)
    assert estimator.feature_names_in_.tolist() == ["a", "b"] and estimator.n_features_in_ == 2
    estimator.fit(X, Y, shared=IDS)
    assert not hasattr(estimator, "feature_names_in_") and estimator.n_features_in_ == 3
    assert answer(estimator) == answer(fitted(name))


# ---- randomness


@pytest.mark.parametrize("seed", [3, np.random.default_rng(3)], ids=["number", "Generator"])
def test_same_seed_same_answer(case, seed):
    answers = [answer(case.make(random_state=pickle.loads(pickle.dumps(seed))).fit(X, Y)) for _ in range(2)]
    assert answers[0] == answers[1]


def test_the_seed_decides_what_is_random_and_nothing_else(name):
    alike = answer(fitted(name, 0)) == answer(fitted(name, 1))
    assert alike == (name in NOTHING_RANDOM)


def test_without_a_seed_a_target_gets_the_same_answer_each_time(case):
    """What is random in `estimate` is decided at fit: no order of questions, and no pickle, changes it."""
    estimator = case.make().fit(X, Y, shared=IDS)
    never_asked = pickle.dumps(estimator)
    first = answer(estimator)
    answer(estimator, OTHER)
    assert answer(estimator) == first
    assert answer(pickle.loads(pickle.dumps(estimator))) == first
    assert answer(pickle.loads(never_asked)) == first


def state():
    seen = [np.random.get_state()[1].tolist(), np.random.get_state()[2], random.getstate()]
    if "torch" in sys.modules:
        seen.append(sys.modules["torch"].get_rng_state().tolist())
    return seen


def test_data_of_the_caller_and_global_random_state_are_untouched(case):
    given = [part.copy() for part in (X, Y, IDS, TARGET)]
    for part in given:
        part.setflags(write=False)
    before = state()
    answer(case.make().fit(*given[:2], shared=given[2]), given[3])
    assert state() == before
    for part, original in zip(given, (X, Y, IDS, TARGET), strict=True):
        np.testing.assert_array_equal(part, original)
    tables = frame(X), pd.Series(Y), frame(TARGET, "cab")
    copies = [table.copy(deep=True) for table in tables]
    answer(case.make().fit(*tables[:2]), tables[2])
    assert all(table.equals(copy) for table, copy in zip(tables, copies, strict=True))


# ---- pickles, clones, terminals and torch


def test_a_fitted_estimator_pickles(name):
    assert answer(pickle.loads(pickle.dumps(fitted(name)))) == answer(fitted(name))


def test_a_clone_has_the_parameters_and_no_fit(name):
    copy = clone(fitted(name))
    assert {key: repr(value) for key, value in copy.get_params().items()} == {
        key: repr(value) for key, value in fitted(name).get_params().items()
    }
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert not any(attribute.endswith("_") for attribute in vars(copy))
    assert answer(copy.fit(X, Y, shared=IDS)) == answer(fitted(name))


def test_a_bar_on_the_terminal_changes_no_number(name, case, monkeypatch, capsys):
    if "verbose" not in case.make().get_params(deep=False):
        assert name == "ShiftedClassifier"  # its two estimators may have it
        return
    monkeypatch.setattr("priorshift.progress._DELAY", -1.0)  # drawn at once
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    silent = answer(case.make(random_state=0).fit(X, Y, shared=IDS))
    assert capsys.readouterr().err == ""
    assert answer(case.make(random_state=0, verbose=True).fit(X, Y, shared=IDS)) == silent == answer(fitted(name))
    if case.cls is not ps.TCPU and name != "DRPU model":  # which are done before a bar could be drawn
        assert "] step " in capsys.readouterr().err


WITHOUT_TORCH = """
import sys, warnings
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("blocked")
sys.meta_path.insert(0, Blocked())
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore")
import numpy, test_contract as contract
from priorshift.errors import MissingExtraError
for name, case in contract.CASES.items():
    try:
        said = contract.numbers(contract.answer(case.make(random_state=0).fit(contract.X, contract.Y)))
        print(name, "answers", numpy.isfinite(said).sum(), sep="|")
    except MissingExtraError as error:
        print(name, "refuses", error, sep="|")
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def without_torch():
    code = WITHOUT_TORCH.format(tests=str(Path(__file__).parent))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {name: (verb, rest) for name, verb, rest in (line.split("|") for line in run.stdout.splitlines())}


@pytest.mark.parametrize("name", CASES)
def test_torch_is_needed_by_networks_alone(name, without_torch):
    verb, rest = without_torch[name]
    if not CASES[name].torch:
        assert verb == "answers" and int(rest) >= 2
        return
    assert verb == "refuses"
    assert rest == (
        "DRPU's network and NNPUClassifier are trained with torch, which is not installed; run pip install "
        '"priorshift[torch]", or pass DRPU a scikit-learn classifier as model.'
    )


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
@pytest.mark.parametrize(
    ("estimator", "change"),
    [
        (ps.TCPU(0.3), {"standardize": False}),
        (ps.TCPU(0.3), {"kernel": "laplace"}),
        (ps.TCPU(0.3), {"scenario": "censoring"}),
        (ps.KM2LS(), {"standardize": False}),
        (ps.WitnessShift(repeats=1), {"scenario": "censoring"}),
        (ps.WitnessShift(repeats=1), {"max_rows": 50}),
        (ps.DRPU(model=LogisticRegression()), {"source_prior": 0.3}),
        (ps.DRPU(model=LogisticRegression()), {"random_state": 3}),
        (ps.DRPU(model=LogisticRegression()), {"model__C": 0.001}),
    ],
)
def test_a_setting_that_only_a_fit_heeds_is_not_changed_after_it(estimator, change):
    s = ps.simulate.gaussian(0.3, 0.6, 200, 100, shared=False, random_state=0)
    fitted = clone(estimator).fit(s.X, s.y)
    fitted.estimate(s.target)
    name = next(iter(change))
    message = (
        f"{name} was {fitted.get_params()[name]!r} when {type(fitted).__name__} was fitted and is {change[name]!r}"
    )
    with pytest.raises(InputError, match=re.escape(f"{message} now; fit again")):
        fitted.set_params(**change).estimate(s.target)
    fitted.fit(s.X, s.y).estimate(s.target)


@pytest.mark.parametrize(("name", "ask"), [
    *((name, lambda e, method=method: read(e, method, TARGET)) for name, method, _ in READERS),
    ("KM1", lambda e: e.curve()),
    ("KM2", lambda e: e.curve()),
    ("DRPU model", lambda e: e.share_curve()),
    ("ShiftedClassifier", lambda e: e.adapt_to(0.5)),
    ("ShiftedClassifier", lambda e: e.metrics(TARGET, TARGET)),
])  # fmt: skip
def test_nothing_answers_with_settings_that_only_another_fit_could_heed(name, ask):
    changed = pickle.loads(pickle.dumps(fitted(chosen(name) and name)))
    ask(changed)
    with pytest.raises(InputError, match=r"random_state.* 0 .* 7"):
        ask(changed.set_params(random_state=7))
    ask(changed.set_params(random_state=0))  # as it was


def test_a_setting_of_a_part_is_not_changed_after_a_fit_either():
    changed = pickle.loads(pickle.dumps(fitted("ShiftedClassifier"))).set_params(classifier__C=0.01)
    for method in ("adapt", "predict", "predict_proba"):
        with pytest.raises(InputError, match=r"classifier__C.*0\.01"):
            read(changed, method, TARGET)
    ratio = ps.KernelRatio().fit(X, Y).set_params(kernel="laplace")
    with pytest.raises(InputError, match=r"'gaussian'.*'laplace'"):
        ratio.negative_ratio(TARGET)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_showing_a_fitted_estimator_computes_nothing_and_never_fails():
    s = ps.simulate.gaussian(0.3, 0.6, 200, 100, shared=False, random_state=0)
    for estimator in (ps.TCPU(), ps.TCPU(0.3), ps.WitnessShift(repeats=1, random_state=0)):
        fitted = estimator.fit(s.X, s.y)
        before = fitted.source_prior_
        assert "TCPU" in fitted._repr_html_() or "Witness" in fitted._repr_html_()
        assert fitted.source_prior_ == before
        fitted.set_params(source_prior=2)._repr_html_()


@pytest.mark.parametrize("name", ["standardize", "verbose"])
def test_a_flag_is_true_or_false(name):
    s = ps.simulate.gaussian(0.3, 0.6, 100, 50, random_state=0)
    with pytest.raises(InputError, match=f"{name} is 'no'"):
        ps.TCPU(0.3, **{name: "no"}).fit(s.X, s.y)
    told = ps.TCPU(0.3, standardize=np.True_).fit(s.X, s.y).estimate(s.target).to_dict()
    assert json.loads(json.dumps(told)) == told
