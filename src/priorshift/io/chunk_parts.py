"""Tables of one sample, one below the other.

Parts of a sample that is read in batches: a file, a table in memory, a stream; each is read from any row on.

CSV text that is read in batches: block by block, in memory that does not grow with the file.

A Parquet file that is read in batches.

Tables that come one after the other: a generator, or anything that can be iterated over."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.errors import InputError
from priorshift.io.csv_text import (
    Column,
    CsvLayout,
    Source,
    decimal_mark,
    is_blank,
    open_text,
    read_columns_of,
    read_layout,
    refuse_header_of_numbers,
    refusing,
)
from priorshift.io.parquet import iter_frames, row_groups
from priorshift.io.readers import from_columns, read_table
from priorshift.io.tables import ColumnSelection, Table, check_columns, join_tables


def read_chunk(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Read a table that is in memory already, as a chunk, which keeps no reference to what the user passed."""
    return replace(read_table(source, name, selection), native=None)


@dataclass
class Skip:
    """How many rows are still to be passed over."""

    rows: int = 0

    def whole(self, rows: int) -> bool:
        """Whether so many rows are passed over together."""
        if self.rows < rows:
            return False
        self.rows -= rows
        return True

    def rest_of(self, table: Table) -> Table:
        """A table without the rows that are passed over, which are not all of it."""
        begin, self.rows = self.rows, 0
        return table.take(slice(begin, None)) if begin else table


class Part(Protocol):
    """Rows that are read in batches."""

    @property
    def rows(self) -> int | None:
        """How many there are, where that is known before they are read."""

    @property
    def can_repeat(self) -> bool:
        """Whether it can be read more than once."""

    @property
    def file(self) -> Path | None:
        """The file that it is, if it is one."""

    def batches(self, skip: Skip) -> Iterator[Table]:
        """Its rows in order, without those that are passed over."""

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        """So many rows at random, or all there are, and how many they stand for.

        Where a part is made of pieces of known length, at most `spread` of them are read, evenly spread over it.
        """


@dataclass
class TablePart:
    """An array or a frame in memory, read slice by slice, so that it is never copied as a whole."""

    source: Any  # with a length, and rows that can be picked
    name: str
    selection: ColumnSelection
    can_repeat: bool = field(default=True, init=False)
    file: Path | None = field(default=None, init=False)

    @property
    def rows(self) -> int:
        return len(self.source)

    def batches(self, skip: Skip) -> Iterator[Table]:
        if skip.whole(self.rows):
            return
        size, done = self.selection.chunk_rows(_width(self.source)), 0
        while done < self.rows:
            here = min(size, self.rows - done)
            if not skip.whole(here):
                yield skip.rest_of(self._read(slice(done, done + here), at_row(self.name, done)))
            done += here

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        if not min(count, self.rows):
            return None, self.rows
        return self._read(drawn(self.rows, count, rng), self.name), self.rows

    def _read(self, rows: slice | Index, name: str) -> Table:
        if isinstance(self.source, Table):
            return self.source.take(rows, name)
        if isinstance(self.source, np.ndarray):
            return read_chunk(self.source[rows], name, self.selection)
        frame = nw.from_native(self.source, eager_only=True)
        return read_chunk(nw.to_native(frame[rows]), name, self.selection)


def at_row(name: str, row: int) -> str:
    """What messages call a batch, whose own rows count from 0."""
    return f"{name} from row {row} on" if row else name


def drawn(rows: int, count: int, rng: np.random.Generator) -> Index:
    """At most so many numbers of rows, in order."""
    if count >= rows:
        return np.arange(rows)
    return np.sort(rng.choice(rows, count, replace=False, shuffle=False))


def evenly(pieces: int, most: int, rng: np.random.Generator) -> Sequence[int]:
    """At most so many of some pieces, one at random out of each of as many equal stretches."""
    if pieces <= most:
        return range(pieces)
    return [int((k + rng.random()) * pieces / most) for k in range(most)]


