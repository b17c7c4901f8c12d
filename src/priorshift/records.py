"""The rows of a result, each a dictionary with the same keys: as aligned text, as a data frame, as CSV."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from priorshift.errors import MissingExtraError

Record = Mapping[str, Any]
_LIBRARIES = ("pandas", "polars")
_FORMULA = frozenset("=+-@＝＋－＠")  # what spreadsheets begin a formula by, some after they have made it narrow
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write columns of one width: the first to the left, all others to the right.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        Their cells.

    Returns
    -------
    str
        A line for the header and for each row.
    """
    lines = [[" ".join(cell.splitlines()) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(map(str.rjust, line[1:], widths[1:]))]).rstrip() for line in lines
    )


def to_frame(records: Sequence[Record], library: str | None = None) -> Any:
    """Make a data frame.

    Parameters
    ----------
    records : sequence of mapping
        With the same keys.
    library : {"pandas", "polars"} or None
        None takes what is installed, pandas first.

    Returns
    -------
    data frame
    """
    columns = {name: [record[name] for record in records] for name in records[0]}
    for name in [library] if library else _LIBRARIES:
        try:
            module = __import__(name)
        except ImportError:
            continue
        return module.DataFrame(columns)
    raise MissingExtraError("a data frame needs pandas or polars; install one of them, or use to_dict().")


def to_csv(records: Sequence[Record]) -> str:
    """Write comma separated text, in which no cell is a formula; a number that does not exist is an empty cell.

    Parameters
    ----------
    records : sequence of mapping
        With the same keys.

    Returns
    -------
    str
        With a header. Text that a spreadsheet would take for a formula has an apostrophe before it (see
        :func:`without_formula`).
    """
    rows = [records[0], *(record.values() for record in records)]
    return "".join(csv_line([without_formula(_cell(value)) for value in row]) for row in rows)


def csv_line(cells: Sequence[str], separator: str = ",", end: str = "\n") -> str:
    """Write a line of separated text, of which every reader makes the same cells again.

    Parameters
    ----------
    cells : sequence of str
        Any text.
    separator : str
        Between them.
    end : str
        Of the line.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.records import csv_line
    >>> print(csv_line(["a,b", 'say "no" to it', "c"], end=""))
    "a,b","say ""no"" to it",c
    """
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerow(cells)  # both of which it then quotes
    return text.getvalue()[:-2] + end


def is_formula(cell: str) -> bool:
    """Tell whether a spreadsheet may take a cell for a formula and compute it.

    Parameters
    ----------
    cell : str
        Its text.

    Returns
    -------
    bool
        Whether it begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line, also after spaces and characters
        that are not seen, and is not a number.
    """
    if not cell or cell[0].isalnum() or _NUMBER.fullmatch(cell):
        return False
    if cell[0] in "\t\r\n":
        return True
    seen = next((c for c in cell if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf")), "")
    return seen in _FORMULA and not _NUMBER.fullmatch(cell.strip())


def without_formula(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula.

    Names of targets and levels come from files that others may have filled in, and ``=HYPERLINK(…)`` in a table that we
    compose would run where it is opened. The apostrophe is what a person would type there: it says that text follows.

    Parameters
    ----------
    cell : str
        Any text.

    Returns
    -------
    str

    Examples
    --------
    >>> from priorshift.records import without_formula
    >>> [without_formula(cell) for cell in ("=cmd()", "-0.5", "-north", "2024-01")]
    ["'=cmd()", '-0.5', "'-north", '2024-01']
    """
    return f"'{cell}" if is_formula(cell) else cell


def plain(record: Record) -> dict[str, Any]:
    """Give numbers and text alone, ready for JSON.

    Parameters
    ----------
    record : mapping
        Of numbers and text.

    Returns
    -------
    dict
        With None for a number that does not exist.
    """
    return {name: None if _is_missing(value) else value for name, value in record.items()}


def _cell(value: Any) -> str:
    if _is_missing(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not np.isfinite(value))
