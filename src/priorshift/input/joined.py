"""Tables of one sample, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.input.mixed import Cells, MixedTable, as_text, is_missing
from priorshift.input.tables import Table, match_columns

AnyTable = Table | MixedTable


def length(table: AnyTable) -> int:
    """How many rows a table has."""
    return len(table.values) if isinstance(table, Table) else len(table)


def some_rows(table: AnyTable, rows: slice | NDArray[Any], name: str | None = None) -> AnyTable:
    """Some rows of a table, under another name if there is one."""
    aside = {key: column[rows] for key, column in table.aside.items()}
    name = table.name if name is None else name
    if isinstance(table, Table):
        return replace(table, name=name, values=table.values[rows], aside=aside)
    return replace(table, name=name, cells=tuple(cells[rows] for cells in table.cells), aside=aside, native=None)


def joined(tables: Sequence[AnyTable], name: str) -> AnyTable:
    """All rows of tables with the same columns; a column that is numbers in one and text in another becomes text."""
    if len(tables) == 1:
        return replace(tables[0], name=name)
    numbers = [table for table in tables if isinstance(table, Table)]
    if len(numbers) == len(tables):
        matched = match_columns(numbers)
        return replace(matched[0], name=name, values=np.concatenate([t.values for t in matched]), aside=_aside(matched))
    mixed = match_columns([MixedTable.of(table) if isinstance(table, Table) else table for table in tables])
    cells = tuple(_one_below_the_other([table.cells[k] for table in mixed]) for k in range(mixed[0].width))
    return replace(mixed[0], name=name, cells=cells, aside=_aside(mixed), native=None)


def _aside(tables: Sequence[AnyTable]) -> dict[str, NDArray[Any]]:
    shared = [key for key in tables[0].aside if all(key in table.aside for table in tables)]
    return {key: np.concatenate([table.aside[key] for table in tables]) for key in shared}


def _one_below_the_other(columns: Sequence[Cells]) -> Cells:
    """Cells of one form: the one that all have which hold a value, or else text."""
    forms = {column.dtype.kind for column in columns if not is_missing(column).all()}
    form = forms.pop() if len(forms) == 1 else "O" if forms else "f"
    return np.concatenate([_in_form(column, form) for column in columns])


def _in_form(column: Cells, form: str) -> Cells:
    if column.dtype.kind == form:
        return column
    missing = is_missing(column)
    if form != "O":  # then it has no value at all
        return np.full(len(column), np.nan) if form == "f" else np.full(len(column), "NaT", dtype="datetime64[us]")
    made = np.empty(len(column), dtype=object)
    made[:] = [None if no else as_text(cell) for cell, no in zip(column.tolist(), missing, strict=True)]
    return made
