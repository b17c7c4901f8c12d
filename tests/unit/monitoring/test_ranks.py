"""Ranks of rows among all rows before them."""

import numpy as np
import pytest

from priorshift.monitoring.ranks import earlier_rows, sequential_ranks


@pytest.mark.parametrize("rows", [1, 7, 31, 32, 33, 1500, 9000])
@pytest.mark.parametrize("size", [2, 3, 128, 1000])
def test_earlier_rows_are_those_that_a_loop_counts(rows, size):
    columns = np.random.default_rng(rows).integers(0, size, (3, rows))
    smaller, equal = earlier_rows(columns, size)
    for j, levels in enumerate(columns):
        looked_at = range(max(rows - 1500, 0), rows)
        assert smaller[j, looked_at].tolist() == [int((levels[:k] < levels[k]).sum()) for k in looked_at]
        assert equal[j, looked_at].tolist() == [int((levels[:k] == levels[k]).sum()) for k in looked_at]


def test_ranks_lie_in_the_ties_of_each_row():
    rng = np.random.default_rng(0)
    levels, pool = rng.integers(0, 5, 50), np.array([3.0, 0.0, 4.0, 1.0, 2.0])
    (ranks,) = sequential_ranks(levels[None], pool[None], rng)
    for k, rank in enumerate(ranks):
        seen = np.concatenate([np.repeat(np.arange(5), pool.astype(int)), levels[: k + 1]])
        assert (seen < levels[k]).mean() <= rank <= (seen <= levels[k]).mean()


def test_ranks_of_rows_from_one_population_are_uniform_and_independent():
    rng = np.random.default_rng(1)
    means, products = [], []
    for _ in range(2000):
        pool = np.bincount(rng.integers(0, 4, 10) ** 2 // 3, minlength=4).astype(float)
        (ranks,) = sequential_ranks(rng.integers(0, 4, (1, 10)) ** 2 // 3, pool[None], rng)
        means.append(ranks - 0.5)
        products.append((ranks[0] - 0.5) * (ranks[9] - 0.5))
    means = np.array(means)
    assert np.abs(means.mean(axis=0)).max() < 5 / np.sqrt(12 * 2000)
    assert np.abs(12 * means.var(axis=0) - 1).max() < 0.15
    assert abs(np.mean(products)) < 5 / 12 / np.sqrt(2000)
