"""Shift and scale of every column, from the population sample alone.

The target must never be scaled by its own statistics: a different prior changes its means and spreads, and scaling them
away would remove the shift that is to be measured.
"""

from __future__ import annotations

from collections.abc import Callable
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
    shift: Floats
    factor: Floats
    index: Index | None = None  # which rows; None means all

    def __len__(self) -> int:
        return len(self.X) if self.index is None else len(self.index)

    def __getitem__(self, at: Any) -> Floats:
        return (self.X[at if self.index is None else self.index[at]] - self.shift) * self.factor


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − shift)·factor; a column that is constant in the population has factor 0, so it is left out."""

    shift: Floats
    factor: Floats
    constant: Index  # columns that are constant
    value: NDArray[Any]  # their values
    origin: Origin | None = None  # of encoded columns

    @classmethod
    def from_rows(
        cls,
        X: NDArray[Any],
        index: Index,
        standardize: bool,
        origin: Origin | None = None,
        weights: Floats | None = None,
    ) -> Scaling:
        """Compute the scale from the rows `index` of X; without `standardize` columns are only centred.

        Encoded columns with a scale of their own keep it: otherwise a level of one row in a hundred would weigh ten
        times as much, and more than all numbers together.
        """
        blocks = [index[k : k + _BLOCK] for k in range(0, len(index), _BLOCK)]

        def mean(of_rows: Callable[[NDArray[Any]], Floats]) -> Floats:
            if weights is None:
                return np.asarray(sum(of_rows(X[b]).sum(axis=0, dtype=np.float64) for b in blocks) / len(index))
            return np.asarray(sum(weights[b] @ of_rows(X[b]) for b in blocks) / weights[index].sum())

        shift = mean(lambda rows: rows)
        factor = np.ones(X.shape[1])
        constant = np.empty(0, dtype=np.intp)
        if standardize:
            spread = np.sqrt(mean(lambda rows: (rows - shift) ** 2))
            largest = np.max([np.abs(X[block].astype(np.float64)).max(axis=0) for block in blocks], axis=0)
            same = np.all([(X[block] == X[index[0]]).all(axis=0) for block in blocks], axis=0)
            flat = same | (spread <= np.maximum(_ROUNDING * largest, 1e-150))  # a mean of equals may be off by rounding
            if flat.all():
                raise InputError("every column of the population sample is constant; pass features that vary.")
            constant = np.flatnonzero(flat)
            kept = flat if origin is None else flat | origin.own_scale
            factor = np.where(flat, 0.0, 1 / np.where(kept, 1.0, spread))
        return cls(shift, factor, constant, X[index[0], constant].astype(np.float64), origin)

    @property
    def features(self) -> int:
        """Number of columns that are not left out, before encoding."""
        if self.origin is None:
            return int(np.count_nonzero(self.factor))
        return len(np.unique(self.origin.of[self.factor != 0]))

    def rows(self, X: NDArray[Any], index: Index | None = None) -> Rows:
        """Return scaled rows."""
        return Rows(X, self.shift, self.factor, index)

    def warn_of_left_out(self, table: Table) -> None:
        """Warn of columns that are constant in the population but not in another sample, against label shift."""
        if len(self.constant) and (varies := self.left_out_of(table)):
            warn(
                f"Left out {', '.join(varies)}: constant in the population sample but not in {table.name}, which "
                "contradicts label shift; check these columns.",
                ColumnWarning,
            )

    def left_out_of(self, table: Table) -> list[str]:
        """Return the columns that are left out although they vary in the table, or have another value."""
        gap = np.abs(table.values[:, self.constant].astype(np.float64) - self.value)
        return [table.column(k) for k in self.constant[(gap > _ROUNDING * np.abs(self.value)).any(axis=0)]]
