import numpy as np
import pytest

from priorshift.io.observations import common_rows
from priorshift.io.row_hashes import content_codes, count_common, count_distinct

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("values", [np.empty(0), np.zeros(1), RNG.integers(0, 50, 300), RNG.normal(size=300)])
def test_distinct_values_are_counted(values):
    assert count_distinct(values) == len(np.unique(values))


def test_common_codes_are_counted_as_often_as_they_occur():
    codes, others = RNG.integers(0, 100, 300).astype(np.uint64), RNG.integers(50, 150, 200).astype(np.uint64)
    assert count_common(codes, others) == np.isin(codes, others).sum()


def test_a_row_has_one_hash_in_every_precision_and_order():
    X = RNG.integers(-9, 9, (20_000, 3)).astype(np.float64)
    codes = content_codes(X)
    for other in (X.astype(np.float32), X.astype(np.int64), np.asfortranarray(X)):
        np.testing.assert_array_equal(content_codes(other), codes)
    np.testing.assert_array_equal(content_codes(X[9000:]), codes[9000:])  # blocks of rows do not matter
    assert count_distinct(codes) == len(np.unique(X, axis=0))


@pytest.mark.parametrize("rows", [500, 20_000])  # with and without a look at a subsample first
@pytest.mark.parametrize("shared", [0.0, 0.55, 1.0])
@pytest.mark.parametrize("first_column", ["continuous", "few values"])
def test_common_rows_are_counted(rows, shared, first_column):
    X, others = RNG.normal(size=(rows, 3)), RNG.normal(size=(rows, 3))
    if first_column == "few values":
        X[:, 0], others[:, 0] = np.round(X[:, 0]), np.round(others[:, 0])
    count = int(shared * rows)
    others[RNG.permutation(rows)[:count]] = X[RNG.permutation(rows)[:count]]
    assert common_rows(X, others) == count


def test_discrete_rows_are_common_by_chance():
    X = RNG.integers(0, 4, (20_000, 2)).astype(float)
    assert common_rows(X, X) == 0
