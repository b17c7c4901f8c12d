"""Reading what users have: arrays, lists, data frames of any library, CSV and Parquet files.

Everything becomes a :class:`Table`: a matrix of finite numbers, the names of its columns where it has any,
and the columns that were set aside (an id, a label).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from priorshift.errors import InputError, InputTypeError
from priorshift.input.csv_text import read_csv

_LARGEST = 1e150  # squares of larger values overflow


@dataclass(frozen=True, eq=False)
class Table:
    """A named matrix of finite numbers, and the columns set aside from it."""

    name: str
    values: NDArray[Any]
    columns: tuple[str, ...] | None = None
    aside: dict[str, NDArray[Any]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def column(self, number: int) -> str:
        return f"column {self.columns[number]!r}" if self.columns else f"column {number}"


def read_table(
    source: Any, name: str, aside: Sequence[str] = (), drop: Sequence[str] = (), optional: Sequence[str] = ()
) -> Table:
    """Read `source`: a 2-D array, a list of rows, a data frame, or the path of a CSV or Parquet file.

    Parameters
    ----------
    source : array-like, data frame, path or Table
        Any eager frame that narwhals knows (pandas, polars, pyarrow, …) is read by its columns.
    name : str
        What messages call it.
    aside : sequence of str
        Columns that are not features, such as an id or a label; they may hold text.
    drop : sequence of str
        Columns to leave out, where they are there.
    optional : sequence of str
        Columns to set aside, where they are there.

    Examples
    --------
    >>> from priorshift.input.tables import read_table
    >>> read_table([[1, 2.5], [3, 4]], "target").values
    array([[1. , 2.5],
           [3. , 4. ]])
    """
    if isinstance(source, (str, Path)):
        table = _from_file(Path(source), name, aside, drop, optional)
    elif isinstance(source, Table):
        return source
    elif type(source).__name__ == "RecordBatch" and type(source).__module__.startswith("pyarrow"):
        import pyarrow

        table = _from_frame(pyarrow.Table.from_batches([source]), name, aside, drop, optional)
    elif isinstance(source, (nw.DataFrame, nw.LazyFrame)) or nw.dependencies.is_into_dataframe(source):
        table = _from_frame(source, name, aside, drop, optional)
    else:
        table = _from_array(source, name)
        for column in aside:
            raise InputError(
                f"{name} is an array without column names, so it has no column {column!r}; pass a data frame."
            )
    _check(table)
    return table


def match_columns(tables: Sequence[Table]) -> list[Table]:
    """The same tables with the columns of the first one that has names, in its order.

    Columns are matched by name; a table without names is matched by position.
    """
    first = tables[0]
    named = next((table for table in tables if table.columns), first)
    matched = []
    for table in tables:
        if table.columns and named.columns:
            missing = [c for c in named.columns if c not in table.columns]
            extra = [c for c in table.columns if c not in named.columns]
            if missing or extra:
                said = [f"lacks {_names(missing)}"] * bool(missing) + [f"has {_names(extra)} besides"] * bool(extra)
                raise InputError(
                    f"{table.name} {' and '.join(said)}, compared with {named.name}; pass the same columns "
                    "(their order does not matter), or drop those that are not features."
                )
            order = [table.columns.index(c) for c in named.columns]
            if order != list(range(len(order))):
                table = replace(table, values=table.values[:, order], columns=named.columns)
        if table.values.shape[1] != first.values.shape[1]:
            raise InputError(
                f"{table.name} has {table.values.shape[1]} features but {first.name} has {first.values.shape[1]}; "
                "pass the same columns in the same order."
            )
        matched.append(table)
    return matched


def check_dropped(tables: Sequence[Table], drop: Iterable[str]) -> None:
    """A column to drop must be in one table at least: a misspelt name must not pass."""
    for wanted in drop:
        if not any(wanted in table.dropped for table in tables):
            raise InputError(
                f"no table has a column {wanted!r} to drop; the columns of {tables[0].name} are "
                f"{_names(tables[0].columns or ('unnamed',))}."
            )


def _from_array(source: Any, name: str) -> Table:
    if issparse(source):
        raise InputTypeError(f"{name} is a sparse matrix, but dense numbers are expected; pass {name}.toarray().")
    if type(source).__name__ == "LazyFrame":
        raise _lazy(name)
    if np.ma.is_masked(source):
        raise InputError(f"{name} has masked cells, which have no value; fill them in or leave their rows out.")
    try:
        array = np.asarray(source)
    except ValueError:
        raise InputError(
            f"{name} has rows of different lengths; pass a table with the same columns in every row."
        ) from None
    if np.iscomplexobj(array):
        raise InputError(f"Complex data not supported: {name} holds complex numbers; pass real ones.")
    if array.ndim != 2:
        raise InputError(
            f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)}, but rows and columns are expected. "
            "Reshape your data with .reshape(-1, 1) if it is a single feature, or .reshape(1, -1) for a single row."
        )
    if array.dtype.kind in "biuf":
        return Table(name, array if array.dtype.itemsize <= 8 else array.astype(np.float64))
    if array.dtype.kind in "mM":
        raise InputError(
            f"{name} holds dates, but numbers are expected; encode them, for example as days since a date."
        )
    return Table(name, _to_float(array, name))


def _lazy(name: str) -> InputTypeError:
    return InputTypeError(f"{name} is a lazy frame, but its rows are needed; call .collect() on it first.")


def _to_float(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Objects or strings as floats, or a sentence about the first that is not a number."""
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InputError(f"{name} holds a whole number too large for a float; rescale its column.") from None
    except (TypeError, ValueError):
        pass
    values = np.empty(array.shape)
    for (i, j), cell in np.ndenumerate(array):
        try:
            values[i, j] = float(cell)
        except (TypeError, ValueError):
            kind = InputError if isinstance(cell, str) or cell is None else InputTypeError
            shown = "an empty cell (None)" if cell is None else repr(str(cell) if isinstance(cell, str) else cell)
            raise kind(
                f"{name} holds {shown} in row {i}, column {j}, but a cell argument must be a string or a number that "
                "float() reads; encode it as a number or leave the column out."
            ) from None
    return values


