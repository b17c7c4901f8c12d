"""Samples that are read in chunks, in memory that does not grow with them: files, tables, streams of tables."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import IOBase
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
from priorshift.io.files import PARQUET, Piped, check_text, is_pipe, kind, read_pipe, text_or_parquet
from priorshift.io.readers import frame_of, from_columns, iter_frames, read_table, row_groups
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


_SPREAD = 256  # files, or pieces of files, that a sample of rows is drawn from


class Chunks:
    """Rows of one sample, batch by batch: of files, tables in memory, or a stream of tables.

    Attributes
    ----------
    name : str
        What messages call the sample.
    rows : int or None
        How many there are, where that is known before they are read.
    can_repeat : bool
        Whether they can be read more than once; a generator cannot.

    Examples
    --------
    >>> import numpy as np
    >>> from priorshift.io.chunks import Chunks
    >>> batches = Chunks.of(np.arange(10.0).reshape(5, 2), "target", rows_at_a_time=2)
    >>> [batch.values.tolist() for batch in batches.after(3)]
    [[[6.0, 7.0]], [[8.0, 9.0]]]
    """

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name = name
        self.parts = parts

    @classmethod
    def of(
        cls,
        source: Any,
        name: str,
        *,
        extra: Sequence[str] = (),
        drop: Sequence[str] = (),
        optional: Sequence[str] = (),
        rows_at_a_time: int = 65_536,
    ) -> Chunks:
        """Read a sample in batches.

        Parameters
        ----------
        source : path, list of paths, folder of Parquet files, table, or iterable of tables
            A table is whatever :func:`priorshift.io.mixed_tables.read_columns` reads.
        name : str
            What messages call it.
        aside : sequence of str
            Columns that are not features; they stand in `extra` of each batch.
        drop : sequence of str
            Columns to leave out, where they are there.
        optional : sequence of str
            Columns to set aside, where they are there.
        rows_at_a_time : int
            Of a batch, at most; a table with many columns has fewer.

        Returns
        -------
        Batches
        """
        if isinstance(source, Chunks):
            return source
        selection = ColumnSelection(tuple(extra), tuple(drop), tuple(optional), rows_at_a_time)
        return cls(name, _parts_of(source, name, selection))

    @property
    def rows(self) -> int | None:
        known = [part.rows for part in self.parts]
        return None if any(rows is None for rows in known) else sum(rows for rows in known if rows is not None)

    @property
    def can_repeat(self) -> bool:
        return all(part.can_repeat for part in self.parts)

    @property
    def files(self) -> list[Path]:
        """The files that it is read from, in order; tables in memory and pipes have none."""
        return [part.file for part in self.parts if part.file is not None]

    def __iter__(self) -> Iterator[Table]:
        empty = True
        for batch in self.after(0):
            empty = False
            yield batch
        if empty:
            raise self._empty()

    def after(self, rows: int) -> Iterator[Table]:
        """What comes after the first rows, to go on with work that was interrupted.

        Where so many rows end a batch, the batches that follow are those that followed it before. What is passed over
        is not read where the files allow it.

        Parameters
        ----------
        rows : int
            That are passed over.

        Yields
        ------
        Table
        """
        skip = Skip(rows)
        for part in self.parts:
            yield from part.batches(skip)

    def sample(self, count: int, rng: np.random.Generator) -> Table:
        """Draw rows that stand for all of them, wherever they are: files are often sorted by time or by class.

        Of many files, or many pieces of a Parquet file, some are read, evenly spread. Of an iterator it is the first
        tables, which are held until they are asked for.

        Parameters
        ----------
        count : int
            How many rows at most.
        rng : numpy.random.Generator
            That says which.

        Returns
        -------
        Table
            In the order in which they stand.
        """
        chosen = evenly(len(self.parts), _SPREAD, rng)
        spread = max(1, _SPREAD // max(1, len(chosen)))
        table, _ = draw_of_all((self.parts[k] for k in chosen), count, rng, spread)
        if table is None:
            raise self._empty()
        return table

    def first(self) -> Table:
        """Some rows that come first, by which its columns are known; those of an iterator are held until asked for.

        Returns
        -------
        Table
        """
        return next(iter(self)) if self.can_repeat else self.sample(1, np.random.default_rng(0))

    def _empty(self) -> InputError:
        return InputError(f"{self.name} has no rows; pass a sample with at least two.")


def _parts_of(source: Any, name: str, selection: ColumnSelection) -> Sequence[Part]:
    """What a sample is made of."""
    if isinstance(source, Chunks):
        return source.parts
    if isinstance(source, Piped) or is_pipe(source):
        source = source if isinstance(source, Piped) else read_pipe(source, name)
        said = f"{name} ({source})"
        return [TextPart(check_text(source.content, said), said, selection)]
    if isinstance(source, (str, Path)):
        return _of_path(Path(source), name, selection)
    if isinstance(source, (list, tuple)) and source and _is_table(source[0]):
        refuse_twice(source, name)
        return [part for one in source for part in _parts_of(one, name, selection)]
    if isinstance(source, Table) or (isinstance(source, np.ndarray) and source.ndim == 2):
        return [TablePart(source, name, selection)]
    if (frame := frame_of(source, name)) is not None:
        return [TablePart(frame, name, selection)]
    if _is_stream(source):
        return [StreamPart(source, name, selection, _parts_of)]
    return [TablePart(read_chunk(source, name, selection), name, selection)]


def _of_path(path: Path, name: str, selection: ColumnSelection) -> Sequence[Part]:
    said = f"{name} ({path})"
    if os.path.isdir(path):  # which asks without complaint, also of what is no path
        files = sorted(file for file in path.iterdir() if kind(file) == PARQUET and file.name[0] not in "._")
        if not files:
            raise InputError(
                f"{said} is a folder without Parquet files; pass a folder that has some (not in folders below it), or "
                "a list of files."
            )
        return [part for file in files for part in _of_path(file, name, selection)]
    text = text_or_parquet(path, said)
    return [ParquetPart(path, said, selection) if text is None else TextPart(text, said, selection)]


def _is_table(source: Any) -> bool:
    """Whether it is a table or names one, rather than a row of one."""
    if isinstance(source, (str, Path, Piped, Table, Chunks)):
        return True
    return (isinstance(source, np.ndarray) and source.ndim == 2) or frame_of(source, "a table") is not None


def refuse_twice(sources: Sequence[Any], name: str) -> None:
    """A file that is named twice would count double."""
    paths = Counter(os.path.realpath(source) for source in sources if isinstance(source, (str, Path)))
    for path, times in paths.items():
        if times > 1:
            raise InputError(f"{name} names {path} more than once, so its rows would count twice; name each file once.")


def _is_stream(source: Any) -> bool:
    """Whether it gives tables one after the other; array-likes and lists of rows are tables themselves."""
    array_like = hasattr(source, "__array__") or hasattr(source, "__dlpack__") or hasattr(source, "toarray")
    return (
        isinstance(source, Iterable)
        and not isinstance(source, (list, tuple, dict, set, bytes, IOBase))
        and not array_like
    )
