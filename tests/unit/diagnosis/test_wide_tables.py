"""Tables with more columns than rows: time and memory grow with the columns, not with their square."""

import tracemalloc

import numpy as np
import pytest

from priorshift.diagnosis.columns import column_shifts, regression
from priorshift.diagnosis.residuals import ColumnFeatures, FeatureMean, WeightedSample, random_signs
from priorshift.io.tables import Table

WIDE = 3000  # a square matrix of this size has 72 MB


def peak_mb(function, *arguments):
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_a_regression_on_more_columns_than_rows_solves_the_smaller_system():
    rng = np.random.default_rng(0)
    assert peak_mb(regression, rng.normal(size=(20, WIDE)), rng.normal(size=20), np.full(20, 0.05)) < 10


@pytest.mark.parametrize("shape", [(30, 8), (8, 8), (8, 30)])
def test_slopes_solve_the_equations_of_a_ridge_regression(shape):
    rng = np.random.default_rng(0)
    X, y, mass = rng.normal(size=shape), rng.normal(size=shape[0]), rng.dirichlet(np.ones(shape[0]))
    slopes = regression(X, y, mass)
    centred, penalty = X - mass @ X, 1e-3 * (mass @ (X - mass @ X) ** 2).mean()
    errors = y - mass @ y - centred @ slopes
    np.testing.assert_allclose((mass * errors) @ centred, penalty * slopes, atol=1e-12)


def test_a_test_of_many_columns_needs_no_square_matrix():
    rng = np.random.default_rng(0)
    means = [FeatureMean(rng.normal(size=WIDE), rng.normal(size=(2, WIDE)), 50.0) for _ in "PUT"]
    every, is_value = np.arange(WIDE), np.ones(WIDE, dtype=bool)
    features = ColumnFeatures(every, is_value, every, np.ones(WIDE), {})
    assert peak_mb(column_shifts, means, features, Table("unlabeled", np.empty((0, WIDE)))) < 30


def test_the_memory_of_a_test_of_many_columns_is_smaller_than_its_resamples():
    """The errors of all features in all resamples are 38 MB for each sample; several copies of them would be 400 MB."""
    rng = np.random.default_rng(0)
    features = 4 * WIDE
    means = [FeatureMean(rng.normal(size=features), rng.normal(size=(400, features)), 50.0) for _ in "PUT"]
    column, is_value = np.arange(features) // 4, np.arange(features) % 4 == 0
    columns = ColumnFeatures(column, is_value, column, np.ones(WIDE), {})
    assert peak_mb(column_shifts, means, columns, Table("unlabeled", np.empty((0, WIDE)))) < 120


def test_the_errors_of_a_mean_are_stored_once():
    rng = np.random.default_rng(0)
    sample = WeightedSample(np.full(60, 1 / 60), np.arange(60))
    signs = random_signs([sample], 400, rng)
    values = rng.normal(size=(60, 4 * WIDE))
    assert peak_mb(FeatureMean.resample, sample, signs, values.__getitem__) < 1.75 * 8 * 400 * 4 * WIDE / 1e6
