"""The parts of a sample: partitions of a Dask collection, as tables that workers read.

Some rows of a collection, brought here: those that would be drawn from the same rows in one table.

What is fixed by a sample of rows, a scale or a model, is then the same wherever the rows lie, and however they are cut.

Rows of a sample as matrices of numbers, in blocks of a size of their own, made wherever they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats, Index
from priorshift.distributed.reduction import Outcome, compute, import_dask, together
from priorshift.errors import InputError, InputTypeError
from priorshift.io.chunk_parts import AnyTable, ColumnSelection, Skip, drawn, joined, length, some_rows
from priorshift.io.chunks import Chunks
from priorshift.io.tables import Table, frame_of, match_columns, read_table

_COLLECTION = "a Dask DataFrame, Array or Bag, or a list of Delayed tables"


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of one sample, in their order.

    Attributes
    ----------
    name : str
        What messages call the sample.
    collection : Dask DataFrame, Dask Array, or list of Delayed or Future
        An array is cut into whole rows; each of a list is a table.
    """

    name: str
    collection: Any

    @classmethod
    def of(cls, collection: Any, name: str) -> Parts:
        """The partitions of a collection."""
        dask, kind = import_dask(), kind_of(collection)
        if kind == "DataFrame":
            return cls(name, collection)
        if kind == "Array":
            return cls(name, _whole_rows(collection, name))
        if kind == "Bag":
            table = dask.delayed(_table_of_records, pure=False)
            return cls(name, [table(part) for part in collection.to_delayed()])
        if kind in ("Delayed", "Future"):
            return cls(name, [collection])
        if isinstance(collection, (list, tuple)) and {kind_of(one) for one in collection} in ({"Delayed"}, {"Future"}):
            return cls(name, list(collection))
        found = kind or type(collection).__name__
        raise InputTypeError(f"{name} is of type {found}, but {_COLLECTION} is expected; pass one of these.")

    def __len__(self) -> int:
        return len(self.tables)

    @cached_property
    def tables(self) -> list[Any]:
        """Each part by itself, Delayed or Future."""
        if isinstance(self.collection, list):
            return self.collection
        return list(np.ravel(self.collection.to_delayed()))

    @property
    def shape(self) -> tuple[list[int], int] | None:
        """The rows of each part, and how many columns there are, of an array that knows it."""
        if kind_of(self.collection) != "Array":
            return None
        rows, width = list(self.collection.chunks[0]), self.collection.shape[1]
        return None if any(map(isnan, (*rows, width))) else (rows, width)

    def count(self, client: Any = None) -> list[int]:
        """The rows of each part."""
        if self.shape is not None:
            return self.shape[0]
        counted = self
        if kind_of(self.collection) == "DataFrame":  # a file may have its columns apart, so that one is less to read
            narrow = Parts(self.name, self.collection[list(self.collection.columns[:1])])
            counted = narrow if len(narrow) == len(self) else self  # Dask may read several small files as one part
        try:
            return [rows or 0 for rows in compute(counted.outcomes(_length), client)]
        except KeyError as column:
            raise InputError(
                f"{self.name} has no column {column} in one of its partitions; pass the same columns in each."
            ) from None

    def outcomes(self, work: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Delayed outcomes of ``work(table, name, *arguments)`` of each part; None of a part without rows.

        The arguments stand in the graph once, not in every task. Of `each`, one entry for each part, its own comes
        after them.
        """
        outcome, how = import_dask().delayed(_outcome, pure=False), in_graph((work, self.name, *arguments))
        own = [[]] * len(self) if each is None else [[one] for one in each]
        return [outcome(table, how, number, *own[number]) for number, table in enumerate(self.tables)]

    def fused(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Delayed outcomes as `outcomes` gives them, in the order of the rows, but Dask may take small parts as one.

        A part is read and worked on by one task where Dask can fuse the two: it is then neither kept nor sent to
        another worker.
        """
        how, kind = in_graph((work, self.name, *arguments)), kind_of(self.collection)
        if kind == "DataFrame":
            made = self.collection.map_partitions(_of_partition, how, meta=(None, object), enforce_metadata=False)
        elif kind == "Array":
            nothing = np.empty((0, 0), dtype=object)
            made = import_dask().array.map_blocks(_of_block, self.collection, how=how, dtype=object, meta=nothing)
        else:
            return self.outcomes(work, *arguments)
        return list(np.ravel(made.to_delayed()))


def in_graph(thing: Any) -> Any:
    """Something that stands in a graph by itself, whence a scheduler can send it again when a worker is lost."""
    return import_dask().delayed(thing, pure=False, traverse=False)


def no_rows(parts: Parts) -> InputError:
    """What to say of a sample all of whose parts are empty."""
    return InputError(f"{parts.name} has no rows in any of its {len(parts)} partitions; pass some rows.")


def is_distributed(sample: Any) -> bool:
    """Whether a sample is something of Dask's, and not a table."""
    first = sample[0] if isinstance(sample, (list, tuple)) and sample else sample
    return bool(kind_of(first))


def kind_of(thing: Any) -> str:
    """The name of a class of Dask's; empty of anything else. (A Delayed has every attribute that is asked for.)"""
    of = type(thing)
    if of.__module__.startswith("distributed."):
        return "Future"
    names = [base.__name__ for base in of.__mro__ if base.__module__.split(".")[0] in ("dask", "dask_expr")]
    known = ("Array", "DataFrame", "Bag", "Delayed")
    return next((name for name in names if name in known), f"dask {names[0]}" if names else "")


def _whole_rows(array: Any, name: str) -> Any:
    if array.ndim != 2:
        raise InputError(
            f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)}, but rows and columns are expected; pass an "
            "array of two."
        )
    return array if len(array.chunks[1]) == 1 else array.rechunk({1: -1})


