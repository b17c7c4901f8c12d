"""Several classes from streams: the estimate of the rows, for any partition, in constant memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import priorshift as ps
from priorshift.distributed.summaries import open_streams
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.scores.class_scores import efficient_functions
from priorshift.sketch.class_functions import ClassFunctions

SOURCE, TARGET = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}
COLUMNS = list("xyz")


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian_classes(
        SOURCE, TARGET, n_class=200, n_source=500, n_target=500, dimension=3, random_state=0
    )


def make_shift(source_prior=SOURCE, **settings):
    """A fast estimator whose models hardly depend on the fold, so that few rows are enough to compare two of them."""
    fast = {"model": LogisticRegression(), "repeats": 2, "folds": 3, "random_state": 0}
    return ps.MulticlassShift(source_prior, **{**fast, **settings})


def numbers(priors):
    return np.array([[estimate.raw, estimate.standard_error] for estimate in priors.values()])


def check_agreement(streamed, in_memory, share=0.15):
    """Both are the same estimator but for the models that score the target's rows."""
    assert list(streamed) == list(in_memory)
    (found, errors), (expected, expected_errors) = numbers(streamed).T, numbers(in_memory).T
    assert (np.abs(found - expected) / expected_errors).max() < share
    np.testing.assert_allclose(errors, expected_errors, rtol=0.05)
    for name, estimate in streamed.items():
        assert estimate.sizes == in_memory[name].sizes
        assert estimate.interval.width == pytest.approx(in_memory[name].interval.width, rel=0.08)


@pytest.mark.parametrize(
    "settings",
    [{}, {"scenario": "censoring"}, {"source_prior": {"a": 0.2}}, {"model": None, "folds": 5}],
    ids=["case-control", "censoring", "one prior unknown", "ridge regression"],
)
def test_a_stream_gives_the_estimate_of_its_rows(sample, settings):
    samples, shift = (sample.classes, sample.unlabeled, sample.target), make_shift(**settings)
    streamed, in_memory = (ps.estimate_prior(*samples, method=shift, stream=stream) for stream in (True, False))
    check_agreement(streamed, in_memory, share=0.15 if shift.model else 0.4)


def test_without_a_rest_no_unlabelled_rows_are_needed(sample):
    is_labelled = np.isin(sample.target_labels, ["a", "b"])
    target = sample.target[is_labelled]
    samples, shift = (sample.classes, None, target), make_shift(None, rest=False)
    check_agreement(ps.estimate_prior(*samples, method=shift, stream=True), ps.estimate_prior(*samples, method=shift))
    by_features = ps.estimate_prior(sample.classes, None, target, rest=False, method="tcpu", stream=True)
    by_kernel = ps.estimate_prior(sample.classes, None, target, rest=False, method="tcpu")
    assert abs(by_features["a"].raw - by_kernel["a"].raw) < by_kernel["a"].standard_error


def test_tcpu_of_a_stream_uses_sketches_of_the_samples(sample):
    samples = sample.classes, sample.unlabeled, sample.target
    streamed = ps.estimate_prior(*samples, source_prior=SOURCE, method="tcpu", stream=True)
    U = ps.sketch.Sketch.from_sample(sample.unlabeled)
    sketches = [ps.sketch.Sketch.from_sample(X, like=U) for X in (*sample.classes.values(), sample.target)]
    expected = ps.estimate_prior(
        dict(zip("ab", sketches, strict=False)), U, sketches[-1], source_prior=SOURCE, method="tcpu"
    )
    np.testing.assert_allclose(numbers(streamed), numbers(expected), rtol=1e-9)


def test_files_iterators_and_lists_give_the_same(sample, tmp_path):
    arrays = {**sample.classes, "u": sample.unlabeled, "t": sample.target}
    expected = ps.estimate_prior(sample.classes, sample.unlabeled, sample.target, method=make_shift(), stream=True)
    parts = {}
    for name, X in arrays.items():
        parts[name] = [tmp_path / f"{name}{k}.parquet" for k in range(3)]
        for path, rows in zip(parts[name], np.array_split(X, [100, 130]), strict=True):
            pd.DataFrame(rows, columns=COLUMNS).to_parquet(path)
    tables = (pd.DataFrame(rows, columns=COLUMNS) for rows in np.array_split(sample.target, 7))
    classes = {name: parts[name] for name in "ab"}
    for target in (parts["t"], tables):
        found = ps.estimate_prior(classes, parts["u"], target, method=make_shift())
        # the size of an iterator is not known, so that other functions are chosen
        tolerance = 1e-9 if target is parts["t"] else 0.1 * expected["a"].standard_error
        np.testing.assert_allclose(numbers(found), numbers(expected), atol=tolerance)


def test_rows_that_were_fitted_are_scored_by_models_that_have_not_seen_them(sample):
    """At the rows of the source, the functions are those of the cross-fitted scores."""
    streams = open_streams(
        {"class 'a'": sample.classes["a"], "class 'b'": sample.classes["b"], "unlabeled": sample.unlabeled,
         "target": sample.target}, (), None,
    )  # fmt: skip
    shift = make_shift()
    functions = ClassFunctions.fit(shift, ("a", "b"), streams, {}, ())
    for k, X in enumerate((*sample.classes.values(), sample.unlabeled)):
        expected = efficient_functions(functions.scores.ratios[k], functions.coefficients, functions.sizes)
        np.testing.assert_allclose(functions(functions.reader(X, "rows")), expected, rtol=1e-9)
    # in any order and partition
    rows = functions.reader(sample.target, "rows")
    order = np.random.default_rng(0).permutation(len(rows))
    in_parts = np.concatenate([functions(part) for part in np.array_split(rows[order], 3)])
    np.testing.assert_allclose(in_parts, functions(rows)[order], rtol=1e-9)
    np.testing.assert_allclose(functions.sizes, [200, 200, 500, 500])


