"""Is there a shift, is it label shift, and which column breaks it."""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from exact_problems import random_problem
from scipy.linalg import eigh
from scipy.stats import binom, kstest, t, ttest_ind
from sklearn.linear_model import LogisticRegression

from priorshift import simulate
from priorshift.diagnosis import residuals
from priorshift.diagnosis.columns import _normal_scores, _step_down_p_values, column_shifts
from priorshift.diagnosis.identification import DiagnosisInput
from priorshift.diagnosis.residuals import (
    ColumnFeatures,
    FeatureMean,
    Gram,
    KernelFeatures,
    Residual,
    ResidualFeatures,
    WeightedSample,
    _fit_ridge,
    _sums_by_fold,
    cross_fit_kernel_score,
    evenly_spaced,
    random_signs,
    smallest_root,
    student_factors,
    weighted_samples,
)
from priorshift.diagnosis.shift_tests import label_shift_test, numbered, rank_p_values, shift_test
from priorshift.io.column_checks import encode_tables
from priorshift.io.readers import read_table
from priorshift.io.tables import Table
from priorshift.methods.witness_shift import TargetFit
from priorshift.problem import Source
from priorshift.scores.scored_source import ScoredSource
from priorshift.scores.witness import Witness


def read(X, y, shared=None, **more):
    return Source.from_labels(X, y, shared=shared, scenario="case-control", standardize=True, **more)


def fitted(X, y, shared=None, **more):
    source = read(X, y, shared, **more)
    scored = ScoredSource.fit(source, None, 2, 3, np.random.default_rng(0))
    return source, Witness.from_scores(scored, source.without_rows(), *scored.mixture)


def inputs_of(source, witness, target, seed=0):
    p_values = witness.scored.target_p_values(target)
    test = witness.test(p_values, target)
    fit = TargetFit(target, None, test, p_values, None, witness)
    return DiagnosisInput(source, fit, rng=np.random.default_rng(seed))


def both_tests(source, witness, rows, resamples=199, **more):
    inputs = inputs_of(source, witness, source.layout.read(rows, **more), seed=1)
    return shift_test(inputs), label_shift_test(inputs, resamples=resamples)


def every_sign(observations):
    return np.array(list(product((-1, 1), repeat=observations)), dtype=np.int8)


@pytest.fixture(scope="module")
def gaussian():
    s = simulate.gaussian(0.3, 0.5, n_source=600, n_target=600, dimension=5, random_state=0)
    return s, *fitted(s.X, s.y, s.ids)


# resampling


def test_noise_is_a_signed_sum_of_the_parts_of_observations_in_slow_loops():
    rng = np.random.default_rng(0)
    phi, weights = rng.normal(size=(8, 3)), rng.uniform(0.5, 2, 8)
    mass, observation = weights / weights.sum(), np.array([0, 4, 1, 1, 2, 5, 4, 0])
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=(20, 6))
    mean = FeatureMean.resample(WeightedSample(mass, observation), signs, lambda rows: phi[rows])
    value = sum(mass[i] * phi[i] for i in range(8))
    totals = [sum(mass[i] for i in range(8) if observation[i] == k) for k in set(observation)]
    size = 1 / sum(total**2 for total in totals)
    for b in range(20):
        off = sum(signs[b, observation[i]] * mass[i] * (phi[i] - value) for i in range(8))
        np.testing.assert_allclose(mean.noise[b], off * np.sqrt(size / (size - 1)), atol=1e-6)
    np.testing.assert_allclose(mean.value, value)
    assert mean.size == pytest.approx(size)


def test_over_all_signs_the_noise_of_a_mean_has_the_variance_of_a_mean():
    phi = np.random.default_rng(0).normal(size=(9, 2))
    mean = FeatureMean.resample(WeightedSample(np.full(9, 1 / 9), np.arange(9)), every_sign(9), lambda rows: phi[rows])
    np.testing.assert_allclose((mean.noise**2).mean(axis=0), phi.var(axis=0, ddof=1) / 9, rtol=1e-5)


