"""Fit once, use for years: what is stored answers as before, and holds no rows that it can do without."""

import io
import pickle
import warnings
from dataclasses import dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
import test_contract as contract
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import priorshift as ps
from priorshift import storage
from priorshift.base import PUEstimator
from priorshift.errors import InputError, StoredVersionWarning
from priorshift.problem import Source

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")  # few rows, quick settings

X, Y, IDS, TARGET = contract.X, contract.Y, contract.IDS, contract.TARGET
AUDIT = np.full(len(Y), np.nan)
AUDIT[np.flatnonzero(~np.isin(IDS, IDS[Y == 1]))[:20]] = np.arange(20) % 2
MORE = {
    "KernelRatio": contract.Case(ps.KernelRatio),
    "WitnessShift model": contract.Case(ps.WitnessShift, dict(model=LogisticRegression(), **contract.SCORES)),
    "WitnessShift asking MixturePrior": contract.Case(
        ps.WitnessShift, dict(source_prior=ps.MixturePrior(**contract.SCORES), **contract.SCORES)
    ),
    "TCPU kernel object": contract.Case(ps.TCPU, dict(source_prior=0.3, kernel=ps.kernels.Laplace(3.0))),
    "TCPU bandwidth": contract.Case(ps.TCPU, dict(source_prior=0.3, bandwidth="variance")),
    "ShiftedClassifier of TCPU": contract.Case(
        ps.ShiftedClassifier, dict(classifier=LogisticRegression(), prior_estimator=ps.TCPU(0.3))
    ),
}
CASES = contract.CASES | MORE


@pytest.fixture(params=CASES)
def fitted(request):
    case = CASES[request.param]
    if case.torch:
        pytest.importorskip("torch")
    return case.make(random_state=0).fit(X, Y, shared=IDS)


def answer(estimator):
    if type(estimator) is ps.KernelRatio:
        return estimator.negative_ratio(TARGET).to_dict()
    return contract.answer(estimator)


def by_pickle(estimator):
    return pickle.loads(pickle.dumps(estimator))


def by_joblib(estimator):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(estimator):
    stored = pytest.importorskip("skops.io")
    return stored.loads(stored.dumps(estimator), trusted=storage.TYPES)  # which refuses any other type


WAYS = {"pickle": by_pickle, "joblib": by_joblib, "skops": by_skops}


@pytest.mark.parametrize("way", WAYS)
def test_a_stored_estimator_answers_bit_by_bit_as_before(fitted, way):
    """Stored before it was first asked, and after."""
    fresh = WAYS[way](fitted)
    said = answer(fitted)
    assert answer(fresh) == said
    assert answer(WAYS[way](fitted)) == said


def test_a_clone_of_a_loaded_estimator_fits_alike(fitted):
    copy = clone(by_pickle(fitted))
    assert "_version" not in vars(copy) and "_layout" not in vars(copy)
    assert answer(copy.fit(X, Y, shared=IDS)) == answer(fitted)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("settings", [{}, {"method": "tcpu"}, {"model": LogisticRegression()}, {"source_prior": None}])
def test_several_classes_are_stored_too(way, settings):
    priors = {"a": 0.2, "b": 0.3}
    s = ps.simulate.gaussian_classes(priors, priors, n_class=40, n_source=100, n_target=80, random_state=0)
    shift = ps.MulticlassShift(**{"source_prior": priors, "repeats": 2, "random_state": 0} | settings).fit(s.X, s.y)
    loaded = WAYS[way](shift)
    assert loaded.estimate(s.target).to_dict() == shift.estimate(s.target).to_dict()


@pytest.mark.parametrize("way", WAYS)
def test_an_audit_and_a_generator_are_stored_too(way):
    estimator = ps.WitnessShift(random_state=np.random.default_rng(1), **contract.SCORES).fit(X, Y, audit=AUDIT)
    loaded = WAYS[way](estimator)
    said = estimator.estimate(TARGET).to_dict()
    assert "audit" in said["details"] and loaded.estimate(TARGET).to_dict() == said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("columns", [["age", "sex", "day"], ["age"], ["sex"], ["whole"]])
