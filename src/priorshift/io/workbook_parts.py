"""The parts of an Excel workbook (.xlsx): sheets, shared strings and cell formats, read from XML in one pass each.

The files come from others, so every part is read in time and memory proportional to its size. What Excel would not
write is refused with a reason: document types, unknown compression, rows and cells out of order. Parts that are not
needed may be missing. Names of elements and attributes are compared without their prefixes, since a long namespace
would be repeated in each name.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from functools import cached_property
from os import SEEK_END
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet in Excel
LONGEST_TEXT = 32_767  # characters of a cell in Excel
# what a damaged file may raise, besides WorkbookError
DAMAGE = (
    BadZipFile, LookupError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, OverflowError,
    zlib.error, expat.ExpatError,
)  # fmt: skip

_BLOCK = 1 << 16  # bytes that are parsed at a time
_LONGEST_TAG = 1 << 24  # bytes of a tag or comment, which are in memory at once
_DEEPEST = 100  # elements within each other; the parser stores each
_MOST_NAMES = 10_000  # different names of elements and attributes in a part; the parser stores each
_LONGEST_NAMES = 1_000_000  # characters of these names
_MOST_LISTED = 100_000  # sheets, relations to other parts or cell formats
_LONGEST_LISTED = 10_000_000  # characters of their attributes
_CODE_LENGTH = 7  # characters of a code such as _x0041_, which stands for one
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a character that XML does not have, or an underscore before such a text
_LETTERS = re.compile("[A-Za-z]{1,3}")  # of a column
_DIGITS = "0123456789"
_MOST_SHOWN = 20  # characters of a value in a message, or of a whole number
_TAIL = 200 + (1 << 16)  # bytes at an archive's end that say where the list of its parts is, with the longest comment
_LARGEST_DIRECTORY = 1 << 22  # bytes of the list of an archive's parts

# Kinds of cell formats. A time shows hours alone: of a day or a duration, or of a date if there are many days
_NUMBER, _DATE, _TIME, _DURATION = range(4)
_MOST_DAYS = 1000  # in a cell with the format of a time; more are a date, from October 1902 on
# Formats that a workbook need not define, by number; 27 to 36, 50 to 58 and 71 to 81 depend on the language
_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 22), _DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 47, *range(27, 37), *range(50, 59), *range(71, 82)), _TIME),
    46: _DURATION,
}  # fmt: skip
_NEEDED = frozenset({"date1904", "formatCode", "Id", "id", "name", "numFmtId", "Target", "TargetMode", "Type"})
# in a format's code: quoted and escaped characters, widths and fillers, colours, conditions and languages
_LITERAL = re.compile(r'"[^"]*"?|[\\!].?|_.?|\*.?|\[(?!(?:h+|m+|s+)\])[^\]]*\]?', re.IGNORECASE | re.DOTALL)
_ELAPSED = re.compile(r"\[[hms]")
_CLOCK = re.compile("[hs]|am/pm|a/p")
# b, e and r are years of other calendars, aaa is a weekday, and e+ an exponent
_CALENDAR = re.compile(r"[dybr]|aaa|e(?![+-])")

# The structure of each kind of part: pairs of an element and an element within it, from the root on. Other elements,
# such as those of extensions, do not count, nor does what they contain.
_Structure = frozenset[tuple[str | None, str]]
_RELATIONS: _Structure = frozenset({("", "Relationships"), ("Relationships", "Relationship")})
_BOOK: _Structure = frozenset({
    ("", "workbook"), ("workbook", "workbookPr"), ("workbook", "sheets"), ("sheets", "sheet"),
})  # fmt: skip
_STYLES: _Structure = frozenset({
    ("", "styleSheet"), ("styleSheet", "numFmts"), ("numFmts", "numFmt"), ("styleSheet", "cellXfs"), ("cellXfs", "xf"),
    # a format that older programs do not know is written twice
    ("numFmts", "AlternateContent"), ("AlternateContent", "Choice"), ("Choice", "numFmt"),
    ("AlternateContent", "Fallback"), ("Fallback", "numFmt"),
})  # fmt: skip
_STRINGS: _Structure = frozenset({("", "sst"), ("sst", "si"), ("si", "t"), ("si", "r"), ("r", "t")})
_SHEET: _Structure = frozenset({
    ("", "worksheet"), ("worksheet", "sheetData"), ("sheetData", "row"), ("row", "c"),
    ("c", "f"), ("c", "v"), ("c", "is"), ("is", "t"), ("is", "r"), ("r", "t"),
})  # fmt: skip
_CLOSED = frozenset({"sheetData", "row", "c", "v", "t"})  # elements that contain no others, except for extensions


class ErrorText(str):
    """The text of a cell whose value cannot be computed, such as #DIV/0!."""


