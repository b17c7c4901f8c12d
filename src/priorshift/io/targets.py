"""Several targets: tables with names, or one table with a column that says which target a row belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.errors import InputError
from priorshift.io.cells import as_number, as_text, is_missing_word
from priorshift.io.tables import Table

_ISO = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def target_name(value: Any) -> str:
    """Return the name of a target as text: 7.0 as "7", a date as 2024-01-31, a missing value as an empty text."""
    text = as_text(value)
    return "" if is_missing_word(text) else escape_name(text.removesuffix(" 00:00:00"))


def escape_name(name: str) -> str:
    """Return a name in which bytes that are not UTF-8 are escaped, since it could not be written to a file."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def are_iso_dates(names: Sequence[str]) -> bool:
    """Return whether all names are ISO years, all ISO months or all ISO days."""
    return bool(names) and all(_ISO.fullmatch(name) for name in names) and len({len(name) for name in names}) == 1


def name_targets(targets: Any, *, in_shell: bool = False) -> dict[str, Any]:
    """Return a mapping from names to targets: the keys of a mapping, or the names of files or positions in a list.

    A target is a table, or the path of a file. `in_shell` decides how messages put the remedy.
    """
    is_frame = isinstance(targets, nw.DataFrame) or nw.dependencies.is_into_dataframe(targets)
    if is_frame or not isinstance(targets, (Mapping, list, tuple)):
        raise InputError(
            f"targets is of type {type(targets).__name__}, but several tables are expected; pass a mapping of names to "
            "tables, a list of tables or files, or one table and by=, the name of its column with the targets."
        )
    if not len(targets):
        raise InputError("targets is empty, but at least one table is expected; pass some.")
    items = targets.items() if isinstance(targets, Mapping) else enumerate(targets)
    by_name: dict[str, Any] = {}
    for key, table in items:
        is_listed_file = not isinstance(targets, Mapping) and isinstance(table, (str, Path))
        name = _file_name(table) if is_listed_file else target_name(key)
        if not name:
            raise InputError("a target's name is empty; give every target a name.")
        if name in by_name:
            remedy = "rename one of the files" if in_shell else "pass a mapping of distinct names to tables"
            raise InputError(f"two targets are called {name!r}; {remedy}.")
        by_name[name] = table
    return by_name


def _file_name(path: str | Path) -> str:
    """Return the name of a file without its suffix, or both suffixes of gzipped text."""
    path = Path(path)
    name = Path(path.stem).stem if re.search(r"\.(csv|tsv|txt)\.gz$", path.name, re.IGNORECASE) else path.stem
    return escape_name(name)


def rows_by_value(table: Table, by: str) -> dict[str, Index]:
    """Return the positions of the rows with each value of the column `by`, as a mapping from the value's name.

    Names are in the order of the numbers or dates if all values are such, else in the order of their first rows.
    """
    column = table.extra[by]
    values = column.astype("datetime64[us]").tolist() if column.dtype.kind == "M" else column.tolist()
    names = [target_name(value) for value in values]
    if "" in names:
        where = f"row {names.index('')} (counting from 0), column {by!r}"
        raise InputError(f"{table.name} has no value in {where}; fill it in or leave the row out.")
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    ordered = list(rows)
    if all(as_number(name) is not None for name in ordered):
        ordered.sort(key=float)
    elif are_iso_dates(ordered):
        ordered.sort()
    return {name: np.array(rows[name]) for name in ordered}