def test_rows_are_taken_block_by_block(monkeypatch):
    phi = np.random.default_rng(0).normal(size=(50, 4))
    sample, signs = WeightedSample(np.full(50, 0.02), np.arange(50)), every_sign(6).repeat(9, axis=1)[:, :50]
    whole = FeatureMean.resample(sample, signs, lambda rows: phi[rows])
    monkeypatch.setattr(residuals, "_BLOCK_VALUES", 7 * len(signs))
    parts = FeatureMean.resample(sample, signs, lambda rows: phi[rows])
    np.testing.assert_allclose(parts.noise, whole.noise, atol=1e-6)
    np.testing.assert_allclose(parts.value, whole.value)


def test_rows_thrice_in_a_group_and_rows_of_double_weight_change_nothing():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(10, 3))
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=(30, 10))
    once = FeatureMean.resample(WeightedSample(np.full(10, 0.1), np.arange(10)), signs, lambda rows: phi[rows])
    thrice = FeatureMean.resample(
        WeightedSample(np.full(30, 1 / 30), np.repeat(np.arange(10), 3)),
        signs,
        lambda rows: phi.repeat(3, axis=0)[rows],
    )
    np.testing.assert_allclose(thrice.noise, once.noise, atol=1e-6)
    weights = np.where(np.arange(10) < 4, 2.0, 1.0)
    heavy = FeatureMean.resample(WeightedSample(weights / weights.sum(), np.arange(10)), signs, lambda rows: phi[rows])
    again = np.repeat(np.arange(10), weights.astype(int))
    twice = FeatureMean.resample(WeightedSample(np.full(14, 1 / 14), again), signs, lambda rows: phi[again][rows])
    np.testing.assert_allclose(twice.noise, heavy.noise, atol=1e-6)


def test_a_group_that_stands_in_source_and_target_has_one_sign():
    s = simulate.gaussian(0.4, 0.5, n_source=60, n_target=30, dimension=3, random_state=0)
    groups = np.array([f"g{k // 2}" for k in range(len(s.X))])
    source = read(s.X, s.y, groups=groups)
    target = source.layout.read(s.target, groups=np.r_[groups[:4], [f"own{k}" for k in range(26)]])
    P, U, T = weighted_samples(source, target)
    assert T.observation[:4].tolist() == source.observation[:4].tolist()
    assert set(T.observation[4:]).isdisjoint(source.observation) and len(set(T.observation[4:])) == 26
    signs = random_signs((P, U, T), 40, np.random.default_rng(0))
    assert signs.shape == (40, max(T.observation) + 1) and set(signs.ravel()) == {-1, 1}


def test_factors_of_a_small_sample_turn_normal_errors_into_those_of_student():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=100_000)
    assert kstest(errors * student_factors(3.0, 100_000, rng), t(8).cdf).pvalue > 0.01
    assert kstest(errors, t(8).cdf).pvalue < 1e-6


# the residual


def test_the_smallest_root_is_the_smallest_generalised_eigenvalue_and_the_smallest_of_all_ratios():
    rng = np.random.default_rng(0)
    ratios = np.linspace(0, 20, 200_001)
    for _ in range(20):
        a, noise = rng.normal(size=6), rng.normal(size=(2, 40)) * 0.1
        b = rng.uniform(0.2, 3) * a + 0.2 * rng.normal(size=6)
        M, N = Gram.from_vectors(b, a), Gram(*(float(x) for x in Gram.from_vectors(noise[0], noise[1])))
        root, r = smallest_root(M, N)
        expected = eigh([[M.bb, M.ab], [M.ab, M.aa]], [[N.bb, N.ab], [N.ab, N.aa]], eigvals_only=True)[0]
        assert (
            root
            == pytest.approx(expected)
            == pytest.approx((M.residual_square(ratios) / N.residual_square(ratios)).min(), rel=1e-6)
        )
        assert M.residual_square(r) / N.residual_square(r) == pytest.approx(root)


