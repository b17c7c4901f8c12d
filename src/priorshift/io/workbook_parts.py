"""The parts of an Excel workbook (.xlsx): sheets, stored texts and cell formats, read from XML in one pass each.

The files come from others, so every part is read in time and memory proportional to its size. What Excel would not
write is refused: document types, unknown compression, tags of a megabyte, rows and cells out of order. Names of
elements and attributes are compared without their prefixes, since a long namespace would be repeated in each name.
"""

from __future__ import annotations

import posixpath
import re
import zlib
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from functools import cached_property
from typing import Any
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet in Excel
# what a damaged file may raise, besides ValueError for what is refused here
DAMAGE = (
    BadZipFile, LookupError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, OverflowError,
    zlib.error, expat.ExpatError,
)  # fmt: skip

_BLOCK = 1 << 16  # bytes that are parsed at a time
_LONGEST_TAG = 1 << 20  # bytes of a tag or comment, which is parsed again with each further block
_DEEPEST = 100  # elements within each other
_MOST_NAMES = 10_000  # different names of elements and attributes in a part; the parser stores each
_MOST_ELEMENTS = 3_000_000  # in a part that is neither a sheet nor the stored texts
_MOST_LISTED = 100_000  # sheets, relations to other parts or cell formats
_LONGEST_NUMBER = 400  # characters
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a character that XML does not have, or an underscore before such a text
_LETTERS = re.compile("[A-Za-z]{1,3}")  # of a column
_DIGITS = "0123456789"

# Kinds of cell formats. A time shows hours alone: of a day or a duration, or of a date if there are many days
_NUMBER, _DATE, _TIME, _DURATION = range(4)
_MOST_DAYS = 1000  # of a duration with the format of a time
# Formats that a workbook need not define, by number; 27 to 36, 50 to 58 and 71 to 81 depend on the language
_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 22), _DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 47, *range(27, 37), *range(50, 59), *range(71, 82)), _TIME),
    46: _DURATION,
}  # fmt: skip
# in a format's code: quoted and escaped characters, widths and fillers, colours, conditions and languages
_LITERAL = re.compile(r'"[^"]*"?|\\.?|_.?|\*.?|\[(?!(?:h+|m+|s+)\])[^\]]*\]?|am/pm|a/p', re.IGNORECASE | re.DOTALL)
_ELAPSED = re.compile(r"\[[hms]")


