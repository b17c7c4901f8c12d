"""CSV text: its layout (header, separator, decimal mark) and its cells as numbers, missing values or text; and copies
of a CSV file with more columns.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.cells import is_missing_word
from priorshift.io.tables import ColumnSelection, check_columns
from priorshift.result_tables import csv_line, escape_formula, is_formula

Column = NDArray[np.float64] | list[str] | list[str | None]
Source = Path | bytes  # a file, or the content of a pipe, which can be read only once

_GZIP = b"\x1f\x8b"
_BLOCK = 4096  # rows that are turned into columns at a time
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?P<mark>[.,'’ \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?")
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 may be 1234 (thousands mark) or 1.234 (decimal comma)


@dataclass(frozen=True)
class ColumnReading:
    """A column of cells as numbers or as text, and the first cell of each notation, as its row and its text."""

    column: Column
    comma: tuple[int, str] | None = None  # a number with a decimal comma
    point: tuple[int, str] | None = None  # a number with a decimal point
    thousands: tuple[int, str] | None = None  # a number with marks between thousands
    other: tuple[int, str] | None = None  # not a number in any notation
    surely_decimal: bool = False  # whether one of its commas must be a decimal comma

    @property
    def is_number(self) -> bool:
        """Whether every cell is a number or missing."""
        return not (self.other or self.thousands)

    @classmethod
    def from_cells(cls, cells: Sequence[str]) -> ColumnReading:
        """Read a column: floats with NaN if every cell is a number or missing, otherwise text with None."""
        text = "\n".join(cells)
        if "_" not in text:  # float() accepts 1_000
            with suppress(ValueError):  # a fast path, where every cell is a number
                plain = [cell.replace(",", ".") for cell in cells] if "," in text else cells
                column = np.fromiter(map(float, plain), np.float64, len(cells))
                return cls(
                    column,
                    comma=_first(cells, lambda cell: "," in cell) if "," in text else None,
                    point=_first(cells, lambda cell: "." in cell) if "." in text else None,
                    surely_decimal="," in text and _has_decimal_comma(cells),
                )
        values = {cell: _parse_number(cell) for cell in dict.fromkeys(cells)}
        number_cells = {cell for cell, value in values.items() if value is not None or is_missing_word(cell)}
        # numbers with marks between groups of three digits
        grouped = {cell for cell in values if cell not in number_cells and _THOUSANDS.fullmatch(cell.strip())}
        is_numeric = len(number_cells) == len(values)
        texts = {} if is_numeric else {cell: None if is_missing_word(cell) else cell.strip() for cell in values}
        return cls(
            np.array([values[cell] for cell in cells], np.float64) if is_numeric else [texts[cell] for cell in cells],
            comma=_first(cells, lambda cell: "," in cell and cell in number_cells),
            point=_first(cells, lambda cell: "." in cell and cell in number_cells and not is_missing_word(cell)),
            thousands=_first(cells, grouped.__contains__) if grouped else None,
            other=None if is_numeric else _first(cells, lambda cell: cell not in number_cells and cell not in grouped),
            surely_decimal=_has_decimal_comma(number_cells),
        )


def _first(cells: Sequence[str], condition: Callable[[str], bool]) -> tuple[int, str] | None:
    """Return the row and the text of the first cell that meets a condition; None if there is none."""
    return next(((row, cell) for row, cell in enumerate(cells) if condition(cell)), None)


def _has_decimal_comma(numbers: Iterable[str]) -> bool:
    """Return whether one of the numbers has a comma that cannot be a thousands mark."""
    return any("," in cell and not _AMBIGUOUS.fullmatch(cell.strip()) for cell in numbers)


def _parse_number(cell: str) -> float | None:
    """Return the number in a cell, with a decimal point or a decimal comma, or a truth value; None otherwise."""
    if "," in cell:
        if cell.count(",") > 1 or "." in cell:
            return None
        cell = cell.replace(",", ".")
    try:
        return float(cell) if "_" not in cell else None  # float() accepts 1_000
    except ValueError:
        return _TRUTH_VALUES.get(cell.strip().lower())


@dataclass(frozen=True)
class CsvLayout:
    """Layout of CSV text: its name, separator, header and decimal mark, and the columns to read."""

    name: str  # name of the file in messages
    separator: str
    header: list[str] | None
    width: int  # number of cells in each line
    wanted: list[int]  # positions of the columns that are read
    text: frozenset[int]  # positions of the columns that are not features, which are read as text
    dropped: tuple[str, ...]
    before: int  # number of lines before the first row, for line numbers in messages
    mark: str | None = None  # decimal mark, where it is known from earlier rows

    def column(self, k: int) -> str:
        """Return the name or number of a column, for messages."""
        return f"column {self.header[k]!r}" if self.header else f"column {k}"


def read_layout(file: TextIO, name: str, selection: ColumnSelection) -> tuple[CsvLayout, list[str], int]:
    """Read the first line; return the layout, the cells of that line, and the file position where the rows begin."""
    first, separator, before = _read_first_line(file)
    lines = csv.reader(chain([first], iter(file.readline, "")), delimiter=separator, skipinitialspace=True)
    cells = [cell.strip() for cell in next(lines)]
    if all(_parse_number(cell) is not None and cell.lower() not in _TRUTH_VALUES for cell in cells):
        # all cells are numbers: the line is a row, and there is no header
        if selection.extra:
            raise InputError(f"{name} has no header, so no column {selection.extra[0]!r}; add a first line with names.")
        return CsvLayout(name, separator, None, len(cells), [*range(len(cells))], frozenset(), (), before=0), cells, 0
    check_columns(name, cells, selection.extra)
    drop, not_features = set(selection.drop), {*selection.extra, *selection.optional}
    wanted = [k for k, cell in enumerate(cells) if cell not in drop]
    text = frozenset(k for k, cell in enumerate(cells) if cell in not_features)
    dropped, before = tuple(cell for cell in cells if cell in drop), before + lines.line_num - 1
    return CsvLayout(name, separator, cells, len(cells), wanted, text, dropped, before), cells, file.tell()


def _read_first_line(file: TextIO) -> tuple[str, str, int]:
    """Read the first line that is not blank; return its text, the file's separator and the number of the line."""
    first, number = file.readline(), 1
    while first and not first.strip():
        first, number = file.readline(), number + 1
    start = file.tell()
    second = next(filter(str.strip, iter(file.readline, "")), "")
    file.seek(start)
    # The separator occurs equally often in both lines, outside quotes. A comma is tried last: it may be a decimal mark.
    unquoted = [re.sub(r"\s*([,;])\s*", r"\1", re.sub('"[^"]*"', "", line)) for line in (first, second) if line.strip()]
    counts = {mark: [line.count(mark) for line in unquoted] for mark in "\t;,"}
    candidates = [mark for mark, count in counts.items() if min(count) == max(count) > 0]
    return first, candidates[0] if candidates else max(",;\t", key=lambda mark: min(counts[mark])), number


