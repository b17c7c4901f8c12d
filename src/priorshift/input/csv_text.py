"""CSV files without a data-frame library: fast where all is numbers, exact about what is wrong where not.

One dialect for reading and writing: comma, semicolon or tab separated text in UTF-8, blank lines passed over.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError

_WORDS = {"true": 1.0, "false": 0.0}
Column = NDArray[np.float64] | list[str]


def read_csv(
    path: Path,
    name: str,
    aside: Sequence[str],
    drop: Sequence[str],
    check: Callable[[list[str]], None],
    optional: Sequence[str] = (),
) -> tuple[list[str] | None, list[str] | None, list[Column]]:
    """Header, names of the columns that were read, and those columns.

    The file is comma, semicolon or tab separated text in UTF-8. Columns in `aside`, and those in `optional` that are
    there, come as lists of text, those in `drop` not at all, all others as numbers. A first line of numbers alone means
    that there is no header. `check` is called with the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first, line = file.readline(), 1
            while first and not first.strip():
                first, line = file.readline(), line + 1
            start = file.tell()
            separator = _separator(first, next(filter(str.strip, iter(file.readline, "")), ""))
            file.seek(start)
            cells = [cell.strip() for cell in next(csv.reader([first], delimiter=separator, skipinitialspace=True))]
            header = None if all(_is_float(cell) for cell in cells) else cells
            if len(cells) > 1 and cells == [str(k) for k in range(len(cells))]:
                raise InputError(
                    f"{name} begins with 0, 1, …, which may be a header of numbers or a row; give the columns "
                    "names that are not numbers."
                )
            wanted = list(range(len(cells)))
            if header is not None:
                check(header)
                wanted = [k for k in wanted if header[k] not in drop]
            elif aside:
                raise InputError(f"{name} has no header, so no column {aside[0]!r}; add a first line with names.")
            else:
                line = 0
            start = 0 if header is None else file.tell()
            file.seek(start)
            names = None if header is None else [header[k] for k in wanted]
            as_text = {*aside, *optional}
            if not as_text & set(names or []):
                try:
                    with warnings.catch_warnings(action="ignore"):  # loadtxt warns of a file without rows
                        values = np.loadtxt(file, delimiter=separator, quotechar='"', comments=None, ndmin=2)
                    if values.shape[1] == len(cells) and len(values):
                        return header, names, [values[:, k] for k in wanted]
                except ValueError as error:
                    if isinstance(error, UnicodeDecodeError):
                        raise
                file.seek(start)  # read again, cell by cell, to say what is wrong and where
            reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
            labels = {k: repr(header[k]) if header else str(k) for k in wanted}
            text = [header is not None and header[k] in as_text for k in wanted]
            return header, names, _cell_by_cell(reader, name, line, len(cells), labels, text)
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save it as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"{name} is not a CSV file ({error}); save it as comma separated text.") from None


def _cell_by_cell(
    reader: Any, name: str, before: int, width: int, labels: dict[int, str], text: list[bool]
) -> list[Column]:
    """The columns by their positions and labels, some as text; `before` lines were read, of `width` cells."""
    columns: list[list[Any]] = [[] for _ in labels]
    for row in reader:
        line = before + reader.line_num
        if _is_blank(row):
            continue
        if len(row) != width:
            raise InputError(
                f"{name} has {len(row)} cells in line {line}, but {width} in its first line; "
                "mend the line (a missing cell, or a separator inside a value?)."
            )
        for column, (k, label), as_text in zip(columns, labels.items(), text, strict=True):
            cell = row[k].strip()
            number: Any = cell if as_text else _number(cell)
            if number is None:
                where = f"line {line}, column {label}"
                if not cell:
                    raise InputError(f"{name} has an empty cell in {where}; fill it in or leave the row out.")
                raise InputError(
                    f"{name} holds {cell!r} in {where}, but numbers are expected; "
                    "encode it as a number or drop the column."
                )
            column.append(number)
    if columns and not columns[0]:
        raise InputError(f"{name} has a header but no rows; pass a file with at least two rows.")
    return [c if as_text else np.array(c, dtype=np.float64) for c, as_text in zip(columns, text, strict=True)]


def add_columns(path: Path, output: Path, columns: dict[str, Sequence[str]]) -> None:
    """Write a copy of the file with more columns: a cell for each of its rows, in its dialect."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = (line for line in file if line.strip())
        separator = _separator(next(lines), next(lines, ""))
        file.seek(0)
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        rows = [row for row in reader if not _is_blank(row)]
    added = list(zip(*columns.values(), strict=True))
    header = [(*columns,)] * (len(rows) - len(added))
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerows([*row, *more] for row, more in zip(rows, [*header, *added], strict=True))


def _separator(first: str, second: str) -> str:
    """The one that stands most often in two lines, outside quotes."""
    bare = [re.sub('"[^"]*"', "", line) for line in (first, second) if line.strip()]
    return max(",;\t", key=lambda mark: min(line.count(mark) for line in bare))


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


def _is_float(cell: str) -> bool:
    return _number(cell) is not None and cell.lower() not in _WORDS


def _number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return _WORDS.get(cell.lower())
