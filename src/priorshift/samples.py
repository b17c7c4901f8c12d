"""P and U of a source: which rows make them up, and which rows are one observation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from priorshift.embeddings import NO_PAIRS, Pairs
from priorshift.errors import InputError
from priorshift.shared_rows import row_codes, shared_pairs


@dataclass(frozen=True)
class Samples:
    """Which rows are labelled, which make up P and U, and which are the same.

    Attributes
    ----------
    labeled : ndarray of bool
        Of each row.
    positive, population : ndarray of int
        Rows of P and of U.
    shared : ndarray of shape (pairs, 2)
        Positions in P and in U of one observation.
    copies : ndarray of shape (pairs, 2)
        Rows that are copies of each other.
    """

    labeled: NDArray[np.bool_]
    positive: NDArray[np.intp]
    population: NDArray[np.intp]
    shared: Pairs
    copies: Pairs = field(default_factory=lambda: NO_PAIRS)

    @classmethod
    def of(cls, X: NDArray[Any], labeled: NDArray[np.bool_], scenario: str, shared: Any) -> Samples:
        """Under "censoring" all rows are the population, and the labelled ones are shared by construction."""
        positive, rest = np.flatnonzero(labeled), np.flatnonzero(~labeled)
        if scenario == "censoring":
            if shared is not None:
                raise InputError("shared is known under scenario='censoring' (every labelled row); leave it out.")
            return cls(
                labeled, positive, np.arange(len(labeled)), np.stack([np.arange(len(positive)), positive], axis=1)
            )
        pairs = NO_PAIRS if shared is None else shared_pairs(X, positive, rest, shared)
        return cls(labeled, positive, rest, pairs)

    @property
    def observations(self) -> NDArray[np.intp]:
        """The observation of each row."""
        links = np.stack([self.positive[self.shared[:, 0]], self.population[self.shared[:, 1]]], axis=1)
        return linked(len(self.labeled), np.concatenate([links, self.copies]))


def linked(rows: int, links: Pairs) -> NDArray[np.intp]:
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
