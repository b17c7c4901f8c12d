"""Samples that are read in chunks of rows, in memory that does not grow with them: files, tables, streams of tables.

A sample (:class:`Chunks`) consists of parts (:class:`Part`), such as files, and a part yields chunks (:class:`Table`).
"""

from __future__ import annotations

import contextlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.errors import InputError
from priorshift.io import csv_text
from priorshift.io.csv_text import CsvLayout, Source, explain_errors
from priorshift.io.files import PARQUET, WORKBOOKS, Piped, check_text, kind, text_or_parquet
from priorshift.io.readers import damaged_parquet, frame_of, from_columns, iter_frames, read_table, row_groups
from priorshift.io.tables import ColumnSelection, Table, check_columns, join_tables

Drawn = tuple[Table | None, int]  # a sample of rows, and the number of rows that it is drawn from
_SPREAD = 256  # files, or row groups of files, that a random sample of rows is drawn from


def read_chunk(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Read an array or a frame as a chunk, which keeps no reference to what the user passed."""
    return replace(read_table(source, name, selection), native=None)


@dataclass
class Skip:
    """Counter of the rows that are still to be skipped when a sample is read from its middle on."""

    rows: int = 0  # still to be skipped

    def consume(self, rows: int) -> bool:
        """Count the next `rows` rows as skipped if all of them are to be skipped; return whether."""
        if self.rows < rows:
            return False
        self.rows -= rows
        return True

    def rest_of(self, table: Table) -> Table:
        """Return a table without its first rows that are still to be skipped; some rows must remain."""
        begin, self.rows = self.rows, 0
        return table.take(slice(begin, None)) if begin else table


class Part(ABC):
    """A part of a sample, such as a file, whose rows are read in chunks."""

    can_repeat = True  # whether it can be read more than once

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known before they are read."""
        return None

    @abstractmethod
    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the rows in order, without those to be skipped, which are counted down in `skip`."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator, spread: int) -> Drawn:
        """Draw at most `count` random rows, from at most `spread` row groups of a Parquet file.

        Return them as a table, or None if there are none to draw, and the number of rows of the part.
        """


@dataclass
class TablePart(Part):
    """An array or a frame in memory, read slice by slice, so that it is never copied as a whole."""

    source: Any  # Table, array or frame
    name: str
    selection: ColumnSelection

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.source)

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield slices of the table, without the rows to be skipped."""
        if skip.consume(self.rows):
            return
        width = self.source.width if isinstance(self.source, Table) else self.source.shape[1]
        chunk_rows = self.selection.chunk_rows(width)
        for begin in range(0, self.rows, chunk_rows):
            end = min(begin + chunk_rows, self.rows)
            if not skip.consume(end - begin):
                yield skip.rest_of(self._read(slice(begin, end), _chunk_name(self.name, begin)))

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> Drawn:
        """Draw at most `count` random rows, or None if there are none to draw; also return the number of all rows."""
        if count == 0 or self.rows == 0:
            return None, self.rows
        return self._read(draw_rows(self.rows, count, rng), self.name), self.rows

    def _read(self, rows: slice | Index, name: str) -> Table:
        """Read the rows of the source at some positions or in a slice; messages call this table `name`."""
        if isinstance(self.source, Table):
            return self.source.take(rows, name)
        if isinstance(self.source, np.ndarray):
            return read_chunk(self.source[rows], name, self.selection)
        frame = nw.from_native(self.source, eager_only=True)
        return read_chunk(nw.to_native(frame[rows]), name, self.selection)


def _chunk_name(name: str, row: int) -> str:
    """Return how messages call the chunk of sample `name` that begins at `row`; they count rows from there."""
    return f"{name} from row {row} on" if row else name


def draw_rows(rows: int, count: int, rng: np.random.Generator) -> Index:
    """Return the sorted positions of `count` random rows, or of all `rows` rows if there are no more."""
    if count >= rows:
        return np.arange(rows)
    return np.sort(rng.choice(rows, count, replace=False, shuffle=False))


def _draw_pieces(pieces: int, limit: int, rng: np.random.Generator) -> Sequence[int]:
    """Return the numbers of at most `limit` of `pieces` pieces (files or row groups), spread evenly over them."""
    if pieces <= limit:
        return range(pieces)
    # a stratified draw: one random number from each of `limit` equal ranges of numbers
    return [int((k + rng.random()) * pieces / limit) for k in range(limit)]


def _draw_from_all(parts: Iterable[Part], count: int, rng: np.random.Generator, spread: int) -> Drawn:
    """Draw at most `count` random rows of several parts in one pass, about in proportion to the parts' sizes.

    Return them as a table, or None if there are none, and the number of rows of all parts.
    """
    # `drawn` is a random sample of the rows seen so far, and some of its rows are replaced by rows of the next part:
    # a binomial number of them, within what the two tables can supply.
    drawn: Table | None = None
    seen_rows = drawn_rows = 0
    for part in parts:
        from_part: Table | None = None
        part_rows = part.rows
        if part_rows is None:  # drawing from the part counts its rows
            from_part, part_rows = part.draw(count, rng, spread)
        if part_rows == 0:
            continue
        new_size = min(count, seen_rows + part_rows)
        lowest, highest = new_size - drawn_rows, min(new_size, part_rows)
        part_count = int(np.clip(rng.binomial(new_size, part_rows / (seen_rows + part_rows)), lowest, highest))
        if from_part is None:
            from_part, _ = part.draw(part_count, rng, spread)
        subsamples = []
        for table, size in ((drawn, new_size - part_count), (from_part, part_count)):
            if table is not None and size > 0:
                subsamples.append(table.take(draw_rows(len(table), size, rng)))
        drawn = join_tables(subsamples, subsamples[0].name) if subsamples else None
        seen_rows, drawn_rows = seen_rows + part_rows, new_size
    return drawn, seen_rows


@dataclass
class TextPart(Part):
    """CSV text, plain or gzipped, in a file or from a pipe."""

    source: Source
    name: str
    selection: ColumnSelection
    rows: int | None = field(default=None, init=False)  # None until the text was read to its end

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the rows block by block, without those to be skipped."""
        rows_before = 0
        for lines, layout in self._blocks():
            rows = len(_records(lines, layout)) if skip.rows else 0  # counted in advance only while skipping
            if not rows or not skip.consume(rows):
                table = self._read("".join(lines), layout, _chunk_name(self.name, rows_before))
                rows = len(table)
                yield skip.rest_of(table)
            rows_before += rows
        self.rows = rows_before

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> Drawn:
        """Draw rows in one pass: each row gets a random key, and the `count` rows with the smallest keys are drawn."""
        keys, drawn = np.empty(0), np.empty(0, dtype=object)  # of the rows that are drawn so far: keys, lines of text
        rows, first_layout = 0, None
        for lines, layout in self._blocks():
            records = np.array(_records(lines, layout), dtype=object)
            keys, drawn = np.append(keys, rng.random(len(records))), np.append(drawn, records)
            if len(keys) > count:
                smallest = np.sort(np.argpartition(keys, count)[:count])  # sorted: in the order of the file
                keys, drawn = keys[smallest], drawn[smallest]
            rows += len(records)
            if first_layout is None:
                first_layout = layout
        self.rows = rows
        if first_layout is None or not len(drawn):
            return None, rows
        try:
            return self._read("".join(drawn), first_layout, self.name), rows
        except InputError:
            for _ in self.chunks(Skip()):  # raises an error that names the line
                pass
            raise

    def _blocks(self) -> Iterator[tuple[list[str], CsvLayout]]:
        """Yield blocks of whole rows as lists of lines, each with its layout; every call yields the same blocks."""
        with explain_errors(self.name), csv_text.open_text(self.source) as file:
            layout, first_cells, start = csv_text.read_layout(file, self.name, self.selection)
            file.seek(start)
            block_lines, is_first = self.selection.chunk_rows(layout.width), True
            while lines := list(islice(file, block_lines)):
                if any('"' in line for line in lines):
                    lines += _rest_of_row(lines, file, layout)
                if any(line.strip() or layout.separator in line for line in lines):  # not only blank lines
                    if is_first:
                        is_first, text = False, "".join(lines)
                        # the first block decides the decimal mark of all blocks
                        cells, _ = csv_text.read_cells(io.StringIO(text, newline=""), layout, layout.wanted)
                        layout = replace(layout, decimal_mark=csv_text.find_decimal_mark(cells.values()))
                        if layout.header is None:
                            columns = csv_text.read_columns(io.StringIO(text, newline=""), 0, layout)
                            csv_text.check_header_of_numbers(self.name, first_cells, columns)
                    yield lines, layout
                layout = replace(layout, lines_before=layout.lines_before + len(lines))

    def _read(self, text: str, layout: CsvLayout, name: str) -> Table:
        """Read rows of text as a table; messages call it `name`."""
        with explain_errors(self.name):
            columns = csv_text.read_columns(io.StringIO(text, newline=""), 0, layout)
        return from_columns(name, layout, columns)