def _from_frame(source: Any, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]) -> Table:
    if isinstance(source, nw.LazyFrame):
        raise _lazy(name)
    if nw.dependencies.is_pandas_dataframe(source):  # whose names may be numbers, tuples or repeated
        source = source.set_axis([str(c) for c in source.columns], axis=1)
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    _check_columns(name, columns, aside)
    aside = [*aside, *optional]
    frame = nw.from_native(source, eager_only=True)
    features = []
    kept = {}
    for column in columns:
        if column in drop:
            continue
        series = frame[column]
        if column in aside:
            kept[column] = series.to_numpy()
            continue
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            # a column of Python objects may still hold numbers
            values = _to_float(np.array(series.to_list(), dtype=object)[:, None], name) if _objects(series) else None
            if values is None:
                example = next((v for v in series.to_list() if v is not None), None)
                raise InputError(
                    f"{name} holds {example!r} in column {column!r} (type {series.dtype}), but numbers are expected; "
                    "encode it as numbers or drop the column."
                )
            features.append(values[:, 0])
            continue
        if series.null_count():
            row = series.is_null().to_list().index(True)
            raise InputError(f"{name} has no value in row {row}, column {column!r}; fill it in or leave the row out.")
        features.append(_to_float(np.array(series.to_list(), dtype=object)[:, None], name)[:, 0]
                        if series.dtype in (nw.Int128, nw.UInt128, nw.Decimal) else series.to_numpy())  # fmt: skip
    names = tuple(c for c in columns if c not in aside and c not in drop)
    values = np.column_stack(features) if features else np.empty((len(frame), 0))
    dropped = tuple(c for c in columns if c in drop)
    return Table(name, values if values.dtype.kind == "f" else values.astype(np.float64), names, kept, dropped)


def _objects(series: Any) -> bool:
    return bool(series.dtype == nw.Object)


