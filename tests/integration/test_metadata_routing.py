"""scikit-learn's metadata routing and containers of output, which the library's estimators take part in."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import test_mixed_frames as mixed
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline

import priorshift as ps

pytestmark = pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")  # few rows

X, Y, T = mixed.complete(mixed.X), mixed.Y, mixed.complete(mixed.T)
WEIGHTS = np.where(X["age"] > 50, 5.0, 0.2)
GROUPS = np.arange(len(Y)) // 2


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_an_estimator_in_a_pipeline_gets_the_weights_and_groups_that_it_requests(routing):
    estimator = ps.TCPU(0.3).set_fit_request(weights="sample_weight", groups=True)
    pipeline = make_pipeline(ps.TableEncoder(), estimator).fit(X, Y, sample_weight=WEIGHTS, groups=GROUPS)
    rows, target = (pipeline[:-1].transform(table) for table in (X, T))
    expected = ps.TCPU(0.3).fit(rows, Y, weights=WEIGHTS, groups=GROUPS).estimate(target)
    assert pipeline[-1].estimate(target) == expected != ps.TCPU(0.3).fit(rows, Y).estimate(target)


def posterior(classifier, **metadata):
    return ps.ShiftedClassifier(classifier, ps.TCPU(0.3), random_state=0).fit(X, Y, **metadata).predict_proba(T)


def by_weights(**metadata):
    """The posterior without routing, where weights reach every classifier that takes them."""
    with sklearn.config_context(enable_metadata_routing=False):
        return posterior(LogisticRegression(), **metadata)


def test_a_shifted_classifier_passes_weights_on_as_requested(routing):
    weighted = by_weights(weights=WEIGHTS)
    for requested in (LogisticRegression().set_fit_request(sample_weight=True), LogisticRegression()):
        np.testing.assert_allclose(posterior(requested, weights=WEIGHTS), weighted)
    in_pipeline = make_pipeline(LogisticRegression().set_fit_request(sample_weight=True))
    np.testing.assert_allclose(posterior(in_pipeline, weights=WEIGHTS), weighted, rtol=1e-5)
    declined = make_pipeline(LogisticRegression().set_fit_request(sample_weight=False))
    without = posterior(declined, weights=WEIGHTS)
    assert not np.allclose(without, weighted, rtol=1e-3)
    np.testing.assert_array_equal(
        without, posterior(LogisticRegression().set_fit_request(sample_weight=False), weights=WEIGHTS)
    )


def test_weights_that_a_pipeline_neither_requests_nor_declines_are_refused_by_scikit_learn(routing):
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        posterior(make_pipeline(LogisticRegression()), weights=WEIGHTS)


def test_groups_reach_a_search_that_splits_by_them(routing):
    search = GridSearchCV(
        LogisticRegression().set_fit_request(sample_weight=False), {"C": [0.1, 1.0]}, cv=GroupKFold(2)
    )
    assert posterior(search, groups=GROUPS).shape == (len(T), 2)
    with pytest.raises(ValueError, match="groups"):
        posterior(search)


def test_a_shifted_classifier_gets_its_own_weights_from_a_cross_validation(routing):
    classifier = LogisticRegression().set_fit_request(sample_weight=True)
    shifted = ps.ShiftedClassifier(classifier, ps.TCPU(0.3), random_state=0)
    shifted.set_fit_request(weights="sample_weight").set_score_request(sample_weight=False)
    data, folds = X.to_numpy(), StratifiedKFold(2)
    found = cross_validate(
        shifted, data, Y, params={"sample_weight": WEIGHTS}, cv=folds, return_estimator=True, error_score="raise"
    )
    train, _ = next(folds.split(data, Y))
    expected = clone(shifted).fit(data[train], Y[train], weights=WEIGHTS[train]).predict_proba(T.to_numpy())
    np.testing.assert_array_equal(found["estimator"][0].predict_proba(T.to_numpy()), expected)


@pytest.mark.parametrize("container", ["pandas", "polars", "default"])
def test_an_encoder_returns_the_container_that_it_is_set_to(container):
    frame_type = {"pandas": pd.DataFrame, "default": np.ndarray}.get(container)
    if frame_type is None:
        frame_type = pytest.importorskip("polars").DataFrame
    encoder = ps.TableEncoder().set_output(transform=container).fit(mixed.U)
    encoded = encoder.transform(mixed.T[::-1])
    assert isinstance(encoded, frame_type)
    np.testing.assert_array_equal(encoded, ps.TableEncoder().fit(mixed.U).transform(mixed.T[::-1]))
    if container != "default":
        assert list(encoded.columns) == encoder.get_feature_names_out().tolist()
    if container == "pandas":
        assert encoded.index.equals(mixed.T[::-1].index)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_nothing_depends_on_the_container_that_is_set_for_all_transformers(container):
    pytest.importorskip(container)
    classifier = mixed.CLASSIFIERS["encoder in a pipeline"]
    shifted = ps.ShiftedClassifier(classifier, ps.TCPU(0.3), random_state=0)
    expected = shifted.fit(mixed.X, mixed.Y).predict_proba(mixed.T)
    with sklearn.config_context(transform_output=container):
        by_frames = shifted.fit(mixed.X, mixed.Y).predict_proba(mixed.T)
        encoded = ps.estimate_prior(
            mixed.P, mixed.U, mixed.T, source_prior=0.3, encoder=ps.TableEncoder(), method="tcpu"
        )
    np.testing.assert_allclose(by_frames, expected)
    again = ps.estimate_prior(mixed.P, mixed.U, mixed.T, source_prior=0.3, encoder=ps.TableEncoder(), method="tcpu")
    assert encoded.value == pytest.approx(again.value)
