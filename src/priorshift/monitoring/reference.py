"""The units of samples, rows or groups of rows, and the reference that those of batches are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import legendre

from priorshift.arrays import Floats
from priorshift.monitoring.ranks import to_levels

UNIT_LEVELS = 512  # of the score of a unit
FEATURE_LEVELS = 128  # of another feature of a unit
RANK_BINS = 100  # of the rank of a feature
DEGREE = 4  # of polynomials of a rank, one of which the difference between the classes takes


class Units:
    """Independent units of a sample: rows, or groups of rows such as patients.

    The score of a group is the sum of those of its rows, times their weights; its features are weighted means.
    """

    def __init__(
        self, scores: Floats, features: Floats, *, weights: Floats | None = None, groups: NDArray[Any] | None = None
    ) -> None:
        """Combine the rows of each unit; `weights` have the mean 1."""
        self.code: NDArray[np.int64] | None = None
        if weights is not None:
            scores = scores * weights
        if groups is not None:
            self.code = np.unique(groups, return_inverse=True)[1].reshape(-1)
            mass = np.ones(len(scores)) if weights is None else weights
            total = np.bincount(self.code, mass)
            scores = np.bincount(self.code, scores).astype(float)
            columns = [np.bincount(self.code, mass * column) / total for column in features.T]
            features = np.column_stack(columns)
        self.scores, self.features = scores, features

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class Reference:
    """Values of the units of a sample, rows or groups of rows, as counts on grids."""

    is_grouped: bool  # whether a unit is a group of rows
    score_edges: Floats  # between the levels of a unit's score, shape (levels − 1,)
    score_counts: Floats  # units at each level
    feature_edges: Floats  # shape (features, levels − 1)
    feature_counts: Floats  # shape (features, levels)
    directions: Floats  # functions of a feature's rank with the same mean in P and U, shape (features, 3, rank bins)

    @classmethod
    def from_units(cls, scores: Floats, features: Floats, directions: Floats, *, is_grouped: bool) -> Reference:
        """Count the units of a sample on grids of its own quantiles."""
        score_edges = _quantiles(scores, UNIT_LEVELS)
        feature_edges = np.stack([_quantiles(column, FEATURE_LEVELS) for column in features.T])
        counts = np.bincount(to_levels(scores, score_edges), minlength=UNIT_LEVELS).astype(float)
        return cls(is_grouped, score_edges, counts, feature_edges, count_features(features, feature_edges), directions)

    def without_units(self) -> Reference:
        """Return the same grids without any unit."""
        return replace(self, score_counts=0 * self.score_counts, feature_counts=0 * self.feature_counts)


def count_features(features: Floats, edges: Floats) -> Floats:
    """Return how many units have each feature at each level, shape (features, levels)."""
    levels = np.stack([to_levels(column, line) for column, line in zip(features.T, edges, strict=True)])
    return count_levels(levels, edges.shape[1] + 1)


def count_levels(levels: NDArray[np.int64], size: int) -> Floats:
    """Return how often each level, below `size`, occurs in each row of `levels`."""
    return np.stack([np.bincount(row, minlength=size) for row in levels]).astype(float)


def _quantiles(values: Floats, levels: int) -> Floats:
    """Return quantiles as edges between levels; several are equal if values are."""
    return np.quantile(values, np.arange(1, levels) / levels, method="lower")


def feature_directions(positive: Floats, population: Floats) -> Floats:
    """Return functions of the rank u of a feature in the population, whose means are the same in P and U.

    Label shift moves the distribution of every feature towards that of P, or away from it, and leaves the means of
    these functions unchanged. They are polynomials, orthonormal if u is uniform; shape (features, 3, rank bins).
    """
    centers = (np.arange(RANK_BINS) + 0.5) / RANK_BINS
    basis = np.stack([legendre(k)(2 * centers - 1) * np.sqrt(2 * k + 1) for k in range(1, DEGREE + 1)])
    basis -= basis.mean(axis=1, keepdims=True)
    results = []
    for in_P, in_U in zip(positive.T, population.T, strict=True):
        ordered = np.sort(in_U)
        below, up_to = (np.searchsorted(ordered, in_P, side=side) for side in ("left", "right"))
        rank = (below + up_to) / (2 * len(ordered))
        gap = basis[:, np.minimum((rank * RANK_BINS).astype(int), RANK_BINS - 1)].mean(axis=1)
        complement = np.linalg.svd(gap[None, :])[2][1:]  # orthonormal, and orthogonal to the gap
        results.append(complement @ basis)
    return np.stack(results)
