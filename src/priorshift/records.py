"""The rows of a result, each a dictionary with the same keys: as aligned text, as a data frame, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from priorshift.errors import MissingExtraError

Record = Mapping[str, Any]
_LIBRARIES = ("pandas", "polars")


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
    lines = [list(header), *map(list, rows)]
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
    """Write comma separated text; a number that does not exist is an empty cell.

    Parameters
    ----------
    records : sequence of mapping
        With the same keys.

    Returns
    -------
    str
        With a header.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(records[0])
    writer.writerows([_cell(value) for value in record.values()] for record in records)
    return text.getvalue()


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
