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
from priorshift.io.row_hashes import content_codes, count_common, count_distinct

_MOSTLY = 0.9  # share of distinct values or rows from which on rows do not repeat by chance

_PROBES = 1000  # rows of a subsample
_FEW_FOUND = 0.3  # share of a subsample; it is not below this by chance where half of all rows are found


def shared_pairs(X: NDArray[Any], labeled: Index, unlabeled: Index, ids: NDArray[Any] | None) -> Pairs:
    """Return which labelled and unlabelled rows are the same: those with equal ids or, without ids, equal values.

    `labeled` and `unlabeled` are positions of rows in X, `ids` has one entry per row of X. The result has shape
    (pairs, 2): positions in `labeled` and in `unlabeled`.
    """
    if ids is None:
        ids = row_codes(X)
    elif any(len(np.unique(ids[rows])) < len(rows) for rows in (labeled, unlabeled)):
        # where several rows of a sample have one id, such as a patient's, only rows with equal values are the same
        ids = np.array([f"{code} {row_id}" for code, row_id in zip(row_codes(X), ids, strict=True)])
    return _equal_pairs(ids[labeled], ids[unlabeled])


def read_groups(values: Any, rows: int, name: str = "groups") -> NDArray[Any]:
    """Read the group of each row, which messages call `name`, as text; refuse a row without a group."""
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
    observation_of: dict[str, int] = field(default_factory=dict)  # hash of a group's name to its observation number

    @classmethod
    def from_rows(cls, groups: NDArray[Any], observation: Index) -> KnownGroups:
        """Build the map from the group and the observation number of each row of the source."""
        names, first_row = np.unique(groups, return_index=True)
        known = cls(salt=blake2b("\n".join(names.tolist()).encode(), digest_size=16).hexdigest())
        for name, row in zip(names.tolist(), first_row, strict=True):  # all rows of a group are one observation
            known.observation_of[known._hash(name)] = int(observation[row])
        return known

    def find(self, groups: NDArray[Any]) -> Index:
        """Return the source's observation number for the group of each row; −1 if the source lacks the group."""
        names, name_of_row = np.unique(groups, return_inverse=True)
        numbers = np.array([self.observation_of.get(self._hash(name), -1) for name in names.tolist()], dtype=np.intp)
        return np.asarray(numbers[name_of_row.reshape(-1)])

    def _hash(self, name: str) -> str:
        """Return the salted hash of a group's name."""
        return blake2b(name.encode(), key=self.salt.encode(), digest_size=12).hexdigest()


def group_links(groups: NDArray[Any]) -> Pairs:
    """Return pairs of row positions that link each row to the next one of its group, of shape (pairs, 2)."""
    order = np.argsort(groups, kind="stable")
    same_as_next = groups[order][1:] == groups[order][:-1]
    return np.stack([order[:-1][same_as_next], order[1:][same_as_next]], axis=1)


def comparable_ids(ids: NDArray[Any], missing: str = "shared has no id") -> NDArray[Any]:
    """Return ids as text, so that 7, 7.0 and "7" are equal; refuse a missing id, in an error that begins `missing`."""
    if ids.dtype.kind in "iu":  # integers
        return ids.astype(str)
    texts = ["" if is_missing_word(str(row_id)) else as_text(row_id) for row_id in ids.tolist()]
    if "" in texts:
        raise InputError(f"{missing} in row {texts.index('')} (counting from 0); give every row one.")
    return np.array(texts)


