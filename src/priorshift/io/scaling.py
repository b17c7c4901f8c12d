"""Shift and scale of every column, from the population sample alone.

The target must never be scaled by its own statistics: a different prior changes its means and spreads, and scaling them
away would remove the shift that is to be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.tables import Origin, Table
from priorshift.warning_records import warn

_ROUNDING = 8 * np.finfo(float).eps  # a spread below this, relative to the values, is rounding alone
_BLOCK = 4096  # rows processed together


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a matrix, shifted and scaled when they are indexed, so that no scaled copy is in memory."""

    X: NDArray[Any]
    shift: Floats  # of each column
    factor: Floats  # of each column
    index: Index | None = None  # positions of the rows in X; None means all

    def __len__(self) -> int:
        return len(self.X) if self.index is None else len(self.index)

    def __getitem__(self, positions: Any) -> Floats:
        """Return rows, shifted and scaled; `positions` (a slice or array) count among the rows of this object."""
        rows = self.X[positions if self.index is None else self.index[positions]]
        return (rows - self.shift) * self.factor


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − shift)·factor; a column that is constant in the population has factor 0, so it is left out."""

    shift: Floats
    factor: Floats
    constant: Index  # positions of the columns that are constant in the population
    value: NDArray[Any]  # values of the constant columns
    origin: Origin | None = None  # original columns of encoded ones

    @classmethod
    def from_rows(
        cls,
        X: NDArray[Any],
        index: Index,
        standardize: bool,
        origin: Origin | None = None,
        weights: Floats | None = None,
    ) -> Scaling:
        """Compute the shift and scale of columns from the rows `index` of X, the population sample.

        The shift is the mean and, with `standardize`, the scale is the standard deviation; `weights` has one entry per
        row of X, and None means equal weights. Encoded columns with a scale of their own keep it: otherwise a level of
        one row in a hundred would weigh ten times as much, and more than all numbers together.
        """
        blocks = [index[k : k + _BLOCK] for k in range(0, len(index), _BLOCK)]
        total_weight = len(index) if weights is None else weights[index].sum()
        sums = np.zeros(X.shape[1])
        for block in blocks:
            sums += X[block].sum(axis=0, dtype=np.float64) if weights is None else weights[block] @ X[block]
        shift = sums / total_weight
        factor = np.ones(X.shape[1])
        constant = np.empty(0, dtype=np.intp)
        if standardize:
            squares = np.zeros(X.shape[1])
            for block in blocks:
                squared = (X[block] - shift) ** 2
                squares += squared.sum(axis=0) if weights is None else weights[block] @ squared
            spread = np.sqrt(squares / total_weight)
            largest = np.max([np.abs(X[block].astype(np.float64)).max(axis=0) for block in blocks], axis=0)
            is_identical = np.all([(X[block] == X[index[0]]).all(axis=0) for block in blocks], axis=0)
            # rounding may give a constant column a small spread
            is_constant = is_identical | (spread <= np.maximum(_ROUNDING * largest, 1e-150))
            if is_constant.all():
                raise InputError("every column of the population sample is constant; pass features that vary.")
            constant = np.flatnonzero(is_constant)
            keeps_scale = is_constant if origin is None else is_constant | origin.own_scale
            # where the spread may be 0, a scale of 1 avoids a division by 0
            factor = np.where(is_constant, 0.0, 1 / np.where(keeps_scale, 1.0, spread))
        return cls(shift, factor, constant, X[index[0], constant].astype(np.float64), origin)

    @property
    def features(self) -> int:
        """Number of original columns, before encoding, that are not left out as constant."""
        if self.origin is None:
            return int(np.count_nonzero(self.factor))
        return len(np.unique(self.origin.original_column[self.factor != 0]))

    def rows(self, X: NDArray[Any], index: Index | None = None) -> Rows:
        """Return the rows of X at the positions `index` (all by default), which are scaled when they are indexed."""
        return Rows(X, self.shift, self.factor, index)

    def warn_of_left_out(self, table: Table) -> None:
        """Warn of columns that are constant in the population but not in `table`, which contradicts label shift."""
        varying = self.left_out_of(table) if len(self.constant) else []
        if varying:
            warn(
                f"Left out {', '.join(varying)}: constant in the population sample but not in {table.name}, which "
                "contradicts label shift; check these columns.",
                ColumnWarning,
            )

    def left_out_of(self, table: Table) -> list[str]:
        """Return the names of columns, constant in the population, that have any other value in `table`."""
        difference = np.abs(table.values[:, self.constant].astype(np.float64) - self.value)
        varies = (difference > _ROUNDING * np.abs(self.value)).any(axis=0)
        return [table.column(k) for k in self.constant[varies]]