class Workbook:
    """An open workbook: the names of its sheets, and their rows."""

    def __init__(self, archive: ZipFile) -> None:
        """Read which sheets a workbook has."""
        self._archive = archive
        self._parts: dict[str, ZipInfo] = {}  # by names without upper case, which do not matter
        for entry in archive.infolist():
            self._parts[entry.filename.replace("\\", "/").lstrip("/").casefold()] = entry
        [book] = [target for kind, target in self._relations("").values() if kind == "officeDocument"]
        related = self._relations(book)
        self._texts = [target for kind, target in related.values() if kind == "sharedStrings"]
        self._styles = [target for kind, target in related.values() if kind == "styles"]
        listed = self._elements(book, {("workbook", "workbookPr"), ("sheets", "sheet")})
        self._counts_from_1904 = any(one.get("date1904") in ("1", "true") for tag, one in listed if tag == "workbookPr")
        sheets = [(sheet["name"], *related[sheet["id"]]) for tag, sheet in listed if tag == "sheet"]
        # others are charts; parts by the names of sheets
        self._sheets = {name: target for name, kind, target in sheets if kind == "worksheet"}
        n_sheets = sum(kind == "worksheet" for _, kind, _ in sheets)
        if not len(self._sheets) == len(set(self._sheets.values())) == n_sheets:  # a name or a part of two sheets
            raise ValueError

    @property
    def sheets(self) -> list[str]:
        """Names of the sheets."""
        return list(self._sheets)

    def read_texts(self) -> Iterator[StoredTexts]:
        """Read the texts that cells refer to by number; yield them after each block of bytes, as far as they are read.

        The last yielded are all of them.
        """
        texts = StoredTexts()
        yield texts
        for part in self._texts[:1]:
            for _ in self._parse(part, texts):
                yield texts

    def read_sheet(self, name: str, texts: list[str]) -> Iterator[SheetRows]:
        """Read the rows of a sheet, whose cells refer to `texts`; yield them after each block of bytes.

        The rows of one block are to be taken from what is yielded before the next block is read.
        """
        rows = SheetRows(texts, self._formats, counts_from_1904=self._counts_from_1904)
        for _ in self._parse(self._sheets[name], rows):
            yield rows
        yield rows

    @cached_property
    def _formats(self) -> list[int]:
        """The kind of each cell format, such as _DATE."""
        kinds, formats = dict(_BUILT_IN), []
        for part in self._styles[:1]:
            for tag, attributes in self._elements(part, {("numFmts", "numFmt"), ("cellXfs", "xf")}):
                number = _whole_number(attributes.get("numFmtId", "0"))
                if tag == "numFmt":
                    kinds[number] = _kind_of_format(attributes.get("formatCode", ""))
                else:
                    formats.append(kinds.get(number, _NUMBER))
        return formats

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return what a part, or with "" the workbook, relates to: kind and name of another part, by id."""
        folder, file = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        relations = {}
        for _, attributes in self._elements(path, {("Relationships", "Relationship")}):
            if attributes.get("TargetMode") != "External":
                kind, target = attributes["Type"].rpartition("/")[2], attributes["Target"].replace("\\", "/")
                relations[attributes["Id"]] = kind, posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        return relations

    def _elements(self, part: str, wanted: set[tuple[str, str]]) -> list[tuple[str, dict[str, str]]]:
        """Return name and attributes of the `wanted` elements of a part, which are pairs of a parent and a name."""
        elements = _Elements(wanted)
        for _ in self._parse(part, elements):
            if elements.count > _MOST_ELEMENTS:
                raise ValueError
        return elements.listed

    def _parse(self, part: str, reader: _Reader) -> Iterator[None]:
        """Let a reader handle a part of the archive; yield after each block of bytes."""
        entry = self._parts[part.casefold()]
        if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError
        names: dict[str, str] = {}
        parser = expat.ParserCreate(intern=names)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse  # few bytes of a document type can stand for many
        parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
        parser.CharacterDataHandler = reader.text
        n_bytes = 0
        with self._archive.open(entry) as file:
            while block := file.read(_BLOCK):
                parser.Parse(block, False)
                n_bytes += len(block)
                if n_bytes - parser.CurrentByteIndex > _LONGEST_TAG or len(names) > _MOST_NAMES:
                    raise ValueError
                yield
            parser.Parse(b"", True)


class _Reader:
    """What handles the elements of a part; `count` is how many there have been."""

    def __init__(self) -> None:
        self.count = 0
        self._path = [""]  # names of the open elements
        self._pieces: list[str] | None = None  # of the text that is being read

    def _open(self, name: str) -> tuple[str, str]:
        """Note that an element begins; return the names of its parent and of itself, without their prefixes."""
        path = self._path
        parent = path[-1]
        if ":" in name:
            name = name.rpartition(":")[2]
        path.append(name)
        self.count += 1
        if len(path) > _DEEPEST:
            raise ValueError
        return parent, name

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        raise NotImplementedError

    def end(self, _: str) -> None:
        """Handle the end of an element."""
        self._path.pop()

    def text(self, text: str) -> None:
        """Handle a piece of text."""
        if self._pieces is not None:
            self._pieces.append(text)

    def _take_text(self) -> str:
        """Return the text that was read."""
        pieces, self._pieces = self._pieces or (), None
        return "".join(pieces)


class _Elements(_Reader):
    """Lists name and attributes of some elements."""

    def __init__(self, wanted: set[tuple[str, str]]) -> None:
        super().__init__()
        self.listed: list[tuple[str, dict[str, str]]] = []
        self._wanted = wanted

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """List an element, if it is wanted."""
        parent, name = self._open(name)
        if (parent, name) in self._wanted:
            self.listed.append((name, {key.rpartition(":")[2]: value for key, value in attributes.items()}))
            if len(self.listed) > _MOST_LISTED:
                raise ValueError


class StoredTexts(_Reader):
    """The texts that cells refer to by number; `characters` is their total length."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.characters = 0
        self._runs: list[str] = []  # of the open text, which may have several formats

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a text, or a piece of it with a format of its own; phonetic hints are no pieces."""
        parent, name = self._open(name)
        if name == "t" and parent in ("si", "r"):
            self._pieces = []
        elif name == "si" and parent == "sst":
            self._runs = []

    def end(self, _: str) -> None:
        """End a text, or a piece of it."""
        name = self._path.pop()
        if name == "t" and self._pieces is not None:
            self._runs.append(self._take_text())
        elif name == "si" and self._path[-1] == "sst":
            text = _unescape("".join(self._runs))
            self.characters += len(text)
            self.texts.append(text)


class SheetRows(_Reader):
    """The rows of a sheet that are not empty, and how many columns, cells and characters of text it has so far."""

    def __init__(self, texts: list[str], formats: list[int], *, counts_from_1904: bool) -> None:
        super().__init__()
        self.n_rows = self.n_columns = self.n_cells = self.characters = 0
        self.has_uncomputed = False  # whether there are formulas without a value
        self._texts, self._formats, self._counts_from_1904 = texts, formats, counts_from_1904
        self._rows: list[tuple[int, list[Any]]] = []
        self._columns: dict[str, int] = {}  # numbers of columns by their letters
        self._kinds: dict[str, int] = {}  # kinds of cell formats by their numbers
        self._values: list[Any] = []  # of the open row
        self._row = self._column = 0
        self._type, self._kind = "n", _NUMBER
        self._runs: list[str] | None = None  # of text, or the value, of the open cell
        self._has_formula = False

    def take(self) -> list[tuple[int, list[Any]]]:
        """Return number and values of the rows that were read since the last call; None is an empty cell.

        A row ends with its last value.
        """
        rows, self._rows = self._rows, []
        return rows

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a row, a cell, its formula or its value."""
        parent, name = self._open(name)
        if name == "c":
            if parent == "row":
                self._start_cell(attributes)
        elif name == "v":
            if parent == "c":
                if self._runs is not None:
                    raise ValueError
                self._runs, self._pieces = [], []
        elif name == "t":
            if parent in ("is", "r"):
                self._pieces = []
        elif name == "f":
            self._has_formula = self._has_formula or parent == "c"
        elif name == "is":
            self._runs = []
        elif name == "row" and parent == "sheetData":
            self._start_row(attributes)

    def end(self, _: str) -> None:
        """End a value, a cell or a row."""
        name = self._path.pop()
        if name in ("v", "t"):
            if self._pieces is not None and self._runs is not None:
                self._runs.append(self._take_text())
        elif name == "c":
            if self._path[-1] == "row":
                self._end_cell()
        elif name == "row" and self._path[-1] == "sheetData" and self._values:
            self._rows.append((self._row, self._values))
            self.n_rows += 1
            self.n_columns = max(self.n_columns, len(self._values))

    def _start_row(self, attributes: dict[str, str]) -> None:
        """Begin a row, whose number is larger than that of the row before."""
        row = _whole_number(attributes["r"]) if "r" in attributes else self._row + 1
        if not self._row < row <= MOST_ROWS:
            raise ValueError
        self._row, self._column, self._values = row, 0, []

    def _start_cell(self, attributes: dict[str, str]) -> None:
        """Begin a cell, whose column comes after that of the cell before."""
        self.n_cells += 1
        column = self._column + 1
        if place := attributes.get("r"):
            letters = place.rstrip(_DIGITS)
            if letters not in self._columns:
                self._columns[letters] = _column_number(letters)
            column = self._columns[letters]
            if column <= self._column or len(letters) == len(place):
                raise ValueError
        if column > MOST_COLUMNS:
            raise ValueError
        self._column = column
        self._type = attributes.get("t", "n")
        style = attributes.get("s", "")
        if style not in self._kinds:
            self._kinds[style] = self._formats[_whole_number(style)] if style and self._formats else _NUMBER
        self._kind = self._kinds[style]
        self._runs, self._pieces, self._has_formula = None, None, False

    def _end_cell(self) -> None:
        """Add the value of a cell to the row."""
        runs, self._runs = self._runs, None
        text = "".join(runs or ())
        if self._has_formula and not text and (runs is None or self._type != "str"):  # a computed text may be empty
            self.has_uncomputed = True
        if not text:
            return
        value = self._value(text)
        if isinstance(value, str):
            self.characters += len(value)
            if not value.strip():
                return
        if value is not None:
            values = self._values
            values.extend([None] * (self._column - 1 - len(values)))
            values.append(value)

    def _value(self, text: str) -> Any:
        """Return the value of the open cell, whose text is not empty; an error such as #DIV/0! is text."""
        kind = self._type
        if kind == "n":
            number = _number(text)
            return number if self._kind == _NUMBER else _moment(number, self._kind, self._counts_from_1904)
        if kind == "s":
            return self._texts[_whole_number(text)]
        if kind in ("str", "inlineStr"):
            return _unescape(text)
        if kind == "b":
            return {"0": False, "1": True, "false": False, "true": True}[text.strip()]
        if kind == "d":  # written by few programs, and not by Excel itself unless it is asked to
            return _iso_moment(text.strip())
        if kind == "e":
            return text
        raise ValueError


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
        raise ValueError
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number


