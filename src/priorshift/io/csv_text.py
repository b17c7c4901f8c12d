"""CSV text: its layout (header, separator, decimal mark) and its cells as numbers, missing values or text; and copies
of a CSV file with more columns.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import ColumnWarning, InputError
from priorshift.io.cells import LEVEL_WORDS, MISSING_WORDS, TRUTH_VALUES, parse_cell
from priorshift.io.tables import ColumnSelection, EmptyTableError, check_columns, is_row_names
from priorshift.result_tables import csv_line, escape_formula, is_formula
from priorshift.warning_records import warn

Column = NDArray[np.float64] | list[str] | list[str | None]
Source = Path | bytes  # a file, or the content of a pipe, which can be read only once

WINDOWS = "cp1252"  # the encoding of text by older programs on Windows
_ENCODING_BLOCKS = 64  # blocks of 1 MiB from which the encoding is found
_GZIP = b"\x1f\x8b"
_BLOCK = 4096  # rows that are turned into columns at a time
_FREQUENT = 0.01  # share of a column's cells
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?P<mark>[.,'’ \u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 may be 1234 (thousands mark) or 1.234 (decimal comma)


@dataclass(frozen=True)
class ColumnReading:
    """A column of cells as numbers or as text, and the first cell of each notation as (row, text of the cell)."""

    column: Column  # floats with NaN, or text with None
    is_number: bool  # whether every cell is a number or missing
    comma: tuple[int, str] | None = None  # a number with a decimal comma
    point: tuple[int, str] | None = None  # a number with a decimal point
    thousands: tuple[int, str] | None = None  # a number with marks between thousands
    other: tuple[int, str] | None = None  # not a number in any notation
    surely_decimal: bool = False  # whether one of its commas must be a decimal comma, not a thousands mark
    doubtful: str | None = None  # a word that was read as missing, but may be a value

    @classmethod
    def from_cells(cls, cells: Sequence[str], missing: Collection[str] = ()) -> ColumnReading:
        """Read cells as floats with NaN if every cell is a number or missing, otherwise as text with None.

        `missing` are further words for a missing value, in lower case.
        """
        text = "\n".join(cells)
        if "_" not in text:  # float() accepts 1_000
            with suppress(ValueError):  # a fast path for columns in which every cell is a number
                plain = [cell.replace(",", ".") for cell in cells] if "," in text else cells
                return cls(
                    np.fromiter(map(float, plain), np.float64, len(cells)),
                    is_number=True,
                    comma=_first(cells, lambda cell: "," in cell) if "," in text else None,
                    point=_first(cells, lambda cell: "." in cell) if "." in text else None,
                    surely_decimal="," in text and _has_decimal_comma(cells),
                )
        values = {cell: parse_cell(cell) for cell in dict.fromkeys(cells)}  # each distinct cell is parsed once
        words = {cell: cell.strip().lower() for cell in values}
        gaps = {cell for cell, word in words.items() if word in MISSING_WORDS or word in missing}
        levels = {cell for cell in gaps if words[cell] in LEVEL_WORDS and words[cell] not in missing}
        numbers = {cell for cell, value in values.items() if value is not None and cell not in gaps}
        # numbers with marks between groups of three digits
        grouped = {cell for cell in values if cell not in numbers and _THOUSANDS.fullmatch(cell.strip())}
        # a column of "none" alone stays text: the other tables show whether it is a level
        is_number = len(numbers) + len(gaps) == len(values) and bool(numbers or not levels)
        if is_number:
            column: Column = np.array([None if cell in gaps else values[cell] for cell in cells], np.float64)
        else:
            gaps -= levels
            stripped = {cell: None if cell in gaps else cell.strip() for cell in values}  # one copy of each text
            column = [stripped[cell] for cell in cells]
        read = numbers | gaps | grouped
        return cls(
            column,
            is_number,
            comma=_first(cells, lambda cell: "," in cell and cell in numbers),
            point=_first(cells, lambda cell: "." in cell and cell in numbers),
            thousands=_first(cells, grouped.__contains__) if grouped else None,
            other=None if is_number else _first(cells, lambda cell: cell not in read),
            surely_decimal=_has_decimal_comma(numbers),
            doubtful=_doubtful_word(
                cells, {cell: words[cell] for cell in gaps if words[cell] not in missing}, is_number
            ),
        )


def _doubtful_word(cells: Sequence[str], gaps: Mapping[str, str], is_number: bool) -> str | None:
    """Return a word that is read as missing but may be a value; None if there is none.

    `gaps` are the distinct cells that are read as missing, and their words. "none" among numbers may mean 0, and "NA"
    in a column of text that has many blank cells too may be a level.
    """
    if is_number:
        return next((cell.strip() for cell, word in gaps.items() if word == "none"), None)
    counts = Counter(cell for cell in cells if cell in gaps)
    enough = _FREQUENT * len(cells)
    if sum(count for cell, count in counts.items() if not gaps[cell]) < enough:
        return None
    return next((cell.strip() for cell, count in counts.items() if gaps[cell] and count >= enough), None)


def _first(cells: Sequence[str], condition: Callable[[str], bool]) -> tuple[int, str] | None:
    """Return the row and the text of the first cell that meets a condition; None if there is none."""
    for row, cell in enumerate(cells):
        if condition(cell):
            return row, cell
    return None


def _has_decimal_comma(numbers: Iterable[str]) -> bool:
    """Return whether one of the numbers has a comma that cannot be a thousands mark."""
    return any("," in cell and not _AMBIGUOUS.fullmatch(cell.strip()) for cell in numbers)


@dataclass(frozen=True)
class CsvLayout:
    """Layout of CSV text: its separator, header and decimal mark, and the columns to read, by their positions."""

    name: str  # name of the file in messages
    separator: str
    width: int  # number of cells in each line
    wanted: list[int]  # columns that are read, in order
    header: list[str] | None = None
    text_columns: frozenset[int] = frozenset()  # those of `wanted` that are not features, which are read as text
    dropped: tuple[str, ...] = ()  # names of the columns that are not read
    lines_before: int = 0  # number of lines before the first row, for line numbers in messages
    decimal_mark: str | None = None  # "." or ",", if it is known from earlier rows
    categories: frozenset[int] = frozenset()  # features that are read as text even if they hold numbers
    missing: frozenset[str] = frozenset()  # further words for a missing value, in lower case


def read_layout(file: TextIO, name: str, selection: ColumnSelection) -> tuple[CsvLayout, list[str], int]:
    """Read the first line; return the layout, the cells of that line, and the file position where the rows begin."""
    first_line, separator, line_number = _read_first_line(file, name)
    # names in quotes may contain line ends; unlike a loop over the file, `readline` allows `tell` afterwards
    lines = chain([first_line], iter(file.readline, ""))
    last_line, first_cells, _ = next(iter_records(lines, separator, name, line_number - 1))
    cells = [cell.strip() for cell in first_cells]
    missing = frozenset(value.lower() for value in selection.rules.missing)
    if all(parse_cell(cell) is not None and cell.lower() not in TRUTH_VALUES for cell in cells):
        # all cells are numbers: the line is a row, and there is no header
        if selection.extra:
            raise InputError(f"{name} has no header, so no column {selection.extra[0]!r}; add a first line with names.")
        layout = CsvLayout(name, separator, len(cells), wanted=list(range(len(cells))), missing=missing)
        return layout, cells, 0
    start = file.tell()
    records = iter_records(iter(file.readline, ""), separator, name, last_line)
    first_row, first_text = next(((row, "".join(text)) for _, row, text in records if row), ([], ""))
    file.seek(start)
    if len(first_row) == len(cells) + 1 and first_row[-1].strip():  # not a separator at the end of every row
        if separator == "," and len(cells) == 1 and _DECIMAL_COMMA.fullmatch(first_text.strip()):
            raise InputError(
                f"{name} has 1 name in its first line, but {first_text.strip()!r} in the next, two cells or a number "
                "with a decimal comma; name both columns, or write decimal points."
            )
        cells = ["", *cells]  # R's write.table writes no name above the row names
    check_columns(name, cells, selection.extra)
    drop = set(selection.drop)
    wanted = [k for k, cell in enumerate(cells) if cell not in drop and not is_row_names(k, cell)]
    text_columns = frozenset(k for k in wanted if cells[k] in (*selection.extra, *selection.optional))
    dropped = tuple(cell for cell in cells if cell in drop)
    categories = frozenset(k for k in wanted if selection.rules.kinds.get(cells[k]) == "category")
    layout = CsvLayout(
        name,
        separator,
        len(cells),
        wanted,
        cells,
        text_columns,
        dropped,
        lines_before=last_line,
        categories=categories - text_columns,
        missing=missing,
    )
    return layout, cells, start


def empty_file_error(name: str) -> InputError:
    """Return the error for a file without text."""
    return InputError(f"{name} is empty; pass a file with a header and at least two rows.")


def _read_first_line(file: TextIO, name: str) -> tuple[str, str, int]:
    """Read the first line that is not blank; return its text, the file's separator and the number of the line."""
    first, line_number = file.readline(), 1
    while first and not first.strip():
        first, line_number = file.readline(), line_number + 1
    if not first:
        raise empty_file_error(name)
    start = file.tell()
    second = file.readline()
    while second and not second.strip():
        second = file.readline()
    file.seek(start)
    # The separator occurs equally often in both lines, outside quotes. A comma is tried last: it may be a decimal mark.
    unquoted = [_without_spaces(re.sub('"[^"]*"', "", line)) for line in (first, second) if line.strip()]
    counts = {mark: [line.count(mark) for line in unquoted] for mark in "\t;,"}
    for mark, in_each_line in counts.items():
        if min(in_each_line) == max(in_each_line) > 0:
            return first, mark, line_number
    return first, max(",;\t", key=lambda mark: min(counts[mark])), line_number  # a comma if none is in both lines


