"""CSV text: its layout (header, separator, decimal mark) and its cells as numbers, missing values or text; and copies
of a CSV file with more columns.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import warnings
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.cells import is_missing_word
from priorshift.io.tables import ColumnSelection, check_columns
from priorshift.result_tables import csv_line, escape_formula, is_formula

Column = NDArray[np.float64] | list[str] | list[str | None]

_WORDS = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?P<mark>[.,'’ \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: thousands where one writes English, less than two elsewhere


@dataclass(frozen=True)
class ColumnReading:
    """A column of cells as numbers, or as text; and its first cell of every way to write, as row and text."""

    column: Column
    comma: tuple[int, str] | None = None  # a number with a decimal comma
    point: tuple[int, str] | None = None  # a number with a decimal point
    thousands: tuple[int, str] | None = None  # a number with marks between thousands
    other: tuple[int, str] | None = None  # no number in any way of writing
    sure: bool = False  # a comma in it cannot stand between thousands

    @property
    def is_number(self) -> bool:
        """Whether every cell is a number or missing."""
        return not (self.other or self.thousands)

    @classmethod
    def from_cells(cls, cells: Sequence[str]) -> ColumnReading:
        """Read the cells of a column: numbers and missing cells, or text."""
        text = "\n".join(cells)
        if "_" not in text:
            with suppress(ValueError):  # all of them at once, if all are numbers
                plain = [cell.replace(",", ".") for cell in cells] if "," in text else cells
                column = np.fromiter(map(float, plain), np.float64, len(cells))
                if not ("," in text or "." in text):
                    return cls(column)
                return cls(
                    column,
                    comma=_first(cells, lambda cell: "," in cell) if "," in text else None,
                    point=_first(cells, lambda cell: "." in cell) if "." in text else None,
                    sure="," in text and _surely_decimal(cells),
                )
        values = {cell: _value(cell) for cell in dict.fromkeys(cells)}
        number = {cell for cell, value in values.items() if value is not None}
        marked = {cell for cell in values if cell not in number and _THOUSANDS.fullmatch(cell.strip())}
        numeric = len(number) == len(values)
        words = {cell: None if is_missing_word(cell) else cell.strip() for cell in values} if not numeric else {}
        return cls(
            np.fromiter(map(values.__getitem__, cells), np.float64, len(cells))
            if numeric
            else list(map(words.__getitem__, cells)),
            comma=_first(cells, lambda cell: "," in cell and cell in number),
            point=_first(cells, lambda cell: "." in cell and cell in number and not is_missing_word(cell)),
            thousands=_first(cells, marked.__contains__) if marked else None,
            other=_first(cells, lambda cell: cell not in number and cell not in marked) if not numeric else None,
            sure=_surely_decimal(number),
        )


def _first(cells: Sequence[str], wanted: Callable[[str], bool]) -> tuple[int, str] | None:
    return next(((row, cell) for row, cell in enumerate(cells) if wanted(cell)), None)


def _surely_decimal(numbers: Iterable[str]) -> bool:
    return any("," in cell and not _EITHER.fullmatch(cell.strip()) for cell in numbers)


def _value(cell: str) -> float | None:
    """Return the number that a cell is, NaN if it is missing, None if it is something else."""
    number = _by_comma(cell) if "," in cell else _number(cell)
    return math.nan if number is None and is_missing_word(cell) else number


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or a decimal comma; true and false are words."""
    return (_number(cell) is not None and cell.lower() not in _WORDS) or _by_comma(cell) is not None


def _by_comma(cell: str) -> float | None:
    """A number with a decimal comma."""
    return _number(cell.replace(",", ".")) if cell.count(",") == 1 and "." not in cell else None


def _number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return _WORDS.get(cell.strip().lower())


@dataclass(frozen=True)
class CsvLayout:
    """What the first line tells, and what is wanted."""

    name: str
    separator: str
    header: list[str] | None
    width: int
    drop: set[str]
    text: set[str]
    before: int  # lines before the rows
    mark: str | None = None  # of decimals, where it is known before

    @property
    def wanted(self) -> list[int]:
        return [k for k in range(self.width) if self.header is None or self.header[k] not in self.drop]

    @property
    def names(self) -> list[str] | None:
        return None if self.header is None else [self.header[k] for k in self.wanted]

    def is_text(self, k: int) -> bool:
        return self.header is not None and self.header[k] in self.text

    def column(self, k: int) -> str:
        return f"column {self.header[k]!r}" if self.header else f"column {k}"


