import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priorshift.embeddings import NO_PAIRS
from priorshift.errors import InputError
from priorshift.samples import Samples, find_copies
from priorshift.splits import deal


@given(st.integers(10, 40), st.integers(10, 60), st.integers(0, 8), st.integers(2, 5), st.integers(0, 99))
def test_shared_rows_share_a_fold_and_folds_are_even(m, n, shared, folds, seed):
    labeled = np.repeat([True, False], [m, n])
    positive, population = np.arange(m), np.arange(m, m + n)
    pairs = np.stack([np.arange(shared), np.arange(shared)[::-1]], axis=1)
    fold = deal(Samples(labeled, positive, population, pairs), folds, np.random.default_rng(seed))
    assert (fold[positive[pairs[:, 0]]] == fold[population[pairs[:, 1]]]).all()
    counts = np.bincount(fold[:m], minlength=folds)
    assert counts.max() - counts.min() <= 1
    alone = np.bincount(fold[m + shared :], minlength=folds)
    assert alone.max() - alone.min() <= 1


def test_chains_of_identical_rows_stay_together():
    """Positives 0 and 1 are both identical with unlabelled row 0: all three are one observation."""
    labeled = np.repeat([True, False], [4, 4])
    pairs = np.array([[0, 0], [1, 0]])
    for seed in range(20):
        fold = deal(Samples(labeled, np.arange(4), np.arange(4, 8), pairs), 2, np.random.default_rng(seed))
        assert fold[0] == fold[1] == fold[4]


def test_too_few_observations_for_the_folds():
    labeled = np.repeat([True, False], [2, 3])
    with pytest.raises(
        InputError, match="2 positive and 3 other observations cannot be dealt to 3 parts that hold both"
    ):
        deal(Samples(labeled, np.arange(2), np.arange(2, 5), NO_PAIRS), 3, np.random.default_rng(0))


def test_copies_are_found_where_they_cannot_be_chance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    assert len(find_copies(X)) == 0
    tripled = np.repeat(X, 3, axis=0)
    pairs = find_copies(tripled)
    assert len(pairs) == 40 and (tripled[pairs[:, 0]] == tripled[pairs[:, 1]]).all()
    assert len(find_copies(rng.integers(0, 4, (60, 3)).astype(float))) == 0  # discrete rows repeat themselves
    assert len(find_copies(np.ones((9, 2)))) == 0
    rows = np.arange(60)
    labeled = rows < 30
    fold = deal(Samples(labeled, rows[labeled], rows[~labeled], NO_PAIRS, pairs), 2, rng)
    assert (fold[pairs[:, 0]] == fold[pairs[:, 1]]).all()
