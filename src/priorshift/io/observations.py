"""Which rows are one observation: shared rows and groups as the user says, and copies that cannot be chance.

Folds keep an observation together, and what its rows do to an estimate adds up. Rows of one group, such as a patient's,
are one observation in this sense, though each counts; of copies only one does.

Which labelled and unlabelled rows are the same is never guessed, since discrete data have equal rows by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from priorshift.arrays import NO_PAIRS, Floats, Index, Pairs
from priorshift.errors import InputError
from priorshift.io.cells import as_text, is_missing_word
from priorshift.io.parameters import check_per_row


def shared_pairs(X: NDArray[Any], labeled: Index, unlabeled: Index, ids: NDArray[Any] | None) -> Pairs:
    """Return pairs (position among the labelled, position among the unlabelled) of one observation.

    Rows with the same id are one, or, where there are no ids, rows of `X` with identical values.
    """
    if ids is None:
        ids = row_codes(X)
    elif any(len(np.unique(ids[rows])) < len(rows) for rows in (labeled, unlabeled)):
        # an id of several rows, such as a patient's, says that they belong together; their values, which is which
        ids = np.array([f"{k} {i}" for k, i in zip(row_codes(X), ids, strict=True)])
    return _join(ids[labeled], ids[unlabeled])


def read_groups(values: Any, rows: int, name: str = "groups") -> NDArray[Any]:
    """The group of each row, as text.

    Examples
    --------
    >>> from priorshift.io.observations import read_groups
    >>> read_groups([7.0, 7.0, 8.0], rows=3).tolist()
    ['7', '7', '8']
    """
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked cells, which have no value; give every row its group.")
    ids = check_per_row(values, rows, name, "one group for each row")
    return comparable_ids(ids, f"{name} has no group")


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """The observation that each group of a source is, found by the group's name, which is not kept.

    Names are hashed with a salt that is made of all of them: who reads a stored estimator sees no name, though whoever
    has a list of names can look them up.
    """

    salt: str
    number: dict[str, int]

    @classmethod
    def of(cls, groups: NDArray[Any] | None, observation: Index) -> KnownGroups:
        """From the group and the observation of each row; empty without groups."""
        if groups is None:
            return cls("", {})
        names, first = np.unique(groups, return_index=True)
        salt = blake2b("\n".join(names.tolist()).encode(), digest_size=16).hexdigest()
        known = cls(salt, {})
        known.number.update((known._hashed(n), int(o)) for n, o in zip(names.tolist(), observation[first], strict=True))
        return known

    def find(self, groups: NDArray[Any]) -> Index:
        """The observation of each row's group; −1 where the source does not have it."""
        names, at = np.unique(groups, return_inverse=True)
        found = np.array([self.number.get(self._hashed(name), -1) for name in names.tolist()], dtype=np.intp)
        return np.asarray(found[at.reshape(-1)])

    def _hashed(self, name: str) -> str:
        return blake2b(name.encode(), key=self.salt.encode(), digest_size=12).hexdigest()


def group_links(groups: NDArray[Any]) -> Pairs:
    """Pairs of rows that connect each group."""
    order = np.argsort(groups, kind="stable")
    same = groups[order][1:] == groups[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def comparable_ids(ids: NDArray[Any], missing: str = "") -> NDArray[Any]:
    """Ids as text, so that 7, 7.0 and "7" are one; `missing` is what is said of an empty one."""
    if ids.dtype.kind in "iu":
        return ids.astype(str)
    text = ["" if is_missing_word(str(i)) else as_text(i) for i in ids.tolist()]
    if "" in text:
        row = f"row {text.index('')} (counting from 0)"
        said = (
            f"{missing} in {row}; give every row one"
            if missing
            else f"the id in {row} is missing; give every row an id"
        )
        raise InputError(f"{said}.")
    return np.array(text)


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
    if not len(links):
        return np.arange(rows)
    first, second = links.astype(np.int32).T  # the only integers that scipy 1.11 follows
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(graph, directed=False)[1])


def count_alike(number: Index) -> Index:
    """For each row, how many have its number."""
    return np.asarray(np.bincount(number, minlength=1)[number])


def repeats_by_chance(X: NDArray[Any]) -> bool:
    """Whether rows can be equal by chance: they cannot where each of two columns alone tells almost all rows apart."""
    if len(X) > 3 and _telling_columns(X, 2) == 2:
        return False
    distinct = int(row_codes(X).max()) + 1
    return distinct < 3 or sum(len(np.unique(column)) >= 0.9 * distinct for column in X.T) < 2


def find_copies(X: NDArray[Any]) -> Pairs:
    """Pairs that connect identical rows, if at least one row in ten is a copy."""
    if _telling_columns(X, 1):
        return NO_PAIRS
    codes = row_codes(X)
    return group_links(codes) if int(codes.max()) + 1 <= 0.9 * len(X) else NO_PAIRS


def _telling_columns(X: NDArray[Any], enough: int) -> int:
    """How many columns alone tell more than nine rows in ten apart, up to `enough`: then rows need not be sorted."""
    found = 0
    for column in X.T:
        found += len(np.unique(column)) > 0.9 * len(X)
        if found == enough:
            break
    return found


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
    """How much each row of P and of U moves an estimate of the source prior.

    Attributes
    ----------
    positive, unlabeled : ndarray
        Of each row.
    observation_of_positive, observation_of_unlabeled : ndarray of int
        The observation that each row is.
    """

    positive: Floats
    unlabeled: Floats
    observation_of_positive: Index
    observation_of_unlabeled: Index

    @property
    def variance(self) -> float:
        """Of the estimate: the influence of an observation is the sum over its rows."""
        each = self.of_observations()
        return float(each @ each)

    def of_observations(self, least: int = 0) -> Floats:
        """The influence of each observation, by its number; zeros after the last, up to `least` of them."""
        numbers = np.concatenate([self.observation_of_positive, self.observation_of_unlabeled])
        return np.bincount(numbers, np.concatenate([self.positive, self.unlabeled]), least).astype(np.float64)