def test_a_negative_ratio_is_none_where_it_is_clear_where_a_points():
    N = Gram(1.0, 0.0, 1.0)
    assert smallest_root(Gram(4.0, -10.0, 100.0), N) == (pytest.approx(4.0), 0.0)
    root, r = smallest_root(Gram(100.0, -9.0, 1.0), N)
    assert r < 0 and root < 1


def test_where_label_shift_holds_exactly_nothing_is_left_and_the_ratio_is_exact():
    problem = random_problem()
    rng = np.random.default_rng(0)
    W = rng.normal(size=(3, 12))
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=(200, 80))
    means, first = [], 0
    for X in (problem.positive, problem.unlabeled, problem.target):
        sample = WeightedSample(np.full(len(X), 1 / len(X)), np.arange(first, first + len(X)))
        means.append(FeatureMean.resample(sample, signs, lambda rows, X=X: np.tanh(X @ W)[rows]))
        first += len(X)
    residual = Residual.fit(means)
    assert residual.ratio == pytest.approx((1 - problem.target_prior) / (1 - problem.source_prior))
    assert residual.statistic == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(residual.b - residual.ratio * residual.a, 0, atol=1e-9)


def test_with_one_feature_nothing_is_ever_left():
    rng = np.random.default_rng(0)
    P, U, T = (FeatureMean(np.array([x]), 0.1 * rng.normal(size=(50, 1)), 20.0) for x in (1.0, 0.0, 0.4))
    assert Residual.fit((P, U, T)).statistic == pytest.approx(0, abs=1e-12)


def test_shares_above_count_ties_and_the_statistic_itself():
    np.testing.assert_allclose(rank_p_values(np.array([3.0, 1.0, 2.0, 3.0])), [0.5, 1.0, 0.75, 0.5])


def test_the_test_of_the_rows_rejects_one_time_in_twenty_whatever_is_known_of_a():
    """Ten positives at a low prior, and positives that hardly differ from the population: least squares fails at both."""
    for pi, target in ((0.1, 0.9), (0.8, 0.3)):
        rejected = 0
        for seed in range(120):
            rng = np.random.default_rng((seed, 7))
            s = simulate.gaussian(pi, target, 100, 80, dimension=4, shared=False, random_state=rng)
            samples = [s.positive, s.unlabeled, s.target]
            features, first, seen = KernelFeatures.fit(samples, np.asarray), 0, []
            for X in samples:
                seen.append(WeightedSample(np.full(len(X), 1 / len(X)), np.arange(first, first + len(X))))
                first += len(X)
            signs = random_signs(tuple(seen), 99, rng)
            means = [
                FeatureMean.resample(o, signs, lambda at, X=X, phi=features: phi.coordinates(X[at]))
                for o, X in zip(seen, samples, strict=True)
            ]
            residual = Residual.fit(means)
            rejected += rank_p_values(np.r_[residual.statistic, residual.null_statistics()])[0] <= 0.05
        assert binom.ppf(0.001, 120, 0.03) <= rejected <= binom.ppf(0.999, 120, 0.07)


# the two eyes


def test_with_all_rows_as_landmarks_the_features_are_the_kernel_and_else_nearly():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(60, 3)), rng.normal(size=(900, 3))
    for rows, off in ((few, 1e-4), (many, 1e-3)):
        squares = ((rows[:, None] - rows) ** 2).sum(axis=2) / 3
        expected = (np.exp(-0.3 * squares) + np.exp(-squares)) / 2
        phi = KernelFeatures.fit(np.split(rows, [20, 50]), np.asarray).coordinates(rows)
        assert np.abs(phi @ phi.T - expected).mean() < off


def test_landmarks_are_the_same_share_of_every_sample_and_copies_add_nothing():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(rows, 2)) for rows in (100, 1000, 3000)]
    features = KernelFeatures.fit(samples, np.asarray)
    sizes = [sum(any((x == z).all() for x in sample) for z in features.landmarks) for sample in samples]
    assert sizes == [6, 62, 187]
    assert (
        evenly_spaced(5, 9).tolist() == [0, 1, 2, 3, 4]
        and evenly_spaced(10, 2).tolist() == [2, 7]
        and len(evenly_spaced(7, 0)) == 1
    )
    few = [sample[:20] for sample in samples]
    once, twice = (
        KernelFeatures.fit([x.repeat(k, axis=0) for x in few], np.asarray).coordinates(samples[0]) for k in (1, 2)
    )
    np.testing.assert_allclose(twice @ twice.T, once @ once.T, atol=2e-3)


