"""How rows become numbers, fixed by one sample and the same for all that come after it.

Label shift holds for every function of a row as long as it is one and the same function for all rows. So the columns,
their encoding and their scale are decided once, by the first sample, and travel with what is made of it.

The rows of a sample as numbers, in the batches that they come in, with what each row counts."""

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
from priorshift.io.chunk_parts import AnyTable
from priorshift.io.chunks import Chunks
from priorshift.io.encoding import TableEncoder, converted
from priorshift.io.header_fields import Fields
from priorshift.io.mixed_tables import MixedTable, is_missing, read_columns
from priorshift.io.scaling import Scaling
from priorshift.io.tables import LARGEST, Table, check_dropped, check_finite, match_columns
from priorshift.io.weights import weights_of_part
from priorshift.progress import RowProgress
from priorshift.warning_records import warn

_FIRST = "the sample that fixed the columns"
_QUANTITIES = ("number", "date")


@dataclass(frozen=True, eq=False)
class RowReader:
    """Columns, encoding and scale, as one sample fixed them.

    Attributes
    ----------
    columns : tuple of str or None
        Their names, in order; None where they have none.
    width : int
        How many columns there are.
    drop : tuple of str
        Columns that are left out of every table that has them.
    encoder : TableEncoder or None
        None where all columns are numbers.
    scaling : Scaling
        Of the encoded columns.
    """

    columns: tuple[str, ...] | None
    width: int
    drop: tuple[str, ...]
    encoder: TableEncoder | None
    scaling: Scaling

    @classmethod
    def of(cls, table: Table | MixedTable, *, drop: Sequence[str] = (), standardize: bool = True) -> RowReader:
        """Fix how rows are read.

        Parameters
        ----------
        table : Table or MixedTable
            Rows that stand for all.
        drop : sequence of str
            Columns to leave out.
        standardize : bool
            Whether columns are brought to variance 1, and columns without spread are left out.

        Returns
        -------
        RowReader

        Examples
        --------
        >>> from priorshift.io.mixed_tables import read_columns
        >>> from priorshift.sketch.row_reader import RowReader
        >>> reader = RowReader.of(read_columns([[1.0, 7.0], [3.0, 7.0]], "source"))
        >>> reader([[5.0, 7.0]], "target")
        array([[3.]])
        """
        table = without(table, drop)
        check_dropped([table], drop)
        encoder = None
        if isinstance(table, MixedTable):
            encoder = TableEncoder().fit(table)
            numbers = encoder.table(encoder.fitting(table))
        else:
            numbers = table
        check_finite(numbers)
        scaling = Scaling.of(numbers.values, np.arange(len(numbers.values)), standardize, numbers.origin)
        return cls(table.columns, table.width, tuple(drop), encoder, scaling)

    def dropping(self, drop: Sequence[str]) -> RowReader:
        """Leave other columns out of the tables that come after the first one.

        Parameters
        ----------
        drop : sequence of str
            All of them.

        Returns
        -------
        RowReader
        """
        return replace(self, drop=tuple(drop))

    @property
    def used(self) -> Index:
        """Which encoded columns are not left out.

        Returns
        -------
        ndarray of int
        """
        return np.flatnonzero(self.scaling.factor)

    @property
    def features(self) -> int:
        """How many numbers a row becomes.

        Returns
        -------
        int
        """
        return len(self.used)

    @property
    def dimension(self) -> int:
        """How many columns these numbers come from: a category counts as one, however many levels it has.

        Returns
        -------
        int
        """
        return self.scaling.features

    @property
    def fingerprint(self) -> str:
        """A text that two readers share only if they read every row alike.

        Returns
        -------
        str
        """
        text = json.dumps(self.to_header(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __call__(self, batch: Any, name: str) -> Floats:
        """Read rows of any sample.

        Parameters
        ----------
        batch : array-like, data frame, path, Table or MixedTable
            With the columns that were fixed, in any order where they have names.
        name : str
            What messages call it.

        Returns
        -------
        ndarray of shape (rows, features)
            Scaled numbers.
        """
        read = read_columns(batch, name, (), self.drop)
        table = self._numbers(without(read, self.drop))  # a Table comes as it is
        check_finite(table)
        if varies := self.scaling.left_out_of(table):
            warn(
                f"Left out {', '.join(varies)}: constant in {_FIRST} but not in {name}; if it matters, fix the "
                "columns by a sample in which it varies.",
                ColumnWarning,
            )
        return (table.values[:, self.used] - self.scaling.shift[self.used]) * self.scaling.factor[self.used]

    def _numbers(self, table: Table | MixedTable) -> Table:
        """A table of any kind as the first one was, with its columns in its order."""
        if self.encoder is not None:
            mixed = MixedTable.of(table) if isinstance(table, Table) else table
            mixed = self.encoder.fitting(mixed, _FIRST)
            self._refuse_gaps(mixed)
            return self.encoder.table(mixed)
        if isinstance(table, Table):
            return match_columns([Table(_FIRST, np.empty((0, self.width)), self.columns), table])[1]
        nothing = tuple(np.empty(0) for _ in range(self.width))
        mixed = match_columns([MixedTable(_FIRST, nothing, self.columns), table])[1]
        cells = tuple(converted(column, "number", mixed, k, _FIRST) for k, column in enumerate(mixed.cells))
        self._refuse_gaps(replace(mixed, cells=cells, native=None))
        return Table(mixed.name, np.column_stack(cells), mixed.columns, mixed.aside, mixed.dropped)

    def _refuse_gaps(self, table: MixedTable) -> None:
        """A missing number or date can only be read where the first sample said what becomes of it."""
        for k, cells in enumerate(table.cells):
            known = self.encoder is not None and (self.encoder.kinds[k] not in _QUANTITIES or self.encoder.has_gaps(k))
            if not known and (missing := is_missing(cells)).any():
                raise InputError(
                    f"{table.name} has no value in row {missing.argmax()} (counting from 0), {table.column(k)}, but "
                    f"{_FIRST} has one in every row, so nothing tells what to put there; fill it in, for example by "
                    "the column's median, leave the row out, or drop the column from all samples. (In memory, with "
                    "stream=False, it is filled in.)"
                )

    def to_header(self) -> dict[str, Any]:
        """Give all of it in words and numbers.

        Returns
        -------
        dict
            What JSON can hold.
        """
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
        """Make a reader of what `to_header` gave.

        Parameters
        ----------
        header : dict
            Of a file, perhaps of someone else's; it is checked.

        Returns
        -------
        RowReader
        """
        fields = Fields(header, "columns width drop encoder shift factor constant", "how rows are read")
        columns, width = None if fields.is_none("columns") else fields.texts("columns"), fields.whole("width", 1)
        if columns is not None and len(columns) != width:
            raise fields.refused(f"it has {len(columns)} names for {width} columns")
        encoder = None if fields.is_none("encoder") else TableEncoder.from_header(header["encoder"])
        origin = None if encoder is None else encoder.origin
        if encoder is not None and (encoder.n_features_in_, encoder.names) != (width, columns):
            raise fields.refused("its encoding is of other columns")
        made = width if origin is None else len(origin.of)
        shift, factor = fields.numbers("shift", made), fields.numbers("factor", made)
        if (factor < 0).any() or not factor.any() or max(factor.max(), np.abs(shift).max()) > LARGEST:
            raise fields.refused("its factors are not those of a scale")
        constant = np.flatnonzero(factor == 0)
        scaling = Scaling(shift, factor, constant, fields.numbers("constant", len(constant)), origin)
        return cls(columns, width, fields.texts("drop"), encoder, scaling)


def without(table: Table | MixedTable, drop: Sequence[str]) -> Table | MixedTable:
    """Leave some columns out of a table, which it need not have.

    Parameters
    ----------
    table : Table or MixedTable
        Any.
    drop : sequence of str
        The columns.

    Returns
    -------
    Table or MixedTable
        Which knows which of them were there.
    """
    columns = table.columns or ()
    gone = tuple(column for column in columns if column in drop)
    if not gone:
        return table
    kept = [k for k, column in enumerate(columns) if column not in gone]
    return replace(table.arranged(kept, tuple(columns[k] for k in kept)), dropped=(*table.dropped, *gone))


def read_batches(sample: Any, drop: tuple[str, ...], weights: Any, name: str = "the sample") -> Chunks:
    """Read a sample in batches, with a column of weights set aside.

    Parameters
    ----------
    sample : array-like, data frame, path, Chunks, or iterable of such tables
        As :meth:`Sketch.of` takes it.
    drop : tuple of str
        Columns that are no features; one of them may be the column of weights.
    weights : None, str or array-like
        What rows count, or the column that says it.
    name : str
        What messages call it.

    Returns
    -------
    Chunks
    """
    if not isinstance(weights, str):
        return Chunks.of(sample, name, drop=drop)
    return Chunks.of(sample, name, aside=[weights], drop=[column for column in drop if column != weights])


def dropped_of(samples: Mapping[str, Chunks], drop: Sequence[str], names: Sequence[str]) -> list[str]:
    """Look which of the columns to drop stand in some of the samples, by their first rows.

    Parameters
    ----------
    samples : mapping of str to Chunks
        By their names.
    drop : sequence of str
        Columns, each of which one sample at least must have.
    names : sequence of str
        Of the samples that are asked about.

    Returns
    -------
    list of str
    """
    if not drop:
        return []
    first = {name: without(batches.first(), drop) for name, batches in samples.items()}
    check_dropped(list(first.values()), drop)
    return [column for column in drop if any(column in first[name].dropped for name in names)]


def weights_of_each(samples: Mapping[str, Chunks], weights: str) -> dict[str, str | None]:
    """Look which samples have a column of weights, by their first rows.

    Parameters
    ----------
    samples : mapping of str to Chunks
        By their names; the column is set aside where it is there.
    weights : str
        The column, which one of them at least must have.

    Returns
    -------
    dict
        The column for a sample that has it, and None for one whose rows count alike.
    """
    first = {name: batches.first() for name, batches in samples.items()}
    found = {name: weights in (*table.aside, *(table.columns or ())) for name, table in first.items()}
    if not any(found.values()):
        raise InputError(f"no table has a column {weights!r}; name the column of the weights.")
    return {name: weights if there else None for name, there in found.items()}


def weighted_rows(batches: Chunks, reader: RowReader, weights: Any = None, after: int = 0) -> Iterator[Weighted]:
    """Read the rows of each batch, and what they count.

    Parameters
    ----------
    batches : Chunks
        Of one sample.
    reader : RowReader
        How rows become numbers.
    weights : None, str or array-like
        As in `read_batches`; an array where it is known how many rows there are.
    after : int
        Rows that are passed over.

    Yields
    ------
    rows : ndarray of shape (rows, features)
    weights : ndarray of shape (rows,) or None
    """
    of_all = None if weights is None or isinstance(weights, str) else _of_all(batches, weights)
    done = after
    with RowProgress(f"sketching {batches.name}", batches.rows) as more:
        more(after)
        for batch in batches.after(after) if after else batches:
            rows = reader(batch, batch.name)
            more(len(rows))
            if of_all is not None:
                yield rows, of_all[done : done + len(rows)]
            else:
                yield rows, _column(batch, weights, len(rows))
            done += len(rows)


def _of_all(batches: Chunks, weights: Any) -> Floats:
    if batches.rows is None:
        raise InputError(
            f"weights of {batches.name} are an array, but how many rows come is not known beforehand; put them into a "
            "column, and pass its name."
        )
    return weights_of_part(weights, batches.rows)


def _column(batch: AnyTable, weights: str | None, rows: int) -> Floats | None:
    if weights is None:
        return None
    if weights not in batch.aside:
        raise InputError(
            f"{batch.name} has no column {weights!r} set aside; pass aside=[{weights!r}] to Chunks.of, or the table "
            "itself."
        )
    return weights_of_part(batch.aside[weights], rows, f"the column {weights!r} of {batch.name}")