def _rest_of_row(lines: list[str], file: TextIO, layout: CsvLayout) -> list[str]:
    """Read the rest of the last row if it ends in the middle of a quoted cell; return the further lines of the file."""
    further: list[str] = []

    def read_further() -> Iterator[str]:
        """Yield further lines of the file, which are read only if the last row continues."""
        while line := file.readline():
            further.append(line)
            yield line

    records = csv_text.iter_records(chain(lines, read_further()), layout.separator, layout.name, layout.lines_before)
    for last_line, _, _ in records:
        if last_line >= layout.lines_before + len(lines):
            break
    return further


def _records(lines: list[str], layout: CsvLayout) -> list[str]:
    """Join lines to rows (a quoted cell may have several lines); return the text of each row, without blank lines."""
    if any('"' in line for line in lines):
        rows = [text for _, text in csv_text.split_rows(lines, layout.separator, layout.name, layout.lines_before)]
    else:
        rows = [line for line in lines if line.strip() or layout.separator in line]
    return [row if row.endswith(("\n", "\r")) else f"{row}\n" for row in rows]


@dataclass
class ParquetPart(Part):
    """A Parquet file, whose row groups are read in chunks, or skipped without reading."""

    source: Path
    name: str
    selection: ColumnSelection

    @cached_property
    def _columns_and_groups(self) -> tuple[list[str], list[int]]:
        """The names of all columns, and the number of rows of each row group."""
        columns, group_rows = row_groups(self.source, self.name)
        check_columns(self.name, columns, self.selection.extra)
        return columns, group_rows

    @property
    def rows(self) -> int:
        """The number of rows, from the file's metadata."""
        _, group_rows = self._columns_and_groups
        return sum(group_rows)

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the rows in chunks, except those that `skip` counts down; row groups that are skipped are not read."""
        _, group_rows = self._columns_and_groups
        first_group = rows_before = 0  # whole row groups at the start are skipped first, then whole frames
        while first_group < len(group_rows) and skip.consume(group_rows[first_group]):
            rows_before += group_rows[first_group]
            first_group += 1
        for frame in self._frames(range(first_group, len(group_rows))):
            if not skip.consume(len(frame)):
                yield skip.rest_of(self._read(frame, _chunk_name(self.name, rows_before)))
            rows_before += len(frame)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> Drawn:
        """Draw at most `count` random rows from at most `spread` row groups; also return the file's number of rows."""
        import pyarrow

        _, group_rows = self._columns_and_groups
        groups = _draw_pieces(len(group_rows), spread, rng)
        positions = draw_rows(sum(group_rows[group] for group in groups), count, rng)  # sorted, within these groups
        if not len(positions):
            return None, self.rows
        drawn, rows_before = [], 0
        for frame in self._frames(groups):
            begin, end = np.searchsorted(positions, [rows_before, rows_before + len(frame)])  # those in this frame
            if end > begin:
                drawn.append(frame.take(positions[begin:end] - rows_before))
            rows_before += len(frame)
        if not drawn:  # there are fewer rows than the file says
            raise damaged_parquet(self.name)
        return self._read(pyarrow.concat_tables(drawn), self.name), self.rows

    def _frames(self, groups: Sequence[int]) -> Iterator[Any]:
        """Yield the row groups with the numbers `groups` as arrow tables, without the dropped columns."""
        drop = set(self.selection.drop)
        columns = [column for column in self._columns_and_groups[0] if column not in drop]
        return iter_frames(self.source, self.name, columns, groups, self.selection.chunk_rows(len(columns)))

    def _read(self, frame: Any, name: str) -> Table:
        """Read an arrow table from `_frames`; messages call it `name`."""
        _, _, dropped = self.selection.split(self._columns_and_groups[0])
        return replace(read_chunk(frame, name, self.selection), dropped=tuple(dropped))