def test_the_kernels_score_is_ridge_regression_without_the_fold_of_a_row():
    rng = np.random.default_rng(0)
    P, U = rng.normal(0.8, 1, size=(30, 4)), rng.normal(size=(50, 4))
    fold = rng.integers(3, size=(2, 80))
    parts = [_sums_by_fold(x.astype(np.float32), np.full(len(x), 1 / len(x)), f, 3)
             for x, f in ((P, fold[:, :30]), (U, fold[:, 30:]))]  # fmt: skip
    beta = _fit_ridge((parts[0][0] + parts[1][0]) / 2, (parts[0][1] - parts[1][1]) / 2)
    X, label = np.concatenate([P, U]), np.repeat([1.0, -1.0], [30, 50])
    weight = np.repeat([1 / 60, 1 / 100], [30, 50])

    def slow(ridge):
        made = []
        for f in fold:
            for k in range(3):
                A = X[f != k].T * weight[f != k]
                made.append(np.linalg.solve(A @ X[f != k] + ridge * 2 / 3 * np.eye(4), A @ label[f != k]))
        scores = np.stack([[X[i] @ made[3 * r + f[i]] for i in range(80)] for r, f in enumerate(fold)])
        return made, (scores * label) @ weight @ np.ones(2) / np.sqrt((scores**2) @ weight @ np.ones(2))

    best = max((0.01, 0.03, 0.1, 0.3, 1.0), key=lambda ridge: slow(ridge)[1])
    np.testing.assert_allclose(beta.reshape(6, 4), slow(best)[0], rtol=1e-4)


def test_the_kernels_score_is_not_of_the_models_that_saw_a_row_and_deals_groups_as_the_source_does():
    s = simulate.gaussian(0.3, 0.5, n_source=120, n_target=40, dimension=3, shared=False, random_state=0)
    groups = np.arange(len(s.X)) // 3
    source, witness = fitted(s.X, s.y, groups=groups)
    own = np.r_[np.arange(10), 1000 + np.arange(30)]
    target = source.layout.read(s.target, groups=own)
    rows = tuple(source.scaling.rows(source.table.values, index) for index in (source.positive, source.population))
    kernel = KernelFeatures.fit([*rows, target.rows], witness.scored.prepare)
    made, values = cross_fit_kernel_score(inputs_of(source, witness, target), (*rows, target.rows), kernel)
    assert (
        values.shape == (20, 40)
        and made.population.shape == (20, len(s.unlabeled))
        and ((values > 0) & (values <= 1)).all()
    )
    for one in made.scored.repetitions[:3]:
        dealt = one.assign_folds(target.source_observation, np.random.default_rng(1))
        assert dealt[:10].tolist() == one.fold[target.source_observation[:10]].tolist()
        coordinates = np.c_[kernel.coordinates(witness.scored.prepare(rows[1][:]), 64), np.ones(len(rows[1]))]
        by_hand = [
            one.models[one.fold[o]](x) for x, o in zip(coordinates, source.observation[source.population], strict=True)
        ]
        np.testing.assert_allclose(one.population, by_hand, atol=1e-5)


def test_a_users_model_gives_the_score_that_is_looked_at(gaussian):
    s, source, _ = gaussian
    scored = ScoredSource.fit(source, LogisticRegression(), 2, 3, np.random.default_rng(0))
    witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
    target = source.layout.read(s.target)
    features = ResidualFeatures.fit(inputs_of(source, witness, target))
    np.testing.assert_array_equal(features.bins[1], witness.population)
    assert len(features.bins[2]) == 2


