"""The parts of a sample: partitions of a Dask collection, as tables that workers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

import numpy as np

from priorshift.distributed.reduction import Outcome, compute, import_dask
from priorshift.errors import InputError, InputTypeError

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
