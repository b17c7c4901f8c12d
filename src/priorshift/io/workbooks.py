"""Excel workbooks (.xlsx): sheets read as tables, and copies of a sheet with more columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from priorshift.errors import InputError
from priorshift.io.cells import Cells, as_text, cells_of_values, object_cells
from priorshift.io.csv_text import CsvLayout, convert_cells
from priorshift.io.tables import ColumnSelection, Table, check_columns, empty_table_error
from priorshift.io.workbook_cells import SharedStrings, SheetCells
from priorshift.io.workbook_parts import DAMAGE, Workbook, open_archive
from priorshift.io.workbook_values import ErrorText, WorkbookError
from priorshift.io.workbook_writer import write_workbook
from priorshift.result_tables import csv_line
from priorshift.warning_records import list_names

# what Excel shows in place of a value that it cannot compute
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


@dataclass(frozen=True)
class WorkbookSize:
    """The size of a workbook's shared strings, or of its sheets as far as they are read.

    Attributes
    ----------
    rows, columns
        Numbers of the largest sheet.
    cells
        Number of cells, as if all rows of a sheet were as long as its longest, or number of shared strings.
    characters
        Length of all texts, each of which counts as often as cells have it.
    elements
        Number of XML elements.
    """

    rows: int = 0
    columns: int = 0
    cells: int = 0
    characters: int = 0
    elements: int = 0

    def plus(self, sheet: SheetCells) -> WorkbookSize:
        """Return the size with one more sheet."""
        return WorkbookSize(
            max(self.rows, sheet.n_rows),
            max(self.columns, sheet.n_columns),
            self.cells + max(sheet.n_cells, sheet.n_rows * sheet.n_columns),
            self.characters + sheet.n_characters,
            self.elements + sheet.n_elements,
        )


def read_workbook(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a sheet of a workbook as a table; its first row that is not empty has the names of the columns."""
    _, cells = _read_sheet(path, name, selection.sheet)
    header = cells.header()
    names = ["" if value is None else as_text(value) for value in header.values()]
    check_columns(name, names, selection.extra)
    features, extra, dropped = selection.split(names)
    if cells.n_rows < 2 or not features:
        raise empty_table_error(name, (cells.n_rows - 1, len(features)), [*dropped, *extra], features)
    numbers = dict(zip(names, header, strict=True))
    values = {column: [_value(value) for value in cells.column(numbers[column])[1:]] for column in [*features, *extra]}
    return Table.from_cells(
        name,
        _read_features({column: values[column] for column in features}, name, selection, cells.row_numbers[1:]),
        tuple(features),
        extra={column: _extra_column(values[column], f"column {column!r} of {name}") for column in extra},
        dropped=tuple(dropped),
    )


@contextmanager
def _open_workbook(path: Path, name: str) -> Iterator[Workbook]:
    """Open a workbook; any error of the file, also while its parts are read, is an InputError."""
    try:
        with open_archive(path) as archive:
            yield Workbook(archive)
    except InputError:
        raise
    except DAMAGE as error:
        raise _workbook_error(name, error) from error


def _workbook_error(name: str, error: Exception) -> InputError:
    """Return the error for a workbook that cannot be read."""
    reason = error if isinstance(error, WorkbookError) else "it is damaged or has another format"
    return InputError(
        f"{name} cannot be read as an Excel workbook (.xlsx), because {reason}; save it again in Excel or LibreOffice."
    )


def _read_sheet(path: Path, name: str, title: str | None) -> tuple[str, SheetCells]:
    """Read a sheet of a workbook, by default the only one in which a cell has a value; return its name and its cells.

    Refuse a sheet without such a cell, or with formulas that have no value.
    """
    with _open_workbook(path, name) as book:
        texts = book.read_shared_strings().texts
        if title is None:
            title = _find_sheet(book, name, texts)
        if title not in book.sheets:
            raise InputError(f"{name} has no sheet {list_names([title])}; its sheets are {list_names(book.sheets)}.")
        cells = book.read_sheet(title, texts)
    if cells.has_uncomputed:
        raise InputError(
            f"{name} has formulas without values in sheet {list_names([title])}; "
            "open it in Excel or LibreOffice and save it."
        )
    if not cells.n_rows:
        raise InputError(f"{name} has no cells in sheet {list_names([title])}; name another sheet, or fill it.")
    return title, cells


