"""What is faster for many rows gives what is slower for few: ranks by cells, and scores in single precision."""

import numpy as np
import pytest

import priorshift as ps
from priorshift.scores import class_scores, mixture, scored_source
from priorshift.scores.cross_fitting import Ridge, fourier_features, has_large_ties
from priorshift.scores.mixture import p_values
from priorshift.scores.scored_source import _divide

RNG = np.random.default_rng(0)
MANY = 30_000


def direct_p_values(positive, scores):
    ranked = np.sort(positive)
    rank = (np.searchsorted(ranked, scores, "left") + np.searchsorted(ranked, scores, "right")) / 2
    return (rank + 0.5) / (len(positive) + 1)


@pytest.mark.parametrize(
    "positive",
    [
        RNG.normal(size=5000),
        np.round(RNG.normal(size=5000), 1),
        np.repeat(RNG.normal(size=3), 400),
        np.append(RNG.normal(size=3000), 1e9),  # all but one in one cell
        np.append(RNG.normal(size=3000), [1e300, -1e300]),
        np.zeros(40),
        np.array([0.0, 5e-324]),
        RNG.normal(size=5000).astype(np.float32),
    ],
    ids=["continuous", "tied", "few values", "far", "farthest", "equal", "nearest", "single precision"],
)
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_ranks_of_many_scores_are_those_of_a_binary_search(positive, precision):
    scores = np.concatenate([RNG.normal(size=MANY), RNG.choice(positive, 2000), [-1e30, 1e30]])
    scores = np.clip(scores, -1e30, 1e30).astype(precision)
    np.testing.assert_array_equal(p_values(positive, scores), direct_p_values(positive, scores))


def test_bins_are_whole_parts():
    values = np.append(RNG.random(1000), [0.0, 0.005, 0.995, 1.0])
    np.testing.assert_array_equal(mixture.bins(values), np.minimum((values * mixture.BINS).astype(int), 199))


@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize("sizes", [(2, 9), (9, 2), (9, 19), (300, 200)])
def test_shares_above_a_threshold_are_those_of_the_p_values(decimals, sizes, monkeypatch):
    """The bounds are left out: what they are computed from must be the same."""
    found = {}
    monkeypatch.setattr(scored_source.stats.beta, "ppf", lambda q, a, b: found.setdefault(round(q, 2), a))
    levels = 1 - scored_source._SHARES
    for _ in range(20):
        found.clear()
        reference, sample = (np.round(RNG.normal(size=size), decimals) for size in sizes)
        _, share, _ = scored_source._shares_above([(reference, sample)])
        above = (direct_p_values(reference, sample)[:, None] > levels).sum(axis=0)
        reference_above = (direct_p_values(reference, reference)[:, None] > levels).mean(axis=0)
        usable = reference_above > 0
        if usable.any():
            np.testing.assert_array_equal(found[0.95], above[usable] + 1)
            assert share == pytest.approx((above[usable] / len(sample) / reference_above[usable]).min())


# ---- single precision


@pytest.fixture
def ridge():
    return Ridge.from_coefficients(RNG.normal(size=(6, 100)), RNG.normal(size=201))


def test_single_precision_agrees_with_double(ridge):
    rows = RNG.normal(size=(3000, 6))
    single = ridge(rows.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, ridge(rows), atol=1e-4 * np.abs(ridge.twice).sum())


def test_equal_rows_have_equal_scores_in_single_precision_wherever_they_are(ridge):
    rows = RNG.normal(size=(1500, 6)).astype(np.float32)
    scores = ridge(rows)
    for part in (slice(0, 1), slice(1, 700), slice(513, None)):
        np.testing.assert_array_equal(ridge(rows[part]), scores[part])
    order = RNG.permutation(len(rows))
    np.testing.assert_array_equal(ridge(rows[order]), scores[order])


def test_large_ties_are_found():
    distinct = np.arange(10_000.0)
    assert not has_large_ties(distinct) and not has_large_ties(np.append(distinct, [5.0] * 8))
    assert has_large_ties(np.append(distinct, [5.0] * 11))
    assert has_large_ties(np.array([1.0, 2.0, 1.0])) and not has_large_ties(np.array([1.0, 2.0]))


