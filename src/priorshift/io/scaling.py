"""One shift and one factor for every column, from the population sample alone.

The target must never be scaled by its own statistics: a different prior moves its means and spreads, and
removing that would remove the very shift that is to be measured.
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
_BLOCK = 4096  # rows looked at together


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a matrix, seen through a shift and a factor for each column; made block by block, never whole."""

    X: NDArray[Any]
    shift: Floats
    factor: Floats
    index: Index | None = None  # which rows; None: all

    def __len__(self) -> int:
        return len(self.X) if self.index is None else len(self.index)

    def __getitem__(self, at: Any) -> Floats:
        return (self.X[at if self.index is None else self.index[at]] - self.shift) * self.factor


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − shift) · factor; a column without spread in the population has factor 0, so it is left out."""

    shift: Floats
    factor: Floats
    constant: Index  # columns without spread
    value: NDArray[Any]  # what they hold
    origin: Origin | None = None  # of encoded columns

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        index: Index,
        standardize: bool,
        origin: Origin | None = None,
        weights: Floats | None = None,
    ) -> Scaling:
        """From the rows `index` of X; without `standardize` columns are only centred, which keeps digits.

        Columns that an encoding gave a scale of their own keep it: a level of one row in a hundred would otherwise
        count ten times what it does, and more than all numbers together.
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
                raise InputError(
                    "every column of the population sample is constant, so nothing tells its rows apart; "
                    "pass features that vary."
                )
            constant = np.flatnonzero(flat)
            kept = flat if origin is None else flat | origin.own_scale
            factor = np.where(flat, 0.0, 1 / np.where(kept, 1.0, spread))
        return cls(shift, factor, constant, X[index[0], constant].astype(np.float64), origin)

    @property
    def features(self) -> int:
        """Columns that are not left out; those that one column was encoded by count as one."""
        if self.origin is None:
            return int(np.count_nonzero(self.factor))
        return len(np.unique(self.origin.of[self.factor != 0]))

    def rows(self, X: NDArray[Any], index: Index | None = None) -> Rows:
        return Rows(X, self.shift, self.factor, index)

    def warn_of_left_out(self, table: Table) -> None:
        """A column that is constant in the population but not in another sample contradicts label shift."""
        varies = self.left_out_of(table)
        if varies:
            warn(
                f"Left out {', '.join(varies)}: constant in the population sample but not in "
                f"{table.name}, which label shift does not allow; check how these columns were made.",
                ColumnWarning,
            )

    def left_out_of(self, table: Table) -> list[str]:
        """Columns of a table that are left out though they vary in it, or hold another value."""
        gap = np.abs(table.values[:, self.constant].astype(np.float64) - self.value)
        return [table.column(k) for k in self.constant[(gap > _ROUNDING * np.abs(self.value)).any(axis=0)]]