def _find_sheet(book: Workbook, name: str, texts: list[str | None]) -> str:
    """Return the name of the only sheet with values or formulas; refuse a workbook that has several."""
    sheets = book.sheets
    if len(sheets) > 1:
        counts = {title: book.read_sheet(title, texts, count_only=True) for title in sheets}
        sheets = [title for title, cells in counts.items() if cells.n_rows or cells.has_uncomputed]
    if len(sheets) != 1:
        names = list_names(sheets or book.sheets)
        raise InputError(f"{name} has the sheets {names}; name one (sheet=…, --sheet NAME or ROLE=NAME).")
    return sheets[0]


def _value(value: Any) -> Any:
    """Return the value of a cell; None for an error such as #DIV/0!, also if it was typed."""
    is_error = isinstance(value, ErrorText) or (isinstance(value, str) and value.strip() in _ERRORS)
    return None if is_error else value


def _read_features(
    values: Mapping[str, Sequence[Any]], name: str, selection: ColumnSelection, numbers: array[int]
) -> list[Cells]:
    """Return features as numbers, dates or text; columns that contain text are read and checked as in a CSV file.

    `numbers` are those of the rows, for messages.
    """
    columns = list(values)
    texts = {
        k: ["" if value is None else as_text(value) for value in values[column]]
        for k, column in enumerate(columns)
        if any(isinstance(value, str) for value in values[column])
    }
    kinds = selection.rules.kinds
    layout = CsvLayout(
        name,
        separator="",
        width=len(columns),
        wanted=list(texts),
        header=columns,
        categories=frozenset(k for k in texts if kinds.get(columns[k]) == "category"),
        missing=frozenset(value.lower() for value in selection.rules.missing),
    )
    read = convert_cells(texts, numbers, layout)
    cells: list[Cells] = []
    for k, column in enumerate(columns):
        if k not in read:
            cells.append(cells_of_values(values[column], f"column {column!r} of {name}"))
        else:
            converted = read[k]
            cells.append(object_cells(converted) if isinstance(converted, list) else converted)
    return cells


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
    title, cells = _read_sheet(path, str(path), sheet_name)
    added = chain([tuple(columns)], zip(*columns.values(), strict=True))
    write_workbook(output, ([*row, *more] for row, more in zip(cells.rows(), added, strict=True)), title)


def write_sheet_as_text(path: Path, text: Path, sheet_name: str | None) -> Path:
    """Write the values of a sheet as CSV to `text`, and return `text`."""
    _, cells = _read_sheet(path, str(path), sheet_name)
    with text.open("w", encoding="utf-8", newline="") as file:
        for row in cells.rows():
            file.write(csv_line(["" if value is None else as_text(value) for value in row]))
    return text


def workbook_bytes(path: Path, name: str) -> list[tuple[int, int]]:
    """Return the bytes of each part of a workbook, decompressed and compressed."""
    try:
        with open_archive(path) as archive:
            return [(entry.file_size, entry.compress_size) for entry in archive.infolist()]
    except DAMAGE as error:
        raise _workbook_error(name, error) from error


def measure_workbook(path: Path, name: str, check: Callable[[WorkbookSize], None]) -> WorkbookSize:
    """Read a workbook without storing its cells, and return its size; call `check` with the size so far in between."""

    def check_strings(strings: SharedStrings) -> None:
        check(WorkbookSize(cells=len(strings.texts), characters=strings.n_characters, elements=strings.n_elements))

    with _open_workbook(path, name) as book:
        texts = book.read_shared_strings(check_strings).texts
        size = WorkbookSize()
        for title in book.sheets:
            check_sheet = partial(_check_with, check, size)
            size = size.plus(book.read_sheet(title, texts, check=check_sheet, count_only=True))
    return size


def _check_with(check: Callable[[WorkbookSize], None], size: WorkbookSize, sheet: SheetCells) -> None:
    """Call `check` with a size to which a sheet is added."""
    check(size.plus(sheet))