@pytest.fixture(scope="module")
def sample():
    return ps.simulate.gaussian(0.2, 0.6, 4000, 3000, shared=False, random_state=0)


def estimates_from(rows_of_single, X, y, target, monkeypatch):
    """Return an estimate and the precision of the source's scores, where single precision begins at some rows."""
    monkeypatch.setattr(scored_source, "SINGLE_ROWS", rows_of_single)
    fit = ps.WitnessShift(0.2, random_state=0).fit(X, y)
    return fit.estimate(target), fit.scored_.repetitions[0].positive.dtype


def test_an_estimate_in_single_precision_hardly_differs(sample, monkeypatch):
    (single, precision), (double, _) = (
        estimates_from(rows, sample.X, sample.y, sample.target, monkeypatch) for rows in (0, 10**9)
    )
    assert precision == np.float32
    ends = [(found.value, found.interval.low, found.interval.high) for found in (single, double)]
    np.testing.assert_allclose(*ends, rtol=0, atol=0.01 * double.standard_error)


def test_rows_with_large_ties_are_scored_in_double_precision(sample, monkeypatch):
    """Otherwise their ties could break by rounding."""
    (single, precision), (double, _) = (
        estimates_from(rows, np.sign(sample.X), sample.y, np.sign(sample.target), monkeypatch) for rows in (0, 10**9)
    )
    assert precision == np.float64
    assert single.value == double.value and single.interval == double.interval


def test_a_model_of_a_stream_scores_in_single_precision_unless_ties_are_large(sample):
    rows, model = sample.target, ps.sketch.ScoreModel.fit(sample.positive, sample.unlabeled, use_km2=False)
    assert model._is_single
    np.testing.assert_array_equal(  # any part of the rows has the same ranks
        model.p_values(rows), np.concatenate([model.p_values(rows[:700]), model.p_values(rows[700:])], axis=1)
    )
    binary = [np.sign(sample.positive), np.sign(sample.unlabeled)]
    assert not ps.sketch.ScoreModel.fit(*binary, use_km2=False)._is_single


def test_features_in_single_precision_are_those_in_double():
    rows, frequencies = RNG.normal(size=(700, 4)), RNG.normal(size=(4, 30))
    angles = rows @ frequencies
    expected = np.column_stack([np.cos(angles), np.sin(angles), np.full(700, np.sqrt(30))]) / np.sqrt(30)
    np.testing.assert_allclose(fourier_features(rows, frequencies), expected, atol=1e-13)
    single = fourier_features(rows.astype(np.float32), frequencies.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)
    assert fourier_features(rows.astype(np.float32), frequencies).dtype == np.float64  # as one class is fitted


def test_shares_of_several_classes_in_single_precision_are_those_in_double(monkeypatch):
    source, target = {"a": 0.2, "b": 0.3}, {"a": 0.5, "b": 0.1}
    s = ps.simulate.gaussian_classes(source, target, random_state=0)
    double = ps.MulticlassShift(source, random_state=0).fit(s.X, s.y)
    monkeypatch.setattr(class_scores, "SINGLE_ROWS", 100)
    single = ps.MulticlassShift(source, random_state=0).fit(s.X, s.y)
    assert single._functions.models[0][0].frequencies.dtype == np.float32
    assert double._functions.models[0][0].frequencies.dtype == np.float64
    first, second = double.estimate(s.target), single.estimate(s.target)
    for name in first:
        assert second[name].value == pytest.approx(first[name].value, abs=1e-4)
        assert second[name].interval.width == pytest.approx(first[name].interval.width, rel=1e-3)


@pytest.mark.parametrize(("repeats", "workers", "tasks"), [(5, 1, 5), (5, 2, 6), (4, 2, 4), (3, 16, 48)])
def test_tasks_of_threads_cover_each_row_once_in_each_repetition(repeats, workers, tasks):
    divided = _divide(repeats, 1001, workers)
    assert len(divided) == tasks
    scored = np.zeros((repeats, 1001), dtype=int)
    for k, rows in divided:
        scored[k, rows] += 1
    assert (scored == 1).all()
