"""Excel workbooks (.xlsx): sheets read as tables, and copies of a sheet with more columns."""

from __future__ import annotations

import posixpath
import re
import warnings
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from priorshift.errors import InputError, MissingExtraError
from priorshift.io.cells import Cells, as_text, cells_of_values, is_missing_value, object_cells
from priorshift.io.csv_text import CsvLayout, convert_cells
from priorshift.io.tables import ColumnSelection, Table, check_columns, empty_table_error
from priorshift.result_tables import csv_line, to_plain
from priorshift.warning_records import list_names

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_BLOCK = 1 << 16  # bytes of a part of the archive that are parsed at a time
_PLACE = re.compile("([A-Za-z]{1,3})[0-9]+")  # of a cell, such as AB12
_ROW = "http://schemas.openxmlformats.org/spreadsheetml/2006/main}row"  # whose children are cells, whatever their names
_MOST_SILENT = 10_000_000  # bytes of one tag or comment; it is parsed again with each further block
_DIGITS = 20  # of the number of a stored text, at most
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384  # of a sheet in Excel
# XML elements in the app: outside rows and stored texts, such as formats, names and comments; within all stored texts
_MOST_OTHERS, _MOST_STORED = 300_000, 6_000_000
# elements within a row for each of its cells, and within stored texts for each cell that refers to one
_ELEMENTS_OF_CELL, _ELEMENTS_OF_TEXT = 10, 4
# characters in attributes and number of some elements, which openpyxl reads in a time that is not linear in them; those
# of formats and formulas are Excel's limits
_LONGEST = {"numFmt": 255, "definedName": 8192, "sheet": 255, "Relationship": 8192}
_MOST = {"numFmt": 10_000, "definedName": 10_000, "sheet": 1000, "Relationship": 100_000, "xf": 65_490}
_NAMES = {
    "numFmt": "number formats", "definedName": "named formulas", "sheet": "sheets",
    "Relationship": "relations between its parts", "xf": "cell formats",
}  # fmt: skip
_OTHERS = f"{_MOST_OTHERS:,} formats, names, comments or texts without cells"
_MOST_FORMULAS = 10**8  # sum of squared lengths of named formulas
_MOST_FORMATTING = 10**9  # cell formats times the squared length of the longest number format, which is read for each
# what Excel shows in place of a value that it cannot compute
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})
_DAMAGE = (
    BadZipFile, KeyError, ValueError, OSError, SyntaxError, ParseError, TypeError, AttributeError, IndexError, EOFError,
    NotImplementedError, zlib.error, expat.ExpatError, RuntimeError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True)
class SheetRows:
    """The rows of a sheet that are not empty, all of the same width, and their numbers in the sheet."""

    title: str
    rows: list[list[Any]]
    numbers: array[int]


def read_workbook(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a sheet of a workbook as a table; its first row that is not empty has the names of the columns."""
    sheet = _read_rows(path, name, selection.sheet)
    header, *rows = sheet.rows
    # formatting may extend a sheet by columns without any cell
    used = [k for k in range(len(header)) if not all(_is_empty(row[k]) for row in sheet.rows)]
    columns = ["" if _is_empty(header[k]) else as_text(header[k]) for k in used]
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


def _read_rows(path: Path, name: str, sheet_name: str | None) -> SheetRows:
    """Read the rows of a sheet that are not empty; refuse a sheet without any, or with formulas that have no value."""
    with _open_sheet(path, name, sheet_name) as (sheet, title):
        part = getattr(sheet, "_worksheet_path", None)
        scan = None if part is None else _scan_sheet(path, part)  # first, since it refuses columns beyond Excel's
        found, numbers = [], array("q")
        for number, row in enumerate(_iter_rows(sheet), 1):
            if number > _MOST_ROWS:
                raise _too_many_rows(name)
            if not all(map(_is_empty, row)):
                found.append(row)
                numbers.append(number)
    if not found:
        raise InputError(f"{name} has no cells in sheet {title!r}; name another sheet, or fill it.")
    width = max(map(len, found))
    if scan is not None and scan.has_uncomputed:
        raise InputError(
            f"{name} has formulas without values in sheet {title!r}; open it in Excel or LibreOffice and save it."
        )
    return SheetRows(title, [[*row, *[None] * (width - len(row))] for row in found], numbers)


def _iter_rows(sheet: Any) -> Iterator[Sequence[Any]]:
    """Yield all rows of a sheet, whatever the file states about their number and width."""
    sheet.reset_dimensions()
    yield from sheet.iter_rows(values_only=True)


@contextmanager
def _open_sheet(path: Path, name: str, sheet_name: str | None) -> Iterator[tuple[Any, str]]:
    """Open a sheet of a workbook, by default its only one that has cells; yield it and its name.

    Any error of the file, also while its rows are read, is an InputError.
    """
    openpyxl = _openpyxl(name)
    try:
        with path.open("rb") as file:  # opened here, since openpyxl 3.1.2 does not close it
            with ZipFile(file) as archive:
                _check_parts(archive)
            file.seek(0)
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # of styles that it does not know
                book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = {sheet.title: sheet for sheet in book.worksheets}
            if sheet_name is None:
                filled = _filled_sheets(sheets, name) or list(sheets)
                if len(filled) != 1:
                    names = list_names(filled) or "none with cells"
                    raise InputError(f"{name} has the sheets {names}; name one (sheet=…, --sheet NAME or ROLE=NAME).")
                sheet_name = filled[0]
            if sheet_name not in sheets:
                names = list_names(list(sheets))
                raise InputError(f"{name} has no sheet {sheet_name!r}; its sheets are {names}.")
            yield sheets[sheet_name], sheet_name
    except InputError:
        raise
    except _DAMAGE:
        raise _damaged(name) from None


def _openpyxl(name: str) -> Any:
    """Import openpyxl; raise MissingExtraError with the name of the file that needs it."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError(
            f'{name} is an Excel file, which needs openpyxl; run pip install "priorshift[excel]", or save it as CSV.'
        ) from None
    return openpyxl