@dataclass
class StreamPart(Part):
    """An iterable of tables of any kind, read one after the other; an iterator can be read only once."""

    source: Iterable[Any]
    name: str
    selection: ColumnSelection

    def __post_init__(self) -> None:
        """Prepare to read the tables of an iterator in two steps: some by `draw`, and then all by `chunks`."""
        self.can_repeat = not isinstance(self.source, Iterator)
        self._is_read = False  # whether `chunks` has read the iterator
        self._drawn: list[Table] = []  # tables of an iterator that `draw` has read
        self._rest = self._read()  # the tables after these

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the tables, without the rows to be skipped; those of an iterator that `draw` has read come first."""
        tables = self._read()
        if not self.can_repeat:
            self._check_unread()
            tables = chain(self._drawn, self._rest)
            self._drawn, self._is_read = [], True
        for table in tables:
            if not skip.consume(len(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> Drawn:
        """Draw rows from all tables, or from the first tables of an iterator, which are stored for `chunks`."""
        if self.can_repeat:
            parts = (TablePart(table, table.name, self.selection) for table in self._read())
            return _draw_from_all(parts, count, rng, spread)
        self._check_unread()
        while sum(map(len, self._drawn)) < count and (table := next(self._rest, None)) is not None:
            self._drawn.append(table)
        if not self._drawn:
            return None, 0
        first = join_tables(self._drawn, self.name)
        return TablePart(first, self.name, self.selection).draw(count, rng, spread)

    def _read(self) -> Iterator[Table]:
        """Yield each table of the source in chunks."""
        for number, table in enumerate(self.source):
            if _is_row(table):
                raise InputError(f"{self.name} is an iterator, which can be read only once; pass list({self.name}).")
            name = f"table {number} of {self.name} (counting from 0)"
            for part in _make_parts(table, name, self.selection):
                yield from part.chunks(Skip())

    def _check_unread(self) -> None:
        """Refuse to read an iterator twice."""
        if self._is_read:
            raise InputError(f"{self.name} comes from an iterator that was already read; pass a new one, or a list.")


def _is_row(table: Any) -> bool:
    """Return whether an item of an iterator is a single row of numbers rather than a table."""
    if isinstance(table, np.ndarray):
        return table.ndim == 1
    return isinstance(table, (list, tuple)) and bool(table) and np.isscalar(table[0]) and not isinstance(table[0], str)


@dataclass(eq=False)
class Chunks:
    """Rows of one sample in chunks, read from files, tables in memory, or a stream of tables."""

    name: str  # of the sample in messages
    parts: Sequence[Part]

    @classmethod
    def from_source(cls, source: Any, name: str, **selection: Any) -> Chunks:
        """Open paths, a folder of Parquet files, or tables; other arguments are those of ColumnSelection."""
        if isinstance(source, Chunks):
            return source
        return cls(name, _make_parts(source, name, ColumnSelection(**selection)))

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known before they are read."""
        known = [part.rows for part in self.parts if part.rows is not None]
        return sum(known) if len(known) == len(self.parts) else None

    @property
    def can_repeat(self) -> bool:
        """Whether the rows can be read more than once; those of a generator cannot."""
        return all(part.can_repeat for part in self.parts)

    @property
    def files(self) -> list[Path]:
        """The files that are read, in order; tables in memory and pipes have none."""
        sources = [part.source for part in self.parts if isinstance(part, (TextPart, ParquetPart))]
        return [source for source in sources if isinstance(source, Path)]

    def __iter__(self) -> Iterator[Table]:
        """Yield all chunks; refuse a sample without rows."""
        is_empty = True
        for chunk in self.after(0):
            is_empty = False
            yield chunk
        if is_empty:
            raise self._no_rows()

    def after(self, rows: int) -> Iterator[Table]:
        """Yield chunks of the rows after the first `rows`: those of a full pass, if one of its chunks ends there."""
        skip = Skip(rows)
        for part in self.parts:
            yield from part.chunks(skip)

    def sample(self, count: int, rng: np.random.Generator) -> Table:
        """Draw at most `count` random rows: of all parts, as files are often sorted; of an iterator's first tables."""
        parts = [self.parts[k] for k in _draw_pieces(len(self.parts), _SPREAD, rng)]
        groups_per_part = max(1, _SPREAD // max(1, len(parts)))
        table, _ = _draw_from_all(parts, count, rng, groups_per_part)
        if table is None:
            raise self._no_rows()
        return table

    def first(self) -> Table:
        """Return some of the first rows; reading an iterator later yields them again."""
        return next(iter(self)) if self.can_repeat else self.sample(1, np.random.default_rng(0))

    def _no_rows(self) -> InputError:
        """Return the error for a sample without rows."""
        return InputError(f"{self.name} has no rows; pass a sample with at least two.")


def _make_parts(source: Any, name: str, selection: ColumnSelection) -> Sequence[Part]:
    """Split a sample, as the user passed it, into parts: one for each file or table, or one for a stream of tables.

    The files of a folder, which must be Parquet, are in the order of their names.
    """
    if isinstance(source, Chunks):
        return source.parts
    if isinstance(source, Piped):
        full_name = f"{name} ({source})"
        return [TextPart(check_text(source.content, full_name), full_name, selection)]
    if isinstance(source, (str, Path)):
        path = Path(source)
        full_name = f"{name} ({path})"
        if not os.path.isdir(path):  # unlike Path.is_dir, no error for text that cannot be a path
            text = text_or_parquet(path, full_name)
            if kind(path) == WORKBOOKS:
                return [TablePart(read_chunk(path, name, selection), full_name, selection)]
            return [ParquetPart(path, full_name, selection) if text is None else TextPart(text, full_name, selection)]
        files = sorted(file for file in path.iterdir() if kind(file) == PARQUET and file.name[0] not in "._")
        if not files:
            raise InputError(f"{full_name} is a folder without Parquet files; pass another one, or a list of files.")
        return [part for file in files for part in _make_parts(file, name, selection)]
    if isinstance(source, (list, tuple)) and source and _is_table(source[0]):
        check_distinct_files(source, name)
        return [part for table in source for part in _make_parts(table, name, selection)]
    if isinstance(source, Table) or (isinstance(source, np.ndarray) and source.ndim == 2):
        return [TablePart(source, name, selection)]
    if (frame := frame_of(source, name)) is not None:
        return [TablePart(frame, name, selection)]
    is_array_like = any(hasattr(source, attribute) for attribute in ("__array__", "__dlpack__", "toarray"))
    is_stream = isinstance(source, Iterable) and not isinstance(source, (list, tuple, dict, set, bytes, io.IOBase))
    if is_stream and not is_array_like:
        return [StreamPart(source, name, selection)]
    return [TablePart(read_chunk(source, name, selection), name, selection)]


def _is_table(source: Any) -> bool:
    """Return whether an item of a list is a table or the path of one, rather than a row."""
    if isinstance(source, (str, Path, Piped, Table, Chunks)):
        return True
    return (isinstance(source, np.ndarray) and source.ndim == 2) or frame_of(source, "a table") is not None


def check_distinct_files(sources: Sequence[Any], name: str) -> None:
    """Refuse a list of sources for sample `name` that has a file twice, since its rows would count twice."""
    found: dict[tuple[int, int], list[str]] = {}  # by the file, which may have several names
    for source in sources:
        if not isinstance(source, (str, Path)):
            continue
        path = os.path.realpath(source)
        with contextlib.suppress(OSError):  # a file that does not exist is refused when it is read
            stated = os.stat(path)
            found.setdefault((stated.st_dev, stated.st_ino), []).append(path)
    for path, *others in found.values():
        if others:
            raise InputError(f"{name} names {path} more than once, so its rows would count twice; name each file once.")