class WorkbookError(ValueError):
    """The reason why a workbook cannot be read, as the end of a sentence."""


def open_archive(path: Path) -> ZipFile:
    """Open an archive; refuse one whose list of parts, which is read at once, is larger than that of any workbook."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, _TAIL), SEEK_END)
        tail = file.read()
    # the records at the end of the list, usual and of large archives: their beginning, and where they state its size
    for signature, start, end in ((b"PK\5\6", 12, 16), (b"PK\6\6", 40, 48)):
        for found in re.finditer(re.escape(signature), tail):
            stated = tail[found.start() + start : found.start() + end]
            is_elsewhere = stated == b"\xff" * 4  # in the other record
            if int.from_bytes(stated, "little") > _LARGEST_DIRECTORY and not is_elsewhere:
                raise WorkbookError("it has too many parts")
    return ZipFile(path)


class Workbook:
    """An open workbook: the names of its sheets, and their cells."""

    def __init__(self, archive: ZipFile) -> None:
        """Read which sheets a workbook has."""
        self._archive = archive
        self._parts: dict[str, ZipInfo] = {}  # by names without upper case, which do not matter
        for entry in archive.infolist():
            self._parts[entry.filename.replace("\\", "/").lstrip("/").casefold()] = entry
        if "mimetype" in self._parts:
            raise WorkbookError("it is a document of another kind")
        book = self._related(self._relations(""), "officeDocument")
        if book is None:
            raise WorkbookError("it has no workbook part")
        if book.endswith(".bin"):
            raise WorkbookError("it is a binary workbook (.xlsb)")
        relations = self._relations(book)
        self._shared_strings = self._related(relations, "sharedStrings")
        self._styles = self._related(relations, "styles")
        elements = self._elements(book, _BOOK)
        self._counts_from_1904 = any(
            attributes.get("date1904") in ("1", "true") for name, attributes in elements if name == "workbookPr"
        )
        self._sheets: dict[str, str] = {}  # parts by the names of sheets
        for name, attributes in elements:
            kind, part = relations.get(attributes.get("id", ""), ("", ""))
            if name == "sheet" and kind == "worksheet" and part.casefold() in self._parts:  # others are charts
                if attributes["name"] in self._sheets:
                    raise WorkbookError("two of its sheets have the same name")
                self._sheets[attributes["name"]] = part
        if not self._sheets:
            raise WorkbookError("it has no sheets with cells")
        if len(self._sheets) > len({part.casefold() for part in self._sheets.values()}):
            raise WorkbookError("two of its sheets are the same part of the file")

    @property
    def sheets(self) -> list[str]:
        """Names of the sheets."""
        return list(self._sheets)

    def read_shared_strings(self, check: Callable[[SharedStrings], None] | None = None) -> SharedStrings:
        """Read the texts that cells refer to by number; call `check` after each block of bytes."""
        strings = SharedStrings()
        return strings if self._shared_strings is None else self._read(self._shared_strings, strings, check)

    def read_sheet(
        self,
        name: str,
        texts: list[str | None],
        *,
        check: Callable[[SheetCells], None] | None = None,
        count_only: bool = False,
    ) -> SheetCells:
        """Read the cells of a sheet, which refer to `texts`; call `check` after each block of bytes.

        If `count_only`, cells are read and counted, but not stored.
        """
        cells = SheetCells(texts, self._formats, counts_from_1904=self._counts_from_1904, count_only=count_only)
        return self._read(self._sheets[name], cells, check)

    @cached_property
    def _formats(self) -> list[int]:
        """The kind of each cell format, such as _DATE."""
        kinds, formats = dict(_BUILT_IN), []
        if self._styles is not None:
            for name, attributes in self._elements(self._styles, _STYLES):
                if name in ("numFmt", "xf"):
                    number = _whole_number(attributes.get("numFmtId", "0"))
                    if name == "numFmt":
                        kinds[number] = _kind_of_format(attributes.get("formatCode", ""))
                    else:
                        formats.append(number)
        return [kinds.get(number, _NUMBER) for number in formats]

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return what a part, or with "" the workbook, relates to: kind and name of another part, by id."""
        folder, file = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        relations = {}
        if path.casefold() in self._parts:
            for name, attributes in self._elements(path, _RELATIONS):
                if name == "Relationship" and attributes.get("TargetMode") != "External":
                    kind, target = attributes["Type"].rpartition("/")[2], attributes["Target"].replace("\\", "/")
                    part_name = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                    relations[attributes["Id"]] = kind, part_name
        return relations

    def _related(self, relations: dict[str, tuple[str, str]], kind: str) -> str | None:
        """Return the first existing part of a kind that is related; None if there is none."""
        parts = (part for one, part in relations.values() if one == kind and part.casefold() in self._parts)
        return next(parts, None)

    def _elements(self, part: str, structure: _Structure) -> list[tuple[str, dict[str, str]]]:
        """Return name and attributes of the elements of a part that belong to its structure."""
        return self._read(part, _Elements(structure), None).elements

    def _read(self, part: str, reader: _AnyReader, check: Callable[[_AnyReader], None] | None) -> _AnyReader:
        """Let a reader handle a part of the archive, call `check` after each block of bytes, and return the reader."""
        for _ in self._parse(part, reader):
            if check is not None:
                check(reader)
        return reader

    def _parse(self, part: str, reader: _PartReader) -> Iterator[None]:
        """Parse a part of the archive; yield after each block of bytes."""
        entry = self._parts[part.casefold()]
        if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise WorkbookError("it is compressed in an unusual way")
        names: dict[str, str] = {}
        parser = expat.ParserCreate(intern=names)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_document_type
        parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
        parser.CharacterDataHandler = reader.text
        n_bytes = n_pending = n_names = 0
        with self._archive.open(entry) as file:
            # an unfinished tag is parsed again with the next block, which is therefore as long
            while block := file.read(max(_BLOCK, n_pending)):
                parser.Parse(block, False)
                n_bytes += len(block)
                n_pending = n_bytes - parser.CurrentByteIndex
                if n_pending > _LONGEST_TAG:
                    raise WorkbookError("its XML has a very long tag")
                if len(names) > n_names:
                    n_names = len(names)
                    if n_names > _MOST_NAMES or sum(map(len, names)) > _LONGEST_NAMES:
                        raise WorkbookError("its XML has too many different names")
                yield
            parser.Parse(b"", True)
        yield


