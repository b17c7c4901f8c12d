"""CSV text that is read in batches: block by block, in memory that does not grow with the file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from priorshift.errors import InputError
from priorshift.input.cells import Column
from priorshift.input.csv_layout import Layout, read_layout, refuse_header_of_numbers
from priorshift.input.csv_text import Source, decimal_mark, is_blank, open_text, read_columns_of, refusing
from priorshift.input.joined import AnyTable, length
from priorshift.input.mixed import of_text, refuse_infinity
from priorshift.input.parts import Skip, Wanted, at_row
from priorshift.input.tables import Table, check_columns, check_finite

_LONGEST_CELL = 1000  # lines, after which a quotation mark is taken for one of inches


@dataclass(frozen=True)
class Block:
    """Some lines of a file, from the beginning of a row to the end of one, and how they are read."""

    lines: list[str]
    layout: Layout  # which knows how many lines come before

    def records(self) -> list[str]:
        """The text of each row, without blank lines."""
        if not any('"' in line for line in self.lines):
            return [_ended(line) for line in self.lines if line.strip() or self.layout.separator in line]
        held: list[str] = []

        def feed() -> Iterator[str]:
            for line in self.lines:
                held.append(line)
                yield line

        made = []
        for row in csv.reader(feed(), delimiter=self.layout.separator, skipinitialspace=True):
            if not is_blank(row):
                made.append(_ended("".join(held)))
            held.clear()
        return made


@dataclass
class TextPart:
    """A file of CSV text, plain or gzipped."""

    source: Source
    name: str
    wanted: Wanted
    rows: int | None = field(default=None, init=False)  # once it was read to its end
    can_repeat: bool = field(default=True, init=False)

    @property
    def file(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        done = 0
        for block in self._blocks():
            rows = len(block.records()) if skip.rows else 0
            if not rows or not skip.whole(rows):
                table = self._table("".join(block.lines), block.layout, at_row(self.name, done))
                rows = length(table)
                yield skip.rest_of(table)
            done += rows
        self.rows = done

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        """The rows with the smallest of as many random numbers as there are rows, in one pass."""
        keys, kept, done = np.empty(0), np.empty(0, dtype=object), 0
        layout = None
        for block in self._blocks():
            records = np.array(block.records(), dtype=object)
            keys, kept = np.append(keys, rng.random(len(records))), np.append(kept, records)
            if len(keys) > count:
                smallest = np.sort(np.argpartition(keys, count)[:count]) if count else np.empty(0, dtype=np.intp)
                keys, kept = keys[smallest], kept[smallest]
            done, layout = done + len(records), layout or block.layout
        self.rows = done
        if layout is None or not len(kept):
            return None, done
        try:
            return self._table("".join(kept), layout, self.name), done
        except InputError:
            for _ in self.batches(Skip()):  # says in which line it is
                pass
            raise

    def _blocks(self) -> Iterator[Block]:
        """The same at every time, whatever comes of them."""
        with refusing(self.name), open_text(self.source) as file:
            layout, first, start = read_layout(
                file,
                self.name,
                self.wanted.aside,
                self.wanted.drop,
                lambda found: check_columns(self.name, found, self.wanted.aside),
                self.wanted.optional,
                mixed=True,
            )
            file.seek(start)
            rows, first_block = self.wanted.most_rows(layout.width), True
            while lines := list(islice(file, rows)):
                marks = sum(line.count('"') for line in lines)
                while marks % 2 and len(lines) < rows + _LONGEST_CELL and (line := file.readline()):
                    lines.append(line)
                    marks += line.count('"')
                blank = not any(line.strip() or layout.separator in line for line in lines)
                if first_block and not blank:
                    text, first_block = "".join(lines), False
                    layout = replace(layout, mark=decimal_mark(text, layout))
                    if layout.header is None:
                        refuse_header_of_numbers(self.name, first, _columns(text, layout))
                if not blank:
                    yield Block(lines, layout)
                layout = replace(layout, before=layout.before + len(lines))

    def _table(self, text: str, layout: Layout, name: str) -> AnyTable:
        with refusing(self.name):
            columns = _columns(text, layout)
        apart = {*self.wanted.aside, *self.wanted.optional}
        mixed = of_text(name, layout.header, layout.names, columns, apart, self.wanted.drop)
        if any(cells.dtype == object or np.isnan(cells).any() for cells in mixed.cells):
            refuse_infinity(mixed)
            return mixed
        values = np.column_stack(mixed.cells) if mixed.cells else np.empty((len(columns[0]), 0))
        table = Table(name, values, mixed.columns, mixed.aside, mixed.dropped)
        check_finite(table)
        return table


def _columns(text: str, layout: Layout) -> list[Column]:
    return read_columns_of(io.StringIO(text, newline=""), 0, layout)


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else f"{line}\n"