def test_an_encoder_of_tables_is_stored_too(way, columns):
    source = pd.DataFrame({"age": [30.0, None, 50, 20] * 5, "sex": ["f", "m", "f", None] * 5, "whole": range(20),
                           "day": pd.date_range("2024-01-01", periods=20)})[columns]  # fmt: skip
    encoder = ps.TableEncoder(min_frequency=6).fit(source)
    loaded = WAYS[way](encoder)
    np.testing.assert_array_equal(loaded.transform(source[::-1]), encoder.transform(source[::-1]))
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert str(loaded.summary_) == str(encoder.summary_)


def test_what_a_user_brings_has_types_besides():
    stored = pytest.importorskip("skops.io")
    estimator = ps.WitnessShift(stats.beta(3, 7), random_state=0, **contract.SCORES).fit(X, Y)
    data = stored.dumps(estimator)
    besides = set(stored.get_untrusted_types(data=data)) - set(storage.TYPES)
    assert besides and all(name.startswith("scipy.stats.") for name in besides)
    loaded = stored.loads(data, trusted=[*storage.TYPES, *besides])
    assert loaded.estimate(TARGET).to_dict() == estimator.estimate(TARGET).to_dict()


def test_every_estimator_is_among_the_types():
    estimators = {
        name for name in ps.__all__ if isinstance(made := getattr(ps, name), type) and issubclass(made, PUEstimator)
    }
    assert estimators == {name.rpartition(".")[2] for name in storage.TYPES} & set(ps.__all__) - {
        "Interval", "NegativeRatio", "PriorEstimate", "TableEncoder"}  # fmt: skip
    # and all of them are stored above
    assert {case.cls.__name__ for case in CASES.values()} | {"MulticlassShift"} == estimators


# ---- versions


def aged(estimator, version):
    """Its pickle, as another version would have written it."""
    copy = by_pickle(estimator)
    if version is None:
        del copy._version
    else:
        copy._version = version
    return pickle.dumps(copy)


FITTED = ps.TCPU(0.3).fit(X, Y)


@pytest.mark.parametrize("version", ["0.0.9", "0.2.0", "1.1.0", "10.1.0", None])
def test_a_fit_of_another_version_is_warned_of_when_it_is_loaded(version):
    data = aged(FITTED, version)
    with pytest.warns(
        StoredVersionWarning,
        match=rf"fitted by priorshift {version or 'an earlier version'}, but is .*{ps.__version__}",
    ):
        assert answer(pickle.loads(data)) == answer(FITTED)