def test_the_seed_hardly_moves_the_p_values():
    """With random features and the estimator's own score, log10 p went off by 0.2 and 0.7 here."""
    s = simulate.gaussian(0.5, 0.5, 500, 500, violation=0.15, shared=False, random_state=5)
    found = []
    for seed in range(6):
        source = read(s.X, s.y)
        scored = ScoredSource.fit(source, None, 5, 5, np.random.default_rng(seed))
        witness = Witness.from_scores(scored, source.without_rows(), *scored.mixture)
        inputs = inputs_of(source, witness, source.layout.read(s.target), seed)
        test = label_shift_test(inputs, retest_below=0.1, retest_resamples=4999)
        assert test.resamples == 4999
        found.append([test.kernel.p_value, test.score.p_value, test.p_value])
    spread = np.log10(found).std(axis=0, ddof=1)
    assert spread[0] < 0.1 and spread[1] < 0.35 and spread[2] < 0.12


def test_a_small_p_value_is_looked_at_again_with_more_signs(gaussian):
    s, source, witness = gaussian
    moved = s.target + 0.7 * s.target_labels[:, None]
    for rows, expected in ((s.target, 199), (moved, 999)):
        inputs = inputs_of(source, witness, source.layout.read(rows), seed=1)
        test = label_shift_test(inputs, resamples=199, retest_below=0.1, retest_resamples=999)
        assert test.resamples == expected


# columns


def test_adjusted_p_values_are_those_of_a_slow_step_down():
    rng = np.random.default_rng(0)
    statistic, null = np.array([2.5, 0.3, 1.4, 1.4, -0.2]), rng.normal(size=(150, 5))
    left, expected, before = list(range(5)), np.empty(5), 0.0
    while left:
        worst = max(left, key=lambda k: statistic[k])
        above = sum(max(row[k] for k in left) >= statistic[worst] for row in null)
        before = expected[worst] = max(before, (1 + above) / 151)
        left.remove(worst)
    np.testing.assert_allclose(_step_down_p_values(statistic, null), expected)


def test_a_resample_is_standardised_by_the_others():
    statistic, null = np.array([2.0, 0.1]), np.random.default_rng(0).chisquare(3, size=(12, 2))
    own, others = _normal_scores(statistic, null)
    roots = np.cbrt(null)
    np.testing.assert_allclose(own, (np.cbrt(statistic) - roots.mean(axis=0)) / roots.std(axis=0))
    for k in range(12):
        rest = np.delete(roots, k, axis=0)
        np.testing.assert_allclose(others[k], (roots[k] - rest.mean(axis=0)) / rest.std(axis=0))


def test_column_features_are_values_and_cosines_of_ranks_among_the_population():
    s = simulate.gaussian(0.4, 0.5, n_source=80, n_target=10, dimension=2, random_state=0)
    source = read(s.X, s.y)
    U = source.rows[:][source.population]
    features = ColumnFeatures.fit(source, U)
    made = features(U)
    assert features.column.tolist() == [0] * 4 + [1] * 4 and features.is_value.tolist() == [True, *[False] * 3] * 2
    np.testing.assert_allclose(made[:, 0], U[:, 0] / U[:, 0].std())
    rank = (np.argsort(np.argsort(U[:, 1])) + 0.5) / len(U)
    np.testing.assert_allclose(made[:, 5], np.cos(2 * np.pi * rank))
    far = features(np.array([[1e6, -1e6]]))
    assert far[0, 0] == 8 and far[0, 4] == -8


def test_no_columns_are_no_answer():
    nothing = FeatureMean(np.empty(0), np.empty((5, 0)), 9.0)
    no_numbers = np.empty(0, dtype=int)
    features = ColumnFeatures(no_numbers, np.empty(0, dtype=bool), no_numbers, np.empty(0), [])
    assert column_shifts((nothing,) * 3, features, None) == ()


def test_rows_are_counted_from_one():
    assert "rows 12 and 4 of the target" in numbered((11, 3))


# the whole


