"""How rows become numbers: columns, encoding and scale, fixed by one sample and applied to all others.

Label shift holds for every function of a row as long as it is the same function for all rows. So columns, encoding and
scale are decided once, by the first sample, and are stored with whatever is computed from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorshift.arrays import Floats, Index
from priorshift.embedding.moments import Weighted
from priorshift.errors import ColumnWarning, InputError
from priorshift.io.cells import is_missing
from priorshift.io.chunks import Chunks
from priorshift.io.encoding import TableEncoder, convert_column
from priorshift.io.files import Fields
from priorshift.io.readers import read_table
from priorshift.io.scaling import Scaling
from priorshift.io.tables import LARGEST, ColumnSelection, Table, check_dropped, check_finite, match_columns
from priorshift.io.weights import weights_of_part
from priorshift.progress import track_progress
from priorshift.warning_records import warn

_FIRST = "the sample that fixed the columns"


@dataclass(frozen=True, eq=False)
class RowReader:
    """Columns, encoding and scale, as one sample fixed them."""

    columns: tuple[str, ...] | None  # names in order; None where columns have none
    width: int  # number of columns
    drop: tuple[str, ...]  # columns that are left out of every table that has them
    encoder: TableEncoder | None  # None where all columns are numbers
    scaling: Scaling  # of the encoded columns

    @classmethod
    def fit(cls, table: Table, *, drop: Sequence[str] = (), standardize: bool = True) -> RowReader:
        """Fix how rows are read, by some rows; `standardize` scales columns and leaves out constant ones."""
        table = table.without(drop)
        check_dropped([table], drop)
        encoder = None
        if table.cells:
            encoder = TableEncoder().fit(table)
            numbers = encoder.encode_table(encoder.convert(table))
        else:
            numbers = table
        check_finite(numbers)
        scaling = Scaling.of(numbers.values, np.arange(len(numbers.values)), standardize, numbers.origin)
        return cls(table.columns, table.width, tuple(drop), encoder, scaling)

    @property
    def used(self) -> Index:
        """Indices of the encoded columns that are not left out."""
        return np.flatnonzero(self.scaling.factor)

    @property
    def n_features(self) -> int:
        """How many numbers a row becomes."""
        return len(self.used)

    @property
    def dimension(self) -> int:
        """How many columns these numbers come from: a category counts as one, however many levels it has."""
        return self.scaling.features

    @property
    def fingerprint(self) -> str:
        """A hash that two readers share only if they read every row in the same way."""
        text = json.dumps(self.to_header(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __call__(self, rows: Any, name: str) -> Floats:
        """Convert rows to scaled numbers, of shape (rows, features); named columns may be in any order."""
        read = read_table(rows, name, ColumnSelection(drop=self.drop))
        table = self._to_numbers(read.without(self.drop))  # a Table is read as it is
        check_finite(table)
        if varying := self.scaling.left_out_of(table):
            warn(
                f"Left out {', '.join(varying)}: constant in {_FIRST} but not in {name}; if it matters, fix the "
                "columns by a sample in which it varies.",
                ColumnWarning,
            )
        return (table.values[:, self.used] - self.scaling.shift[self.used]) * self.scaling.factor[self.used]

    def _to_numbers(self, table: Table) -> Table:
        """Encode a table, with its columns in the order of the first one."""
        if self.encoder is not None:
            mixed = self.encoder.convert(table.as_cells(), _FIRST)
            self._check_missing(mixed)
            return self.encoder.encode_table(mixed)
        if not table.cells:
            return match_columns([Table(_FIRST, np.empty((0, self.width)), self.columns), table])[1]
        no_rows = tuple(np.empty(0) for _ in range(self.width))
        mixed = match_columns([Table(_FIRST, np.empty((0, 0)), self.columns, cells=no_rows), table])[1]
        cells = tuple(convert_column(column, "number", mixed, k, _FIRST) for k, column in enumerate(mixed.cells))
        self._check_missing(replace(mixed, cells=cells, native=None))
        return Table(mixed.name, np.column_stack(cells), mixed.columns, mixed.extra, mixed.dropped)

    def _check_missing(self, table: Table) -> None:
        """Refuse missing numbers and dates in columns where the first sample had none, so that no fill is known."""
        for k, cells in enumerate(table.cells):
            column = None if self.encoder is None else self.encoder.summary_.columns[k]
            known = column is not None and (not column.is_quantity or column.gaps)
            if not known and (missing := is_missing(cells)).any():
                raise InputError(
                    f"{table.name} has no value in row {missing.argmax()} (counting from 0), {table.column(k)}, but "
                    f"{_FIRST} has no missing value there, so that none can be filled in. Fill it in, for example with "
                    "the column's median, leave the row out, or drop the column from all samples. (In memory, with "
                    "stream=False, it is filled in.)"
                )

    def to_header(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "columns": None if self.columns is None else list(self.columns),
            "width": self.width,
            "drop": list(self.drop),
            "encoder": None if self.encoder is None else self.encoder.to_header(),
            "shift": self.scaling.shift.tolist(),
            "factor": self.scaling.factor.tolist(),
            "constant": self.scaling.value.tolist(),
        }

    @classmethod
    def from_header(cls, header: Any) -> RowReader:
        """Build a reader from what `to_header` returned, perhaps in someone else's file; it is checked."""
        fields = Fields(header, "columns width drop encoder shift factor constant", "how rows are read")
        columns, width = None if fields.is_none("columns") else fields.texts("columns"), fields.whole("width", 1)
        if columns is not None and len(columns) != width:
            raise fields.refused(f"it has {len(columns)} names for {width} columns")
        encoder = None if fields.is_none("encoder") else TableEncoder.from_header(header["encoder"])
        origin = None if encoder is None else encoder.origin
        if encoder is not None and (encoder.n_features_in_, encoder.names) != (width, columns):
            raise fields.refused("its encoding is of other columns")
        encoded = width if origin is None else len(origin.of)
        shift, factor = fields.numbers("shift", encoded), fields.numbers("factor", encoded)
        if (factor < 0).any() or not factor.any() or max(factor.max(), np.abs(shift).max()) > LARGEST:
            raise fields.refused("its factors are not those of a scale")
        constant = np.flatnonzero(factor == 0)
        scaling = Scaling(shift, factor, constant, fields.numbers("constant", len(constant)), origin)
        return cls(columns, width, fields.texts("drop"), encoder, scaling)


