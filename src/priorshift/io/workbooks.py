"""Excel workbooks (.xlsx): sheets read as tables, and copies of a sheet with more columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from priorshift.errors import InputError
from priorshift.io.cells import Cells, as_text, cells_of_values, object_cells
from priorshift.io.csv_text import CsvLayout, convert_cells
from priorshift.io.tables import ColumnSelection, Table, check_columns, empty_table_error
from priorshift.io.workbook_parts import DAMAGE, Workbook
from priorshift.io.workbook_writer import write_workbook
from priorshift.result_tables import csv_line
from priorshift.warning_records import list_names

# what Excel shows in place of a value that it cannot compute
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet that are not empty, all of the same width, and their numbers in the sheet."""

    title: str
    rows: list[list[Any]]
    numbers: array[int]


@dataclass(frozen=True)
class WorkbookSize:
    """How large the stored texts or the sheets of a workbook are: rows and columns of one, and the others of all.

    Cells are counted as if all rows of a sheet were as long as its longest, and the characters of texts as often as
    cells refer to them; `elements` are those of XML.
    """

    rows: int
    columns: int
    cells: int
    characters: int
    elements: int


def read_workbook(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a sheet of a workbook as a table; its first row that is not empty has the names of the columns."""
    sheet = _read_sheet(path, name, selection.sheet)
    header, *rows = sheet.rows
    # only some rows may have a cell in a column, and none may
    used = [k for k in range(len(header)) if any(row[k] is not None for row in sheet.rows)]
    columns = ["" if header[k] is None else as_text(header[k]) for k in used]
    check_columns(name, columns, selection.extra)
    values = {column: [_value(row[k]) for row in rows] for column, k in zip(columns, used, strict=True)}
    features, extra, dropped = selection.split(columns)
    if not (rows and features):
        raise empty_table_error(name, (len(rows), len(features)), [*dropped, *extra], features)
    return Table.from_cells(
        name,
        _read_features({column: values[column] for column in features}, name, selection, sheet.numbers[1:]),
        tuple(features),
        extra={column: _extra_column(values[column], f"column {column!r} of {name}") for column in extra},
        dropped=tuple(dropped),
    )


@contextmanager
def _open_archive(path: Path, name: str) -> Iterator[ZipFile]:
    """Open the archive of a workbook; any error of the file, also while its parts are read, is an InputError."""
    try:
        with ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except DAMAGE:
        raise InputError(f"{name} is damaged, or is not an Excel workbook (.xlsx); save it again.") from None


def _read_sheet(path: Path, name: str, title: str | None) -> Sheet:
    """Read a sheet of a workbook, by default the only one in which a cell has a value.

    Refuse a sheet without such a cell, or with formulas that have no value.
    """
    with _open_archive(path, name) as archive:
        book = Workbook(archive)
        *_, stored = book.read_texts()
        if title is None:
            title = _find_sheet(book, name, stored.texts)
        if title not in book.sheets:
            raise InputError(f"{name} has no sheet {title!r}; its sheets are {list_names(book.sheets)}.")
        rows, numbers = [], array("q")
        for sheet in book.read_sheet(title, stored.texts):
            for number, values in sheet.take():
                rows.append(values)
                numbers.append(number)
    if sheet.has_uncomputed:
        raise InputError(
            f"{name} has formulas without values in sheet {title!r}; open it in Excel or LibreOffice and save it."
        )
    if not rows:
        raise InputError(f"{name} has no cells in sheet {title!r}; name another sheet, or fill it.")
    for values in rows:
        values.extend([None] * (sheet.n_columns - len(values)))
    return Sheet(title, rows, numbers)


def _find_sheet(book: Workbook, name: str, texts: list[str]) -> str:
    """Return the name of the only sheet in which a cell has a value; refuse a workbook that has several."""
    sheets = book.sheets
    if len(sheets) > 1:
        sheets = [title for title in sheets if any(sheet.n_rows for sheet in book.read_sheet(title, texts))]
    if len(sheets) != 1:
        names = list_names(sheets or book.sheets) or "none with cells"
        raise InputError(f"{name} has the sheets {names}; name one (sheet=…, --sheet NAME or ROLE=NAME).")
    return sheets[0]


def _value(value: Any) -> Any:
    """Return the value of a cell; None for an error such as #DIV/0!."""
    return None if isinstance(value, str) and value.strip() in _ERRORS else value


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
    sheet = _read_sheet(path, str(path), sheet_name)
    added = [tuple(columns), *zip(*columns.values(), strict=True)]
    write_workbook(output, [[*row, *more] for row, more in zip(sheet.rows, added, strict=True)], sheet.title)


def write_sheet_as_text(path: Path, text: Path, sheet_name: str | None) -> Path:
    """Write the values of a sheet as CSV to `text`, and return `text`."""
    rows = _read_sheet(path, str(path), sheet_name).rows
    lines = [csv_line(["" if value is None else as_text(value) for value in row]) for row in rows]
    text.write_text("".join(lines), encoding="utf-8", newline="")
    return text


def workbook_bytes(path: Path, name: str) -> int:
    """Return the bytes of a workbook's files when decompressed."""
    with _open_archive(path, name) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def workbook_sizes(path: Path, name: str) -> Iterator[WorkbookSize]:
    """Read all of a workbook; yield its size after each block of bytes, as far as it is read."""
    with _open_archive(path, name) as archive:
        book = Workbook(archive)
        for stored in book.read_texts():
            yield WorkbookSize(0, 0, len(stored.texts), stored.characters, stored.count)
        n_cells = n_characters = n_elements = 0
        for title in book.sheets:
            for sheet in book.read_sheet(title, stored.texts):
                sheet.take()
                cells = max(sheet.n_cells, sheet.n_rows * sheet.n_columns)
                yield WorkbookSize(
                    sheet.n_rows, sheet.n_columns,
                    n_cells + cells, n_characters + sheet.characters, n_elements + sheet.count,
                )  # fmt: skip
            n_cells, n_characters, n_elements = (
                n_cells + cells,
                n_characters + sheet.characters,
                n_elements + sheet.count,
            )
