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
    """Return index pairs into `labeled` and `unlabeled` of rows with the same id or, without ids, the same values."""
    if ids is None:
        ids = row_codes(X)
    elif any(len(np.unique(ids[rows])) < len(rows) for rows in (labeled, unlabeled)):
        # where several rows of a sample have one id, such as a patient's, only rows with equal values are the same
        ids = np.array([f"{k} {i}" for k, i in zip(row_codes(X), ids, strict=True)])
    return _join(ids[labeled], ids[unlabeled])


def read_groups(values: Any, rows: int, name: str = "groups") -> NDArray[Any]:
    """Read one group per row, as text; refuse missing ones."""
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked cells, which have no value; give every row a group.")
    groups = check_per_row(values, rows, name, "one group for each row")
    return comparable_ids(groups, f"{name} has no group")


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Map from the name of a group, of which only a hash is stored, to its observation in the source.

    The salt of the hash is derived from all names: a reader of a stored estimator sees no name, but can check whether a
    name that they know is among them.
    """

    salt: str = ""
    number: dict[str, int] = field(default_factory=dict)  # hash of a group's name to its observation

    @classmethod
    def from_rows(cls, groups: NDArray[Any], observation: Index) -> KnownGroups:
        """Build the map from the group and the observation number of each row of the source."""
        names, first = np.unique(groups, return_index=True)
        known = cls(blake2b("\n".join(names.tolist()).encode(), digest_size=16).hexdigest())
        known.number.update((known._hash(n), int(o)) for n, o in zip(names.tolist(), observation[first], strict=True))
        return known

    def find(self, groups: NDArray[Any]) -> Index:
        """Return the observation of each row's group; −1 if the source does not have the group."""
        names, inverse = np.unique(groups, return_inverse=True)
        observations = np.array([self.number.get(self._hash(name), -1) for name in names.tolist()], dtype=np.intp)
        return np.asarray(observations[inverse.reshape(-1)])

    def _hash(self, name: str) -> str:
        """Return the salted hash of a name."""
        return blake2b(name.encode(), key=self.salt.encode(), digest_size=12).hexdigest()


def group_links(groups: NDArray[Any]) -> Pairs:
    """Return index pairs of neighbouring rows within each group; linked together, they make up the group."""
    order = np.argsort(groups, kind="stable")
    same = groups[order][1:] == groups[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def comparable_ids(ids: NDArray[Any], missing: str = "shared has no id") -> NDArray[Any]:
    """Return ids as text, so that 7, 7.0 and "7" are equal; `missing` is how the error for an empty id begins."""
    if ids.dtype.kind in "iu":
        return ids.astype(str)
    text = ["" if is_missing_word(str(i)) else as_text(i) for i in ids.tolist()]
    if "" in text:
        raise InputError(f"{missing} in row {text.index('')} (counting from 0); give every row one.")
    return np.array(text)


def row_codes(X: NDArray[Any]) -> Index:
    """Return an integer code for each row, which identical rows share."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1].reshape(-1))


def _join(left: NDArray[Any], right: NDArray[Any]) -> Pairs:
    """Return all index pairs (i, j) with left[i] == right[j]; refuse so many that equality must be chance."""
    order = np.argsort(right, kind="stable")
    right_sorted = right[order]
    first, last = np.searchsorted(right_sorted, left, "left"), np.searchsorted(right_sorted, left, "right")
    count = last - first
    total = int(count.sum())
    if total > 10 * (len(left) + len(right)) or (total and total == len(left) * len(right)):
        raise InputError(
            f"shared='identical' finds {total} identical pairs among {len(left)} positive and {len(right)} unlabeled "
            "rows, too many to be the same observations; pass an id column, or leave shared out."
        )
    if not total:
        return NO_PAIRS
    left_index = np.repeat(np.arange(len(left)), count)
    # 0, 1, … within the matches of each entry of `left`
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([left_index, order[np.repeat(first, count) + offset]], axis=1)


def linked(rows: int, links: Pairs) -> Index:
    """Return the number of each row's connected component in the graph of linked rows."""
    if not len(links):
        return np.arange(rows)
    first, second = links.astype(np.int32).T  # scipy 1.11 accepts no other integers
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(graph, directed=False)[1])


def repeats_by_chance(X: NDArray[Any]) -> bool:
    """Return whether equal rows can be chance: they cannot if each of two columns distinguishes almost all rows."""
    if len(X) > 3 and _distinguishing_columns(X, 2) == 2:
        return False
    distinct = int(row_codes(X).max()) + 1
    return distinct < 3 or sum(len(np.unique(column)) >= 0.9 * distinct for column in X.T) < 2


def find_copies(X: NDArray[Any]) -> Pairs:
    """Return index pairs that link identical rows; none if fewer than one row in ten is a copy."""
    if _distinguishing_columns(X, 1):
        return NO_PAIRS
    codes = row_codes(X)
    return group_links(codes) if int(codes.max()) + 1 <= 0.9 * len(X) else NO_PAIRS


def _distinguishing_columns(X: NDArray[Any], enough: int) -> int:
    """Count the columns with distinct values in over 90% of the rows, up to `enough`; avoids comparing whole rows."""
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
        """Variance of the estimate: the sum of squared influences of independent observations."""
        influence = self.of_observations()
        return float(influence @ influence)

    def of_observations(self, least: int = 0) -> Floats:
        """Return the influence of each observation, the sum over its rows, padded with zeros to `least` entries."""
        numbers = np.concatenate([self.observation_of_positive, self.observation_of_unlabeled])
        return np.bincount(numbers, np.concatenate([self.positive, self.unlabeled]), least).astype(np.float64)