def _damaged(name: str) -> InputError:
    """Return the error for a file that cannot be read as a workbook."""
    return InputError(f"{name} is damaged, or is not an Excel workbook (.xlsx); save it again.")


def _too_many_rows(name: str) -> InputError:
    """Return the error for a sheet with more rows than Excel allows."""
    return InputError(f"{name} has more than {_MOST_ROWS:,} rows, which Excel does not allow; save it again.")


def _filled_sheets(sheets: Mapping[str, Any], name: str) -> list[str]:
    """Return the names of the sheets in which a cell has a value.

    The empty rows before it are limited, in all sheets together: a row with a large number stands for many empty ones.
    """
    filled, empty = [], 0
    for title, sheet in sheets.items():
        for row in _iter_rows(sheet):
            if not all(map(_is_empty, row)):
                filled.append(title)
                break
            empty += 1
            if empty > _MOST_ROWS:
                raise _too_many_rows(name)
    return filled


class _PartScan:
    """What a part of the archive contains: rows, columns and cells of a sheet, and formulas without a stored value.

    Texts are stored once, in a part of their own, and cells refer to them by number. A document type, by which few
    bytes can stand for many, is refused.
    """

    def __init__(
        self, archive: ZipFile, part: str, *, only_start: bool = False, lengths: Sequence[int] | None = None
    ) -> None:
        """Parse a part of the archive, or only what precedes its first element.

        With the `lengths` of the stored texts, those of the texts that cells refer to are added up.
        """
        self.rows = self.columns = self.cells = self.row = self.column = 0
        self.elements = {"": 0, "row": 0, "si": 0}  # within rows, stored texts and anything else
        self.has_uncomputed = self.is_uncomputed = self.has_element = False
        self.is_malformed = False  # from some place on, which openpyxl reaches only after the rows before it
        self.limited = dict.fromkeys(_MOST, 0)  # elements with a limit of their own
        self.formulas = self.longest_format = 0  # squared lengths of named formulas, and length of a number format
        self.sheets: list[str] = []  # ids of the sheets that this part lists
        self.targets: dict[str, str] = {}  # parts that this one relates ids to
        self.text_lengths = array("q")  # of the texts that this part stores
        self.references = self.characters = 0  # cells that refer to a stored text, and the characters of these
        self._path: list[str] = []  # names of the elements that are open
        self._within, self._depth = "", 0  # kind of the outermost open element of a kind, and its depth
        self._in_value = False
        self._formula: int | None = None  # characters of the open named formula
        self._lengths, self._number = lengths, ""
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        n_bytes = 0
        with archive.open(part) as file:
            try:
                while (block := file.read(_BLOCK)) and not (only_start and self.has_element):
                    self._parser.Parse(block, False)
                    n_bytes += len(block)
                    if n_bytes - self._parser.CurrentByteIndex > _MOST_SILENT:
                        raise ValueError
                if not only_start:
                    self._parser.Parse(b"", True)
            except expat.ExpatError:
                self.is_malformed = True

    @staticmethod
    def _refuse(*_: Any) -> None:
        """Refuse a document type, which workbooks do not have."""
        raise _DocumentTypeError

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Count rows, cells and other elements, and look for formulas."""
        self.has_element = True
        tag = name.rpartition("}")[2]
        is_cell = bool(self._path) and self._path[-1] == _ROW
        if not self._within and (name == _ROW or tag == "si"):
            self._within, self._depth = tag, len(self._path)
        self.elements[self._within] += 1
        if self.elements[""] > _MOST_OTHERS or self.elements["si"] > _MOST_STORED:
            raise _TooManyElementsError(_OTHERS)
        self._path.append(name)
        if tag in self.limited:
            self._start_limited(tag, attributes)
        if is_cell:
            self._start_cell(attributes)
        elif name == _ROW:
            # rows that are left out before it count, since openpyxl yields them
            last, self.column = self.row, 0
            self.row = int(float(attributes.get("r") or last + 1))
            if self.row <= last:  # openpyxl leaves out a row whose number does not increase
                raise ValueError
            self.rows = self.row
        elif tag == "f":
            self.is_uncomputed = True
            self._parser.CharacterDataHandler = self._text
        elif tag == "v":
            self._in_value = True
        elif tag == "si":
            self.text_lengths.append(0)
            self._parser.CharacterDataHandler = self._text

    def _start_limited(self, tag: str, attributes: dict[str, str]) -> None:
        """Count a format, formula, sheet or relation to another part; refuse too many and too long ones."""
        self.limited[tag] += 1
        if self.limited[tag] > _MOST[tag]:
            raise _TooManyElementsError(f"{_MOST[tag]:,} {_NAMES[tag]}")
        is_external = attributes.get("TargetMode") == "External"
        if tag in _LONGEST and not is_external and max(map(len, attributes.values()), default=0) > _LONGEST[tag]:
            raise ValueError
        if tag == "numFmt":
            self.longest_format = max(self.longest_format, *map(len, attributes.values()), 0)
        elif tag == "definedName":
            self._formula = 0
            self._parser.CharacterDataHandler = self._text
        elif tag == "sheet":
            self.sheets += [value for name, value in attributes.items() if name.rpartition("}")[2] == "id"]
        elif tag == "Relationship" and not is_external:
            self.targets[attributes.get("Id", "")] = attributes.get("Target", "")

    def _start_cell(self, attributes: dict[str, str]) -> None:
        """Count a cell, and note whether it refers to a stored text; refuse a place that Excel does not have."""
        self.column += 1
        if place := attributes.get("r"):
            found = _PLACE.fullmatch(place)
            if found is None or _column_number(found[1]) > _MOST_COLUMNS:
                raise ValueError
            self.column = _column_number(found[1])
        self.cells += 1
        self.columns = max(self.columns, self.column)
        self.is_uncomputed, self._number = False, ""
        if attributes.get("t") == "s":
            self.references += 1
            if self._lengths is not None:
                self._parser.CharacterDataHandler = self._text
                self._number = " "  # the digits of the number follow

    def _text(self, text: str) -> None:
        """Note that a formula has a value, the number of a stored text, or the length of one."""
        if self._formula is not None:
            self._formula += len(text)
            if self._formula > _LONGEST["definedName"]:
                raise ValueError
        elif self._in_value and text:
            self.is_uncomputed = False
            if self._number:
                self._number += text[:_DIGITS]
        elif self.text_lengths:
            self.text_lengths[-1] += len(text)

    def _end(self, name: str) -> None:
        """Note the end of a value or of a cell."""
        self._path.pop()
        if len(self._path) == self._depth:
            self._within = ""
        tag = name.rpartition("}")[2]
        if tag == "definedName":
            self.formulas += (self._formula or 0) ** 2
            self._formula = None
            if self.formulas > _MOST_FORMULAS:
                raise _TooManyElementsError(f"{_MOST_FORMULAS**0.5:,.0f} characters in long named formulas")
        elif tag == "v":
            self._in_value = False
            digits, self._number = self._number.strip(), ""
            if digits and self._lengths is not None:
                self.characters += self._lengths[int(f"+{digits}")]  # refuses a negative number
        elif self.is_uncomputed and self._path and self._path[-1] == _ROW:
            self.has_uncomputed, self.is_uncomputed = True, False


def _scan_sheet(path: Path, part: str) -> _PartScan:
    """Scan a sheet, by its name in the archive."""
    with ZipFile(path) as archive:
        return _PartScan(archive, part.lstrip("/"))


class _DocumentTypeError(ValueError):
    """A part of a workbook declares a document type."""


class _TooManyElementsError(ValueError):
    """A part of a workbook has more elements besides cells than the app reads."""


def _column_number(letters: str) -> int:
    """Return the number of a column, 28 for AB."""
    return sum(26**k * (ord(letter) - 64) for k, letter in enumerate(reversed(letters.upper())))


def _check_parts(archive: ZipFile) -> None:
    """Raise ValueError if a part of the archive declares a document type, or is compressed as Excel never does."""
    for entry in archive.infolist():
        if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError
        _PartScan(archive, entry.filename, only_start=True)


def _is_empty(value: Any) -> bool:
    """Return whether a cell is empty or blank."""
    return value is None or (isinstance(value, str) and not value.strip())


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
    sheet = _read_rows(path, str(path), sheet_name)
    added = [tuple(columns), *zip(*columns.values(), strict=True)]
    write_workbook(output, [[*row, *more] for row, more in zip(sheet.rows, added, strict=True)], sheet.title)


def write_sheet_as_text(path: Path, text: Path, sheet_name: str | None) -> Path:
    """Write the values of a sheet as CSV to `text`, and return `text`."""
    rows = _read_rows(path, str(path), sheet_name).rows
    lines = [csv_line(["" if _is_empty(value) else as_text(value) for value in row]) for row in rows]
    text.write_text("".join(lines), encoding="utf-8", newline="")
    return text


def write_workbook(output: Path, rows: Iterable[Sequence[Any]], title: str = "Sheet") -> None:
    """Write rows, the first of which is the header, as a workbook with one sheet; None and NaN are empty cells."""
    openpyxl = _openpyxl(str(output))
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(title)
    for row in rows:
        cells = [openpyxl.cell.WriteOnlyCell(sheet, None if is_missing_value(v) else to_plain(v)) for v in row]
        for cell in cells:
            if cell.data_type == "f":
                cell.data_type = "s"  # a text such as =1+1 stays a text, which nothing computes
        sheet.append(cells)
    book.save(output)


def workbook_bytes(path: Path, name: str) -> int:
    """Return the bytes of a workbook's files when decompressed."""
    try:
        with ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except _DAMAGE:
        raise _damaged(name) from None