def read_layout(
    file: TextIO,
    name: str,
    selection: ColumnSelection,
) -> tuple[CsvLayout, list[str], int]:
    """Read the first line: the layout, its cells, and where the rows begin."""
    first, before = first_line(file)
    start = file.tell()
    separator = separator_of(first, next(filter(str.strip, iter(file.readline, "")), ""))
    file.seek(start)
    lines = csv.reader(_with(first, file), delimiter=separator, skipinitialspace=True)
    cells = [cell.strip() for cell in next(lines)]
    before += lines.line_num - 1
    header = None if all(is_number(cell) for cell in cells) else cells
    if header is None and selection.extra:
        raise InputError(f"{name} has no header, so no column {selection.extra[0]!r}; add a first line with names.")
    if header is not None:
        check_columns(name, header, selection.extra)
    start, before = (0, 0) if header is None else (file.tell(), before)
    text = {*selection.extra, *selection.optional}
    return CsvLayout(name, separator, header, len(cells), set(selection.drop), text, before), cells, start


def refuse_header_of_numbers(name: str, cells: list[str], columns: list[Column]) -> None:
    """Names such as 0, 1, 2 or 2019, 2020, which must not become an observation.

    Consecutive whole numbers or distinct years are taken for names, unless they may well be a row: two or three
    numbers, not from 0 on, each within the range of the whole numbers below it.
    """
    if not all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return
    first = [int(cell) for cell in cells]
    consecutive = len(first) > 1 and first == list(range(first[0], first[0] + len(first)))
    years = len(set(first)) == len(first) and all(1900 <= number <= 2100 for number in first)
    if not (consecutive or years):
        return
    if not (consecutive and (first[0] == 0 or len(first) > 3)) and all(map(_like_a_row, first, columns)):
        return
    shown = ", ".join(cells[:2]) + ", …" * (len(cells) > 2 or first[0] == 0)
    raise InputError(
        f"{name} begins with {shown}, which may be a header of numbers or a row; give the columns names that are not "
        "numbers, or, if it is a row, add a first line with names."
    )


def _like_a_row(first: int, column: Column) -> bool:
    below = np.asarray(column[1:])
    return bool(
        below.dtype.kind == "f" and below.size and (below % 1 == 0).all() and below.min() <= first <= below.max()
    )


def first_line(file: TextIO) -> tuple[str, int]:
    """The first line that is not blank, and its number."""
    line, number = file.readline(), 1
    while line and not line.strip():
        line, number = file.readline(), number + 1
    return line, number


def _with(first: str, file: TextIO) -> Iterable[str]:
    yield first
    yield from iter(file.readline, "")


def separator_of(first: str, second: str) -> str:
    """The mark that stands equally often in two lines, outside quotes; a comma last, since it may be a decimal one."""
    bare = [re.sub(r"\s*([,;])\s*", r"\1", re.sub('"[^"]*"', "", line)) for line in (first, second) if line.strip()]
    counts = {mark: [line.count(mark) for line in bare] for mark in "\t;,"}
    alike = [mark for mark, count in counts.items() if min(count) == max(count) > 0]
    return alike[0] if alike else max(",;\t", key=lambda mark: min(counts[mark]))


Source = Path | bytes  # a file, or what was read of something that can be read only once

_GZIP = b"\x1f\x8b"
_BLOCK = 4096  # rows that are turned into columns at a time


