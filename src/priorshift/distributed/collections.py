"""Dask collections as parts of a sample, which workers read, and of which some rows can be drawn.

Rows are drawn as they would be from the same rows in one table. So whatever a subsample fixes, a scale or a model, does
not depend on where the rows are or how they are partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np

from priorshift.arrays import Index
from priorshift.distributed.reduction import Outcome, compute, import_dask
from priorshift.errors import InputError, InputTypeError
from priorshift.io.chunks import Chunks, Part, Skip, draw_rows, read_chunk
from priorshift.io.readers import frame_of
from priorshift.io.tables import ColumnSelection, Table, join_tables

_COLLECTION = "a Dask DataFrame, Array or Bag, or a list of Delayed tables"


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of one sample, in their order."""

    name: str  # of the sample in messages
    collection: Any  # Dask DataFrame, Dask Array of whole rows, or list of Delayed or Future tables

    @classmethod
    def from_collection(cls, collection: Any, name: str) -> Parts:
        """Take the partitions of a collection."""
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
        """The parts as Delayed or Future tables."""
        if isinstance(self.collection, list):
            return self.collection
        return list(np.ravel(self.collection.to_delayed()))

    @property
    def shape(self) -> tuple[list[int], int] | None:
        """The rows of each part and the number of columns; None unless it is an array that knows them."""
        if kind_of(self.collection) != "Array":
            return None
        rows, width = list(self.collection.chunks[0]), self.collection.shape[1]
        return None if any(map(isnan, (*rows, width))) else (rows, width)

    def count(self, client: Any = None) -> list[int]:
        """Count the rows of each part."""
        if self.shape is not None:
            return self.shape[0]
        counted = self
        if kind_of(self.collection) == "DataFrame":  # a file may have its columns apart, so that one is less to read
            narrow = Parts(self.name, self.collection[list(self.collection.columns[:1])])
            counted = narrow if len(narrow) == len(self) else self  # Dask may read several small files as one part
        try:
            return [rows or 0 for rows in compute(counted.map(_length), client)]
        except KeyError as column:
            raise InputError(
                f"{self.name} has no column {column} in one of its partitions; pass the same columns in each."
            ) from None

    def map(self, work: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Return Delayed outcomes of ``work(table, name, *arguments)`` for each part; None for a part without rows.

        The arguments are in the graph once, not in every task. `each` has one further argument for each part.
        """
        outcome, how = import_dask().delayed(_outcome, pure=False), in_graph((work, self.name, *arguments))
        own = [[]] * len(self) if each is None else [[one] for one in each]
        return [outcome(table, how, number, *own[number]) for number, table in enumerate(self.tables)]

    def map_fused(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return outcomes as `map` does, in the order of the rows, but Dask may combine small parts.

        Reading a part and working on it becomes one task where Dask can fuse the two, so that the part is neither kept
        nor sent to another worker.
        """
        how, kind = in_graph((work, self.name, *arguments)), kind_of(self.collection)
        if kind == "DataFrame":
            made = self.collection.map_partitions(_of_partition, how, meta=(None, object), enforce_metadata=False)
        elif kind == "Array":
            nothing = np.empty((0, 0), dtype=object)
            made = import_dask().array.map_blocks(_of_block, self.collection, how=how, dtype=object, meta=nothing)
        else:
            return self.map(work, *arguments)
        return list(np.ravel(made.to_delayed()))

    def no_rows(self) -> InputError:
        """Return the error for a sample without rows."""
        return InputError(f"{self.name} has no rows in any of its {len(self)} partitions; pass some rows.")


def in_graph(thing: Any) -> Any:
    """Put an object into the graph once, so that a scheduler can send it again when a worker is lost."""
    return import_dask().delayed(thing, pure=False, traverse=False)


def is_distributed(sample: Any) -> bool:
    """Whether a sample is a Dask collection, or a list of Delayed or Future tables."""
    first = sample[0] if isinstance(sample, (list, tuple)) and sample else sample
    return bool(kind_of(first))


def kind_of(thing: Any) -> str:
    """Return the name of a Dask class; empty for anything else. (A Delayed has every attribute, so none is tested.)"""
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
    """Run the task of one part."""
    work, name, *arguments = how
    if not isinstance(table, str) and hasattr(table, "__len__") and not len(table):
        return Outcome(None)
    return Outcome.run(work, table, name, *arguments, *own, place=f"partition {number}")


def _of_partition(table: Any, how: tuple[Any, ...], partition_info: Any = None) -> Outcome:
    return _outcome(table, how, partition_info["number"])


def _of_block(block: Any, how: tuple[Any, ...], block_id: Any = None) -> Outcome:
    return _outcome(block, how, block_id[0])


def _length(table: Any, name: str) -> int:
    return len(table)


def _table_of_records(records: Any) -> Any:
    """Turn a partition of a bag into a table: mappings into a frame, sequences into rows."""
    records = list(records)
    if records and isinstance(records[0], Mapping):
        import pandas

        return pandas.DataFrame(records)
    return records


@dataclass
class CollectionPart(Part):
    """All rows of a collection as one part of a sample that is read in chunks."""

    parts: Parts
    wanted: ColumnSelection
    client: Any = None

    @cached_property
    def counts(self) -> list[int]:
        return self.parts.count(self.client)

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the partitions one after the other, brought to this machine."""
        for outcome in self.parts.map(read_part, self.wanted):
            (table,) = compute([outcome], self.client)
            if table is not None and not skip.skips(len(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        """Draw rows from all partitions, in one graph; `spread` is not needed."""
        if not min(count, self.rows):
            return None, self.rows
        rows, starts = draw_rows(self.rows, count, rng), np.cumsum([0, *self.counts[:-1]])
        picked = np.split(rows, np.searchsorted(rows, starts[1:]))
        each = [own - start for own, start in zip(picked, starts, strict=True)]
        outcomes = self.parts.map(_pick, self.wanted, each=each)
        tables = compute([outcome for outcome, own in zip(outcomes, each, strict=True) if len(own)], self.client)
        return join_tables(tables, self.parts.name), self.rows


def open_collection(
    sample: Any,
    name: str,
    *,
    drop: Sequence[str] = (),
    extra: Sequence[str] = (),
    optional: Sequence[str] = (),
    client: Any,
) -> Chunks:
    """Open a collection or a table for reading in chunks; the columns are as in `Chunks.from_source`."""
    if not is_distributed(sample):
        return Chunks.from_source(sample, name, extra=extra, drop=drop, optional=optional)
    wanted = ColumnSelection(tuple(extra), tuple(drop), tuple(optional))
    return Chunks(name, [CollectionPart(Parts.from_collection(sample, name), wanted, client)])


def read_part(part: Any, name: str, wanted: ColumnSelection) -> Table:
    """Read a part as a table, on the worker that has it."""
    return read_chunk(part, name, wanted)


def _pick(part: Any, name: str, wanted: ColumnSelection, rows: Index) -> Table:
    """Read some rows of a part, and only these where it can be sliced."""
    if isinstance(part, np.ndarray):
        return read_chunk(part[rows], name, wanted)
    if (frame := frame_of(part, name)) is not None:
        return read_chunk(nw.to_native(nw.from_native(frame, eager_only=True)[rows]), name, wanted)
    return read_chunk(part, name, wanted).take(rows)
