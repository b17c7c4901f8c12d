"""What the first line of CSV text tells: the separator, the names of the columns, and where the rows begin."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from priorshift.errors import InputError
from priorshift.input.cells import Column, is_number


@dataclass(frozen=True)
class Layout:
    """What the first line tells, and what is wanted."""

    name: str
    separator: str
    header: list[str] | None
    width: int
    drop: set[str]
    text: set[str]
    before: int  # lines before the rows
    mixed: bool
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
    aside: Sequence[str],
    drop: Sequence[str],
    check: Callable[[list[str]], None],
    optional: Sequence[str] = (),
    *,
    mixed: bool,
) -> tuple[Layout, list[str], int]:
    """What the first line tells, its cells, and where the rows begin; see `read_csv`."""
    first, before = first_line(file)
    start = file.tell()
    separator = separator_of(first, next(filter(str.strip, iter(file.readline, "")), ""))
    file.seek(start)
    lines = csv.reader(_with(first, file), delimiter=separator, skipinitialspace=True)
    cells = [cell.strip() for cell in next(lines)]
    before += lines.line_num - 1
    header = None if all(is_number(cell) for cell in cells) else cells
    if header is None and aside:
        raise InputError(f"{name} has no header, so no column {aside[0]!r}; add a first line with names.")
    if header is not None:
        check(header)
    start, before = (0, 0) if header is None else (file.tell(), before)
    return Layout(name, separator, header, len(cells), set(drop), {*aside, *optional}, before, mixed), cells, start


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