def workbook_size(path: Path, name: str, most_characters: int) -> tuple[int, int, int, int]:
    """Return the largest numbers of rows, columns, cells, with empty ones, and characters in the sheets of a workbook.

    Characters are those of stored texts, as often as cells refer to them; they are counted only if a quick bound
    exceeds `most_characters`, and are 0 otherwise. A workbook with very many other elements is refused.
    """
    try:
        with ZipFile(path) as archive:
            _check_parts(archive)
            # any part may be a sheet; those that are not XML have no rows
            scans = {part: _PartScan(archive, part) for part in archive.namelist()}
            if any(scan.is_malformed and _SHEET.fullmatch(part) for part, scan in scans.items()):
                raise ValueError
            _check_elements(scans.values())
            _check_sheets(scans)
            # the longest text of each number, since any part may be the one that stores texts
            stored = (scan.text_lengths for scan in scans.values())
            lengths = array("q", map(max, zip_longest(*stored, fillvalue=0)))
            longest, characters = max(lengths, default=0), 0
            for part, scan in scans.items():
                if scan.references * longest > most_characters:
                    characters = max(characters, _PartScan(archive, part, lengths=lengths).characters)
    except _TooManyElementsError as error:
        raise InputError(f"{name} has more than {error}, the limit of this app; save its sheet as CSV.") from None
    except _DAMAGE:
        raise _damaged(name) from None
    # a row is filled up to its last cell
    sizes = [(scan.rows, scan.columns, max(scan.cells, scan.rows * scan.columns)) for scan in scans.values()]
    rows, columns, cells = map(max, zip((0, 0, 0), *sizes, strict=True))
    return rows, columns, cells, characters


