"""Excel workbooks (.xlsx): sheets read as tables, and copies of a sheet with more columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from priorshift.errors import InputError, MissingExtraError
from priorshift.io.cells import Cells, as_text, cells_of_values, is_missing_value, object_cells
from priorshift.io.csv_text import ColumnReading, read_as_text
from priorshift.io.tables import ColumnSelection, Table, check_columns, empty_table_error
from priorshift.result_tables import csv_line, to_plain

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_DIMENSION = re.compile(rb'<dimension ref="[A-Z]+\d+:[A-Z]+(\d+)"')
_HEAD = 4096  # bytes at the start of a sheet, which state its dimension
# What Excel shows in place of a value that it cannot compute.
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


def read_workbook(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a sheet of a workbook as a table; its first row that is not empty has the names of the columns."""
    with _open_sheet(path, name, selection.sheet) as (sheet, sheet_name):
        rows = [row for row in sheet.iter_rows(values_only=True) if not all(map(_is_empty, row))]
    if not rows:
        raise InputError(f"{name} has no cells in sheet {sheet_name!r}; name another sheet, or fill it.")
    header, *rows = rows
    # formatting may extend a sheet by columns without any cell
    used = [k for k in range(len(header)) if not all(_is_empty(row[k]) for row in (header, *rows))]
    columns = ["" if _is_empty(header[k]) else as_text(header[k]) for k in used]
    check_columns(name, columns, selection.extra)
    values = {column: [_value(row[k]) for row in rows] for column, k in zip(columns, used, strict=True)}
    features, extra, dropped = selection.split(columns)
    if not (rows and features):
        raise empty_table_error(name, (len(rows), len(features)))
    return Table.from_cells(
        name,
        [_feature(values[column], column, name, selection) for column in features],
        tuple(features),
        extra={column: _extra_column(values[column], f"column {column!r} of {name}") for column in extra},
        dropped=tuple(dropped),
    )


@contextmanager
def _open_sheet(path: Path, name: str, sheet_name: str | None) -> Iterator[tuple[Any, str]]:
    """Open a sheet of a workbook, by default its only one that has cells; yield it and its name."""
    openpyxl = _openpyxl(name)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError, SyntaxError):
        raise _damaged(name) from None
    try:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if sheet_name is None:
            filled = [title for title, sheet in sheets.items() if _has_cells(sheet)] or list(sheets)
            if len(filled) > 1:
                names = ", ".join(map(repr, filled))
                raise InputError(f"{name} has the sheets {names}; name one (sheet=…, --sheet NAME or ROLE=NAME).")
            sheet_name = filled[0]
        if sheet_name not in sheets:
            names = ", ".join(map(repr, sheets))
            raise InputError(f"{name} has no sheet {sheet_name!r}; its sheets are {names}.")
        yield sheets[sheet_name], sheet_name
    finally:
        book.close()


def _openpyxl(name: str) -> Any:
    """Import openpyxl; raise MissingExtraError with the name of the file that needs it."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError(
            f'{name} is an Excel file, which needs openpyxl; run pip install "priorshift[excel]", or save it as CSV.'
        ) from None
    return openpyxl


def _has_cells(sheet: Any) -> bool:
    """Return whether any cell of a sheet has a value."""
    return any(not _is_empty(value) for row in sheet.iter_rows(values_only=True) for value in row)


def _is_empty(value: Any) -> bool:
    """Return whether a cell is empty or blank."""
    return value is None or (isinstance(value, str) and not value.strip())


def _value(value: Any) -> Any:
    """Return the value of a cell; None for an error such as #DIV/0!."""
    return None if isinstance(value, str) and value.strip() in _ERRORS else value


def _feature(values: Sequence[Any], column: str, name: str, selection: ColumnSelection) -> Cells:
    """Return a feature as numbers, dates or text; a column with text is read as in a CSV file."""
    if not any(isinstance(value, str) for value in values):
        return cells_of_values(values, f"column {column!r} of {name}")
    texts = ["" if value is None else as_text(value) for value in values]
    missing = {value.lower() for value in selection.rules.missing}
    if selection.rules.kinds.get(column) == "category":
        return object_cells(read_as_text(texts, missing))
    read = ColumnReading.from_cells(texts, missing).column
    return object_cells(read) if isinstance(read, list) else read


def _extra_column(values: Sequence[Any], where: str) -> Cells:
    """Return a column that is not a feature as numbers, dates or text, with None for missing text."""
    cells = cells_of_values(values, where)
    if cells.dtype == object:
        return cells
    is_whole = cells.dtype.kind == "f" and not np.isnan(cells).any() and bool((cells % 1 == 0).all())
    return cells.astype(np.int64) if is_whole else cells


def add_workbook_columns(
    path: Path, output: Path, columns: Mapping[str, Sequence[Any]], sheet_name: str | None
) -> None:
    """Write a workbook with one sheet: the values of the sheet of `path`, without formats, and further columns."""
    rows, title = _rows_of_sheet(path, sheet_name)
    added = [tuple(columns), *zip(*columns.values(), strict=True)]
    write_workbook(output, [[*row, *more] for row, more in zip(rows, added, strict=True)], title)


def write_sheet_as_text(path: Path, text: Path, sheet_name: str | None) -> Path:
    """Write the values of a sheet as CSV to `text`, and return `text`."""
    rows, _ = _rows_of_sheet(path, sheet_name)
    lines = [csv_line(["" if _is_empty(value) else as_text(value) for value in row]) for row in rows]
    text.write_text("".join(lines), encoding="utf-8", newline="")
    return text


def _rows_of_sheet(path: Path, sheet_name: str | None) -> tuple[list[tuple[Any, ...]], str]:
    """Return the rows of a sheet that are not empty, and its name."""
    with _open_sheet(path, str(path), sheet_name) as (sheet, title):
        return [row for row in sheet.iter_rows(values_only=True) if not all(map(_is_empty, row))], title


def workbook_size(path: Path, name: str) -> tuple[int, int]:
    """Return the bytes of a workbook's files when decompressed, and the rows of its largest sheet as it states them."""
    try:
        with ZipFile(path) as archive:
            n_bytes = sum(entry.file_size for entry in archive.infolist())
            heads = [archive.open(sheet).read(_HEAD) for sheet in archive.namelist() if _SHEET.fullmatch(sheet)]
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        raise _damaged(name) from None
    rows = [int(match[1]) for head in heads if (match := _DIMENSION.search(head))]
    return n_bytes, max(rows, default=0)


def _damaged(name: str) -> InputError:
    """Return the error for a file that cannot be read as a workbook."""
    return InputError(f"{name} is damaged, or is not an Excel workbook (.xlsx); save it again.")


def write_workbook(output: Path, rows: Iterable[Sequence[Any]], title: str = "Sheet") -> None:
    """Write rows, the first of which is the header, as a workbook with one sheet; None and NaN are empty cells."""
    book = _openpyxl(str(output)).Workbook()
    sheet = book.active
    sheet.title = title
    for row in rows:
        sheet.append([None if is_missing_value(value) else to_plain(value) for value in row])
        for cell in sheet[sheet.max_row]:
            if cell.data_type == "f":
                cell.data_type = "s"  # a text such as =1+1 stays a text, which nothing computes
    book.save(output)