@pytest.mark.slow
def test_a_score_of_few_rows_is_nearly_as_precise():
    """The scores are fitted to 1500 of 45,000 rows; all rows enter the means."""
    s = ps.simulate.gaussian_classes(
        SOURCE, TARGET, n_class=5000, n_source=15_000, n_target=20_000, dimension=3, random_state=1
    )
    few = ps.MulticlassShift(SOURCE, fit_rows=1500, random_state=0)
    found = ps.estimate_prior(s.classes, s.unlabeled, s.target, method=few, stream=True)
    in_memory = ps.estimate_prior(s.classes, s.unlabeled, s.target, method=few)
    for name, share in {**TARGET, "rest": 0.4}.items():
        error = found[name].standard_error
        assert abs(found[name].raw - share) < 4 * error and error < 0.01
        assert error < 1.15 * in_memory[name].standard_error
    assert found["a"].sizes == (5000, 15_000, 20_000)


def test_weights_count_as_in_memory(sample):
    """The target is made to have more of class a by weights; the other samples have no column of weights."""
    weights = np.where(sample.target_labels == "a", 4.0, 1.0)
    samples = (
        {name: pd.DataFrame(X, columns=COLUMNS) for name, X in sample.classes.items()},
        pd.DataFrame(sample.unlabeled, columns=COLUMNS),
        pd.DataFrame(sample.target, columns=COLUMNS).assign(w=weights),
    )
    in_memory = ps.estimate_prior(*samples, method=make_shift(), weights="w")
    check_agreement(ps.estimate_prior(*samples, method=make_shift(), stream=True, weights="w"), in_memory)
    plain = ps.estimate_prior(*samples, method=make_shift(), stream=True, drop=["w"])
    assert in_memory["a"].raw > plain["a"].raw + 0.2


def test_categories_are_encoded_by_the_unlabelled_rows(sample):
    def table(X):
        return pd.DataFrame(X, columns=COLUMNS).assign(side=np.where(X[:, 0] > 0, "left", "right"))

    classes = {name: table(X) for name, X in sample.classes.items()}
    samples = classes, table(sample.unlabeled), table(sample.target)
    in_memory = ps.estimate_prior(*samples, method=make_shift())
    check_agreement(ps.estimate_prior(*samples, method=make_shift(), stream=True), in_memory)


def test_memory_does_not_grow_with_the_rows(sample):
    def peak(tables):
        stream = (rng.normal(size=(8192, 3)) for _ in range(tables))
        shift = make_shift(fit_rows=600)
        tracemalloc.start()
        found = ps.estimate_prior(sample.classes, sample.unlabeled, stream, method=shift)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found["a"].sizes[2] == 8192 * tables
        return memory

    rng = np.random.default_rng(0)
    peak(2)  # imports
    assert peak(40) < 1.2 * peak(10)


@pytest.mark.filterwarnings("ignore::priorshift.errors.PriorShiftWarning")
def test_tables_of_few_distinct_rows_are_estimated(sample):
    samples = (
        {name: np.sign(X) for name, X in sample.classes.items()},
        np.sign(sample.unlabeled),
        np.sign(sample.target),
    )
    in_memory = ps.estimate_prior(*samples, method=make_shift())
    streamed = ps.estimate_prior(*samples, method=make_shift(), stream=True)
    assert abs(streamed["a"].raw - in_memory["a"].raw) < in_memory["a"].standard_error


def test_copies_are_said_to_count(sample):
    doubled = np.repeat(sample.classes["a"], 2, axis=0)
    with pytest.warns(DuplicateRowsWarning, match="each copy counts"):
        ps.estimate_prior(
            {**sample.classes, "a": doubled}, sample.unlabeled, sample.target, method=make_shift(), stream=True
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unlabeled": iter([np.ones((5, 3))])}, "unlabeled is an iterator"),
        ({"weights": {"target": np.ones(500)}}, "name of a column"),
        ({"weights": "w"}, "'w'"),
        ({"drop": ["w"]}, "'w'"),
        ({"encoder": None}, "encoder"),
        ({"target": np.ones((1, 3))}, "at least 2"),
        ({"source_prior": None, "method": "tcpu"}, "source prior of 'a'"),
        ({"unlabeled": None}, "rest=False"),
    ],
)
def test_what_streams_of_classes_cannot_do_is_refused(sample, changes, message):
    arguments = {"positive": sample.classes, "unlabeled": sample.unlabeled, "target": sample.target}
    with pytest.raises(InputError, match=message):
        ps.estimate_prior(**{**arguments, "source_prior": SOURCE, "stream": True, **changes})


def test_under_censoring_the_rows_that_are_drawn_stand_for_the_population():
    """All labelled rows are drawn, but one in eight of the unlabelled rows, which are most of the population."""
    s = ps.simulate.gaussian_classes(
        SOURCE, TARGET, n_class=200, n_source=4000, n_target=500, dimension=3, random_state=0
    )
    samples = {"class 'a'": s.classes["a"], "class 'b'": s.classes["b"], "unlabeled": s.unlabeled, "target": s.target}
    shift = make_shift(scenario="censoring", fit_rows=500)
    functions = ClassFunctions.fit(shift, ("a", "b"), open_streams(samples, (), None), {}, ())
    population = shift._source.samples[-1].mass
    assert len(population) == 900 and population[:400].sum() == pytest.approx(400 / 4400)
    np.testing.assert_allclose(functions.sizes, [200, 200, 4400, 500])
    found = ps.estimate_prior(s.classes, s.unlabeled, s.target, method=shift, stream=True)
    assert found["a"].sizes == (200, 4400, 500)
