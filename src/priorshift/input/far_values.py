"""Codes for missing values among numbers: 9999 in five rows of a column that otherwise stays below 10.

A few such rows make up the whole spread of their column, so that a standardised column is zero for all others. Heavy
tails do so too, and mean something; but their largest values are not repeated, nor do they leave a gap.
"""

from __future__ import annotations

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import FarValueWarning, warn
from priorshift.input.tables import Table

_FALLS = 10.0  # times that the spread is smaller without the value
_GAP = 10.0  # spreads of the rest, between the value and the next one
_TAIL = 0.005  # of the rest at either end, which its spread leaves out: another code may be among them
_VALUES = 10  # that the rest has at least: below, a column is no measurement
_ROWS = 20_000  # that a spread is taken from


def warn_of_far_values(table: Table) -> None:
    """Name each column that holds such a value, the value, and in how many rows."""
    for number, column in enumerate(table.values.T):
        for value in (column.max(), column.min()) if len(column) else ():
            rows = int(np.count_nonzero(column == value))
            distance = _distance(column, value, rows)
            if distance:
                warn(
                    f"In {table.name}, {table.column(number)} holds {value:.10g} in {rows} row{'s'[: rows > 1]}, "
                    f"{distance:.0f} spreads from the rest; a code for a missing value? Leave these rows out, or "
                    "write what is known.",
                    FarValueWarning,
                )


def _distance(column: Floats, value: float, rows: int) -> float:
    """Of the column's end from the rest, in spreads of the rest; 0 where it does not stand out."""
    repeated = 2 <= rows < len(column) / 2 and abs(value) > 1  # 0 and 1 are ends of shares
    if not (repeated or (rows == 1 and _is_nines(value))):
        return 0.0
    rest = column[column != value].astype(np.float64)
    next_one = rest.max() if value > rest[0] else rest.min()
    some = np.sort(rest[:: max(1, len(rest) // _ROWS)])
    cut = int(_TAIL * len(some))
    inner = some[cut : len(some) - cut]
    spread = float(inner.std())
    far = abs(float(value) - next_one) > _GAP * spread and float(column.std(dtype=np.float64)) > _FALLS * spread
    measured = far and len(np.unique(inner)) >= _VALUES
    return abs(float(value) - float(np.median(inner))) / spread if measured else 0.0


def _is_nines(value: float) -> bool:
    """999, −9999 and the like, which even once is no measurement."""
    return abs(value) >= 999 and float(value).is_integer() and set(str(int(abs(value)))) == {"9"}