def _check_columns(name: str, columns: Sequence[str], aside: Iterable[str]) -> None:
    for column in columns:
        if not column or column.startswith("__index_level_"):
            raise InputError(
                f"{name} has a column named {column!r}, which looks like a data frame's row numbers; write the file "
                "without its index (index=False), or name the column."
            )
    twice = sorted({c for c in columns if columns.count(c) > 1})
    if twice:
        raise InputError(f"{name} has more than one column named {_names(twice)}; give every column its own name.")
    for wanted in aside:
        if wanted not in columns:
            raise InputError(f"{name} has no column {wanted!r}; its columns are {_names(columns)}.")


def _names(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(c) for c in columns[:8])
    return shown + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")


def _from_file(path: Path, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]) -> Table:
    name = f"{name} ({path})"
    try:
        folder = path.is_dir()
    except (OSError, ValueError):  # a text too long for a path, or with a zero in it
        raise InputError(f"{str(path)[:40]!r} is not a path; pass a table or the path of a file.") from None
    if folder:
        raise InputError(f"{name} is a folder, but a file is expected; pass the path of a CSV or Parquet file.")
    if not path.exists():
        raise InputError(f"{name} does not exist; check the path.")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error.strerror}); check its permissions.") from None
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return _from_parquet(path, head, name, aside, drop, optional)
    if suffix not in (".csv", ".tsv", ".txt"):
        raise InputError(
            f"{name} ends in {suffix!r}, but .csv, .tsv, .txt and .parquet are what can be read; convert it."
        )
    if head.startswith(b"PAR1"):
        raise InputError(f"{name} is a Parquet file with the name of a CSV file; rename it to .parquet.")
    if b"\0" in head:
        raise InputError(f"{name} is a binary file, not text; pass a CSV file, saved as UTF-8.")
    if not head.strip():
        raise InputError(f"{name} is empty; pass a file with a header and at least two rows.")
    header, names, columns = read_csv(
        path, name, aside, drop, lambda found: _check_columns(name, found, aside), optional
    )
    if names is None or header is None:
        return Table(name, np.column_stack(columns))
    kept = {h: np.array(c) for h, c in zip(names, columns, strict=True) if isinstance(c, list)}
    features = {h: c for h, c in zip(names, columns, strict=True) if h not in kept}
    values = np.column_stack(list(features.values())) if features else np.empty((len(columns[0]) if columns else 0, 0))
    return Table(name, values, tuple(features), kept, tuple(h for h in header if h in drop))


def _from_parquet(
    path: Path, head: bytes, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]
) -> Table:
    if not head.startswith(b"PAR1"):
        raise InputError(f"{name} is not a Parquet file, whatever its name says; rename it to what it is.")
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError:
        raise InputError(
            f'{name} needs pyarrow to be read; run pip install "priorshift[parquet]", or pass a CSV file.'
        ) from None
    try:
        frame = parquet.read_table(path)
    except (ArrowException, OSError):
        raise InputError(f"{name} is a damaged Parquet file; write it again.") from None
    return _from_frame(frame, name, aside, drop, optional)


def _check(table: Table) -> None:
    """Rows, features, finite numbers, of a size that can be squared."""
    name, values = table.name, table.values
    if values.shape[1] == 0:
        raise InputError(
            f"{name} has 0 feature(s) (shape={values.shape}) while a minimum of 1 is required; pass some columns."
        )
    if values.shape[0] == 0:
        raise InputError(
            f"{name} has 0 row(s) (shape={values.shape}) while a minimum of 1 is required; pass some rows."
        )
    if values.dtype.kind != "f":
        return
    # One number tells whether all is well; only then is it worth looking for the culprit.
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(abs(float(values.min())), abs(float(values.max())))
    if largest <= _LARGEST:
        return
    bad = ~np.isfinite(values) if not np.isfinite(largest) else np.abs(values) > _LARGEST
    row, column = (int(k) for k in np.argwhere(bad)[0])
    cell = values[row, column]
    where = f"row {row} (counting from 0), {table.column(column)}"
    if np.isnan(cell):
        raise InputError(f"{name} contains NaN in {where}; fill in the missing value or leave the row out.")
    if np.isinf(cell):
        raise InputError(f"{name} contains infinity (inf) in {where}; replace it by a number or leave the row out.")
    raise InputError(
        f"{name} holds {cell:.3g} in {where}, whose square overflows; rescale the column, for example by its unit."
    )