def read_csv(
    source: Source, name: str, selection: ColumnSelection
) -> tuple[list[str] | None, list[str] | None, list[Column]]:
    """Read the header, the names of the columns that are wanted, and those columns.

    Extra columns are lists of text. Others are numbers, with NaN for missing cells, or, where a cell is neither a
    number nor missing, lists of text with None for missing cells. A first line of numbers alone means that there is no
    header.
    """
    with refusing(name), open_text(source) as file:
        layout, first, start = read_layout(file, name, selection)
        columns = read_columns_of(file, start, layout)
        if layout.header is None:
            refuse_header_of_numbers(name, first, columns)
        return layout.header, layout.names, columns


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """What is no text that can be read, said in a sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name} is a damaged gzip file; write it again.") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{name} is not a CSV file ({error}); save it as comma separated text.") from None


def open_text(source: Source) -> TextIO:
    """The text, without a byte order mark; what is gzipped is unpacked on the way, whatever its name."""
    raw: Any = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    if raw.read(2) == _GZIP:
        if not isinstance(source, bytes):
            raw.close()  # which gzip would leave open
        raw = gzip.GzipFile(fileobj=io.BytesIO(source)) if isinstance(source, bytes) else gzip.GzipFile(source)
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")


def read_columns_of(file: TextIO, start: int, layout: CsvLayout) -> list[Column]:
    """The wanted columns: all numbers at once if that can be, otherwise cell by cell."""
    wanted = layout.wanted
    numeric = [k for k in wanted if not layout.is_text(k)]
    values = _numbers_at_once(file, start, layout, numeric) if numeric and layout.mark != "," else None
    if values is not None and len(numeric) == layout.width:
        return [values[:, k] for k in range(layout.width)]
    file.seek(start)
    others = wanted if values is None else [k for k in wanted if layout.is_text(k)]
    cells, lines = _cells(file, layout, others)
    if values is not None and len(values) != len(lines):  # the two readers do not agree on what a row is
        file.seek(start)
        cells, lines = _cells(file, layout, wanted)
        values = None
    if not lines:
        raise InputError(f"{layout.name} has a header but no rows; pass a file with at least two rows.")
    text = {k: [cell.strip() for cell in column] for k, column in cells.items() if layout.is_text(k)}
    text = _with_points(text, values, {k: cells[k] for k in numeric if k in cells}, layout.mark)
    if values is not None:
        numbers: dict[int, Any] = {k: values[:, j] for j, k in enumerate(numeric)}
    else:
        numbers = _read_cells({k: cells.pop(k) for k in numeric}, lines, layout)
    return [text[k] if k in text else numbers[k] for k in wanted]


def _with_points(
    text: dict[int, list[str]], values: NDArray[np.float64] | None, others: dict[int, list[str]], mark: str | None
) -> dict[int, list[str]]:
    """Columns set aside that are numbers, with points for decimal commas, where the file has these and no points."""
    readings = {k: ColumnReading.from_cells(column) for k, column in text.items()}
    numbers = {k: reading for k, reading in readings.items() if reading.is_number}
    if not any(reading.comma for reading in numbers.values()):
        return text
    if mark is None:
        features = [reading for c in others.values() if (reading := ColumnReading.from_cells(c)).is_number]
        every = [*numbers.values(), *features]
        points = any(reading.point for reading in every) or (values is not None and (values % 1 != 0).any())
        mark = "," if not points and any(reading.sure for reading in every) else None
    if mark != ",":
        return text
    return {k: [c.replace(",", ".") for c in column] if k in numbers else column for k, column in text.items()}


def _numbers_at_once(file: TextIO, start: int, layout: CsvLayout, numeric: list[int]) -> NDArray[np.float64] | None:
    """The numeric columns, or None if a cell is not a plain number or a line has another number of cells."""
    file.seek(start)
    every = len(numeric) == layout.width
    try:
        with warnings.catch_warnings(action="ignore"):  # loadtxt warns of a file without rows
            values = np.loadtxt(file, delimiter=layout.separator, quotechar='"', comments=None, ndmin=2,
                                usecols=None if every else numeric)  # fmt: skip
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        return None
    return values if len(values) and values.shape[1] == len(numeric) else None


def _cells(file: TextIO, layout: CsvLayout, wanted: list[int]) -> tuple[dict[int, list[str]], array[int]]:
    """The cells of some columns, and the line of each row; every row must be as wide as the first line."""
    columns: dict[int, list[str]] = {k: [] for k in wanted}
    lines = array("q")
    rows: list[list[str]] = []

    def move() -> None:
        across = list(zip(*rows, strict=True))
        for k, column in columns.items():
            column.extend(across[k] if across else ())
        rows.clear()

    reader = csv.reader(file, delimiter=layout.separator, skipinitialspace=True)
    for row in reader:
        if is_blank(row):
            continue
        line = layout.before + reader.line_num
        if len(row) != layout.width:
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise InputError(
                f"{layout.name} has {cells} in line {line}, but {layout.width} in its first line; "
                "mend the line (a missing cell, or a separator inside a value?)."
            )
        rows.append(row)
        lines.append(line)
        if len(rows) == _BLOCK:
            move()
    move()
    return columns, lines


def _read_cells(cells: dict[int, list[str]], lines: array[int], layout: CsvLayout) -> dict[int, Column]:
    """Read columns of cells as numbers or as text, and refuse numbers that can be read in two ways."""
    readings = {k: ColumnReading.from_cells(cells.pop(k)) for k in list(cells)}

    def at(found: tuple[int, str], k: int) -> str:
        return f"line {lines[found[0]]}, {layout.column(k)}"

    for k, reading in readings.items():
        if reading.thousands and not reading.other:
            raise InputError(
                f"{layout.name} holds {reading.thousands[1].strip()!r} in {at(reading.thousands, k)}, which looks like "
                "a number with a mark between thousands; write numbers without such marks."
            )
    _refuse_two_decimal_marks({k: r for k, r in readings.items() if r.is_number}, layout, at)
    return {k: reading.column for k, reading in readings.items()}


def _refuse_two_decimal_marks(
    numbers: dict[int, ColumnReading], layout: CsvLayout, at: Callable[[tuple[int, str], int], str]
) -> None:
    """Decimal commas beside decimal points, and commas of which no cell tells what they are."""

    def first(mark: str) -> str | None:
        found = ((reading.comma if mark == "," else reading.point, k) for k, reading in numbers.items())
        return next((f"{cell[1].strip()!r} in {at(cell, k)}" for cell, k in found if cell), None)

    comma, point = first(","), first(".")
    before = "the other mark in rows before" if layout.mark else None
    comma, point = comma or (before if layout.mark == "," else None), point or (before if layout.mark == "." else None)
    if comma and point:
        held, other = (comma, point) if comma != before else (point, comma)
        raise InputError(
            f"{layout.name} holds {held}, and {other}: decimal commas and decimal points in one file; "
            "write all numbers in one way."
        )
    if comma and not layout.mark and not any(reading.sure for reading in numbers.values()):
        raise InputError(
            f"{layout.name} holds {comma}, which may be a decimal comma or a mark between thousands, and no other cell "
            "tells which; write numbers with decimal points."
        )


def decimal_mark(text: str, layout: CsvLayout) -> str | None:
    """The mark that surely stands before decimals in some rows; None where none does."""
    cells, _ = _cells(io.StringIO(text, newline=""), layout, layout.wanted)
    readings = [reading for c in cells.values() if (reading := ColumnReading.from_cells(c)).is_number]
    if any(reading.point for reading in readings):
        return "."
    return "," if any(reading.sure for reading in readings) else None


def add_columns(
    source: Source, output: Path, columns: dict[str, Sequence[str]], *, packed: bool = False, safe: bool = False
) -> int:
    """Write a copy of the text with more columns: a cell for each of its rows, in its dialect, gzipped if `packed`.

    Its own lines are copied as they are, since whoever joins the copy on a column must find the same cells. For a
    spreadsheet they may be made `safe`: an apostrophe before what it would take for a formula. Returned is the number
    of cells that were left as such.
    """
    with open_text(source) as file:
        first, _ = first_line(file)
        separator = separator_of(first, next(filter(str.strip, iter(file.readline, "")), ""))
        file.seek(0)
        rows, lines = _rows_and_lines(file, separator)
    added: list[Sequence[str]] = list(zip(*columns.values(), strict=True))
    header = [(*columns,)] * (len(rows) - len(added))
    if _by_commas(rows[len(header) :]):
        added = [tuple(c.replace(".", ",") if is_number(c) else c for c in more) for more in added]
    formulas, end = 0, "\n"
    opened: Any = gzip.open if packed else open
    with opened(output, "wt", encoding="utf-8", newline="") as file:
        for row, line, more in zip(rows, lines, [*header, *added], strict=True):
            if safe:
                line = csv_line([escape_formula(cell) for cell in row], separator)
            else:
                formulas += sum(map(is_formula, row))
            text = line.rstrip("\r\n")
            end = line[len(text) :] or end  # the last line may have none
            file.write(text + separator + csv_line(more, separator, end))
    return formulas


def _rows_and_lines(file: TextIO, separator: str) -> tuple[list[list[str]], list[str]]:
    """Cells of all rows, and the lines that they stand in."""
    rows, lines, taken = [], [], []

    def kept() -> Iterator[str]:
        for line in file:
            taken.append(line)
            yield line

    for row in csv.reader(kept(), delimiter=separator, skipinitialspace=True):
        if not is_blank(row):
            rows.append(row)
            lines.append("".join(taken))
        taken.clear()
    if lines and _is_open(lines[-1], rows[-1], separator):
        lines[-1] = csv_line(rows[-1], separator)
    return rows, lines


def _is_open(line: str, row: list[str], separator: str) -> bool:
    """Whether a quote in it is never closed, which would swallow a further cell."""
    further = io.StringIO(line.rstrip("\r\n") + separator, newline="")
    return next(csv.reader(further, delimiter=separator, skipinitialspace=True)) != [*row, ""]


def _by_commas(rows: list[list[str]]) -> bool:
    """Whether these rows are written with decimal commas."""
    readings = [ColumnReading.from_cells(column) for column in zip(*rows, strict=True)]
    numbers = [reading for reading in readings if reading.is_number]
    return any(reading.comma for reading in numbers) and not any(reading.point for reading in numbers)


def is_blank(row: list[str]) -> bool:
    """Whether a line that was split into cells holds nothing."""
    return not row or (len(row) == 1 and not row[0].strip())