class _PartReader:
    """What handles the elements of a part that belong to its structure; `n_elements` is the number of all elements."""

    def __init__(self, structure: _Structure) -> None:
        self.n_elements = 0
        self._structure = structure
        self._path: list[str | None] = [
            ""
        ]  # names of the open elements; of those that do not belong to the structure, None
        self._pieces: list[str] | None = None  # of the text that is being read
        self._length = 0  # of the text of the open cell or shared string, or of all listed attributes

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element, whose prefix does not matter."""
        path = self._path
        if ":" in name:
            name = name.rpartition(":")[2]
        belongs = (path[-1], name) in self._structure
        if not belongs and path[-1] in _CLOSED and name != "extLst":
            raise WorkbookError(f"its XML has an element {name[:_MOST_SHOWN]!r} in {path[-1]!r}")
        path.append(name if belongs else None)
        self.n_elements += 1
        if len(path) > _DEEPEST:
            raise WorkbookError("its XML has too many levels")
        if belongs:
            self.open(name, attributes)

    def end(self, _: str) -> None:
        """Handle the end of an element."""
        if name := self._path.pop():
            self.close(name)

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element of the structure."""
        raise NotImplementedError

    def close(self, name: str) -> None:
        """Handle the end of an element of the structure."""

    def text(self, text: str) -> None:
        """Handle a piece of text."""
        if self._pieces is not None and self._path[-1] is not None:
            self._pieces.append(text)
            self._length += len(text)
            if self._length > LONGEST_TEXT * _CODE_LENGTH:
                raise _text_too_long()

    def _take_text(self) -> str:
        """Return the text that was read."""
        pieces, self._pieces = self._pieces or (), None
        return "".join(pieces)


