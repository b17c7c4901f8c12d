"""Estimators and classifiers on data frames with text, categories, dates and missing cells, as users have them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import test_contract as contract
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import priorshift as ps
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.readers import read_table
from priorshift.io.source_encoder import SourceEncoder

pytestmark = [
    pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning"),  # few rows, quick settings
    pytest.mark.filterwarnings("ignore:lbfgs failed to converge"),  # days since 1970, not scaled
]

SCORES = dict(repeats=2, folds=2, random_state=0)


def visits(n, prior, seed):
    """Return rows of a clinic, a share `prior` of them ill, and who is."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < prior
    table = pd.DataFrame({
        "fever": np.where(rng.random(n) < 0.1, np.nan, 37 + rng.normal(size=n) + 2 * ill),
        "ward": np.where(rng.random(n) < 0.2 + 0.6 * ill, "north", "south"),
        "size": pd.Categorical(np.where(rng.random(n) < 0.3 + 0.4 * ill, "large", "small")),
        "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n) + 60 * ill, unit="D"),
        "age": rng.normal(50, 10, n) + 5 * ill,
    })  # fmt: skip
    return table, ill


P, U, (T, ILL) = visits(150, 1.0, 0)[0], visits(400, 0.3, 1)[0], visits(400, 0.6, 2)
X, Y = pd.concat([P, U], ignore_index=True), np.repeat([1, 0], [len(P), len(U)])
COLUMNS = X.columns.tolist()


# ---- estimators


@pytest.fixture(params=contract.CASES)
def fitted(request):
    return contract.chosen(request.param).make(random_state=0).fit(X, Y)


def test_every_estimator_takes_a_data_frame_with_text_dates_and_missing_cells(fitted):
    assert fitted.n_features_in_ == 5 and fitted.feature_names_in_.tolist() == COLUMNS
    answer = contract.answer(fitted, T)
    assert np.isfinite(contract.numbers(answer)).any()
    assert contract.answer(fitted, T[COLUMNS[::-1]]) == answer  # columns are matched by name
    assert contract.answer(pickle.loads(pickle.dumps(fitted)), T) == answer


@pytest.mark.parametrize("source_prior", [0.3, None])
@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
def test_the_estimate_equals_that_of_estimate_prior(source_prior, scenario):
    """The encoder is fitted on the unlabelled rows in both, so that no digit differs."""
    estimator = ps.WitnessShift(source_prior, scenario=scenario, **SCORES)
    expected = ps.estimate_prior(P, U, T, method=estimator)
    estimate = estimator.fit(X, Y).estimate(T)
    assert estimate.value == expected.value and estimate.interval == expected.interval


def test_a_frame_of_polars_gives_the_same_estimate():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    fitted = ps.TCPU(0.3).fit(polars.from_pandas(X), Y)
    assert fitted.estimate(polars.from_pandas(T)).value == ps.TCPU(0.3).fit(X, Y).estimate(T).value


def test_levels_are_those_of_the_unlabelled_rows_and_not_of_the_target():
    """A level that only the target has may not get a column of its own."""
    other = T.assign(ward=T["ward"].where(np.arange(len(T)) % 3 > 0, "west"))
    fitted = ps.TCPU(0.3).fit(X, Y)
    with pytest.warns(ColumnWarning, match=r"134 of 400 rows of target .*'ward'"):
        estimate = fitted.estimate(other)
    encoder = ps.TableEncoder().fit(U)
    assert not any("west" in name for name in encoder.get_feature_names_out())
    with pytest.warns(ColumnWarning, match="'west'"):
        assert estimate.value == ps.estimate_prior(P, U, other, method=ps.TCPU(0.3)).value


def complete(table):
    """Return the two columns of numbers, without missing cells."""
    return table[["age"]].assign(fever=table["fever"].fillna(37.0))


def test_a_frame_of_numbers_gives_the_numbers_of_an_array():
    for estimator in (ps.TCPU(0.3), ps.WitnessShift(0.3, **SCORES)):
        by_frame = estimator.fit(complete(X), Y).estimate(complete(T)).to_dict()
        assert estimator.fit(complete(X).to_numpy(), Y).estimate(complete(T).to_numpy()).to_dict() == by_frame


def test_a_cell_that_is_missing_in_the_target_alone_becomes_the_median_with_a_warning():
    fitted, target = ps.TCPU(0.3).fit(complete(X), Y), complete(T)
    gaps = target.assign(age=target["age"].where(np.arange(len(T)) % 10 > 0))
    with pytest.warns(ColumnWarning, match=r"40 of 400 rows of target have no value in column 'age'"):
        estimate = fitted.estimate(gaps)
    assert estimate == fitted.estimate(gaps.fillna({"age": U["age"].median()}))


def test_the_encoder_of_a_frame_of_numbers_is_that_of_its_unlabelled_rows():
    encoder, table = SourceEncoder.fit(read_table(complete(X), "X"), Y == 1)
    assert encoder.encoder.to_header() == ps.TableEncoder().fit(complete(U)).to_header() and encoder.is_identity
    np.testing.assert_array_equal(table.values, complete(X).to_numpy())


def test_text_in_a_column_of_numbers_is_refused():
    fitted = ps.TCPU(0.3).fit(X, Y)
    with pytest.raises(InputError, match=r"'old'.*'age'"):
        fitted.estimate(T.assign(age="old"))
    with pytest.raises(InputError, match="lacks 'age'"):
        fitted.estimate(T.drop(columns="age"))


def test_names_of_rare_levels_are_not_stored():
    """A rare level may be the name of a person."""
    wards = X["ward"].where(np.arange(len(X)) != 300, "ward of Ada Lovelace")
    estimator = ps.WitnessShift(0.3, **SCORES).fit(X.assign(ward=wards), Y)
    assert b"Lovelace" not in pickle.dumps(estimator) and b"north" in pickle.dumps(estimator)