def row_codes(X: NDArray[Any]) -> Index:
    """Return an integer code for each row of X, from 0 on, which identical rows share."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1].reshape(-1))


def _equal_pairs(positive: NDArray[Any], unlabeled: NDArray[Any]) -> Pairs:
    """Return all pairs (i, j) of positions with positive[i] == unlabeled[j]; refuse too many, which must be chance."""
    order = np.argsort(unlabeled, kind="stable")
    in_order = unlabeled[order]
    # the matches of positive[i] are in_order[first[i] : first[i] + count[i]]
    first = np.searchsorted(in_order, positive, "left")
    count = np.searchsorted(in_order, positive, "right") - first
    total = int(count.sum())
    if total > 10 * (len(positive) + len(unlabeled)) or (total and total == len(positive) * len(unlabeled)):
        raise InputError(
            f"shared='identical' finds {total} identical pairs among {len(positive)} positive and {len(unlabeled)} "
            "unlabeled rows, too many to be the same observations; pass an id column, or leave shared out."
        )
    if not total:
        return NO_PAIRS
    i = np.repeat(np.arange(len(positive)), count)
    # 0, 1, … within the matches of each i
    offset = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([i, order[np.repeat(first, count) + offset]], axis=1)


def linked(rows: int, links: Pairs) -> Index:
    """Return for each row the number of its connected component, in the graph whose edges are the pairs `links`."""
    if not len(links):
        return np.arange(rows)
    first, second = links.astype(np.int32).T  # scipy 1.11 accepts no other integers
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(graph, directed=False)[1])


def count_copies(rows: int, links: Pairs) -> Index:
    """Return the number of copies of each row, itself included, where the pairs `links` are copies of each other."""
    if not len(links):
        return np.broadcast_to(np.intp(1), rows)  # takes no memory
    number = linked(rows, links)  # the same for copies of one row
    return np.asarray(np.bincount(number)[number])


def repeats_by_chance(X: NDArray[Any]) -> bool:
    """Return whether rows of X can be equal by chance: not if each of two columns distinguishes almost all rows.

    A column does so if it has at least 0.9 times as many distinct values as there are distinct rows.
    """
    values_of_column, clear_columns = [], 0  # numbers of distinct values; columns that distinguish 90% of all rows
    for column in X.T:
        distinct_values = count_distinct(column)
        values_of_column.append(distinct_values)
        if distinct_values > _MOSTLY * len(X):
            clear_columns += 1
        if clear_columns == 2 and len(X) > 3:  # without comparing whole rows and the other columns
            return False
    distinct_rows = count_distinct(content_codes(X))
    return distinct_rows < 3 or sum(count >= _MOSTLY * distinct_rows for count in values_of_column) < 2


def find_copies(X: NDArray[Any]) -> Pairs:
    """Return pairs of row positions that link identical rows; none if fewer than one row in ten is a copy."""
    if any(count_distinct(column) > _MOSTLY * len(X) for column in X.T):  # avoids comparing whole rows
        return NO_PAIRS
    codes = content_codes(X)
    return group_links(codes) if count_distinct(codes) <= _MOSTLY * len(X) else NO_PAIRS


def common_rows(X: NDArray[Any], others: NDArray[Any]) -> int:
    """Return how many rows of X are also among the rows `others`; 0 if those are discrete and so repeat by chance.

    A small share may be returned as 0: if a random subsample of many rows shows it in the first column alone.
    """
    if len(X) > 10 * _PROBES:
        probes = np.sort(X[np.random.default_rng(0).choice(len(X), _PROBES, replace=False), 0])
        column = others[:, 0]
        found = column[probes[np.searchsorted(probes[:-1], column)] == column]
        if np.isin(probes, found).mean() < _FEW_FOUND:
            return 0
    codes = content_codes(others)
    return 0 if count_distinct(codes) < _MOSTLY * len(codes) else count_common(content_codes(X), codes)


@dataclass(frozen=True, eq=False)
class PriorInfluence:
    """Influence of each row of P and of U on an estimate of the source prior, whose error is about their sum."""

    positive: Floats
    unlabeled: Floats
    observation_of_positive: Index
    observation_of_unlabeled: Index

    @property
    def variance(self) -> float:
        """Variance of the estimate: the sum of the squared influences of observations, which are independent."""
        influence = self.of_observations()
        return float(influence @ influence)

    def of_observations(self, least: int = 0) -> Floats:
        """Return the influence of each observation, the sum over its rows, padded with zeros to `least` entries."""
        numbers = np.concatenate([self.observation_of_positive, self.observation_of_unlabeled])
        return np.bincount(numbers, np.concatenate([self.positive, self.unlabeled]), least).astype(np.float64)