def draw_of_all(parts: Iterable[Part], count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
    """At most so many rows of several parts, of each about in proportion to its rows; and how many rows all have.

    One pass: what was drawn so far stands for all parts so far, and some of it gives way to the next one's.
    """
    table: Table | None = None
    rows = kept = 0
    for part in parts:
        more, of = (None, part.rows) if part.rows is not None else part.draw(count, rng, spread)
        if not of:
            continue
        wanted = min(count, rows + of)
        share = int(np.clip(rng.binomial(wanted, of / (rows + of)), wanted - kept, min(wanted, of)))
        if more is None:
            more, _ = part.draw(share, rng, spread)
        pieces = [(table, wanted - share), (more, share)]
        some = [t.take(drawn(len(t), k, rng)) for t, k in pieces if t is not None and k]
        table = join_tables(some, some[0].name) if some else None
        rows, kept = rows + of, wanted
    return table, rows


def _width(source: Any) -> int:
    if isinstance(source, Table):
        return source.width
    return int(source.shape[1]) if len(source.shape) > 1 else 1


_LONGEST_CELL = 1000  # lines, after which a quotation mark is taken for one of inches


@dataclass(frozen=True)
class Block:
    """Some lines of a file, from the beginning of a row to the end of one, and how they are read."""

    lines: list[str]
    layout: CsvLayout  # which knows how many lines come before

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
    selection: ColumnSelection
    rows: int | None = field(default=None, init=False)  # once it was read to its end
    can_repeat: bool = field(default=True, init=False)

    @property
    def file(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None

    def batches(self, skip: Skip) -> Iterator[Table]:
        done = 0
        for block in self._blocks():
            rows = len(block.records()) if skip.rows else 0
            if not rows or not skip.whole(rows):
                table = self._table("".join(block.lines), block.layout, at_row(self.name, done))
                rows = len(table)
                yield skip.rest_of(table)
            done += rows
        self.rows = done

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
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
            layout, first, start = read_layout(file, self.name, self.selection)
            file.seek(start)
            rows, first_block = self.selection.chunk_rows(layout.width), True
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

    def _table(self, text: str, layout: CsvLayout, name: str) -> Table:
        with refusing(self.name):
            columns = _columns(text, layout)
        return from_columns(name, layout.header, layout.names, columns, self.selection)


def _columns(text: str, layout: CsvLayout) -> list[Column]:
    return read_columns_of(io.StringIO(text, newline=""), 0, layout)


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else f"{line}\n"


@dataclass
class ParquetPart:
    """A file, whose row groups are read batch by batch, or passed over unread."""

    file: Path
    name: str
    selection: ColumnSelection
    can_repeat: bool = field(default=True, init=False)

    @cached_property
    def _outline(self) -> tuple[list[str], list[int]]:
        columns, groups = row_groups(self.file, self.name)
        check_columns(self.name, columns, self.selection.extra)
        return columns, groups

    @property
    def rows(self) -> int:
        return sum(self._outline[1])

    def batches(self, skip: Skip) -> Iterator[Table]:
        groups, done = self._outline[1], 0
        first = 0
        while first < len(groups) and skip.whole(groups[first]):
            done, first = done + groups[first], first + 1
        for frame in self._frames(range(first, len(groups))):
            if not skip.whole(len(frame)):
                yield skip.rest_of(self._read(frame, done))
            done += len(frame)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        import pyarrow

        groups = evenly(len(self._outline[1]), spread, rng)
        wanted = drawn(sum(self._outline[1][group] for group in groups), count, rng)
        if not len(wanted):
            return None, self.rows
        pieces, done = [], 0
        for frame in self._frames(groups):
            begin, end = np.searchsorted(wanted, [done, done + len(frame)])
            if end > begin:
                pieces.append(frame.take(wanted[begin:end] - done))
            done += len(frame)
        return self._read(pyarrow.concat_tables(pieces), 0), self.rows

    def _frames(self, groups: Sequence[int]) -> Iterator[Any]:
        columns = [column for column in self._outline[0] if column not in self.selection.drop]
        return iter_frames(self.file, self.name, columns, groups, self.selection.chunk_rows(len(columns)))

    def _read(self, frame: Any, row: int) -> Table:
        table = read_chunk(frame, at_row(self.name, row), self.selection)
        return replace(table, dropped=tuple(c for c in self._outline[0] if c in self.selection.drop))


@dataclass
class StreamPart:
    """Tables of any kind, each of which is a part of its own; an iterator can be read once."""

    source: Iterable[Any]
    name: str
    selection: ColumnSelection
    parts_of: Callable[[Any, str, ColumnSelection], Sequence[Part]]
    rows: int | None = field(default=None, init=False)
    file: Path | None = field(default=None, init=False)
    _held: list[Table] = field(default_factory=list, init=False)  # read of an iterator before it was asked for
    _once: Iterator[Table] | None = field(default=None, init=False)  # what is left of an iterator
    _begun: bool = field(default=False, init=False)

    @property
    def can_repeat(self) -> bool:
        return not isinstance(self.source, Iterator)

    def batches(self, skip: Skip) -> Iterator[Table]:
        for table in self._tables():
            if not skip.whole(len(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        """Of an iterator, rows of its first tables, which are held until they are asked for; else of all."""
        if self.can_repeat:
            return draw_of_all((TablePart(t, t.name, self.selection) for t in self._tables()), count, rng, spread)
        self._refuse_again()
        while sum(map(len, self._held)) < count and (table := next(self._rest(), None)) is not None:
            self._held.append(table)
        if not self._held:
            return None, 0
        first = join_tables(self._held, self.name)
        return TablePart(first, self.name, self.selection).draw(count, rng, spread)

    def _tables(self) -> Iterator[Table]:
        if self.can_repeat:
            yield from self._read(self.source)
            return
        self._refuse_again()
        self._begun = True
        while self._held:
            yield self._held.pop(0)
        yield from self._rest()

    def _rest(self) -> Iterator[Table]:
        self._once = self._once or self._read(self.source)
        return self._once

    def _read(self, tables: Iterable[Any]) -> Iterator[Table]:
        for number, table in enumerate(tables):
            if _is_row(table):
                raise InputError(
                    f"{self.name} is an iterator, which can be read only once; pass list({self.name}) for its rows, or "
                    "an iterator of tables, which are read one after the other."
                )
            name = f"table {number} of {self.name} (counting from 0)"
            for part in self.parts_of(table, name, self.selection):
                yield from part.batches(Skip())

    def _refuse_again(self) -> None:
        if self._begun:
            raise InputError(
                f"{self.name} comes from an iterator that was read already, and it can be read only once; make a new "
                "one, or pass a list or the paths of files."
            )


def _is_row(table: Any) -> bool:
    """Whether it is a row rather than a table."""
    if isinstance(table, np.ndarray):
        return table.ndim == 1
    return isinstance(table, (list, tuple)) and bool(table) and np.isscalar(table[0]) and not isinstance(table[0], str)
