"""Several targets: tables with names, or one table whose rows say by a column where they belong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Index
from priorshift.errors import InputError
from priorshift.io.tables import Table

_MISSING = ("", "nan", "none", "null", "na", "<na>", "nat")
_ISO = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def name_of(value: Any) -> str:
    """What a target is called: text as it is, 7.0 as "7", a date as 2024-01-31; empty for a missing value."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    return "" if text.lower() in _MISSING else text.removesuffix(" 00:00:00")


def are_iso_dates(names: Sequence[str]) -> bool:
    """Whether all names are years, months or days as ISO writes them, of one kind."""
    return bool(names) and all(_ISO.fullmatch(name) for name in names) and len({len(name) for name in names}) == 1


def read_targets(
    read: Callable[..., Any], targets: Any, by: str | None, columns: Mapping[str, Sequence[str]], what: str = "targets"
) -> list[tuple[str, Any]]:
    """The targets by their names, not yet encoded; the whole table, without a name, where `by` tells them apart.

    Parameters
    ----------
    read : callable
        As `read_table`.
    targets : mapping, sequence of tables, or one table
        The last with `by`.
    by : str or None
        The column of one table whose values are the targets; it is set aside.
    columns : mapping
        What is no feature, as `read` takes it.
    what : str
        What messages call that table.

    Returns
    -------
    list of (str, table)
    """
    if by is not None:
        if isinstance(targets, (Mapping, list, tuple)) and not _is_frame(targets):
            raise InputError(
                f"by={by!r} names a column of one table, but targets holds {len(targets)}; pass one table, or leave by "
                "out."
            )
        return [("", read(targets, what, **columns))]
    if _is_frame(targets) or not isinstance(targets, (Mapping, list, tuple)):
        raise InputError(
            f"targets is one thing, of type {type(targets).__name__}, but several tables are expected; pass a mapping "
            "of names to tables, a list of tables or files, or one table and by= its column that tells them apart."
        )
    if not len(targets):
        raise InputError("targets is empty, but at least one table is expected; pass some.")
    if isinstance(targets, Mapping):
        named = [(name_of(name), table) for name, table in targets.items()]
    else:
        named = [
            (_file_name(table) if isinstance(table, (str, Path)) else str(number), table)
            for number, table in enumerate(targets)
        ]
    check_names([name for name, _ in named], of_files=what.startswith("--"))
    return [(name, read(table, f"target {name!r}", **columns)) for name, table in named]


def _file_name(path: str | Path) -> str:
    """Without its suffix, and without that of the text that is gzipped."""
    path = Path(path)
    return Path(path.stem).stem if re.search(r"\.(csv|tsv|txt)\.gz$", path.name, re.IGNORECASE) else path.stem


def check_names(names: Sequence[str], *, of_files: bool = False) -> None:
    """Every target has a name of its own."""
    if "" in names:
        raise InputError("a target's name is empty; give every target a name.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            do = "rename one of the files" if of_files else "pass a mapping of distinct names to tables"
            raise InputError(f"two targets are called {name!r}; {do}.")
        seen.add(name)


def split_table(table: Table, by: str, what: str = "target") -> list[tuple[str, Table]]:
    """The rows of each value of a column that was set aside; `what` messages call the parts."""
    return [(name, take(table, rows, f"{what} {name!r}")) for name, rows in rows_by_value(table, by)]


def take(table: Table, rows: Index, name: str) -> Table:
    """Some rows of a table, under another name."""
    aside = {key: column[rows] for key, column in table.aside.items()}
    return replace(table, name=name, values=table.values[rows], aside=aside)


def rows_by_value(table: Table, by: str) -> list[tuple[str, Index]]:
    """The values of a column and their rows: numbers and dates rising, text in the order of its first row."""
    column = table.aside[by]
    values = column.astype("datetime64[us]").tolist() if column.dtype.kind == "M" else column.tolist()
    names = [name_of(value) for value in values]
    if "" in names:
        raise InputError(
            f"{table.name} has no value in row {names.index('')} (counting from 0), column {by!r}; fill it in or leave "
            "the row out."
        )
    at: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        at.setdefault(name, []).append(row)
    ordered = sorted(at, key=float) if all(map(_is_number, at)) else sorted(at) if are_iso_dates(list(at)) else list(at)
    return [(name, np.array(at[name])) for name in ordered]


@dataclass(frozen=True, eq=False)
class JoinedTargets:
    """All targets in one table, as one target is read, and where each of them stands.

    Attributes
    ----------
    table : Table
        Of all rows.
    rows : dict of str to slice
        By the targets' names.
    """

    table: Table
    rows: dict[str, slice]

    @classmethod
    def of(cls, named: Sequence[tuple[str, Table]]) -> JoinedTargets:
        """From tables with the same columns; a column that only some have set aside is empty in the others."""
        ends = np.cumsum([0, *(len(table.values) for _, table in named)])
        names = dict.fromkeys(key for _, table in named for key in table.aside)
        aside = {key: np.concatenate([_column(table, key) for _, table in named]) for key in names}
        first = named[0][1]
        values = np.concatenate([table.values for _, table in named])
        rows = {name: slice(int(start), int(end)) for (name, _), start, end in zip(named, ends, ends[1:], strict=False)}
        return cls(replace(first, name="targets", values=values, aside=aside, dropped=()), rows)

    def part(self, name: str) -> Table:
        """One target."""
        return replace(self.table, name=f"target {name!r}", values=self.table.values[self.rows[name]], aside={})


def _column(table: Table, key: str) -> NDArray[Any]:
    if key in table.aside:
        return table.aside[key].astype(object)
    return np.full(len(table.values), None, dtype=object)


def _is_frame(thing: Any) -> bool:
    return isinstance(thing, nw.DataFrame) or bool(nw.dependencies.is_into_dataframe(thing))


def _is_number(name: str) -> bool:
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


def frame_library(*things: Any) -> str | None:
    """The library of the first data frame among them, pandas or polars; None where there is none."""
    for thing in things:
        several = list(thing.values()) if isinstance(thing, Mapping) else thing
        one = several[0] if isinstance(several, (list, tuple)) and several else several
        native = nw.to_native(one, pass_through=True)
        if nw.dependencies.is_pandas_dataframe(native):
            return "pandas"
        if nw.dependencies.is_polars_dataframe(native):
            return "polars"
    return None
