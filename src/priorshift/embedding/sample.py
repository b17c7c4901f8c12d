"""A sample as a mean embedding sees it: rows, what each counts, and which of them are one observation.

A mean embedding is μ = Σ mass·φ(x). P, U and T have one numbering of observations, so that a group that stands in two
samples is known in both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.input.scaling import Rows
from priorshift.input.weights import effective_size


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one of the three samples.

    Attributes
    ----------
    rows : Rows
        Scaled.
    mass : ndarray
        What each row counts in a mean; the sum is 1.
    observation : ndarray of int
        A number for each row, the same for rows of one observation, here and in the other samples.
    """

    rows: Rows
    mass: Floats
    observation: Index

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def even(cls, rows: Rows, first: int = 0) -> Sample:
        """Rows that count the same, each an observation of its own, numbered from `first` on."""
        n = len(rows)
        return cls(rows, np.full(n, 1 / n), np.arange(first, first + n))

    @cached_property
    def weights(self) -> Floats | None:
        """The masses, times the number of rows; None where all are the same."""
        return None if np.ptp(self.mass) == 0 else self.mass * len(self)

    @cached_property
    def numbers(self) -> Index:
        """The observations, in the order in which they appear."""
        if self._is_rising:
            return self.observation
        numbers, first = np.unique(self.observation, return_index=True)
        return np.asarray(numbers[np.argsort(first, kind="stable")])

    @property
    def is_apart(self) -> bool:
        """Whether each row is its own observation."""
        return len(self.numbers) == len(self)

    @property
    def is_even(self) -> bool:
        """Whether each row counts the same, and is its own observation."""
        return self.weights is None and self.is_apart

    @cached_property
    def size(self) -> float:
        """Observations of equal weight that it is worth."""
        return float(len(self)) if self.is_even else effective_size(self.mass, self._codes)

    @property
    def unbiased(self) -> float:
        """What the spread of its observations about their mean is too small by: √(n/(n−1)), n that count the same."""
        return float(np.sqrt(self.size / max(self.size - 1, 1)))

    def take(self, index: Index) -> Sample:
        """Some of its rows, which keep their mass."""
        rows = replace(self.rows, index=index if self.rows.index is None else self.rows.index[index])
        return Sample(rows, self.mass[index], self.observation[index])

    def together(self, values: Floats) -> tuple[Index, Floats]:
        """Observations, rising, and sums of `values` over the rows of each; of shape (rows, columns)."""
        if self._is_rising:
            return self.observation, values
        if self.is_apart:
            order = np.argsort(self.observation, kind="stable")
            return self.observation[order], values[order]
        numbers = np.sort(self.numbers)
        sums = [np.bincount(self._codes, column, len(numbers)) for column in values.T]
        return numbers, np.stack(sums, axis=1)

    @cached_property
    def _is_rising(self) -> bool:
        """Whether observations are numbered in the order of the rows, each its own: nothing to sort."""
        return bool((np.diff(self.observation) > 0).all())

    @cached_property
    def _codes(self) -> Index:
        """Of each row, the rank of its observation's number."""
        return np.asarray(np.unique(self.observation, return_inverse=True)[1].reshape(-1))
