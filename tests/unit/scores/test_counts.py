"""P-values as counts: the same test of a ratio as from rows, in any order and from any parts."""

import warnings
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priorshift as ps
from priorshift.errors import InputError
from priorshift.io import row_hashes as dealt
from priorshift.problem import Source
from priorshift.scores import cross_fitting, mixture, witness
from priorshift.scores.counts import ScoreCounts, SourceCounts
from priorshift.scores.cross_fitting import Ridge, choose_score_device, cross_fit, fourier_features, gpu_scores


def values_of(rng, rows, repeats=3, lift=0.0):
    common = rng.normal(size=rows) - lift * (rng.random(rows) < 0.5)
    score = common + 0.3 * rng.normal(size=(repeats, rows))
    return (np.argsort(np.argsort(score, axis=1), axis=1) + 0.5) / rows


# ---- counts


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**20), cuts=st.lists(st.integers(0, 400), max_size=4))
def test_moments_are_those_of_the_rows_for_any_parts_in_any_order(seed, cuts):
    rng = np.random.default_rng(seed)
    values, h = values_of(rng, 400), rng.normal(size=(3, 5, mixture.BINS))
    order = rng.permutation(400)
    edges = sorted({0, 400, *cuts})
    parts = [ScoreCounts.from_p_values(values[:, order[a:b]], 99) for a, b in pairwise(edges)]
    while len(parts) > 1:  # merged in a random tree
        first, second = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(first.merge(second))
    found = parts[0].moments(h)
    of_rows = np.mean([h[k][:, mixture.bins(v)] for k, v in enumerate(values)], axis=0)
    each = np.mean([h[k][:, mixture.bins(v)].var(axis=1) for k, v in enumerate(values)], axis=0)
    np.testing.assert_allclose(found.mean, of_rows.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.variance, of_rows.var(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.single_variance, each, atol=1e-12)
    assert parts[0].adds_up and parts[0].rows == 400 and not found.privacy_variance.any()


def test_without_pairs_the_variance_is_no_smaller_than_that_of_the_rows():
    rng = np.random.default_rng(0)
    whole = ScoreCounts.from_p_values(values_of(rng, 1000), 99)
    h = rng.normal(size=(3, 4, mixture.BINS))
    alone = ScoreCounts(whole.rows, whole.counts, None, whole.levels).moments(h)
    assert (alone.variance >= whole.moments(h).variance).all()


def test_counts_of_other_scores_are_refused():
    rng = np.random.default_rng(0)
    few, many = (ScoreCounts.from_p_values(values_of(rng, 50, repeats), 99) for repeats in (2, 3))
    with pytest.raises(InputError, match=r"different scores"):
        few.merge(many)


def test_what_does_not_add_up_is_seen():
    made = ScoreCounts.from_p_values(np.random.default_rng(0).beta(1, 3, size=(3, 200)), 99)
    assert made.adds_up
    for name in ("counts", "levels", "pairs"):
        wrong = {n: getattr(made, n).copy() for n in ("counts", "levels", "pairs")}
        wrong[name].flat[0] += 1
        assert not ScoreCounts(made.rows, **wrong).adds_up
    assert not ScoreCounts(201, made.counts, made.pairs, made.levels).adds_up
    other = made.pairs.transpose(0, 2, 1)
    assert not ScoreCounts(200, made.counts, np.ascontiguousarray(other), made.levels).adds_up


# ---- the witness


@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
@pytest.mark.parametrize("target_prior", [0.05, 0.6, 0.95])
def test_the_test_of_a_ratio_is_that_of_the_rows(scenario, target_prior, monkeypatch):
    s = ps.simulate.gaussian(0.3, target_prior, n_source=700, n_target=300, shared=False, random_state=0)
    by_rows = ps.WitnessShift(0.3, scenario=scenario, random_state=0).fit(s.X, s.y)
    assert by_rows.witness_._counts is None
    monkeypatch.setattr(witness, "_COUNTED", 10)
    by_counts = ps.WitnessShift(0.3, scenario=scenario, random_state=0).fit(s.X, s.y)
    assert by_counts.witness_._counts is not None
    tests = [w.witness_.test(w.p_values(s.target), w.read_target(s.target)) for w in (by_rows, by_counts)]
    for name in ("curve.ratios", "curve.level", "error", "ratio", "separation"):
        np.testing.assert_allclose(attrgetter(name)(tests[1]), attrgetter(name)(tests[0]), rtol=1e-8, err_msg=name)


def test_rows_that_are_not_alike_are_not_counted(monkeypatch):
    monkeypatch.setattr(witness, "_COUNTED", 10)
    s = ps.simulate.gaussian(0.3, 0.6, n_source=300, n_target=200, shared=False, random_state=0)
    groups = np.arange(len(s.X)) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in ({"groups": groups}, {"weights": 1.0 + groups % 2}, {"shared": groups}):
            assert ps.WitnessShift(0.3, random_state=0).fit(s.X, s.y, **arguments).witness_._counts is None
    fitted = ps.WitnessShift(0.3, random_state=0).fit(s.X, s.y)
    weights = 1.0 + np.arange(200) % 2
    weighted = fitted.estimate(s.target, weights=weights)
    monkeypatch.setattr(witness, "_COUNTED", 10**9)
    again = ps.WitnessShift(0.3, random_state=0).fit(s.X, s.y).estimate(s.target, weights=weights)
    assert weighted.raw == pytest.approx(again.raw, rel=1e-12)


@pytest.mark.parametrize("source_prior", [0.3, (0.2, 0.4), None])
@pytest.mark.parametrize("scenario", ["case-control", "censoring"])
def test_an_estimate_from_counts_alone_is_that_of_the_rows(source_prior, scenario):
    s = ps.simulate.gaussian(0.3, 0.6, n_source=800, n_target=400, shared=False, random_state=3)
    fitted = ps.WitnessShift(source_prior, scenario=scenario, random_state=0).fit(s.X, s.y)
    expected = fitted.estimate(s.target)
    scored = fitted.scored_
    m = scored.sizes[0]
    own = np.stack([scored.ranks(r.positive, r.positive) for r in scored.repetitions])
    unlabeled = scored.p_values[:, ~fitted.witness_.source.labeled] if scenario == "censoring" else scored.p_values
    P, U, T = (ScoreCounts.from_p_values(v, m) for v in (own, unlabeled, fitted.p_values(s.target)))
    km2 = fitted.prior_estimator_.km2_prior_ if source_prior is None else np.nan
    counted = ps.WitnessShift(source_prior, scenario=scenario).fit_counts(SourceCounts(P, U, m, 5, km2, scenario))
    found = counted.estimate_counts(T)
    for name in ("value", "raw", "standard_error", "source_prior", "negative_ratio"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (expected.interval.low, expected.interval.high), rel=1e-9
    )
    assert found.sizes == expected.sizes and found.status == expected.status
    for name in ("source", "target", "priors", "weights"):
        np.testing.assert_allclose(getattr(found.evidence, name), getattr(expected.evidence, name), rtol=1e-12)
    assert found.evidence.scores is None and expected.evidence.scores is not None
    with pytest.raises(InputError, match=r"counts, not to rows"):
        counted.estimate(s.target)


def test_counts_cannot_be_asked_by_an_estimator_of_rows():
    rng = np.random.default_rng(0)
    P, U = (ScoreCounts.from_p_values(values_of(rng, n), 60) for n in (60, 200))
    with pytest.raises(InputError, match=r"KM2 .*counted"):
        ps.WitnessShift(ps.KM2()).fit_counts(SourceCounts(P, U, 60, 5, np.nan))


# ---- scores fitted to a sample


def test_models_of_a_sample_are_fitted_to_it_alone_and_score_all_rows():
    s = ps.simulate.gaussian(0.3, 0.6, n_source=1500, n_target=100, shared=False, random_state=0)
    source = Source.from_labels(s.X, s.y, scenario="case-control", standardize=False)
    (found,) = cross_fit(s.X, source, None, 1, 5, np.random.default_rng(1), fit_rows=150)
    assert len(found.positive) == len(s.positive) and len(found.population) == len(s.unlabeled)
    # the same draws, and the regression of the chosen setting on the sample, by hand
    rng = np.random.default_rng(1)
    fold = source.deal_folds(5, rng)
    rng.normal(size=(s.X.shape[1], 100))
    taken = [np.sort(rng.choice(len(rows), 150, replace=False)) for rows in (source.positive, source.population)]
    model = found.models[2]
    angle = s.X @ (2 * model.half)
    F = np.column_stack([np.cos(angle) / 10, np.sin(angle) / 10, np.ones(len(s.X))])
    w, y = np.zeros(len(s.X)), np.zeros(len(s.X))
    for rows, at, label in zip((source.positive, source.population), taken, (1.0, -1.0), strict=True):
        w[rows[at]], y[rows[at]] = 0.5 / 150, label
    w *= fold != 2
    ridge = F.T @ (w * (y - F @ model.beta)) / model.beta
    assert np.ptp(ridge) < 1e-6 and any(ridge[0] == pytest.approx(0.8 * r) for r in (1e-3, 1e-2, 1e-1))
    inside = fold[source.population] == 2
    np.testing.assert_allclose(found.population[inside], (F @ model.beta)[source.population][inside])


def test_a_score_is_that_of_cosines_and_sines():
    rng = np.random.default_rng(0)
    frequencies, beta, X = rng.normal(size=(4, 100)), rng.normal(size=201), 3 * rng.normal(size=(50, 4))
    model = Ridge.from_coefficients(frequencies, beta)
    angle = X @ frequencies
    expected = np.cos(angle) @ beta[:100] / 10 + np.sin(angle) @ beta[100:200] / 10 + beta[200]
    np.testing.assert_allclose(model(X), expected, atol=1e-12)
    np.testing.assert_allclose(fourier_features(X, frequencies) @ beta, expected, atol=1e-12)


def test_scores_of_torch_are_those_of_numpy(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr("priorshift.scores.cross_fitting._BLOCK", 30)
    rng = np.random.default_rng(0)
    frequencies, X, fold = rng.normal(size=(4, 100)), rng.normal(size=(80, 4)), rng.integers(3, size=80)
    models = [Ridge.from_coefficients(frequencies, rng.normal(size=201)) for _ in range(3)]
    expected = cross_fitting.scores_by_fold(X, fold, models)
    np.testing.assert_allclose(gpu_scores(X, fold, models, "cpu"), expected, atol=1e-11)


def test_which_device_scores(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("priorshift.embedding.gpu_sums.version", lambda name: "2.13.0")  # as if built for GPUs
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_score_device("auto", 10**6) == "cuda" and choose_score_device("auto", 1000) == "cpu"
    assert choose_score_device("cuda:1", 10) == "cuda:1" and choose_score_device("cpu", 10**9) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_score_device("auto", 10**6) == "cpu"
    for device, said in (("cuda", "no GPU"), ("gpu", "device is 'gpu', but it must be"), (3, "device is 3")):
        with pytest.raises(InputError, match=said):
            choose_score_device(device, 10)


def test_the_number_of_threads_does_not_change_scores(monkeypatch):
    s = ps.simulate.gaussian(0.3, 0.6, n_source=6000, n_target=5000, shared=False, random_state=0)
    found = []
    for workers in (1, 3):
        monkeypatch.setattr("priorshift.threads.available", lambda workers=workers: workers)
        found.append(ps.WitnessShift(0.3, random_state=0).fit(s.X, s.y).p_values(s.target))
    np.testing.assert_array_equal(*found)


# ---- rows dealt by what they hold


def test_a_row_is_dealt_alike_wherever_it_stands():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    codes, order = dealt.content_codes(X), rng.permutation(5000)
    np.testing.assert_array_equal(dealt.content_codes(X[order]), codes[order])
    folds = dealt.fold_of(codes, 5, seed=1)
    counts = np.bincount(folds, minlength=5)
    assert (abs(counts - 1000) < 5 * np.sqrt(1000 * 0.8)).all()
    other = dealt.fold_of(codes, 5, seed=2)
    assert abs((folds == other).mean() - 0.2) < 0.03  # 5 standard errors
    assert dealt.content_codes(np.array([[0.0]])) == dealt.content_codes(np.array([[-0.0]]))
    assert len(np.unique(codes)) == 5000
    # neighbours in a row of whole numbers are dealt like strangers
    steps = dealt.fold_of(dealt.content_codes(np.arange(5000.0)[:, None]), 5, seed=3)
    assert abs((steps[1:] == steps[:-1]).mean() - 0.2) < 0.03


def test_columns_are_not_interchangeable():
    a, b = dealt.content_codes(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert a != b


def test_copies_are_dealt_by_their_place():
    assert dealt.mostly_copies(dealt.content_codes(np.tile(np.eye(3), (10, 1))))
    assert not dealt.mostly_copies(dealt.content_codes(np.random.default_rng(0).normal(size=(30, 2))))
    whole, parts = dealt.place_codes(0, 10), np.concatenate([dealt.place_codes(0, 4), dealt.place_codes(4, 6)])
    np.testing.assert_array_equal(whole, parts)
