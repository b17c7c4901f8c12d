"""Parts of a sample that is read in batches: a file, a table in memory, a stream; each is read from any row on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.input.joined import AnyTable, joined, length, some_rows
from priorshift.input.mixed import MixedTable, read_columns
from priorshift.input.tables import Table

_MOST_CELLS = 1 << 22  # in a batch, so that a table of many columns has fewer rows in each


@dataclass(frozen=True)
class Wanted:
    """Which columns of a sample are set aside or dropped, and how many rows are read at a time."""

    aside: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    rows_at_a_time: int = 65_536

    def most_rows(self, width: int) -> int:
        """Rows of a batch of so many columns."""
        return max(1, min(self.rows_at_a_time, _MOST_CELLS // max(width, 1)))

    def read(self, source: Any, name: str) -> AnyTable:
        """A table that is in memory already."""
        table = read_columns(source, name, self.aside, self.drop, self.optional)
        return replace(table, native=None) if isinstance(table, MixedTable) else table


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

    def rest_of(self, table: AnyTable) -> AnyTable:
        """A table without the rows that are passed over, which are not all of it."""
        begin, self.rows = self.rows, 0
        return some_rows(table, slice(begin, None)) if begin else table


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

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        """Its rows in order, without those that are passed over."""

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        """So many rows at random, or all there are, and how many they stand for.

        Where a part is made of pieces of known length, at most `spread` of them are read, evenly spread over it.
        """


@dataclass
class TablePart:
    """An array or a frame in memory, read slice by slice, so that it is never copied as a whole."""

    source: Any  # with a length, and rows that can be picked
    name: str
    wanted: Wanted
    can_repeat: bool = field(default=True, init=False)
    file: Path | None = field(default=None, init=False)

    @property
    def rows(self) -> int:
        return length(self.source) if isinstance(self.source, (Table, MixedTable)) else len(self.source)

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        if skip.whole(self.rows):
            return
        size, done = self.wanted.most_rows(_width(self.source)), 0
        while done < self.rows:
            here = min(size, self.rows - done)
            if not skip.whole(here):
                yield skip.rest_of(self._read(slice(done, done + here), at_row(self.name, done)))
            done += here

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        if not min(count, self.rows):
            return None, self.rows
        return self._read(drawn(self.rows, count, rng), self.name), self.rows

    def _read(self, rows: slice | Index, name: str) -> AnyTable:
        if isinstance(self.source, (Table, MixedTable)):
            return some_rows(self.source, rows, name)
        if isinstance(self.source, np.ndarray):
            return self.wanted.read(self.source[rows], name)
        frame = nw.from_native(self.source, eager_only=True)
        return self.wanted.read(nw.to_native(frame[rows]), name)


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


def draw_of_all(
    parts: Iterable[Part], count: int, rng: np.random.Generator, spread: int
) -> tuple[AnyTable | None, int]:
    """At most so many rows of several parts, of each about in proportion to its rows; and how many rows all have.

    One pass: what was drawn so far stands for all parts so far, and some of it gives way to the next one's.
    """
    table: AnyTable | None = None
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
        some = [some_rows(t, drawn(length(t), k, rng)) for t, k in pieces if t is not None and k]
        table = joined(some, some[0].name) if some else None
        rows, kept = rows + of, wanted
    return table, rows


def _width(source: Any) -> int:
    if isinstance(source, (Table, MixedTable)):
        return source.width
    return int(source.shape[1]) if len(source.shape) > 1 else 1