def check_header_of_numbers(name: str, cells: list[str], columns: list[Column]) -> None:
    """Refuse a first line of numbers that is probably a header (0, 1, 2 or years); `columns` include that line."""
    if not all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return
    first = [int(cell) for cell in cells]
    consecutive = len(first) > 1 and first == list(range(first[0], first[0] + len(first)))
    years = len(set(first)) == len(first) and all(1900 <= number <= 2100 for number in first)
    surely_names = consecutive and (first[0] == 0 or len(first) > 3)
    if not (consecutive or years) or (not surely_names and all(map(_may_be_in, first, columns))):
        return
    shown = ", ".join(cells[:2]) + ", …" * (len(cells) > 2 or first[0] == 0)
    raise InputError(f"{name} begins with {shown}, a header of numbers or a row; add a first line with names.")


def _may_be_in(first: int, column: Column) -> bool:
    """Return whether the number in the first line is within the range of the rest of its column, all whole numbers."""
    below = np.asarray(column[1:])
    is_whole = below.dtype.kind == "f" and below.size and (below % 1 == 0).all()
    return bool(is_whole and below.min() <= first <= below.max())


def read_csv(source: Source, name: str, selection: ColumnSelection) -> tuple[CsvLayout, list[Column]]:
    """Read the layout and the columns: features as numbers with NaN or text with None, other columns as text."""
    with explain_errors(name), open_text(source) as file:
        layout, first, start = read_layout(file, name, selection)
        columns = read_columns(file, start, layout)
        if layout.header is None:
            check_header_of_numbers(name, first, columns)
        return layout, columns