def _refuse(*_: Any) -> None:
    """Refuse a document type, which workbooks do not have."""
    raise ValueError


def _whole_number(text: str) -> int:
    """Read a whole number that is not negative."""
    text = text.strip()
    if len(text) > 20 or not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    """Read a finite number, as an int if it has no decimal mark."""
    if len(text) > _LONGEST_NUMBER or "_" in text or not text.isascii():
        raise ValueError
    number = float(text)
    if number - number != 0:  # infinite or not a number
        raise ValueError
    return int(text) if abs(number) < 1e18 and text.strip().lstrip("+-").isdigit() else number


def _unescape(text: str) -> str:
    """Replace characters that XML does not have, which are stored by their code; a surrogate is none."""
    if "_x" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        code = int(match[1], 16)
        return match[0] if 0xD800 <= code <= 0xDFFF else chr(code)

    return _ESCAPED.sub(character, text)


def _kind_of_format(code: str) -> int:
    """Return the kind of a format, such as _DATE, from the part of its code for positive numbers."""
    letters = _LITERAL.sub("", code).partition(";")[0].lower()
    if _ELAPSED.search(letters):
        return _DURATION
    has_time = "h" in letters or "s" in letters
    if "y" in letters or "d" in letters or ("m" in letters and not has_time):  # m is a minute next to h or s
        return _DATE
    return _TIME if has_time else _NUMBER


def _moment(days: float, kind: int, counts_from_1904: bool) -> datetime | timedelta | None:
    """Return the date, time of day or duration that a number of days stands for; None for a date before 1900.

    Excel counts from the last day of 1899, and has a 29th of February in 1900, day 60.
    """
    try:
        passed = timedelta(milliseconds=round(days * 86_400_000))
        if kind == _DURATION or (kind == _TIME and 0 <= days < _MOST_DAYS):
            return passed
        if days < 0:
            return None
        if counts_from_1904:
            return datetime(1904, 1, 1) + passed
        return datetime(1899, 12, 31 if days < 60 else 30) + passed
    except OverflowError:
        return None


def _iso_moment(text: str) -> datetime | timedelta:
    """Read a date or a time of day in ISO 8601, without its time zone."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        clock = time.fromisoformat(text)
        return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