def _outcome(table: Any, how: tuple[Any, ...], number: int, *own: Any) -> Outcome:
    """The task of one part."""
    work, name, *arguments = how
    if not isinstance(table, str) and hasattr(table, "__len__") and not len(table):
        return Outcome(None)
    return Outcome.of(work, table, name, *arguments, *own, place=f"partition {number}")


def _of_partition(table: Any, how: tuple[Any, ...], partition_info: Any = None) -> Outcome:
    return _outcome(table, how, partition_info["number"])


def _of_block(block: Any, how: tuple[Any, ...], block_id: Any = None) -> Outcome:
    return _outcome(block, how, block_id[0])


def _length(table: Any, name: str) -> int:
    return len(table)


def _table_of_records(records: Any) -> Any:
    """A partition of a bag as a table: of mappings a frame, of sequences their rows."""
    records = list(records)
    if records and isinstance(records[0], Mapping):
        import pandas

        return pandas.DataFrame(records)
    return records


@dataclass
class CollectionPart:
    """All rows of a collection as one part of a sample, as a table in memory is one."""

    parts: Parts
    wanted: ColumnSelection
    client: Any = None
    can_repeat: bool = field(default=True, init=False)
    file: None = field(default=None, init=False)

    @cached_property
    def counts(self) -> list[int]:
        return self.parts.count(self.client)

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def batches(self, skip: Skip) -> Iterator[AnyTable]:
        """Tables of one part after the other, for whoever wants all rows to come by here."""
        for outcome in self.parts.outcomes(read_part, self.wanted):
            (table,) = compute([outcome], self.client)
            if table is not None and not skip.whole(length(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[AnyTable | None, int]:
        """Rows of all parts, in one graph; `spread` is for those who read one part after the other."""
        if not min(count, self.rows):
            return None, self.rows
        rows, starts = drawn(self.rows, count, rng), np.cumsum([0, *self.counts[:-1]])
        picked = np.split(rows, np.searchsorted(rows, starts[1:]))
        each = [own - start for own, start in zip(picked, starts, strict=True)]
        outcomes = self.parts.outcomes(_pick, self.wanted, each=each)
        tables = compute([outcome for outcome, own in zip(outcomes, each, strict=True) if len(own)], self.client)
        return joined(tables, self.parts.name), self.rows


def as_batches(
    sample: Any,
    name: str,
    *,
    drop: Sequence[str] = (),
    aside: Sequence[str] = (),
    optional: Sequence[str] = (),
    client: Any,
) -> Chunks:
    """A sample that is read in batches, of a collection or of a table; the columns are as in `Chunks.of`."""
    if not is_distributed(sample):
        return Chunks.of(sample, name, aside=aside, drop=drop, optional=optional)
    wanted = ColumnSelection(tuple(aside), tuple(drop), tuple(optional))
    return Chunks(name, [CollectionPart(Parts.of(sample, name), wanted, client)])


def read_part(part: Any, name: str, wanted: ColumnSelection) -> AnyTable:
    """A part as a table, where it is."""
    return wanted.read(part, name)


def _pick(part: Any, name: str, wanted: ColumnSelection, rows: Index) -> AnyTable:
    """Some rows of a part, which alone are read where it can be cut."""
    if isinstance(part, np.ndarray):
        return wanted.read(part[rows], name)
    if (frame := frame_of(part, name)) is not None:
        return wanted.read(nw.to_native(nw.from_native(frame, eager_only=True)[rows]), name)
    return some_rows(wanted.read(part, name), rows)


BLOCK = 16_384  # rows: two blocks are a second or two of kernel values, and a few megabytes that travel


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows, some thousands at a time.

    Attributes
    ----------
    blocks : list of Delayed
        Outcomes of matrices.
    rows : list of int
        Of each block.
    """

    blocks: list[Any]
    rows: list[int]

    @classmethod
    def of(cls, matrices: Sequence[Any], rows: Sequence[int], start: int = 0, stop: int | None = None) -> Blocks:
        """The rows from `start` to `stop`, of Delayed outcomes of matrices that have so many `rows` each."""
        join = import_dask().delayed(together, pure=False)
        ends = np.cumsum(rows)
        stop = int(ends[-1]) if stop is None else stop
        edges = [*range(start, stop, BLOCK), stop]
        blocks = []
        for low, high in pairwise(edges):
            first, last = (int(k) for k in np.searchsorted(ends, (low, high - 1), "right"))  # which hold its ends
            before = int(ends[first]) - rows[first]
            blocks.append(join(partial(_cut, low - before, high - before), *matrices[first : last + 1]))
        return cls(blocks, np.diff(edges).tolist())

    @classmethod
    def read(cls, sample: Any, name: str, layout: Table | None = None, client: Any = None) -> tuple[Blocks, Table]:
        """The blocks of a sample of numbers, with the columns of `layout`, a table without rows; or with its own."""
        if not is_distributed(sample):
            table = read_table(sample, name)
            layout = layout or replace(table, values=table.values[:0])
            values = match_columns([layout, table])[1].values
            return cls.of([in_graph(Outcome(values))], [len(values)]), layout
        parts = Parts.of(sample, name)
        columns, rows = _look(parts, client)
        layout = layout or columns
        return cls.of(parts.outcomes(_matrix, layout), rows), layout

    def split(self, values: Floats | None) -> list[Any]:
        """One number of each row, by blocks; None where there are none."""
        if values is None:
            return [in_graph(Outcome(None))] * len(self.rows)
        return [in_graph(Outcome(part)) for part in np.split(values, np.cumsum(self.rows)[:-1])]


def _cut(start: int, stop: int, *matrices: NDArray[Any] | None) -> NDArray[Any]:
    there = [one for one in matrices if one is not None]  # a part without rows is no matrix
    return (there[0] if len(there) == 1 else np.concatenate(there))[start:stop]


def _look(parts: Parts, client: Any) -> tuple[Table, list[int]]:
    """The columns of the first rows, as a table without any, and how many rows each part has."""
    if parts.shape is not None:
        found: list[Any] = [(Table(parts.name, np.empty((0, parts.shape[1]))), rows) for rows in parts.shape[0]]
    else:
        found = compute(parts.outcomes(_columns_and_rows), client)
    rows = [0 if one is None else one[1] for one in found]
    if not any(rows):
        raise no_rows(parts)
    return next(one[0] for one in found if one is not None), rows


def _columns_and_rows(part: Any, name: str) -> tuple[Table, int]:
    table = read_table(part, name)
    return replace(table, values=table.values[:0]), len(table.values)


def _matrix(part: Any, name: str, layout: Table) -> NDArray[Any]:
    return match_columns([layout, read_table(part, name)])[1].values
