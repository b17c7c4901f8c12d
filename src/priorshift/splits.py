"""Dealing rows to folds, so that a row is never scored by a model that has seen it, not even under another label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from priorshift.embeddings import NO_PAIRS, Pairs
from priorshift.errors import InputError
from priorshift.shared_rows import row_codes


def observations(
    rows: int, positive: NDArray[np.intp], population: NDArray[np.intp], shared: Pairs, copies: Pairs = NO_PAIRS
) -> NDArray[np.intp]:
    """The observation of each row: `shared` pairs positions in P and U, `copies` pairs rows."""
    left = np.concatenate([positive[shared[:, 0]], copies[:, 0]])
    right = np.concatenate([population[shared[:, 1]], copies[:, 1]])
    links = coo_array((np.ones(len(left)), (left, right)), shape=(rows, rows))
    return np.asarray(connected_components(links, directed=False)[1])


def deal(
    labeled: NDArray[np.bool_],
    positive: NDArray[np.intp],
    population: NDArray[np.intp],
    shared: Pairs,
    folds: int,
    rng: np.random.Generator,
    copies: Pairs = NO_PAIRS,
) -> NDArray[np.intp]:
    """The fold of each row: positives and the rest dealt evenly, rows of one observation to the same fold.

    `positive` and `population` are the rows that make up P and U.
    """
    group = observations(len(labeled), positive, population, shared, copies)
    with_positive = np.zeros(int(group.max()) + 1, dtype=bool)
    with_positive[group[labeled]] = True
    fold = np.empty(len(with_positive), dtype=np.intp)
    for kind in (with_positive, ~with_positive):
        members = rng.permutation(np.flatnonzero(kind))
        fold[members] = np.arange(len(members)) % folds
    dealt: NDArray[np.intp] = fold[group]
    for k in range(folds):
        if not ((dealt == k) & labeled).any() or not (dealt[population] == k).any():
            raise InputError(
                f"{int(with_positive.sum())} positive and {int((~with_positive).sum())} other observations cannot be "
                f"dealt to {folds} parts that hold both; add rows, or check which rows are shared."
            )
    return dealt


def find_copies(X: NDArray[Any]) -> Pairs:
    """Pairs of identical rows, where they cannot be equal by chance.

    They cannot where each of two columns alone tells almost all distinct rows apart, and yet one row in ten is a copy.
    """
    codes = row_codes(X)
    distinct = int(codes.max()) + 1
    if distinct > 0.9 * len(X):
        return NO_PAIRS
    telling = sum(len(np.unique(column)) >= 0.9 * distinct for column in X.T)
    if telling < 2 or distinct < 3:
        return NO_PAIRS
    order = np.argsort(codes, kind="stable")
    same = codes[order][1:] == codes[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)
