"""Dealing rows to folds, so that a row is never scored by a model that has seen it, not even under another label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from priorshift.embeddings import Pairs
from priorshift.errors import InputError


def deal(
    labeled: NDArray[np.bool_],
    positive: NDArray[np.intp],
    population: NDArray[np.intp],
    shared: Pairs,
    folds: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """The fold of each row: positives and the rest dealt evenly, rows of one observation to the same fold.

    `positive` and `population` are the rows that make up P and U; `shared` pairs positions in them.
    """
    n = len(labeled)
    links = coo_array((np.ones(len(shared)), (positive[shared[:, 0]], population[shared[:, 1]])), shape=(n, n))
    groups, group = connected_components(links, directed=False)
    with_positive = np.zeros(groups, dtype=bool)
    with_positive[group[labeled]] = True
    fold = np.empty(groups, dtype=np.intp)
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
