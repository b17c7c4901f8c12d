"""Which rows are one observation: rows that the user states to be shared, groups, and copies of rows.

Folds keep the rows of an observation together, and their influences on an estimate are added up. Rows of a group, such
as the visits of a patient, each count; copies of a row count as one. Whether a labelled and an unlabelled row are the
same is never guessed, because rows of discrete data can be equal by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """Return pairs of positions among labelled and unlabelled rows with the same id, or without ids the same values."""
    if ids is None:
        ids = row_codes(X)
    elif any(len(np.unique(ids[rows])) < len(rows) for rows in (labeled, unlabeled)):
        # an id of several rows, such as a patient's, is a group; their values decide which row is which
        ids = np.array([f"{k} {i}" for k, i in zip(row_codes(X), ids, strict=True)])
    return _join(ids[labeled], ids[unlabeled])


def read_groups(values: Any, rows: int, name: str = "groups") -> NDArray[Any]:
    """Read the group of each row, as text."""
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked cells, which have no value; give every row a group.")
    groups = check_per_row(values, rows, name, "one group for each row")
    return comparable_ids(groups, f"{name} has no group")


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Observation of each group of a source, found by the name of the group, of which only a hash is stored.

    The salt of the hash is derived from all names: a reader of a stored estimator sees no name, but can check whether a
    name that they know is among them.
    """

    salt: str = ""
    number: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(cls, groups: NDArray[Any], observation: Index) -> KnownGroups:
        """Take the group and the observation of each row."""
        names, first = np.unique(groups, return_index=True)
        known = cls(blake2b("\n".join(names.tolist()).encode(), digest_size=16).hexdigest())
        known.number.update((known._hash(n), int(o)) for n, o in zip(names.tolist(), observation[first], strict=True))
        return known

    def find(self, groups: NDArray[Any]) -> Index:
        """Return the observation of each row's group; −1 if the source does not have the group."""
        names, at = np.unique(groups, return_inverse=True)
        found = np.array([self.number.get(self._hash(name), -1) for name in names.tolist()], dtype=np.intp)
        return np.asarray(found[at.reshape(-1)])

    def _hash(self, name: str) -> str:
        return blake2b(name.encode(), key=self.salt.encode(), digest_size=12).hexdigest()


def group_links(groups: NDArray[Any]) -> Pairs:
    """Return pairs of rows that connect the rows of each group."""
    order = np.argsort(groups, kind="stable")
    same = groups[order][1:] == groups[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def comparable_ids(ids: NDArray[Any], missing: str = "shared has no id") -> NDArray[Any]:
    """Return ids as text, so that 7, 7.0 and "7" are equal; `missing` begins the message about an empty one."""
    if ids.dtype.kind in "iu":
        return ids.astype(str)
    text = ["" if is_missing_word(str(i)) else as_text(i) for i in ids.tolist()]
    if "" in text:
        raise InputError(f"{missing} in row {text.index('')} (counting from 0); give every row one.")
    return np.array(text)


def row_codes(X: NDArray[Any]) -> Index:
    """Return a number for each row, equal for identical rows."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1].reshape(-1))


def _join(left: NDArray[Any], right: NDArray[Any]) -> Pairs:
    """Return all pairs of positions with equal values."""
    order = np.argsort(right, kind="stable")
    ranked = right[order]
    first, last = np.searchsorted(ranked, left, "left"), np.searchsorted(ranked, left, "right")
    count = last - first
    total = int(count.sum())
    if total > 10 * (len(left) + len(right)) or (total and total == len(left) * len(right)):
        raise InputError(
            f"shared='identical' finds {total} identical pairs among {len(left)} positive and {len(right)} unlabeled "
            "rows, too many to be the same observations; pass an id column, or leave shared out."
        )
    if not total:
        return NO_PAIRS
    at = np.repeat(np.arange(len(left)), count)
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([at, order[np.repeat(first, count) + offset]], axis=1)


def linked(rows: int, links: Pairs) -> Index:
    """Return a number for each row, equal for rows that are linked, directly or through others."""
    if not len(links):
        return np.arange(rows)
    first, second = links.astype(np.int32).T  # scipy 1.11 accepts no other integers
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(graph, directed=False)[1])


def repeats_by_chance(X: NDArray[Any]) -> bool:
    """Return whether rows can be equal by chance: not if each of two columns distinguishes almost all rows."""
    if len(X) > 3 and _distinguishing_columns(X, 2) == 2:
        return False
    distinct = int(row_codes(X).max()) + 1
    return distinct < 3 or sum(len(np.unique(column)) >= 0.9 * distinct for column in X.T) < 2


def find_copies(X: NDArray[Any]) -> Pairs:
    """Return pairs that connect identical rows, if at least one row in ten is a copy."""
    if _distinguishing_columns(X, 1):
        return NO_PAIRS
    codes = row_codes(X)
    return group_links(codes) if int(codes.max()) + 1 <= 0.9 * len(X) else NO_PAIRS


def _distinguishing_columns(X: NDArray[Any], enough: int) -> int:
    """Count the columns that distinguish more than nine rows in ten, up to `enough`; avoids sorting whole rows."""
    count = 0
    for column in X.T:
        count += len(np.unique(column)) > 0.9 * len(X)
        if count == enough:
            break
    return count


@dataclass(frozen=True, eq=False)
class PriorInfluence:
    """Influence of each row of P and of U on an estimate of the source prior."""

    positive: Floats
    unlabeled: Floats
    observation_of_positive: Index
    observation_of_unlabeled: Index

    @property
    def variance(self) -> float:
        """Variance of the estimate."""
        each = self.of_observations()
        return float(each @ each)

    def of_observations(self, least: int = 0) -> Floats:
        """Return the influence of each observation, the sum over its rows, padded with zeros to `least` entries."""
        numbers = np.concatenate([self.observation_of_positive, self.observation_of_unlabeled])
        return np.bincount(numbers, np.concatenate([self.positive, self.unlabeled]), least).astype(np.float64)