@contextmanager
def explain_errors(name: str) -> Iterator[None]:
    """Turn errors of reading text into InputErrors that name the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name} is a damaged gzip file; write it again.") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{name} is not a CSV file ({error}); save it as comma separated text.") from None


def open_text(source: Source) -> TextIO:
    """Open text as UTF-8 without its byte order mark; gzip is recognised by its content, not by the file's name."""
    raw: Any = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    if raw.read(2) == _GZIP:
        if not isinstance(source, bytes):
            raw.close()  # gzip would leave it open
        raw = gzip.GzipFile(fileobj=io.BytesIO(source)) if isinstance(source, bytes) else gzip.GzipFile(source)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def read_columns(file: TextIO, start: int, layout: CsvLayout) -> list[Column]:
    """Read the columns to be read, from file position `start`: by NumPy if all are numbers, otherwise cell by cell."""
    wanted = layout.wanted
    numeric = [k for k in wanted if k not in layout.text]
    values = _load_numbers(file, start, layout, numeric) if numeric and layout.mark != "," else None
    if values is not None and len(numeric) == layout.width:
        return list(values.T)
    file.seek(start)
    cells, lines = _read_cells(file, layout, wanted if values is None else [k for k in wanted if k in layout.text])
    if values is not None and len(values) != len(lines):  # NumPy and csv disagree on what a row is: trust csv
        file.seek(start)
        cells, lines = _read_cells(file, layout, wanted)
        values = None
    if not lines:
        raise InputError(f"{layout.name} has a header but no rows; pass a file with at least two rows.")
    text = {k: [cell.strip() for cell in column] for k, column in cells.items() if k in layout.text}
    text = _with_points(text, values, {k: cells[k] for k in numeric if k in cells}, layout.mark)
    if values is not None:
        numbers: dict[int, Any] = dict(zip(numeric, values.T, strict=True))
    else:
        numbers = _convert_cells({k: cells.pop(k) for k in numeric}, lines, layout)
    return [text[k] if k in text else numbers[k] for k in wanted]


def _load_numbers(file: TextIO, start: int, layout: CsvLayout, numeric: list[int]) -> NDArray[np.float64] | None:
    """Read the numeric columns by NumPy; None where a cell is not a plain number or lines differ in width."""
    file.seek(start)
    use = None if len(numeric) == layout.width else numeric
    try:
        with warnings.catch_warnings(action="ignore"):  # loadtxt warns of a file without rows
            values = np.loadtxt(file, delimiter=layout.separator, quotechar='"', comments=None, ndmin=2, usecols=use)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None
    return values if len(values) and values.shape[1] == len(numeric) else None


def _with_points(
    text: dict[int, list[str]], values: NDArray[np.float64] | None, features: dict[int, list[str]], mark: str | None
) -> dict[int, list[str]]:
    """Write the numbers of text columns with decimal points, where the file surely has decimal commas."""
    readings = {k: ColumnReading.from_cells(column) for k, column in text.items()}
    numbers = {k: reading for k, reading in readings.items() if reading.is_number}
    if not any(reading.comma for reading in numbers.values()):
        return text
    if mark is None:
        feature_readings = [reading for c in features.values() if (reading := ColumnReading.from_cells(c)).is_number]
        all_numbers = [*numbers.values(), *feature_readings]
        has_points = any(reading.point for reading in all_numbers) or (values is not None and (values % 1 != 0).any())
        mark = "," if not has_points and any(reading.surely_decimal for reading in all_numbers) else None
    if mark != ",":
        return text
    return {k: [c.replace(",", ".") for c in column] if k in numbers else column for k, column in text.items()}


def _read_cells(file: TextIO, layout: CsvLayout, wanted: list[int]) -> tuple[dict[int, list[str]], array[int]]:
    """Read the cells of some columns and the line number of each row; every row must be as wide as the first line."""
    columns: dict[int, list[str]] = {k: [] for k in wanted}
    lines = array("q")
    rows: list[list[str]] = []

    def append_rows() -> None:
        """Append the pending rows to the columns."""
        by_column = list(zip(*rows, strict=True))
        for k, column in columns.items():
            column.extend(by_column[k] if by_column else ())
        rows.clear()

    reader = csv.reader(file, delimiter=layout.separator, skipinitialspace=True)
    for row in reader:
        if _is_blank(row):
            continue
        line = layout.before + reader.line_num
        if len(row) != layout.width:
            received = f"{len(row)} cell{'s' * (len(row) != 1)} in line {line}"
            raise InputError(f"{layout.name} has {received}, but {layout.width} in its first line; correct the line.")
        rows.append(row)
        lines.append(line)
        if len(rows) == _BLOCK:
            append_rows()
    append_rows()
    return columns, lines


def _is_blank(row: list[str]) -> bool:
    """Return whether a row has no cells, or only one, which is blank."""
    return not row or (len(row) == 1 and not row[0].strip())


