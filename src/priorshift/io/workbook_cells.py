"""The XML of an Excel workbook's parts: sheets, shared strings and lists of elements, each read in one pass.

The files come from others, so every part is read in time and memory proportional to its size. Names of elements and
attributes are compared without their prefixes, since a long namespace would be repeated in each name.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.io.workbook_values import (
    CODE_LENGTH,
    LONGEST_TEXT,
    MOST_SHOWN,
    NUMBER,
    ErrorText,
    WorkbookError,
    cell_text,
    column_number,
    iso_moment,
    moment_of_days,
    parse_number,
    text_too_long,
    whole_number,
)

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet in Excel
_DEEPEST = 100  # elements within each other; the parser stores each
_MOST_LISTED = 100_000  # sheets, relations to other parts or cell formats
_LONGEST_LISTED = 10_000_000  # characters of their attributes
_DIGITS = "0123456789"
_NEEDED = frozenset({"date1904", "formatCode", "Id", "id", "name", "numFmtId", "Target", "TargetMode", "Type"})

# The structure of each kind of part: pairs of an element and an element within it, from the root on. Other elements,
# such as those of extensions, do not count, nor does what they contain.
Structure = frozenset[tuple[str | None, str]]
RELATIONS: Structure = frozenset({("", "Relationships"), ("Relationships", "Relationship")})
BOOK: Structure = frozenset({
    ("", "workbook"), ("workbook", "workbookPr"), ("workbook", "sheets"), ("sheets", "sheet"),
})  # fmt: skip
STYLES: Structure = frozenset({
    ("", "styleSheet"), ("styleSheet", "numFmts"), ("numFmts", "numFmt"), ("styleSheet", "cellXfs"), ("cellXfs", "xf"),
    # a format that older programs do not know is written twice
    ("numFmts", "AlternateContent"), ("AlternateContent", "Choice"), ("Choice", "numFmt"),
    ("AlternateContent", "Fallback"), ("Fallback", "numFmt"),
})  # fmt: skip
STRINGS: Structure = frozenset({("", "sst"), ("sst", "si"), ("si", "t"), ("si", "r"), ("r", "t")})
SHEET: Structure = frozenset({
    ("", "worksheet"), ("worksheet", "sheetData"), ("sheetData", "row"), ("row", "c"),
    ("c", "f"), ("c", "v"), ("c", "is"), ("is", "t"), ("is", "r"), ("r", "t"),
})  # fmt: skip
_CLOSED = frozenset({"sheetData", "row", "c", "v", "t"})  # elements that contain no others, except for extensions


class PartReader:
    """What handles the elements of a part that belong to its structure; `n_elements` is the number of all elements."""

    def __init__(self, structure: Structure) -> None:
        self.n_elements = 0
        self._structure = structure
        # names of the open elements; of those that do not belong to the structure, None
        self._path: list[str | None] = [""]
        self._pieces: list[str] | None = None  # of the text that is being read
        self._length = 0  # of the text of the open cell or shared string, or of all listed attributes

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element, whose prefix does not matter."""
        path = self._path
        if ":" in name:
            name = name.rpartition(":")[2]
        belongs = (path[-1], name) in self._structure
        if not belongs and path[-1] in _CLOSED and name != "extLst":
            raise WorkbookError(f"its XML has an element {name[:MOST_SHOWN]!r} in {path[-1]!r}")
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
            if self._length > LONGEST_TEXT * CODE_LENGTH:
                raise text_too_long()

    def _take_text(self) -> str:
        """Return the text that was read."""
        pieces, self._pieces = self._pieces or (), None
        return "".join(pieces)


class Elements(PartReader):
    """Lists name and attributes of elements."""

    def __init__(self, structure: Structure) -> None:
        super().__init__(structure)
        self.elements: list[tuple[str, dict[str, str]]] = []

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """List an element."""
        attributes = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        self.elements.append((name, {key: attributes[key] for key in _NEEDED & attributes.keys()}))
        self._length += sum(map(len, self.elements[-1][1].values()))
        if len(self.elements) > _MOST_LISTED or self._length > _LONGEST_LISTED:
            raise WorkbookError("it has too many sheets, cell formats or relations, or too long ones")


class SharedStrings(PartReader):
    """The texts that cells refer to by number, None for blank ones; `n_characters` is their total length."""

    def __init__(self) -> None:
        super().__init__(STRINGS)
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
            text = cell_text("".join(self._runs))
            self.n_characters += len(text or "")
            self.texts.append(text)


class SheetCells(PartReader):
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
        super().__init__(SHEET)
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
        self._type, self._kind = "n", NUMBER
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
        row = whole_number(self._row_digits) if self._row_digits else self._row + 1
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
                self._numbers[letters] = column_number(letters)
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
        number = whole_number(style or "0")
        if number == 0 and not self._formats:
            return NUMBER
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
                number = parse_number(text)
                return number if self._kind == NUMBER else moment_of_days(number, self._kind, self._counts_from_1904)
            if kind == "s":
                return self._texts[whole_number(text)]
            if kind in ("str", "inlineStr"):
                return cell_text(text)
            if kind == "e":
                return ErrorText(cell_text(text) or "")
            if kind == "b":
                return {"0": False, "1": True, "false": False, "true": True}[text.strip().lower()]
            if kind == "d":  # written by few programs, and not by Excel itself unless it is asked to
                return iso_moment(text.strip())
        except WorkbookError:
            raise
        except (LookupError, ValueError):
            pass
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
        raise WorkbookError(f"the value {shown!r} in row {self._row} does not fit its type {kind[:MOST_SHOWN]!r}")