def _without_spaces(line: str) -> str:
    """Return a line without the spaces and tabs around its commas and semicolons."""
    first, *others = re.split("([,;])", line)
    if not others:
        return line
    return "".join([first.rstrip(), *(part.strip() for part in others[:-1]), others[-1].lstrip()])


def check_header_of_numbers(name: str, cells: list[str], columns: list[Column]) -> None:
    """Refuse a first line of numbers that is probably a header (0, 1, 2 or years).

    `cells` are the cells of that line, and `columns` include them as their first row.
    """
    if not all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return
    first = [int(cell) for cell in cells]
    consecutive = len(first) > 1 and first == list(range(first[0], first[0] + len(first)))
    years = len(set(first)) == len(first) and all(1900 <= number <= 2100 for number in first)
    if not (consecutive or years):
        return
    surely_names = consecutive and (first[0] == 0 or len(first) > 3)
    if not surely_names and all(_is_like_rest(column) for column in columns):
        return
    shown = ", ".join(cells[:2])
    if len(cells) > 2 or first[0] == 0:
        shown += ", …"
    raise InputError(f"{name} begins with {shown}, a header of numbers or a row; add a first line with names.")


def _is_like_rest(column: Column) -> bool:
    """Return whether the rest of a column holds whole numbers only, and its first number is within their range."""
    cells = np.asarray(column)
    first, rest = cells[0], cells[1:]
    is_whole = rest.dtype.kind == "f" and rest.size and (rest % 1 == 0).all()
    return bool(is_whole and rest.min() <= first <= rest.max())