def test_a_target_of_the_same_classes_passes_and_one_of_moved_positives_does_not(gaussian):
    s, source, witness = gaussian
    shift, label = both_tests(source, witness, s.target)
    assert shift.p_value < 1e-3 and shift.ratio == pytest.approx(0.5 / 0.7, abs=0.15) and 1.0 not in shift.interval
    assert label.p_value > 0.05 and not label.moved_columns and label.violation < 0.1 * label.separation + 0.03
    moved = s.target + 0.7 * s.target_labels[:, None]
    _, label = both_tests(source, witness, moved)
    assert label.p_value <= 0.01 and label.kernel.p_value <= 0.01 and label.violation > 0.1
    assert "does not hold" in str(label)


def test_the_order_of_the_targets_rows_does_not_matter_to_the_statistic_of_rows(gaussian):
    s, source, witness = gaussian
    one, other = (both_tests(source, witness, T)[1] for T in (s.target, s.target[::-1]))
    # the noise that it is divided by is that of other signs: 199 resamples know it to a twentieth
    assert other.kernel.ratio == pytest.approx(one.kernel.ratio, rel=0.02)
    assert other.kernel.statistic == pytest.approx(one.kernel.statistic, rel=0.2)
    assert other.kernel.p_value == pytest.approx(one.kernel.p_value, abs=0.15)
    by_name = {column.name: column.moved for column in other.columns}
    assert all(by_name[column.name] == pytest.approx(column.moved, abs=0.02) for column in one.columns)


def test_a_drifted_column_is_beyond_its_band_of_chance_and_no_other(gaussian):
    """The band is simulated from the same rows, without a drift."""
    s, source, witness = gaussian
    none, drifted = (both_tests(source, witness, s.target + shift * (np.arange(5) == 3))[1] for shift in (0.0, 2.0))
    assert all(abs(column.moved) < column.by_chance < 0.5 for column in none.columns)
    beyond = [column.name for column in drifted.columns if abs(column.moved) > column.by_chance]
    assert beyond == ["column 3"]


def test_the_column_that_drifted_is_named_with_the_distance_that_it_moved(gaussian):
    s, source, witness = gaussian
    T = s.target.copy()
    T[:, 3] += 0.8
    _, label = both_tests(source, witness, T)
    assert [column.name for column in label.moved_columns] == ["column 3"]
    expected = 0.8 / s.unlabeled[:, 3].std()
    assert label.columns[0].moved == pytest.approx(expected, abs=0.25) and label.p_value <= 0.05
    assert "column 3: +" in str(label)


def test_a_target_far_away_is_rejected_and_all_columns_are_named(gaussian):
    s, source, witness = gaussian
    _, label = both_tests(source, witness, s.target + 500)
    assert label.p_value == 1 / 200 and len(label.moved_columns) == 5
    assert all(column.moved > 5 for column in label.columns)


def test_rows_in_excess_are_those_that_were_put_in(gaussian):
    s, source, witness = gaussian
    T = s.target.copy()
    T[40:80] = np.array([4.0, -4, 4, -4, 4]) + 0.1 * np.random.default_rng(0).normal(size=(40, 5))
    _, label = both_tests(source, witness, T)
    assert len(label.rows) == 10 and set(label.rows) <= set(range(40, 80))
    said = label.text.splitlines()[-1]
    assert [int(row) - 1 for row in re.findall(r"\d+", said)][:10] == list(label.rows)
    assert "of the target" in said


def test_a_p_value_is_never_said_to_be_0(gaussian):
    s, source, witness = gaussian
    _, label = both_tests(source, witness, s.target + 500)
    surer = replace(
        label,
        p_value=1e-9,
        kernel=replace(label.kernel, p_value=0.0),
        columns=tuple(replace(column, p_value=1e-12) for column in label.columns),
    )
    assert "does not hold: p < 0.0001 (rows p < 0.0001, scores p = " in surer.text
    assert surer.text.count("standard deviations, p < 0.0001") == 5


