"""The units of samples, rows or groups of rows, and the reference that those of batches are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.monitoring.ranks import to_levels

UNIT_LEVELS = 512  # of the score of a unit
FEATURE_LEVELS = 128  # of another feature of a unit


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
    """Values of the units of a population, rows or groups of rows, as counts on grids, and of the positives."""

    is_grouped: bool  # whether a unit is a group of rows
    score_edges: Floats  # between the levels of a unit's score, shape (levels − 1,)
    score_counts: Floats  # units at each level
    feature_edges: Floats  # shape (features, levels − 1)
    feature_counts: Floats  # shape (features, levels)
    positive_counts: Floats  # units of P with each feature at each level, shape (features, levels)

    @classmethod
    def from_units(cls, population: Units, positive: Floats, *, is_grouped: bool) -> Reference:
        """Count the units of a population on grids of its own quantiles; `positive` are features of units of P."""
        scores, features = population.scores, population.features
        score_edges = _quantiles(scores, UNIT_LEVELS)
        feature_edges = np.stack([_quantiles(column, FEATURE_LEVELS) for column in features.T])
        counts = np.bincount(to_levels(scores, score_edges), minlength=UNIT_LEVELS).astype(float)
        feature_counts, positive_counts = (count_features(part, feature_edges) for part in (features, positive))
        return cls(is_grouped, score_edges, counts, feature_edges, feature_counts, positive_counts)

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