def read_csv(source: Source, name: str, selection: ColumnSelection) -> tuple[CsvLayout, list[Column]]:
    """Read CSV text; return its layout and its columns, as :func:`read_columns` does."""
    with explain_errors(name), open_text(source) as file:
        layout, first_cells, start = read_layout(file, name, selection)
        columns = read_columns(file, start, layout)
        if layout.header is None:
            check_header_of_numbers(name, first_cells, columns)
        return layout, columns


@contextmanager
def explain_errors(name: str) -> Iterator[None]:
    """Turn errors of reading text into InputErrors that name the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{name} is a damaged gzip file; write it again.") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is neither UTF-8 nor Windows-1252 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{name} is not a CSV file ({error}); save it as comma separated text.") from None


def encoding_of(source: Source) -> str:
    """Return the encoding of text: UTF-8, or Windows-1252 if the first 64 MiB are not UTF-8."""
    if isinstance(source, bytes):
        return _find_encoding(source)
    state = source.stat()
    return _encoding_of_file(source, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _encoding_of_file(path: Path, size: int, changed: int) -> str:
    """Return the encoding of a file; its size and the time of its last change distinguish versions of the file."""
    return _find_encoding(path)


def _find_encoding(source: Source) -> str:
    """Return the encoding of text, from its first 64 MiB; UnicodeDecodeError is raised if there is none."""
    try:
        _decode_start(source, "utf-8-sig")
    except UnicodeDecodeError:
        _decode_start(source, WINDOWS)
        return WINDOWS
    return "utf-8-sig"


def _decode_start(source: Source, encoding: str) -> None:
    """Decode the first 64 MiB of text, to see whether it has this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with open_bytes(source) as file:
        for _ in range(_ENCODING_BLOCKS):
            block = file.read(1 << 20)
            decoder.decode(block, final=not block)
            if not block:
                return