def test_levels_of_a_category_are_one_column_with_its_name():
    rng = np.random.default_rng(0)
    n = 400

    def frame(positive, green):
        color = np.where(rng.random(len(positive)) < green, "green", rng.choice(["red", "blue"], len(positive)))
        return pd.DataFrame({"age": rng.normal(40, 10, len(positive)) + 15 * positive, "color": color})

    P, U, T = frame(np.ones(150), 0.2), frame(rng.random(n) < 0.3, 0.2), frame(rng.random(n) < 0.5, 0.6)
    tables = [read_table(x, "x") for x in (P, U, T)]
    [positive], unlabeled, [target] = encode_tables(tables[:1], tables[1], tables[2:], (), "auto")
    X = np.concatenate([positive.values, unlabeled.values])
    table = Table("X", X, unlabeled.columns, origin=unlabeled.origin)
    source, witness = fitted(table, np.repeat([1, 0], [150, n]))
    _, label = both_tests(source, witness, target)
    assert [column.name for column in label.moved_columns] == ["color"] and len(label.columns) == 2
    assert label.columns[0].level == "color = green" and label.columns[0].moved == pytest.approx(
        0.8 * 0.4 / 0.4, abs=0.4
    )
    assert "color (color = green)" in str(label)


@pytest.mark.parametrize(("positives", "rows", "name"), [(4, 50, "positive"), (30, 3, "target")])
def test_too_few_rows_are_said_to_be_too_few(gaussian, positives, rows, name):
    s = gaussian[0]
    X = np.concatenate([s.positive[:positives], s.unlabeled])
    source, witness = fitted(X, np.repeat([1, 0], [positives, len(s.unlabeled)]))
    shift, label = both_tests(source, witness, s.target[:rows])
    assert np.isnan(label.p_value) and name in label.reason and not label.columns
    assert 0 <= shift.p_value <= 1 and "cannot be tested" in str(label)
    assert label.to_dict()["p_value"] is None


def test_results_are_plain_numbers(gaussian):
    s, source, witness = gaussian
    shift, label = both_tests(source, witness, s.target, resamples=50)
    said = json.loads(json.dumps([shift.to_dict(), label.to_dict()]))
    assert said[0]["interval"]["low"] == shift.interval.low and said[1]["kernel"]["p_value"] == label.kernel.p_value
    assert said[1]["columns"][0]["name"] == label.columns[0].name and said[1]["resamples"] == 50


# is there a shift


def test_no_shift_is_welchs_test_of_the_witness_of_one(gaussian):
    s, source, witness = gaussian
    target = source.layout.read(s.target)
    values = witness.scored.target_p_values(target)
    h = witness.function(np.ones(1), target.size)[:, 0]

    def of_rows(v):
        return np.mean(
            [function[np.minimum((x * h.shape[1]).astype(int), 199)] for function, x in zip(h, v, strict=True)], axis=0
        )

    T, U = of_rows(values), of_rows(witness.scored.p_values)
    noise = witness.noise_share(h)
    assert 0 < noise < 1
    # the noise of the scores is as if U had a larger spread
    U = U.mean() + (U - U.mean()) * np.sqrt(1 + noise / 2)
    expected = ttest_ind(T, U, equal_var=False)
    shift, _ = both_tests(source, witness, s.target)
    assert shift.statistic == pytest.approx(expected.statistic) and shift.p_value == pytest.approx(expected.pvalue)
    assert shift.freedom == pytest.approx(expected.df)


@pytest.mark.filterwarnings("ignore::priorshift.errors.DuplicateRowsWarning")
def test_the_witness_of_no_shift_weighs_groups_and_weights():
    s = simulate.gaussian(0.3, 0.5, n_source=200, n_target=150, dimension=3, shared=False, random_state=0)
    source, witness = fitted(s.X, s.y)
    once, _ = both_tests(source, witness, s.target)
    again = np.repeat(np.arange(150), 3)
    thrice, _ = both_tests(source, witness, s.target[again], groups=again)
    assert thrice.freedom == pytest.approx(once.freedom, rel=0.1)  # rows are dealt to other models
    assert thrice.statistic == pytest.approx(once.statistic, abs=0.6)


def test_the_population_itself_has_not_shifted(gaussian):
    s, source, witness = gaussian
    shift, label = both_tests(source, witness, s.unlabeled)
    assert shift.p_value > 0.3 and 1.0 in shift.interval and "no shift (R = 1): p = " in shift.text
    assert label.p_value > 0.3