def _check_sheets(scans: Mapping[str, _PartScan]) -> None:
    """Raise ValueError if two sheets are the same part, which openpyxl would read once for each."""
    for part, scan in scans.items():
        folder, file = posixpath.split(part)
        related = scans.get(posixpath.join(folder, "_rels", f"{file}.rels"))
        if scan.sheets and related is not None:
            targets = [posixpath.join("/", folder, related.targets.get(key, key)) for key in scan.sheets]
            if len(set(map(posixpath.normpath, targets))) < len(targets):
                raise ValueError


def _check_elements(scans: Iterable[_PartScan]) -> None:
    """Raise an error if the parts have many elements besides cells, which openpyxl reads into memory."""
    scans = list(scans)
    if max(s.limited["xf"] for s in scans) * max(s.longest_format for s in scans) ** 2 > _MOST_FORMATTING:
        raise _TooManyElementsError("a thousand cell formats, with number formats of hundreds of characters")
    cells, references = sum(scan.cells for scan in scans), sum(scan.references for scan in scans)
    allowed = {"": 0, "row": _ELEMENTS_OF_CELL * cells, "si": _ELEMENTS_OF_TEXT * references}
    for kind, count in allowed.items():
        if sum(scan.elements[kind] for scan in scans) > count + _MOST_OTHERS:
            raise _TooManyElementsError(_OTHERS)
