"""Dask collections as parts of a sample, tasks on these parts, and the merging of their results.

Every task is a pure function of its part and of what is in the graph, so that a scheduler that loses a worker computes
again what was lost with it, and nothing else. Summaries of parts are merged up a tree, so that only small objects
travel between machines. Input errors and warnings are returned as part of an outcome until they reach the user: a
scheduler would retry a bad table, and print a traceback for each attempt.

Rows are drawn as they would be from the same rows in one table. So whatever a subsample fixes, a scale or a model, does
not depend on where the rows are or how they are partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import Any

import narwhals as nw
import numpy as np

from priorshift import threads
from priorshift.arrays import Index
from priorshift.errors import InputError, InputTypeError, MissingExtraError, PriorShiftWarning
from priorshift.io.chunks import Part, Skip, draw_rows, read_chunk
from priorshift.io.readers import dask_kind, frame_of, is_distributed
from priorshift.io.tables import ColumnSelection, Table, join_tables
from priorshift.warning_records import WarningRecord, record_warnings, warn

_ALL_COLUMNS = ColumnSelection()
_COLLECTION = "a Dask DataFrame, Array or Bag, or a list of Delayed tables"
_FAN_IN = 8  # summaries that one task merges: few enough for their sizes not to matter, and a flat tree
_RETRIES = 2  # number of retries of a task that fails for another reason than bad input, such as unavailable storage


def import_dask() -> Any:
    """Import Dask, or raise an error that says how to install it."""
    try:
        import dask
    except ImportError:
        raise MissingExtraError('ps.distributed needs dask; run pip install "priorshift[dask]".') from None
    return dask


@dataclass(frozen=True)
class Outcome:
    """Result of a task: a value or an error, and the warnings that were issued on the worker."""

    value: Any  # None for parts without rows
    error: InputError | None = None  # the reason why there is no value
    warnings: tuple[WarningRecord, ...] = ()

    @classmethod
    def run(cls, work: Callable[..., Any], *arguments: Any, place: str = "") -> Outcome:
        """Return the outcome of ``work(*arguments)``, called on one thread; `place` begins the text of an error."""
        with record_warnings(PriorShiftWarning, show=False) as warnings, threads.alone():
            try:
                value, error = work(*arguments), None
            except InputError as raised:
                value, error = None, type(raised)(f"{place}: {raised}" if place else str(raised))
        return cls(value, error, tuple(dict.fromkeys(warnings)))  # each warning once, in order

    def __sizeof__(self) -> int:
        """Return the size in bytes including the value, by which a scheduler plans its memory."""
        return object.__sizeof__(self) + _size(self.value)


def _size(value: Any) -> int:
    """Return the size of an object in bytes: the sum over its attributes, if it has any."""
    from dask.sizeof import sizeof

    attributes = getattr(value, "__dict__", None)
    return int(sizeof(value)) if attributes is None else sum(map(_size, attributes.values()))


def combine(work: Callable[..., Any], *outcomes: Outcome) -> Outcome:
    """Return the outcome of `work` called with the values of `outcomes`, or the first error among them.

    The warnings of all `outcomes` are passed on.
    """
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    values = [outcome.value for outcome in outcomes]
    combined = Outcome(None, errors[0]) if errors else Outcome.run(work, *values)
    warnings = [warning for outcome in (*outcomes, combined) for warning in outcome.warnings]
    return replace(combined, warnings=tuple(dict.fromkeys(warnings)))  # each warning once, in order


def delayed_combine(work: Callable[..., Any], *outcomes: Any) -> Any:
    """Return the Delayed outcome of `work`, called with the values of the Delayed `outcomes`."""
    return import_dask().delayed(combine, pure=False)(work, *outcomes)


def tree(outcomes: Sequence[Any], merge: Callable[[Any, Any], Any], fan_in: int = _FAN_IN) -> Any:
    """Merge Delayed outcomes up a tree, `fan_in` neighbours in each task; return the Delayed outcome of all.

    `merge` returns the summary of two neighbours' rows from their summaries.
    """
    level, work = list(outcomes), partial(_merge_all, merge)
    while len(level) > 1:
        level = [delayed_combine(work, *level[k : k + fan_in]) for k in range(0, len(level), fan_in)]
    return level[0]


def _merge_all(merge: Callable[[Any, Any], Any], *summaries: Any) -> Any:
    """Merge summaries from left to right; those of parts without rows are None, and so is the result if all are."""
    merged = None
    for summary in summaries:
        if merged is None:
            merged = summary
        elif summary is not None:
            merged = merge(merged, summary)
    return merged


def compute(outcomes: Iterable[Any], client: Any = None) -> list[Any]:
    """Return the values of Delayed outcomes, computed in one graph; raise their errors and issue their warnings."""
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "gather")):
        raise InputError(f"client is of type {type(client).__name__}, but a distributed.Client is expected; pass one.")
    computed: tuple[Outcome, ...] = import_dask().compute(*outcomes, scheduler=client, retries=_RETRIES)
    for outcome in computed:  # before any warning, which must not hide why another task failed
        if outcome.error is not None:
            raise outcome.error
    for outcome in computed:
        for category, message in outcome.warnings:
            warn(message, category)
    return [outcome.value for outcome in computed]


@dataclass(frozen=True, eq=False)
class Parts(Part):
    """The partitions of a Dask collection in order, which can be read in chunks like a `Part` of a local sample."""

    name: str  # of the sample in messages
    collection: Any  # Dask DataFrame, Dask Array of whole rows, or list of Delayed or Future tables
    selection: ColumnSelection  # columns that are read
    client: Any = None  # distributed.Client that computes; None for Dask's default

    @classmethod
    def from_collection(
        cls, collection: Any, name: str, selection: ColumnSelection = _ALL_COLUMNS, client: Any = None
    ) -> Parts:
        """Build the parts from a Dask collection, or a list of Delayed or Future tables; refuse anything else."""
        dask, kind = import_dask(), dask_kind(collection)
        tables = list(collection) if isinstance(collection, (list, tuple)) else [collection]
        table_kinds = {dask_kind(table) for table in tables}
        if kind == "Array":
            if collection.ndim != 2:
                raise InputError(f"{name} has {collection.ndim} dimension(s), but 2 are expected: rows and columns.")
            if len(collection.chunks[1]) > 1:
                collection = collection.rechunk({1: -1})  # whole rows in each block
        elif kind == "Bag":
            table = dask.delayed(_table_of_records, pure=False)
            collection = [table(part) for part in collection.to_delayed()]
        elif table_kinds in ({"Delayed"}, {"Future"}):
            collection = tables
        elif kind != "DataFrame":
            received = kind or type(collection).__name__
            raise InputTypeError(f"{name} is of type {received}, but {_COLLECTION} is expected; pass one of these.")
        return cls(name, collection, selection, client)

    @classmethod
    def from_sample(cls, sample: Any, name: str, selection: ColumnSelection = _ALL_COLUMNS) -> Parts:
        """Build the parts from a Dask collection, or from a local table, which is read here and is the only part."""
        if is_distributed(sample):
            return cls.from_collection(sample, name, selection)
        return cls(name, [in_graph(read_chunk(sample, name, selection))], selection)

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.tables)

    @cached_property
    def tables(self) -> list[Any]:
        """The parts as Delayed or Future tables."""
        if isinstance(self.collection, list):
            return self.collection
        return list(np.ravel(self.collection.to_delayed()))

    @property
    def shape(self) -> tuple[list[int], int] | None:
        """The number of rows of each part, and that of columns; None unless it is an array that knows them."""
        if dask_kind(self.collection) != "Array":
            return None
        rows, columns = list(self.collection.chunks[0]), self.collection.shape[1]
        is_unknown = any(isnan(size) for size in (*rows, columns))  # Dask marks unknown sizes by NaN
        return None if is_unknown else (rows, columns)

    @cached_property
    def counts(self) -> list[int]:
        """The number of rows of each part."""
        if self.shape is not None:
            return self.shape[0]
        parts = self
        if dask_kind(self.collection) == "DataFrame":  # a Parquet file stores columns separately: one is enough to read
            narrow = replace(self, collection=self.collection[list(self.collection.columns[:1])])
            parts = narrow if len(narrow) == len(self) else self  # Dask may read several small files as one part
        try:
            return [rows or 0 for rows in compute(parts.map(_length), self.client)]  # None for a part without rows
        except KeyError as column:
            raise InputError(f"a partition of {self.name} has no column {column}; all need the same columns.") from None

    @property
    def rows(self) -> int:
        """The number of rows of all parts."""
        return sum(self.counts)

    def chunks(self, skip: Skip) -> Iterator[Table]:
        """Yield the parts as tables on this machine, one after the other, without the rows to `skip`."""
        for outcome in self.map(read_chunk, self.selection):
            (table,) = compute([outcome], self.client)
            if table is not None and not skip.consume(len(table)):
                yield skip.rest_of(table)

    def draw(self, count: int, rng: np.random.Generator, spread: int) -> tuple[Table | None, int]:
        """Draw `count` rows from all parts, in one graph; return them as a table, and the number of all rows.

        `spread` is a parameter of other kinds of parts, and is not used here.
        """
        if count == 0 or self.rows == 0:
            return None, self.rows
        drawn = draw_rows(self.rows, count, rng)  # sorted positions among the rows of all parts
        starts = np.cumsum([0, *self.counts[:-1]])  # position of the first row of each part
        drawn_by_part = np.split(drawn, np.searchsorted(drawn, starts[1:]))
        indices = [rows - start for rows, start in zip(drawn_by_part, starts, strict=True)]  # positions in each part
        outcomes = self.map(_read_rows, self.selection, each=indices)
        nonempty = [outcome for outcome, index in zip(outcomes, indices, strict=True) if len(index)]
        return join_tables(compute(nonempty, self.client), self.name), self.rows

    def map(self, work: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Return a Delayed outcome of ``work(table, name, *arguments)`` for each part; its value is None without rows.

        `name` is that of the sample. The arguments are in the graph once, not in every task. `each` has a last
        argument of `work` for each part; None means that `work` takes none.
        """
        run = import_dask().delayed(_run_on_part, pure=False)
        call = in_graph((work, self.name, *arguments))
        if each is None:
            return [run(table, call, number) for number, table in enumerate(self.tables)]
        pairs = zip(self.tables, each, strict=True)
        return [run(table, call, number, argument) for number, (table, argument) in enumerate(pairs)]

    def map_fused(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return Delayed outcomes of ``work(table, name, *arguments)`` in the order of the rows, as `map` does.

        Reading a part and working on it becomes one task where Dask can fuse the two, so that the part is neither kept
        nor sent to another worker. Dask may combine small parts.
        """
        call, kind = in_graph((work, self.name, *arguments)), dask_kind(self.collection)
        # with an example of a result, `meta`, Dask does not try the function
        if kind == "DataFrame":
            meta = (None, object)
            mapped = self.collection.map_partitions(_run_on_partition, call, meta=meta, enforce_metadata=False)
        elif kind == "Array":
            example = np.empty((0, 0), dtype=object)
            mapped = import_dask().array.map_blocks(
                _run_on_block, self.collection, call=call, dtype=object, meta=example
            )
        else:
            return self.map(work, *arguments)
        return list(np.ravel(mapped.to_delayed()))

    def no_rows(self) -> InputError:
        """Return the error for a sample without rows."""
        return InputError(f"{self.name} has no rows in any of its {len(self)} partitions; pass some rows.")


def in_graph(value: Any) -> Any:
    """Return an object as a Delayed, in the graph once; a scheduler can send it again when a worker is lost."""
    return import_dask().delayed(value, pure=False, traverse=False)


def _run_on_part(table: Any, call: tuple[Any, ...], number: int, *last_argument: Any) -> Outcome:
    """Return the outcome of a function on part `number` of a sample; its value is None if the part has no rows.

    `call` holds the function, the sample's name and the arguments that are the same for all parts.
    """
    work, name, *arguments = call
    if not isinstance(table, str) and hasattr(table, "__len__") and not len(table):  # no rows
        return Outcome(None)
    return Outcome.run(work, table, name, *arguments, *last_argument, place=f"partition {number}")


def _run_on_partition(table: Any, call: tuple[Any, ...], partition_info: Any = None) -> Outcome:
    """Call `_run_on_part` for a partition of a Dask DataFrame; Dask passes `partition_info`."""
    return _run_on_part(table, call, partition_info["number"])


def _run_on_block(block: Any, call: tuple[Any, ...], block_id: Any = None) -> Outcome:
    """Call `_run_on_part` for a block of a Dask Array; Dask passes `block_id`, its row and column of blocks."""
    return _run_on_part(block, call, block_id[0])


def _length(table: Any, name: str) -> int:
    """Return the number of rows of a part; the sample's `name`, which every task gets, is not used."""
    return len(table)


def _table_of_records(records: Any) -> Any:
    """Return a partition of a Dask Bag as a table: mappings as a data frame, sequences as a list of rows."""
    records = list(records)
    if records and isinstance(records[0], Mapping):
        import pandas

        return pandas.DataFrame(records)
    return records


def _read_rows(part: Any, name: str, selection: ColumnSelection, rows: Index) -> Table:
    """Read the rows of a part at the positions `rows`; an array or a frame is sliced first, to convert no other row."""
    if isinstance(part, np.ndarray):
        return read_chunk(part[rows], name, selection)
    frame = frame_of(part, name)
    if frame is not None:
        return read_chunk(nw.to_native(nw.from_native(frame, eager_only=True)[rows]), name, selection)
    return read_chunk(part, name, selection).take(rows)
