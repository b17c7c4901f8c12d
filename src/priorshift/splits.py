"""Dealing rows to folds, so that a row is never scored by a model that has seen it, not even under another label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.samples import Samples


def deal(source: Samples, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each row: positives and the rest dealt evenly, rows of one observation to the same fold."""
    group = source.observations
    with_positive = np.zeros(int(group.max()) + 1, dtype=bool)
    with_positive[group[source.labeled]] = True
    fold = np.empty(len(with_positive), dtype=np.intp)
    for kind in (with_positive, ~with_positive):
        members = rng.permutation(np.flatnonzero(kind))
        fold[members] = np.arange(len(members)) % folds
    dealt: NDArray[np.intp] = fold[group]
    for k in range(folds):
        if not (dealt[source.positive] == k).any() or not (dealt[source.population] == k).any():
            raise InputError(
                f"{int(with_positive.sum())} positive and {int((~with_positive).sum())} other observations cannot be "
                f"dealt to {folds} parts that hold both; add rows, or check which rows are shared."
            )
    return dealt