_AnyReader = TypeVar("_AnyReader", bound=_PartReader)


class _Elements(_PartReader):
    """Lists name and attributes of elements."""

    def __init__(self, structure: _Structure) -> None:
        super().__init__(structure)
        self.elements: list[tuple[str, dict[str, str]]] = []

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """List an element."""
        attributes = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        self.elements.append((name, {key: attributes[key] for key in _NEEDED & attributes.keys()}))
        self._length += sum(map(len, self.elements[-1][1].values()))
        if len(self.elements) > _MOST_LISTED or self._length > _LONGEST_LISTED:
            raise WorkbookError("it has too many sheets, cell formats or relations, or too long ones")


class SharedStrings(_PartReader):
    """The texts that cells refer to by number, None for blank ones; `n_characters` is their total length."""

    def __init__(self) -> None:
        super().__init__(_STRINGS)
        self.texts: list[str | None] = []
        self.n_characters = 0
        self._runs: list[str] = []  # of the open text, which may have several formats

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a text, or a piece of it with a format of its own; phonetic hints are no pieces."""
        if name == "t":
            self._pieces = []
        elif name == "si":
            self._runs, self._length = [], 0

    def close(self, name: str) -> None:
        """End a text, or a piece of it."""
        if name == "t":
            self._runs.append(self._take_text())
        elif name == "si":
            text = _cell_text("".join(self._runs))
            self.n_characters += len(text or "")
            self.texts.append(text)


class SheetCells(_PartReader):
    """The cells of a sheet that have values, row by row; a row without such a cell is left out.

    Attributes
    ----------
    n_rows, n_columns
        Number of rows, and of columns up to the last one with a value.
    n_cells
        Number of cells, including those without a value.
    n_characters
        Total length of the texts, each of which counts as often as cells have it.
    has_uncomputed
        Whether there are formulas without a value.
    row_numbers
        Number of each row in the sheet.
    """

    def __init__(
        self, texts: list[str | None], formats: list[int], *, counts_from_1904: bool, count_only: bool
    ) -> None:
        super().__init__(_SHEET)
        self.n_rows = self.n_columns = self.n_cells = self.n_characters = 0
        self.has_uncomputed = False
        self.row_numbers = array("q")
        self._values: list[Any] = []  # of all rows, one after the other
        self._columns = array("H")  # of each value, from 0
        self._ends = array("q")  # number of values up to the end of each row
        self._texts, self._formats, self._counts_from_1904 = texts, formats, counts_from_1904
        self._is_stored = not count_only
        self._numbers: dict[str, int] = {}  # numbers of columns by their letters
        self._kinds: dict[str, int] = {}  # kinds of cell formats by their numbers
        self._row = self._column = self._last_column = 0  # the last one is that of the last value of the row
        self._row_digits = ""  # number of the row, if it is stated
        self._type, self._kind = "n", _NUMBER
        self._runs: list[str] | None = None  # of text, or the value, of the open cell
        self._has_formula = False

    def rows(self) -> Iterator[list[Any]]:
        """Return the values of each row in the columns with values, which are None in empty cells."""
        places = {column: k for k, column in enumerate(self._places)}
        start = 0
        for end in self._ends:
            row = [None] * len(places)
            for column, value in zip(self._columns[start:end], self._values[start:end], strict=True):
                row[places[column]] = value
            start = end
            yield row

    def header(self) -> dict[int, Any]:
        """Return the first row: for each column with values, its number from 0 and its first value or None."""
        header: dict[int, Any] = dict.fromkeys(self._places)
        end = self._ends[0]
        return header | dict(zip(self._columns[:end], self._values[:end], strict=True))

    def column(self, number: int) -> list[Any]:
        """Return the values of a column in all rows, which are None in empty cells."""
        places = self._places[number]
        column = [None] * self.n_rows
        for row, place in zip(np.searchsorted(self._ends, places, side="right").tolist(), places.tolist(), strict=True):
            column[row] = self._values[place]
        return column

    @cached_property
    def _places(self) -> dict[int, NDArray[np.intp]]:
        """The places of a column's values among those of all rows, by the number of the column."""
        columns = np.array(self._columns)
        order = np.argsort(columns, kind="stable")
        numbers, starts = np.unique(columns[order], return_index=True)
        return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True))

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a row, a cell, its formula or its value."""
        if name == "c":
            self._start_cell(attributes)
        elif name in ("v", "is"):
            if self._runs:
                raise WorkbookError(f"a cell of row {self._row} has two values")
            self._runs = []
            self._pieces = [] if name == "v" else None
        elif name == "t":
            self._pieces = []
        elif name == "f":
            self._has_formula = True
        elif name == "row":
            self._start_row(attributes)

    def close(self, name: str) -> None:
        """End a value, a cell or a row."""
        if name in ("v", "t"):
            text = self._take_text()
            if text and self._runs is not None:
                self._runs.append(text)
        elif name == "c":
            self._end_cell()
        elif name == "row":
            self._end_row()

    def _start_row(self, attributes: dict[str, str]) -> None:
        """Begin a row, whose number is larger than that of the row before."""
        self._row_digits = attributes.get("r", "")
        row = _whole_number(self._row_digits) if self._row_digits else self._row + 1
        if row > MOST_ROWS:
            raise WorkbookError(f"it has more than {MOST_ROWS:,} rows, the most that Excel allows")
        if row <= self._row:
            raise WorkbookError(f"its rows are out of order after row {self._row}")
        self._row, self._column, self._last_column = row, 0, 0

    def _end_row(self) -> None:
        """Count a row, if it has a value."""
        if self._last_column:
            self.n_rows += 1
            self.n_columns = max(self.n_columns, self._last_column)
            if self._is_stored:
                self.row_numbers.append(self._row)
                self._ends.append(len(self._values))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        """Begin a cell, whose column comes after that of the cell before."""
        self.n_cells += 1
        column = self._column + 1
        if place := attributes.get("r"):
            letters = place.rstrip(_DIGITS)
            if letters not in self._numbers:
                self._numbers[letters] = _column_number(letters)
            column = self._numbers[letters]
            if column <= self._column or (self._row_digits and place != letters + self._row_digits):
                raise WorkbookError(f"its cells are out of order in row {self._row}")
        if column > MOST_COLUMNS:
            raise WorkbookError(f"it has more than {MOST_COLUMNS:,} columns, the most that Excel allows")
        self._column = column
        self._type = attributes.get("t") or "n"
        style = attributes.get("s", "")
        if style not in self._kinds:
            self._kinds[style] = self._kind_of_style(style)
        self._kind = self._kinds[style]
        self._runs, self._pieces, self._length, self._has_formula = None, None, 0, False

    def _kind_of_style(self, style: str) -> int:
        """Return the kind of a cell format; without styles, only format 0 exists, which is a number."""
        number = _whole_number(style or "0")
        if number == 0 and not self._formats:
            return _NUMBER
        if number >= len(self._formats):
            raise WorkbookError(f"a cell of row {self._row} has format {number}, which the file does not define")
        return self._formats[number]

    def _end_cell(self) -> None:
        """Add the value of a cell."""
        runs, self._runs = self._runs, None
        text = "".join(runs or ())
        if self._has_formula and not text and (runs is None or self._type != "str"):  # a computed text may be empty
            self.has_uncomputed = True
        if not text:
            return
        value = self._value(text)
        if value is not None:
            if isinstance(value, str):
                self.n_characters += len(value)
            self._last_column = self._column
            if self._is_stored:
                self._values.append(value)
                self._columns.append(self._column - 1)

    def _value(self, text: str) -> Any:
        """Return the value of the open cell, whose text is not empty; None for blanks and dates that do not exist.

        An error such as #DIV/0! is text.
        """
        kind = self._type
        try:
            if kind == "n":
                number = _number(text)
                return number if self._kind == _NUMBER else _moment(number, self._kind, self._counts_from_1904)
            if kind == "s":
                return self._texts[_whole_number(text)]
            if kind in ("str", "inlineStr"):
                return _cell_text(text)
            if kind == "e":
                return ErrorText(_cell_text(text) or "")
            if kind == "b":
                return {"0": False, "1": True, "false": False, "true": True}[text.strip().lower()]
            if kind == "d":  # written by few programs, and not by Excel itself unless it is asked to
                return _iso_moment(text.strip())
        except WorkbookError:
            raise
        except (LookupError, ValueError):
            pass
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
        raise WorkbookError(f"the value {shown!r} in row {self._row} does not fit its type {kind[:_MOST_SHOWN]!r}")


def column_letters(number: int) -> str:
    """Return the letters of a column, AB for 28."""
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _column_number(letters: str) -> int:
    """Return the number of a column, 28 for AB."""
    if not _LETTERS.fullmatch(letters):
        raise WorkbookError("a cell has a place that Excel does not have")
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number


def _refuse_document_type(*_: Any) -> None:
    """Refuse a document type, few bytes of which can stand for many."""
    raise WorkbookError("its XML has a document type")


def _whole_number(text: str) -> int:
    """Read a whole number that is not negative."""
    text = text[:_MOST_SHOWN].strip() if len(text) <= _MOST_SHOWN else ""
    if not (text.isascii() and text.isdigit()):
        raise WorkbookError("a number in its XML is not a whole number")
    return int(text)


def _number(text: str) -> float:
    """Read a finite number, as an int if it has no decimal mark."""
    if "_" in text or not text.isascii():
        raise ValueError
    number = float(text)
    if number - number != 0:  # infinite or not a number
        raise ValueError
    return int(text) if abs(number) < 1e18 and text.strip().lstrip("+-").isdigit() else number


def _text_too_long() -> WorkbookError:
    """Return the reason for a text that Excel would not write."""
    return WorkbookError(f"it has a text of more than {LONGEST_TEXT:,} characters, the most that Excel allows")


def _cell_text(text: str) -> str | None:
    """Return a text without codes, or None if it is blank.

    A code stands for a character that XML does not have; a surrogate is no character.
    """

    def character(match: re.Match[str]) -> str:
        code = int(match[1], 16)
        return match[0] if 0xD800 <= code <= 0xDFFF else chr(code)

    if "_x" in text:
        text = _ESCAPED.sub(character, text)
    if len(text) > LONGEST_TEXT:
        raise _text_too_long()
    return text if text.strip() else None


def _kind_of_format(code: str) -> int:
    """Return the kind of a format, such as _DATE, from the first section of its code that shows the number."""
    sections = _LITERAL.sub("", code).lower().replace("general", "0").split(";")
    shown = next(filter(str.strip, sections), "")  # the section of a condition such as [=0] may be empty or a text
    if _ELAPSED.search(shown):
        return _DURATION
    has_time = bool(_CLOCK.search(shown))
    if _CALENDAR.search(shown) or ("m" in _CLOCK.sub("", shown) and not has_time):  # m is a minute next to h or s
        return _DATE
    return _TIME if has_time else _NUMBER


def _moment(days: float, kind: int, counts_from_1904: bool) -> datetime | timedelta | None:
    """Return the date, time of day or duration that a number of days stands for; None for a year that Python lacks.

    Excel counts from the last day of 1899, and has a 29th of February in 1900, day 60. It shows no dates before, which
    other programs write as negative numbers, counted from the 30th of December.
    """
    try:
        passed = timedelta(milliseconds=round(days * 86_400_000))
        if kind == _DURATION or (kind == _TIME and days < _MOST_DAYS):
            return passed
        if counts_from_1904:
            return datetime(1904, 1, 1) + passed
        return datetime(1899, 12, 31 if 0 <= days < 60 else 30) + passed
    except OverflowError:
        return None


def _iso_moment(text: str) -> datetime | timedelta:
    """Read a date or a time of day in ISO 8601, without its time zone."""
    if not {":", "-"} & set(text[:100]):  # Python would read 2020 as a time
        raise ValueError
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        clock = time.fromisoformat(text)
        return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