def open_text(source: Source) -> TextIO:
    """Open text in its encoding, without a byte order mark."""
    return io.TextIOWrapper(open_bytes(source), encoding=encoding_of(source), newline="")


def open_bytes(source: Source) -> Any:
    """Open the bytes of text, decompressed if it is gzipped, which its content shows, not the file's name."""
    raw: Any = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    is_gzip = raw.read(2) == _GZIP
    raw.seek(0)
    if is_gzip and isinstance(source, bytes):
        raw = gzip.GzipFile(fileobj=raw)
    elif is_gzip:
        raw.close()  # GzipFile closes only files that it opened itself
        raw = gzip.GzipFile(source)
    return raw


def read_columns(file: TextIO, start: int, layout: CsvLayout) -> list[Column]:
    """Read the rows from file position `start`; return the columns in the order of `layout.wanted`.

    Features are floats with NaN if all their cells are numbers or missing, otherwise text with None; other columns are
    text. Features that are plain numbers throughout are read by NumPy, which is fast, and others cell by cell.
    """
    wanted = layout.wanted
    features = [k for k in wanted if k not in layout.text_columns]
    may_be_numbers = features and not layout.categories and layout.decimal_mark != ","
    values = _load_numbers(file, start, layout, features) if may_be_numbers else None
    if values is not None and len(features) == layout.width:
        return list(values.T)
    file.seek(start)
    cells, lines = read_cells(file, layout, wanted if values is None else sorted(layout.text_columns))
    if values is not None and len(values) != len(lines):  # NumPy and csv disagree on what a row is: trust csv
        file.seek(start)
        cells, lines = read_cells(file, layout, wanted)
        values = None
    if not lines:
        names = [layout.header[k] for k in features] if layout.header else []
        raise EmptyTableError(f"{layout.name} has a header but no rows; pass a file with at least two rows.", names)
    feature_cells = {k: cells.pop(k) for k in features if k in cells}  # none if NumPy has read them
    texts = {k: [cell.strip() for cell in column] for k, column in cells.items()}
    texts = _with_points(texts, values, feature_cells, layout.decimal_mark)
    if values is None:
        numbers = convert_cells(feature_cells, lines, layout)
    else:
        numbers = dict(zip(features, values.T, strict=True))
    return [texts[k] if k in texts else numbers[k] for k in wanted]


def _load_numbers(file: TextIO, start: int, layout: CsvLayout, features: list[int]) -> NDArray[np.float64] | None:
    """Read the columns `features` by NumPy as a matrix; None if a cell is not a plain number or lines differ in width.

    The rows begin at file position `start`.
    """
    file.seek(start)
    use = None if len(features) == layout.width else features
    last_line = ""

    def lines() -> Iterator[str]:
        """Yield the lines of the file, and remember the last one that is not blank."""
        nonlocal last_line
        for line in file:
            if not line.isspace():
                last_line = line
            yield line

    try:
        with warnings.catch_warnings(action="ignore"):  # loadtxt warns of a file without rows
            values = np.loadtxt(lines(), delimiter=layout.separator, quotechar='"', comments=None, ndmin=2, usecols=use)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None
    if last_line.count('"') % 2:  # NumPy ignores a quotation mark in the last cell that is not closed
        return None
    return values if len(values) and values.shape[1] == len(features) else None


