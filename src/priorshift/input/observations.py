"""Which rows are one observation: shared rows as the user says, and copies that cannot be chance.

Folds keep an observation together, and what its rows do to an estimate adds up.

Which labelled and unlabelled rows are the same is never guessed, since discrete data have equal rows by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from priorshift.arrays import NO_PAIRS, Floats, Index, Pairs
from priorshift.errors import InputError


def shared_pairs(X: NDArray[Any], labeled: Index, unlabeled: Index, shared: Any) -> Pairs:
    """Pairs (position among the labelled, position among the unlabelled) of one observation.

    `shared` is ``"identical"`` (rows of `X` with identical values are one observation) or one id for each row.
    """
    if isinstance(shared, str):
        if shared != "identical":
            raise InputError(f"shared is {shared!r}, but it must be 'identical' or one id for each row.")
        ids = row_codes(X)
    else:
        ids = np.asarray(shared)
        if ids.shape != (len(X),):
            raise InputError(f"shared has shape {ids.shape} but X has {len(X)} rows; pass one id for each row.")
        ids = comparable_ids(ids)
        for name, rows in (("labelled", labeled), ("unlabelled", unlabeled)):
            values, counts = np.unique(ids[rows], return_counts=True)
            if (counts > 1).any():
                raise InputError(
                    f"the id {values[counts > 1][0]!s} stands in several {name} rows, but an observation occurs once "
                    "in a sample; pass ids that are unique in each sample."
                )
    return _join(ids[labeled], ids[unlabeled])


def comparable_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as text, so that 7, 7.0 and "7" are one."""
    if ids.dtype.kind in "iu":
        return ids.astype(str)
    text = [_text(i) for i in ids.tolist()]
    if "" in text:
        raise InputError(f"the id in row {text.index('')} (counting from 0) is missing; give every row an id.")
    return np.array(text)


def _text(value: Any) -> str:
    """The id as text; empty for a missing one, of which every library has its own: None, NaN, NA, NaT."""
    if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT", "None"):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def row_codes(X: NDArray[Any]) -> Index:
    """A number for each row, equal where rows are identical."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1].reshape(-1))


def _join(left: NDArray[Any], right: NDArray[Any]) -> Pairs:
    order = np.argsort(right, kind="stable")
    ranked = right[order]
    first, last = np.searchsorted(ranked, left, "left"), np.searchsorted(ranked, left, "right")
    count = last - first
    total = int(count.sum())
    if total > 10 * (len(left) + len(right)):
        raise InputError(
            f"shared='identical' finds {total} identical pairs among {len(left)} positive and {len(right)} unlabeled "
            "rows, so identical values do not mean the same observation here; pass ids, or leave shared out."
        )
    if not total:
        return NO_PAIRS
    if total == len(left) * len(right):
        raise InputError(
            f"every one of {len(left)} positive rows is the same observation as every one of {len(right)} unlabeled "
            "rows, so no pair is left to compare; pass ids, or leave shared out."
        )
    at = np.repeat(np.arange(len(left)), count)
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([at, order[np.repeat(first, count) + offset]], axis=1)


def linked(rows: int, links: Pairs) -> Index:
    """A number for each row, the same for rows that are linked, directly or through others."""
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(rows, rows))
    return np.asarray(connected_components(graph, directed=False)[1])


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


def deal_folds(observation: Index, positive: Index, population: Index, folds: int, rng: np.random.Generator) -> Index:
    """The fold of each row: positives and the rest dealt evenly, rows of one observation to the same fold."""
    with_positive = np.zeros(int(observation.max()) + 1, dtype=bool)
    with_positive[observation[positive]] = True
    fold = np.empty(len(with_positive), dtype=np.intp)
    for kind in (with_positive, ~with_positive):
        members = rng.permutation(np.flatnonzero(kind))
        fold[members] = np.arange(len(members)) % folds
    dealt: Index = fold[observation]
    for k in range(folds):
        if not (dealt[positive] == k).any() or not (dealt[population] == k).any():
            raise InputError(
                f"{int(with_positive.sum())} positive and {int((~with_positive).sum())} other observations cannot be "
                f"dealt to {folds} parts that hold both; add rows, or check which rows are shared."
            )
    return dealt


@dataclass(frozen=True, eq=False)
class PriorInfluence:
    """How much each row of P and of U moves an estimate of the source prior."""

    positive: Floats
    unlabeled: Floats

    def variance(self, shared: Pairs) -> float:
        """A shared row's influence is the sum of its two."""
        cross = self.positive[shared[:, 0]] @ self.unlabeled[shared[:, 1]]
        return float((self.positive**2).sum() + (self.unlabeled**2).sum() + 2 * cross)

    def of_observations(self, shared: Pairs) -> tuple[Floats, Floats]:
        """For each row of P and of U, the influence of the observation that it is."""
        p, u = self.positive.copy(), self.unlabeled.copy()
        np.add.at(p, shared[:, 0], self.unlabeled[shared[:, 1]])
        np.add.at(u, shared[:, 1], self.positive[shared[:, 0]])
        return p, u
