import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priorshift as ps
from priorshift.errors import DuplicateRowsWarning, InputError
from priorshift.io.observations import find_copies, repeats_by_chance
from priorshift.problem import Source


def read(X, labeled, shared=None, scenario="case-control"):
    return Source.from_labels(X, labeled.astype(int), shared=shared, scenario=scenario, standardize=False)


@given(st.integers(10, 40), st.integers(10, 60), st.integers(0, 8), st.integers(2, 5), st.integers(0, 99))
def test_shared_rows_share_a_fold_and_folds_are_even(m, n, shared, folds, seed):
    rng = np.random.default_rng(seed)
    ids = np.arange(m + n)
    ids[m : m + shared] = np.arange(shared)[::-1]
    source = read(rng.normal(size=(m + n, 2)), np.arange(m + n) < m, ids)
    fold = source.deal_folds(folds, rng)
    assert len(source.shared) == shared
    assert (fold[source.positive[source.shared[:, 0]]] == fold[source.population[source.shared[:, 1]]]).all()
    counts = np.bincount(fold[:m], minlength=folds)
    assert counts.max() - counts.min() <= 1
    alone = np.bincount(fold[m + shared :], minlength=folds)
    assert alone.max() - alone.min() <= 1


def test_chains_of_identical_rows_stay_together():
    """Positives 0 and 1 are both identical with unlabelled row 0: all three are one observation."""
    X = np.array([0.0, 0, 1, 2, 0, 3, 4, 5])[:, None]
    source = read(X, np.arange(8) < 4, "identical")
    for seed in range(20):
        fold = source.deal_folds(2, np.random.default_rng(seed))
        assert fold[0] == fold[1] == fold[4]


def test_under_censoring_every_labelled_row_is_one_observation():
    source = read(np.arange(8.0)[:, None], np.arange(8) % 3 == 0, scenario="censoring")
    np.testing.assert_array_equal(source.population, np.arange(8))
    np.testing.assert_array_equal(source.positive[source.shared[:, 0]], source.population[source.shared[:, 1]])
    assert len(np.unique(source.observation)) == 8 and source.sizes == (3, 5)


def test_too_few_observations_for_the_folds():
    source = read(np.arange(5.0)[:, None], np.arange(5) < 2)
    with pytest.raises(InputError, match=r"2 positive and 3 other"):
        source.deal_folds(3, np.random.default_rng(0))


def test_copies_are_found_where_they_cannot_be_chance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    assert len(find_copies(X)) == 0
    tripled = np.repeat(X, 3, axis=0)
    pairs = find_copies(tripled)
    assert len(pairs) == 40 and (tripled[pairs[:, 0]] == tripled[pairs[:, 1]]).all()
    assert not repeats_by_chance(X) and not repeats_by_chance(tripled)
    assert repeats_by_chance(rng.integers(0, 4, (60, 3)).astype(float))  # discrete rows repeat themselves
    assert repeats_by_chance(np.ones((9, 2)))
    source = read(tripled, np.arange(60) < 30)
    fold = source.deal_folds(2, rng)
    assert (source.copies == 3).all()
    assert (fold.reshape(20, 3) == fold[::3, None]).all()


@pytest.mark.parametrize(
    "store",
    [
        lambda rows: rows.copy(),
        lambda rows: rows.astype(np.float32),
        lambda rows: rows * (1 + 1e-12 * np.random.default_rng(1).normal(size=rows.shape)),
    ],
    ids=["same", "single precision", "noise"],
)
def test_positives_that_are_in_the_unlabeled_table_are_seen_in_another_precision_too(store):
    s = ps.simulate.gaussian(0.3, 0.5, 400, 300, shared=False, random_state=0)
    unlabeled = np.concatenate([s.unlabeled, store(s.positive)])
    with pytest.warns(DuplicateRowsWarning, match=r"also in the unlabeled table, to seven digits.*id"):
        ps.estimate_prior(s.positive, unlabeled, s.target, source_prior=0.3, random_state=0)


def test_near_copies_are_no_copies_and_stated_ones_that_are_not_found_are_warned_of():
    s = ps.simulate.gaussian(0.3, 0.5, 400, 300, shared=False, random_state=0)
    stored = s.positive.astype(np.float32)
    with pytest.warns(DuplicateRowsWarning, match=r"No row is identical.*id column"):
        ps.estimate_prior(
            s.positive, np.concatenate([s.unlabeled, stored]), s.target, source_prior=0.3, shared="identical",
            random_state=0,
        )  # fmt: skip
    noisy = s.target * (1 + 1e-12 * np.random.default_rng(1).normal(size=s.target.shape))
    assert len(find_copies(np.concatenate([s.target, s.target]))) == len(s.target)
    assert len(find_copies(np.concatenate([s.target, noisy]))) == 0