def _with_points(
    texts: dict[int, list[str]],
    values: NDArray[np.float64] | None,
    feature_cells: dict[int, list[str]],
    decimal_mark: str | None,
) -> dict[int, list[str]]:
    """Return text columns with the numbers in them written with decimal points, if the file surely has decimal commas.

    If the decimal mark is not known, all columns decide it: features are in `values` if they are plain numbers,
    otherwise in `feature_cells`.
    """
    readings = {k: ColumnReading.from_cells(column) for k, column in texts.items()}
    with_commas = [k for k, reading in readings.items() if reading.is_number and reading.comma]
    if not with_commas:
        return texts
    if decimal_mark is None and (values is None or (values % 1 == 0).all()):
        decimal_mark = find_decimal_mark([*texts.values(), *feature_cells.values()])
    if decimal_mark != ",":
        return texts
    return texts | {k: [cell.replace(",", ".") for cell in texts[k]] for k in with_commas}


def find_decimal_mark(columns: Iterable[Sequence[str]]) -> str | None:
    """Return the decimal mark, "." or ",", of the numeric ones of some columns of cells; None if it is ambiguous."""
    readings = [ColumnReading.from_cells(cells) for cells in columns]
    numbers = [reading for reading in readings if reading.is_number]
    if any(reading.point for reading in numbers):
        return "."
    return "," if any(reading.surely_decimal for reading in numbers) else None


def read_cells(file: TextIO, layout: CsvLayout, wanted: Sequence[int]) -> tuple[dict[int, list[str]], array[int]]:
    """Read the cells of the columns `wanted`, by column, and the line number of each row."""
    columns: dict[int, list[str]] = {k: [] for k in wanted}
    lines = array("q")
    numbered_rows = _iter_rows(file, layout)
    while block := list(islice(numbered_rows, _BLOCK)):
        lines.extend(line for line, _ in block)
        for k, column in columns.items():
            column.extend([row[k] for _, row in block])
    return columns, lines