def _convert_cells(cells: dict[int, list[str]], lines: array[int], layout: CsvLayout) -> dict[int, Column]:
    """Convert columns of cells to numbers or text, and refuse ambiguous numbers; empties `cells` to save memory."""
    readings = {k: ColumnReading.from_cells(cells.pop(k)) for k in list(cells)}

    def describe(cell: tuple[int, str], k: int) -> str:
        """Describe a cell, a pair of row and text, for a message."""
        return f"{cell[1].strip()!r} in line {lines[cell[0]]}, {layout.column(k)}"

    for k, reading in readings.items():
        if reading.thousands and not reading.other:
            shown = describe(reading.thousands, k)
            raise InputError(f"{layout.name} holds {shown}, which seems to have marks between thousands; remove these.")
    numbers = {k: reading for k, reading in readings.items() if reading.is_number}
    earlier = "the other mark in earlier rows"
    commas = [describe(reading.comma, k) for k, reading in numbers.items() if reading.comma]
    points = [describe(reading.point, k) for k, reading in numbers.items() if reading.point]
    # a file that is read in blocks must have one decimal mark in all of them
    commas, points = commas or [earlier] * (layout.mark == ","), points or [earlier] * (layout.mark == ".")
    if commas and points:
        here, other = (points[0], commas[0]) if commas[0] == earlier else (commas[0], points[0])
        raise InputError(f"{layout.name} holds {here}, and {other}; use either decimal commas or decimal points.")
    if commas and not layout.mark and not any(reading.surely_decimal for reading in numbers.values()):
        ambiguous = f"{commas[0]}, which may be a decimal comma or a mark between thousands"
        raise InputError(f"{layout.name} holds {ambiguous}; write numbers with decimal points.")
    return {k: reading.column for k, reading in readings.items()}


def find_decimal_mark(text: str, layout: CsvLayout) -> str | None:
    """Return the decimal mark of the numbers in some rows; None where it cannot be decided."""
    cells, _ = _read_cells(io.StringIO(text, newline=""), layout, layout.wanted)
    readings = [reading for c in cells.values() if (reading := ColumnReading.from_cells(c)).is_number]
    if any(reading.point for reading in readings):
        return "."
    return "," if any(reading.surely_decimal for reading in readings) else None


def split_rows(lines: Iterable[str], separator: str) -> Iterator[tuple[list[str], str]]:
    """Yield the cells of each row that is not blank, with its own lines of text, which are more than one if quoted."""
    pending: list[str] = []

    def remember_lines() -> Iterator[str]:
        """Pass lines to the csv reader, and remember those of the current row."""
        for line in lines:
            pending.append(line)
            yield line

    for row in csv.reader(remember_lines(), delimiter=separator, skipinitialspace=True):
        if not _is_blank(row):
            yield row, "".join(pending)
        pending.clear()


def add_columns(
    source: Source, output: Path, columns: dict[str, Sequence[str]], *, packed: bool = False, safe: bool = False
) -> int:
    """Write a copy of the text with further columns; return how many of its cells still look like formulas.

    Its own lines are copied byte by byte, so that the copy can be joined on any column. With `safe`, cells that a
    spreadsheet would compute get an apostrophe instead. The copy is gzipped if `packed`.
    """
    with open_text(source) as file:
        _, separator, _ = _read_first_line(file)
        file.seek(0)
        rows = list(split_rows(file, separator))
    last, line = rows[-1]
    extended = io.StringIO(line.rstrip("\r\n") + separator, newline="")
    if next(csv.reader(extended, delimiter=separator, skipinitialspace=True)) != [*last, ""]:
        rows[-1] = last, csv_line(last, separator)  # a quote that is never closed would swallow a further cell
    added: list[Sequence[str]] = list(zip(*columns.values(), strict=True))
    header = [(*columns,)] * (len(rows) - len(added))
    readings = [ColumnReading.from_cells(c) for c in zip(*(row for row, _ in rows[len(header) :]), strict=True)]
    numbers = [reading for reading in readings if reading.is_number]
    if any(reading.comma for reading in numbers) and not any(reading.point for reading in numbers):
        added = [[c if _parse_number(c) is None else c.replace(".", ",") for c in cells] for cells in added]
    formulas, end = 0, "\n"
    open_file: Any = gzip.open if packed else open
    with open_file(output, "wt", encoding="utf-8", newline="") as file:
        for (row, line), cells in zip(rows, [*header, *added], strict=True):
            if safe:
                line = csv_line([escape_formula(cell) for cell in row], separator)
            else:
                formulas += sum(map(is_formula, row))
            text = line.rstrip("\r\n")
            end = line[len(text) :] or end  # the last line may have none
            file.write(text + separator + csv_line(cells, separator, end))
    return formulas