def columns_to_drop(streams: Mapping[str, Chunks], drop: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return which of the columns to drop the named samples have, by their first rows; every column must exist."""
    if not drop:
        return []
    first = {name: chunks.first().without(drop) for name, chunks in streams.items()}
    check_dropped(list(first.values()), drop)
    return [column for column in drop if any(column in first[name].dropped for name in names)]


def weight_columns(streams: Mapping[str, Chunks], weights: str | None) -> dict[str, str | None]:
    """Return the column of weights for every sample that has it, by its first rows, and None for the others."""
    if weights is None:
        return dict.fromkeys(streams)
    first = {name: chunks.first() for name, chunks in streams.items()}
    has_weights = {name: weights in (*table.extra, *(table.columns or ())) for name, table in first.items()}
    if not any(has_weights.values()):
        raise InputError(f"no table has a column {weights!r}; name the column of the weights.")
    return {name: weights if has else None for name, has in has_weights.items()}


def open_chunks(sample: Any, drop: Sequence[str], weights: Any, name: str = "the sample") -> Chunks:
    """Open a sample for reading in chunks, with its column of weights, if that is a name, set aside."""
    if not isinstance(weights, str):
        return Chunks.from_source(sample, name, drop=drop)
    return Chunks.from_source(sample, name, extra=[weights], drop=[column for column in drop if column != weights])


def weighted_rows(chunks: Chunks, reader: RowReader, weights: Any = None, skip: int = 0) -> Iterator[Weighted]:
    """Yield the rows of each chunk as numbers, with their weights: a column, an array for all rows, or None."""
    all_weights = None if weights is None or isinstance(weights, str) else _weights_of_all(chunks, weights)
    done = skip
    with track_progress(f"sketching {chunks.name}", chunks.rows, "rows") as advance:
        advance(skip)
        for chunk in chunks.after(skip) if skip else chunks:
            rows = reader(chunk, chunk.name)
            advance(len(rows))
            if all_weights is not None:
                yield rows, all_weights[done : done + len(rows)]
            else:
                yield rows, None if weights is None else _weights_of_chunk(chunk, weights, len(rows))
            done += len(rows)


def _weights_of_all(chunks: Chunks, weights: Any) -> Floats:
    if chunks.rows is None:
        raise InputError(
            f"weights of {chunks.name} are an array, but its number of rows is not known in advance. Put the weights "
            "into a column, and pass its name."
        )
    return weights_of_part(weights, chunks.rows)


def _weights_of_chunk(chunk: Table, weights: str, rows: int) -> Floats:
    if weights not in chunk.extra:
        raise InputError(f"{chunk.name} has no column {weights!r}; pass extra=[{weights!r}] to Chunks.from_source.")
    return weights_of_part(chunk.extra[weights], rows, f"the column {weights!r} of {chunk.name}")