def _iter_rows(file: TextIO, layout: CsvLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row; refuse a row that is not as wide as the first line."""
    for line, row, text in iter_records(file, layout.separator, layout.name, layout.lines_before):
        if _is_blank(row, text):
            continue
        if len(row) != layout.width:
            received = f"{len(row)} cell{'s' * (len(row) != 1)} in line {line}"
            raise InputError(f"{layout.name} has {received}, but {layout.width} in its first line; correct the line.")
        yield line, row


def iter_records(
    lines: Iterable[str], separator: str, name: str, lines_before: int = 0
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the number of the last line, the cells and the lines of each row; line ends in quotes make several lines.

    A quotation mark that is not closed would make one cell of all further rows, and is refused. One within a cell that
    does not begin with it, as in 5" pipe, is text. Messages call the file `name` and add `lines_before` to the numbers
    of lines.
    """
    text: list[str] = []  # lines of the current row
    is_end = False  # whether there are no more lines

    def remember_lines() -> Iterator[str]:
        """Yield the lines to the csv reader, which asks for another one only if the row continues."""
        nonlocal is_end
        for line in lines:
            text.append(line)
            yield line
        is_end = True

    reader = csv.reader(remember_lines(), delimiter=separator, skipinitialspace=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error:
            if len(text) == 1:
                raise
            reason = f"is not closed within {csv.field_size_limit():,} characters"
            raise _open_quote(name, lines_before + reader.line_num - len(text) + 1, reason) from None
        if row is None:
            return
        line = lines_before + reader.line_num
        if is_end:
            n_lines = len(io.StringIO(row[-1], newline="").readlines())  # of the cell that the quotation mark opens
            raise _open_quote(name, line - max(n_lines, 1) + 1)
        if len(text) > 1 and _has_text_after_quote("".join(text), separator):
            raise _open_quote(name, line - len(text) + 1)
        yield line, row, text
        text.clear()


def _has_text_after_quote(text: str, separator: str) -> bool:
    """Return whether the text of a row has more than spaces between a closing quotation mark and the separator.

    In a row of several lines, the mark is then probably the opening one of another cell.
    """
    without_spaces = re.sub(rf'" +(?=[{separator}\r\n]|$)', '"', text)
    lines = io.StringIO(without_spaces, newline="")
    try:
        next(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return True
    return False


def _open_quote(name: str, line: int, reason: str = "is not closed") -> InputError:
    """Return the error for a quotation mark in a line that is not closed."""
    return InputError(f"{name} has a quotation mark in line {line} that {reason}; close it, or remove it.")


def _is_blank(row: list[str], text: list[str]) -> bool:
    """Return whether a row comes from blank lines (`text`); a cell with empty quotation marks is a missing value."""
    return len(row) <= 1 and not "".join(text).strip()


def convert_cells(cells: dict[int, list[str]], lines: array[int], layout: CsvLayout) -> dict[int, Column]:
    """Convert feature columns of cells to numbers or text; refuse ambiguous numbers. Empties `cells` to save memory.

    `lines` are the line numbers of the rows, for messages.
    """
    categories = {k: read_as_text(cells.pop(k), layout.missing) for k in layout.categories}
    readings = {k: ColumnReading.from_cells(cells.pop(k), layout.missing) for k in list(cells)}

    def describe(cell: tuple[int, str], k: int) -> str:
        """Describe a cell (row, text) of column `k` for a message."""
        row, text = cell
        column = repr(layout.header[k]) if layout.header else k
        return f"{text.strip()!r} in line {lines[row]}, column {column}"

    for k, reading in readings.items():
        if reading.thousands and not reading.other:
            shown = describe(reading.thousands, k)
            raise InputError(f"{layout.name} holds {shown}, which seems to have marks between thousands; remove these.")
    numbers = {k: reading for k, reading in readings.items() if reading.is_number}
    earlier = "the other mark in earlier rows"
    commas = [describe(reading.comma, k) for k, reading in numbers.items() if reading.comma]
    points = [describe(reading.point, k) for k, reading in numbers.items() if reading.point]
    # a file that is read in blocks must have one decimal mark in all of them
    if layout.decimal_mark == "," and not commas:
        commas = [earlier]
    if layout.decimal_mark == "." and not points:
        points = [earlier]
    if commas and points:
        here, other = (points[0], commas[0]) if commas[0] == earlier else (commas[0], points[0])
        raise InputError(f"{layout.name} holds {here}, and {other}; use either decimal commas or decimal points.")
    if commas and not layout.decimal_mark and not any(reading.surely_decimal for reading in numbers.values()):
        ambiguous = f"{commas[0]}, which may be a decimal comma or a mark between thousands"
        raise InputError(f"{layout.name} holds {ambiguous}; write numbers with decimal points.")
    for k, reading in readings.items():
        if reading.doubtful is not None:
            _warn_of_word(reading, layout, k)
    return categories | {k: reading.column for k, reading in readings.items()}


def read_as_text(cells: Sequence[str], missing: Collection[str] = ()) -> list[str | None]:
    """Return cells as text, with None where a cell is missing; words such as "none" are values here."""
    words = (MISSING_WORDS - LEVEL_WORDS) | set(missing)
    return [None if cell.strip().lower() in words else cell.strip() for cell in cells]


def _warn_of_word(reading: ColumnReading, layout: CsvLayout, k: int) -> None:
    """Warn that a word in column `k` was read as missing, though it may be a value."""
    column = repr(layout.header[k]) if layout.header else str(k)
    read = f"{reading.doubtful!r} in column {column} was read as a missing value"
    if reading.is_number:
        reason = "because the other cells are numbers. If it means 0, write 0"
    else:
        reason = "as blank cells were. If it is a level of its own, write it in another way"
    accept = (
        f"if it means that the value is missing, pass missing=[{reading.doubtful!r}] (--missing {reading.doubtful})"
    )
    warn(f"{read}, {reason}; {accept}.", ColumnWarning)


def has_only_numbers(source: Source, name: str) -> bool:
    """Return whether every cell of CSV text is a plain number, reading few rows at a time.

    The columns of other text are read cell by cell, which takes much more memory than numbers do.
    """
    with explain_errors(name), open_text(source) as file:
        layout, _, start = read_layout(file, name, ColumnSelection())
        file.seek(start)
        while True:
            try:
                with warnings.catch_warnings(action="ignore"):  # loadtxt warns at the end of the file
                    rows = np.loadtxt(
                        file, delimiter=layout.separator, quotechar='"', comments=None, ndmin=2, max_rows=_BLOCK
                    )
            except UnicodeDecodeError:
                raise
            except ValueError:
                return False
            if not len(rows):
                return True


def dialect_of(source: Source) -> tuple[str, str]:
    """Return the separator and the decimal mark of CSV text, from its first rows."""
    with open_text(source) as file:
        layout, _, start = read_layout(file, "the table", ColumnSelection())
        file.seek(start)
        records = iter_records(file, layout.separator, "the table", layout.lines_before)
        full_rows = [row for _, row, _ in islice(records, _BLOCK) if len(row) == layout.width]
    return layout.separator, find_decimal_mark(list(zip(*full_rows, strict=True))) or "."


def split_rows(
    lines: Iterable[str], separator: str, name: str, lines_before: int = 0
) -> Iterator[tuple[list[str], str]]:
    """Yield the cells and the text of each row that is not blank; the arguments are those of `iter_records`."""
    for _, row, text in iter_records(lines, separator, name, lines_before):
        if not _is_blank(row, text):
            yield row, "".join(text)


def _split_lines(lines: Iterable[str], separator: str) -> Iterator[tuple[list[str], str]]:
    """Yield the cells and the text of each row; a blank line is a row with one blank cell."""
    for _, row, text in iter_records(lines, separator, "the table"):
        yield row or [""], "".join(text)


def add_columns(
    source: Source,
    output: Path,
    columns: Mapping[str, Sequence[str]],
    *,
    packed: bool = False,
    safe: bool = False,
    blank_rows: bool = False,
) -> int:
    """Write a copy of CSV text with further columns; return how many of its cells still look like formulas.

    `columns` has the cells of each further column by its name. The text's own lines are copied byte by byte, so that
    the copy can be joined on any column. With `safe`, cells that a spreadsheet would compute get an apostrophe instead.
    The copy is gzipped if `packed`. `blank_rows` says that blank lines are rows, and that the first line is the header,
    as in text that was made from a table; otherwise blank lines are left out, as they are when CSV text is read.
    """
    with open_text(source) as file:
        _, separator, _ = _read_first_line(file, "the table")
        file.seek(0)
        rows = list(_split_lines(file, separator) if blank_rows else split_rows(file, separator, "the table"))
    added: list[Sequence[str]] = list(zip(*columns.values(), strict=True))  # the further cells of each row
    header = [tuple(columns)] if blank_rows or len(rows) > len(added) else []
    own_columns = zip(*(row for row, _ in rows[len(header) :]), strict=True)
    readings = [ColumnReading.from_cells(cells) for cells in own_columns]
    numbers = [reading for reading in readings if reading.is_number]
    if any(reading.comma for reading in numbers) and not any(reading.point for reading in numbers):
        # the text has decimal commas, so the further numbers get them too
        added = [[c if parse_cell(c) is None else c.replace(".", ",") for c in cells] for cells in added]
    formulas, end = 0, "\n"
    open_file: Any = gzip.open if packed else open
    with open_file(output, "wt", encoding="utf-8", newline="") as file:
        for (row, line), cells in zip(rows, [*header, *added], strict=True):
            if safe:
                line = csv_line([escape_formula(cell) for cell in row], separator)
                cells = [escape_formula(cell) for cell in cells]
            else:
                formulas += sum(map(is_formula, (*row, *cells)))
            text = line.rstrip("\r\n")
            end = line[len(text) :] or end  # the last line may have none
            file.write(text + separator + csv_line(cells, separator, end))
    return formulas
