"""Write the rows of a result as aligned text, HTML, a data frame, CSV or plain values for JSON."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from priorshift.errors import MissingExtraError

Record = Mapping[str, Any]
_LIBRARIES = ("pandas", "polars")
_FORMULA_STARTS = frozenset("=+-@＝＋－＠")  # some spreadsheets convert the full-width ones
_WHITESPACE_STARTS = frozenset("\t\r\n")
_SEPARATOR = re.compile(r"([,;\t\r\n])")  # where a spreadsheet may split a line
_HARMLESS = re.compile(r"(?:\w[^,;\t\r\n]*)?")  # most cells, which need not be looked at more closely
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def align_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as text, with the first column aligned left and all others right."""
    table = [[" ".join(cell.splitlines()) for cell in row] for row in (header, *rows)]
    first_width, *widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *others in table:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths, strict=True)]
        lines.append("  ".join([first.ljust(first_width), *aligned]).rstrip())
    return "\n".join(lines)


def to_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as HTML for a notebook, with the first column as row headers; an empty header has no row."""
    lines = ["<table>"]
    if any(header):
        lines.append("<thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in header) + "</tr></thead>")
    lines.append("<tbody>")
    for first, *others in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        lines.append(f"<tr><th>{escape(first)}</th>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def text_to_html(text: str) -> str:
    """Format text as HTML for a notebook: a paragraph for each block, with its line breaks."""
    blocks = [escape(block).replace("\n", "<br>") for block in text.split("\n\n")]
    return "\n".join(f"<p>{block}</p>" for block in blocks)


def to_frame(records: Sequence[Record], library: str | None = None) -> Any:
    """Build a data frame from records with the same keys, by default with pandas if it is installed, else polars."""
    columns = {name: [record[name] for record in records] for name in records[0]}
    for name in [library] if library else _LIBRARIES:
        try:
            module = __import__(name)
        except ImportError:
            continue
        return module.DataFrame(columns)
    raise MissingExtraError("a data frame needs pandas or polars; install one of them, or use to_dict().")


def to_csv(records: Sequence[Record], separator: str = ",", decimal: str = ".") -> str:
    """Format records with the same keys as CSV text with a header; missing numbers are empty, formulas are escaped."""
    header, rows = list(records[0]), [list(record.values()) for record in records]
    lines = [[escape_formula(_cell(value, decimal)) for value in row] for row in (header, *rows)]
    return "".join(csv_line(line, separator) for line in lines)


def csv_line(cells: Sequence[str], separator: str = ",", end: str = "\n") -> str:
    """Format a line of CSV text, quoted so that every reader finds the same cells."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerow(cells)  # so it quotes cells with \r or \n
    return text.getvalue().removesuffix("\r\n") + end


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet may compute a cell, or what follows a separator in it, as a formula."""
    return escape_formula(cell) != cell


def escape_formula(cell: str) -> str:
    """Put an apostrophe before text that a spreadsheet would compute as a formula, as people do by hand.

    Names of targets and levels come from files of others: =HYPERLINK(…) must not run where our table is opened. A
    spreadsheet may split lines at another separator than ours, and then also within quotes, so text that follows a
    separator or a line break is treated like a cell. It may be joined with the next cell, so there also a number is.
    """
    if _HARMLESS.fullmatch(cell) or _NUMBER.fullmatch(cell):
        return cell
    first, *pieces = _SEPARATOR.split(cell)  # the text before the first separator, then separators and texts in turn
    for k in range(1, len(pieces), 2):
        if _first_visible(pieces[k], ignored='"') in _FORMULA_STARTS:
            pieces[k] = f"'{pieces[k]}"
    starts_formula = cell[:1] in _WHITESPACE_STARTS or _first_visible(cell) in _FORMULA_STARTS
    prefix = "'" if starts_formula and not _NUMBER.fullmatch(cell.strip()) else ""
    return prefix + first + "".join(pieces)


def _first_visible(text: str, ignored: str = "") -> str:
    """Return the first character that is not a space, invisible or `ignored`; empty if there is none."""
    for character in text:
        # Cc and Cf are control and format characters, which are invisible
        is_visible = not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf")
        if is_visible and character not in ignored:
            return character
    return ""


def to_plain(value: Any) -> Any:
    """Convert to Python's own numbers, text, lists and dictionaries for JSON; missing numbers become None."""
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def _cell(value: Any, decimal: str) -> str:
    """Format a value as the text of a cell: empty if missing, floats with six digits and this decimal mark."""
    value = to_plain(value)
    if value is None:
        return ""
    return f"{value:.6g}".replace(".", decimal) if isinstance(value, float) else str(value)