def test_an_estimator_on_a_frame_is_stored_without_pickle():
    stored = pytest.importorskip("skops.io")
    estimator = ps.WitnessShift(0.3, **SCORES).fit(X, Y)
    loaded = stored.loads(stored.dumps(estimator), trusted=ps.storage.TYPES)
    assert loaded.estimate(T).to_dict() == estimator.estimate(T).to_dict()


def test_a_pipeline_of_an_encoder_and_an_estimator_fits():
    """It has no `estimate`, since scikit-learn's pipelines pass on known methods alone; its steps have."""
    pipeline = make_pipeline(ps.TableEncoder(), ps.WitnessShift(0.3, **SCORES)).fit(X, Y)
    estimate = pipeline[-1].estimate(pipeline[:-1].transform(T))
    assert estimate.interval.low < ILL.mean() < estimate.interval.high


# ---- classifiers


def with_names(classifier):
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["ward", "size"]),
            (StandardScaler(), ["age"]),
        ),
        classifier,
    )


CLASSIFIERS = {
    "encoder in a pipeline": make_pipeline(ps.TableEncoder(), HistGradientBoostingClassifier(max_iter=20)),
    "columns by name": with_names(LogisticRegression()),
    "fitted before": FrozenEstimator(with_names(LogisticRegression()).fit(X, Y)),
    "boosting alone": HistGradientBoostingClassifier(max_iter=20),
    "logistic regression alone": LogisticRegression(max_iter=2000),
    "categories of pandas": make_pipeline(
        make_column_transformer(("passthrough", ["size", "fever", "age"])).set_output(transform="pandas"),
        HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype"),
    ),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_for_a_data_frame_is_fitted_adapted_and_decides(name):
    shifted = ps.ShiftedClassifier(
        CLASSIFIERS[name], ps.WitnessShift(0.3, **SCORES), folds=2, random_state=0
    ).fit(X, Y)  # fmt: skip
    assert shifted.n_features_in_ == 5
    before = (shifted.predict(T) == ILL).mean()
    posterior = shifted.adapt(T).predict_proba(T)
    assert abs(shifted.target_prior_ - ILL.mean()) < 0.12
    np.testing.assert_array_equal(shifted.predict_proba(T[COLUMNS[::-1]]), posterior)
    assert posterior[ILL, 1].mean() > posterior[~ILL, 1].mean() + 0.1
    decisions = shifted.decide(T, top=50)
    assert decisions.is_positive.sum() == 50 and ILL[decisions.is_positive].mean() > ILL.mean()
    assert (shifted.predict(T) == ILL).mean() > before - 0.05
    assert 0 < shifted.metrics(P, T).recall <= 1
    loaded = pickle.loads(pickle.dumps(shifted))
    np.testing.assert_array_equal(loaded.predict_proba(T), posterior)


def test_a_prior_estimator_that_was_fitted_before_on_the_frame_is_used():
    prior_estimator = ps.WitnessShift(0.3, **SCORES).fit(X, Y)
    expected = prior_estimator.estimate(T)
    shifted = ps.ShiftedClassifier(CLASSIFIERS["columns by name"], FrozenEstimator(prior_estimator), random_state=0)
    assert shifted.fit(X, Y).adapt(T).estimate_ == expected


def test_a_pipeline_gets_the_frame_of_numbers_too():
    shifted = ps.ShiftedClassifier(
        make_pipeline(make_column_transformer((StandardScaler(), ["age"])), LogisticRegression()), ps.TCPU(0.3)
    ).fit(complete(X), Y)
    by_hand = ps.ShiftedClassifier(make_pipeline(StandardScaler(), LogisticRegression()), ps.TCPU(0.3))
    by_hand.fit(complete(X)[["age"]].to_numpy(), Y)
    rows = complete(T)
    posterior = shifted.classifier_.predict_proba(rows)
    np.testing.assert_allclose(by_hand.classifier_.predict_proba(rows[["age"]].to_numpy()), posterior)


def test_weights_reach_the_last_step_of_a_pipeline():
    weights = np.where(Y == 1, 1.0, np.where(X["age"] > 50, 5.0, 0.2))
    fits = [
        ps.ShiftedClassifier(classifier, ps.TCPU(0.3), random_state=0).fit(complete(X), Y, weights=weights)
        for classifier in (LogisticRegression(), make_pipeline(LogisticRegression()))
    ]
    one, two = (fit.predict_proba(complete(T)) for fit in fits)
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_what_is_special_to_the_last_step_of_a_pipeline_counts():
    pytest.importorskip("torch")
    network = ps.NNPUClassifier(0.3, hidden=(4,), max_epochs=2, folds=2)
    shifted = ps.ShiftedClassifier(make_pipeline(ps.TableEncoder(), network), ps.TCPU(0.3), random_state=0).fit(X, Y)
    assert shifted.source_prior_ == 0.3 and shifted.calibration_ is not None
    assert shifted.classifier_[-1].predicts_positive and shifted.predict_proba(T).shape == (len(T), 2)
    censoring = ps.NNPUClassifier(0.3, scenario="censoring")
    with pytest.raises(InputError, match="scenario"):
        ps.ShiftedClassifier(make_pipeline(ps.TableEncoder(), censoring), ps.TCPU(0.3)).fit(X, Y)


def test_a_file_is_refused_where_a_pipeline_was_fitted_to_a_frame(tmp_path):
    T.to_csv(tmp_path / "t.csv", index=False)
    fitted = ps.ShiftedClassifier(CLASSIFIERS["columns by name"], ps.TCPU(0.3), random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="data frame"):
        fitted.predict(str(tmp_path / "t.csv"))