@pytest.mark.parametrize("version", [ps.__version__, "0.1.0", "0.1.7"])
def test_a_fit_of_the_same_generation_is_not(version):
    assert ps.__version__.startswith("0.1.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(aged(FITTED, version))
        pickle.loads(pickle.dumps(ps.TCPU(0.3)))  # nothing was fitted


def test_from_version_one_on_only_the_first_number_counts(monkeypatch):
    same, before = aged(FITTED, "2.0.1"), aged(FITTED, "1.9.0")
    monkeypatch.setattr("priorshift.base.__version__", "2.3.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(same)
    with pytest.warns(StoredVersionWarning, match=r"1\.9\.0.*2\.3\.0"):
        pickle.loads(before)


def test_skops_warns_of_the_version_as_well():
    stored = pytest.importorskip("skops.io")
    copy = by_pickle(FITTED)
    copy._version = "0.7.0"
    data = stored.dumps(copy)
    with pytest.warns(StoredVersionWarning, match=r"0\.7\.0"):
        stored.loads(data, trusted=storage.TYPES)


# ---- rows


@dataclass
class Trace:
    """The cells of a source, as they are and scaled, as the eight bytes that a stored array has of each."""

    cells: set

    @classmethod
    def of(cls, X, y):
        source = Source.from_labels(X, y, scenario="case-control", standardize=True)
        scaled = source.rows[:]
        prepared = scaled / np.sqrt(scaled[source.population].var(axis=0).mean())
        return cls({cell.tobytes() for rows in (X, scaled, prepared) for cell in rows.ravel()})

    def found(self, estimator):
        """How many of them stand in its pickle."""
        data = pickle.dumps(estimator, protocol=5)
        return sum(data[k : k + 8] in self.cells for k in range(len(data) - 7))


@pytest.fixture(scope="module")
def trace():
    return Trace.of(X, Y)


@pytest.mark.parametrize("name", CASES)
def test_only_an_estimator_that_says_so_keeps_rows(name, trace):
    case = CASES[name]
    if case.torch:
        pytest.importorskip("torch")
    estimator = case.make(random_state=0).fit(X, Y, shared=IDS)
    if type(estimator) is not ps.KernelRatio:
        answer(estimator)
    parts = [estimator, *(part for part in vars(estimator).values() if isinstance(part, PUEstimator))]
    asked = getattr(estimator, "prior_estimator_", None)
    keeps = any(part.keeps_rows for part in [*parts, *([asked] if asked is not None else [])])
    assert (trace.found(estimator) > 0) == keeps
    assert (
        keeps == name.startswith(("TCPU", "KernelRatio", "KM")) or "KM2" in name or name == "ShiftedClassifier of TCPU"
    )


def test_a_model_of_the_user_may_keep_rows(trace):
    """Nearest neighbours are rows: no library can store the one without the other."""
    keeps = ps.WitnessShift(0.3, model=KNeighborsClassifier(3), **contract.SCORES).fit(X, Y)
    keeps_none = ps.WitnessShift(0.3, model=LogisticRegression(), **contract.SCORES).fit(X, Y)
    assert trace.found(keeps) > 0 and trace.found(keeps_none) == 0


def test_ids_and_audits_are_not_kept():
    """Ids of patients, say; which rows are one observation is known by their numbers."""
    names = np.array([f"patient-{k:05d}" for k in IDS])
    estimator = ps.WitnessShift(random_state=0, **contract.SCORES).fit(X, Y, shared=names, audit=AUDIT)
    data = pickle.dumps(estimator)
    assert b"patient" not in data and "patient".encode("utf-32-le") not in data
    source = estimator.witness_.source
    assert source.audit is None and source.metadata.audit is None and source.metadata.ids is None


def test_a_wide_table_makes_a_witness_no_larger_than_its_model():
    """Rows of 200 columns weigh 1600 bytes each; what is kept of a row are a few scores."""
    rng, sizes = np.random.default_rng(0), []
    for rows in (200, 600):
        wide, y = rng.normal(size=(rows, 200)), np.arange(rows) % 3 == 0
        sizes.append(len(pickle.dumps(ps.WitnessShift(0.3, random_state=0, **contract.SCORES).fit(wide, y))))
    assert sizes[1] - sizes[0] < 400 * 200


def test_a_source_without_rows_still_says_what_is_one_observation():
    source = Source.from_labels(X, Y, shared=IDS, scenario="case-control", standardize=True)
    kept = source.without_rows()
    np.testing.assert_array_equal(kept.observation, source.observation)
    assert len(np.unique(kept.observation)) < len(Y)  # some are shared
    assert kept.P.observations == source.P.observations and kept.sizes == source.sizes
    assert kept.table.values.size == 0


# ---- a diagnosis from the stored file alone


@pytest.mark.parametrize("way", WAYS)
def test_a_stored_fit_with_its_rows_diagnoses_a_later_target_as_three_tables_do(way):
    problem = ps.simulate.gaussian(0.3, 0.6, 300, 200, shared=False, dimension=3, random_state=0)
    text = np.where(np.arange(200) % 3 > 0, "north", "south")
    source = pd.DataFrame(problem.X, columns=list("abc")).assign(ward=np.resize(text, len(problem.X)))
    target = pd.DataFrame(problem.target, columns=list("abc")).assign(ward=text)
    P, U = source[problem.y == 1], source[problem.y == 0]
    settings = dict(random_state=0, **contract.SCORES)
    expected = ps.diagnose(P, U, target, method=ps.WitnessShift(**settings))
    fitted = ps.WitnessShift(keep_rows=True, **settings).fit(pd.concat([P, U]), np.repeat([1, 0], [len(P), len(U)]))
    loaded = WAYS[way](fitted)
    assert ps.diagnose(target=target, method=loaded).to_dict() == expected.to_dict()
    assert loaded.estimate(target).value == expected.estimate.value


def test_a_diagnosis_from_a_fit_quotes_the_warnings_of_the_fit():
    copied = np.concatenate([X, X[Y == 0][:20]]), np.concatenate([Y, np.zeros(20)])
    fitted = by_pickle(ps.WitnessShift(0.3, keep_rows=True, random_state=0, **contract.SCORES).fit(*copied))
    warned = [name for name, _ in fitted.reference_.warnings]
    assert "DuplicateRowsWarning" in warned
    verdict = ps.diagnose(target=TARGET, method=fitted).verdict
    assert any("copies" in reason for reason in map(str, verdict.reasons))


def test_weights_of_the_target_reach_a_diagnosis_from_a_fit():
    fitted = ps.WitnessShift(0.3, keep_rows=True, random_state=0, **contract.SCORES).fit(X, Y)
    weights = np.linspace(1, 3, len(TARGET))
    diagnosed = ps.diagnose(target=TARGET, method=fitted, weights={"target": weights}).estimate
    assert diagnosed.value == fitted.estimate(TARGET, weights=weights).value != fitted.estimate(TARGET).value


def test_a_diagnosis_without_the_rows_of_the_source_is_refused():
    fitted = ps.WitnessShift(0.3, random_state=0, **contract.SCORES).fit(X, Y)
    assert not hasattr(fitted, "reference_")
    with pytest.raises(ps.errors.InputError, match="keep_rows"):
        ps.diagnose(target=TARGET, method=fitted)
    kept = ps.WitnessShift(0.3, keep_rows=True, random_state=0, **contract.SCORES).fit(X, Y)
    for options in ({"source_prior": 0.2}, {"drop": ["a"]}, {"encoder": None}, {"weights": "w"}):
        with pytest.raises(ps.errors.InputError, match=next(iter(options))):
            ps.diagnose(target=TARGET, method=kept, **options)
    with pytest.raises(ps.errors.InputError, match="positive is None"):
        ps.diagnose(target=TARGET)


def test_a_notice_of_a_format_is_no_doubt_of_a_stored_fit_and_options_of_reading_are_refused():
    s = ps.simulate.gaussian(0.2, 0.6, n_source=800, n_target=400, shared=False, random_state=0)
    frame = pd.DataFrame(s.X, columns=[f"x{k}" for k in range(s.X.shape[1])])
    with pytest.warns(ps.errors.ColumnWarning, match="row names"):
        fitted = ps.WitnessShift(0.2, keep_rows=True, random_state=0).fit(frame.reset_index(names="Unnamed: 0"), s.y)
    target = pd.DataFrame(s.target, columns=frame.columns)
    found = ps.diagnose(target=target, method=fitted)
    assert not any("row names" in reason for reason in found.verdict.reasons)
    for option in ({"missing": [-9]}, {"columns": {"x0": "category"}}, {"sheet": "a"}):
        with pytest.raises(InputError, match="together with a fitted estimator"):
            ps.diagnose(target=target, method=fitted, **option)
