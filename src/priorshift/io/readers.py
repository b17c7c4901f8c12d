"""Reading what users have into a :class:`Table`: arrays, lists, data frames of any library, CSV and Parquet files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from priorshift.errors import InputError, InputTypeError
from priorshift.io.cells import cells_of_array, cells_of_series, object_cells
from priorshift.io.csv_text import Column, read_csv
from priorshift.io.files import Piped, check_text, is_pipe, read_pipe, text_or_parquet
from priorshift.io.tables import ColumnSelection, Table, check_columns, check_finite, check_numbers, check_shape

_ROWS = 65_536  # that are decoded at a time; a row group is often the whole file
_BUFFER = 1 << 20  # bytes of a column that are read at a time, instead of all that a row group holds


def read_numbers(
    path: Path, name: str, selection: ColumnSelection
) -> tuple[list[str], tuple[NDArray[Any], Any] | None]:
    """Read the names of all columns, and the matrix of the features with an arrow table of the extra columns.

    The latter two are None where a feature has a null cell or is not of plain numbers.
    """
    with _opened(path, name) as file:
        columns = list(file.schema_arrow.names)
        check_columns(name, columns, selection.extra)
        apart = {*selection.extra, *selection.optional}
        values = _numbers(file, [c for c in columns if c not in selection.drop and c not in apart])
        extra = [c for c in columns if c in apart and c not in selection.drop]
        return columns, None if values is None else (values, file.read(columns=extra).select(extra))


def read_frame(path: Path, name: str, columns: list[str]) -> Any:
    """Read some columns as an arrow table."""
    with _opened(path, name) as file:
        return file.read(columns=columns).select(columns)


def row_groups(path: Path, name: str) -> tuple[list[str], list[int]]:
    """Names of all columns, and how many rows each row group has."""
    with _opened(path, name) as file:
        rows = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        return list(file.schema_arrow.names), rows


def text_sizes(path: Path, name: str, rows: int) -> Iterator[int]:
    """Bytes that the cells of text and the like take, so many rows after the other: few may be stored for many."""
    from pyarrow import types

    with _opened(path, name, _BUFFER) as file:
        fixed = (types.is_primitive, types.is_boolean, types.is_null)
        wanted = [field.name for field in file.schema_arrow if not any(check(field.type) for check in fixed)]
        if wanted:
            for block in file.iter_batches(rows, columns=wanted):
                yield block.nbytes


def iter_frames(path: Path, name: str, wanted: list[str], groups: Sequence[int], rows: int) -> Iterator[Any]:
    """Arrow tables of some columns and row groups, of so many rows at most; memory does not grow with the file."""
    import pyarrow

    with _opened(path, name, _BUFFER) as file:
        for group in groups:  # of each for itself, so that the rows of one never depend on where reading began
            for block in file.iter_batches(rows, row_groups=[group], columns=wanted):
                yield _without_views(pyarrow.Table.from_batches([block]).select(wanted))


def _without_views(table: Any) -> Any:
    """Text as arrow has always had it: of views, a kind of their own, it cannot pick rows."""
    import pyarrow

    for k, field in enumerate(table.schema):
        if str(field.type) == "string_view":
            table = table.set_column(k, field.name, table.column(k).cast(pyarrow.large_string()))
    return table


@contextmanager
def _opened(path: Path, name: str, buffer: int = 0) -> Iterator[Any]:
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError:
        raise InputError(
            f'{name} needs pyarrow to be read; run pip install "priorshift[parquet]", or pass a CSV file.'
        ) from None
    try:
        with parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=not buffer) as file:
            yield file
    except (ArrowException, OSError):
        raise InputError(f"{name} is a damaged Parquet file; write it again.") from None


def _numbers(file: Any, features: Sequence[str]) -> NDArray[Any] | None:
    try:
        kinds = [np.dtype(file.schema_arrow.field(c).type.to_pandas_dtype()) for c in features]
    except NotImplementedError:
        return None
    if not features or any(kind.kind not in "biuf" for kind in kinds):
        return None
    common = np.result_type(*kinds)
    values = np.empty((file.metadata.num_rows, len(features)), common if common.kind == "f" else np.float64)
    done = 0
    for block in file.iter_batches(_ROWS, columns=list(features)):
        for k, column in enumerate(features):
            cells = block.column(column)
            if cells.null_count:
                return None
            values[done : done + len(block), k] = cells.to_numpy(zero_copy_only=False)
        done += len(block)
    return values


_TABLE = "a 2-D array, a list of rows, a data frame or the path of a CSV or Parquet file"
_DENSE = 1  # GiB up to which a sparse matrix is made dense


def as_array(source: Any, name: str, kind: Any = None) -> NDArray[Any]:
    """Rows and columns of anything, as an array of whatever type, or of a given one."""
    try:
        if issparse(source):
            source = _dense(source, name)
        _refuse_other_things(source, name)
        if type(source).__module__.split(".")[0] == "torch":
            source = _from_tensor(source, name)
        array = np.asarray(source, dtype=kind)
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"{name} has rows of different lengths; pass a table with the same columns in every row."
        ) from None
    except (TypeError, RuntimeError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise InputTypeError(f"{name} cannot be made an array ({said}); pass {_TABLE}.") from None
    if np.iscomplexobj(array):
        raise InputError(f"Complex data not supported: {name} holds complex numbers; pass real ones.")
    if array.ndim == 0:
        raise InputTypeError(f"{name} is of type {type(source).__name__}, but a table is expected; pass {_TABLE}.")
    if array.ndim != 2:
        raise InputError(
            f"{name} has {array.ndim} dimension{'s' * (array.ndim != 1)}, but rows and columns are expected. "
            "Reshape your data with .reshape(-1, 1) if it is a single feature, or .reshape(1, -1) for a single row."
        )
    return array


def _refuse_other_things(source: Any, name: str) -> None:
    """Things that hold no table, or hold one in a way that is not read."""
    if source is None:
        raise InputTypeError(f"{name} is None, but a table is expected; pass {_TABLE}.")
    if isinstance(source, Mapping):
        raise InputTypeError(f"{name} is a mapping, but a table is expected; pass pandas.DataFrame({name}).")
    if isinstance(source, io.IOBase):
        raise InputTypeError(f"{name} is an open file, but a table or a path is expected; pass the file's path.")
    if type(source).__module__.split(".")[0] in ("dask", "dask_expr"):  # never brought into memory unasked
        raise InputTypeError(
            f"{name} is a Dask {type(source).__name__}, but rows in memory are needed here; leave stream, encoder and "
            "several targets out of estimate_prior, or call .compute() on it first."
        )
    if isinstance(source, Iterator):
        raise InputTypeError(f"{name} is an iterator, which can be read only once; pass list({name}).")
    if isinstance(source, (set, frozenset)):
        raise InputTypeError(f"{name} is a set, whose rows have no order; pass a list of rows.")
    if isinstance(source, (list, tuple)) and source and all(map(_is_file, source)):
        raise InputError(
            f"{name} is a list of files, such as {str(source[0])!r}, but a table is expected; several files of one "
            "sample are read in batches, which stream=False and encoder=None do not do: leave these out, or pass one "
            "table."
        )
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], Mapping):
        raise InputTypeError(f"{name} is a list of mappings; pass pandas.DataFrame({name}).")


def _is_file(thing: Any) -> bool:
    return isinstance(thing, os.PathLike) or (isinstance(thing, str) and os.path.isfile(thing))


def _dense(matrix: Any, name: str) -> NDArray[Any]:
    """A sparse matrix with all its zeros, written once into place, if they fit."""
    gib = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize / 2**30
    if gib > _DENSE:
        raise InputTypeError(
            f"{name} is a sparse matrix of {' × '.join(map(str, matrix.shape))} cells, {gib:.3g} GiB when dense, "
            f"but at most {_DENSE} GiB are made dense; reduce its columns first, for example by scikit-learn's "
            "TruncatedSVD."
        )
    return np.asarray(matrix.toarray(order="C"))


def _from_tensor(tensor: Any, name: str) -> NDArray[Any]:
    """A tensor's numbers, from whatever device, without its gradients; NumPy has no bfloat16 and no float8."""
    if getattr(tensor, "is_meta", False):
        raise InputTypeError(f"{name} is a tensor on the device 'meta', which holds no numbers; pass one that does.")
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    tensor = tensor.cpu()
    if tensor.is_floating_point() and str(tensor.dtype) not in ("torch.float16", "torch.float32", "torch.float64"):
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


_ALL_FEATURES = ColumnSelection()


def read_numeric_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read a table whose features must all be numbers."""
    table = read_table(source, name, selection)
    check_numbers(table)
    return table


def read_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read an array, a list of rows, a data frame that narwhals knows, or the path of a CSV or Parquet file."""
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path, Piped)):
        if not isinstance(source, Piped) and is_pipe(source):
            source = read_pipe(source, name)
        return _from_file(source, name, selection)
    if (frame := frame_of(source, name)) is not None:
        return from_frame(frame, name, selection)
    for column in selection.extra:
        as_array(source, name)  # what is wrong with the table itself comes first
        raise InputError(f"{name} is an array without column names, so it has no column {column!r}; pass a data frame.")
    return _from_array(source, name)


def frame_of(source: Any, name: str) -> Any:
    """Return a frame that narwhals knows, with names that are text; None if the source is not a frame."""
    if type(source).__name__ == "RecordBatch" and type(source).__module__.startswith("pyarrow"):
        import pyarrow

        return pyarrow.Table.from_batches([source])
    if isinstance(source, nw.LazyFrame) or type(source).__name__ == "LazyFrame":
        raise InputTypeError(f"{name} is a lazy frame, but its rows are needed; call .collect() on it first.")
    if not (isinstance(source, nw.DataFrame) or nw.dependencies.is_into_dataframe(source)):
        return None
    if nw.dependencies.is_pandas_dataframe(source):  # whose names may be numbers, tuples or repeated
        return source.set_axis([str(c) for c in source.columns], axis=1)
    return source


def from_frame(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Return a data frame as a table."""
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    check_columns(name, columns, selection.extra)
    frame = nw.from_native(source, eager_only=True)
    apart = [c for c in columns if c in (*selection.extra, *selection.optional) and c not in selection.drop]
    names = tuple(c for c in columns if c not in apart and c not in selection.drop)
    check_shape(name, len(frame), len(names))
    more: dict[str, Any] = {
        "extra": {c: extra_column(frame[c]) for c in apart},
        "dropped": tuple(c for c in columns if c in selection.drop),
    }
    more["native"] = nw.to_native(frame.select(*names))
    numbers = [_numbers_of_series(frame[c]) for c in names]
    if all(column is not None for column in numbers):
        values = np.column_stack([column for column in numbers if column is not None])
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        if not np.isnan(values.min()):
            table = Table(name, values, names, **more)
            check_finite(table)
            return table
    cells = [cells_of_series(frame[c], f"column {c!r} of {name}") for c in names]
    return Table.from_cells(name, cells, names, **more)


def _numbers_of_series(series: Any) -> NDArray[Any] | None:
    """Return a column as numbers of its own precision; None where a cell is missing or is not a number."""
    kind = series.dtype
    if series.null_count() or not (kind.is_numeric() or kind in (nw.Boolean, nw.Object)):
        return None
    if kind in (nw.Int128, nw.UInt128, nw.Decimal, nw.Object):
        return _as_floats(np.array(series.to_list(), dtype=object))
    return np.asarray(series.to_numpy())


def _as_floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return objects or text as floats; None where one is not a number."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def extra_column(series: Any) -> NDArray[Any]:
    """Return the cells of a column that is not a feature; times as the clock showed them in their zone."""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _from_array(source: Any, name: str) -> Table:
    """Return an array as a table; numbers keep their precision."""
    masked = np.ma.getmaskarray(source) if np.ma.isMaskedArray(source) else None
    array = as_array(source, name)
    numbers: NDArray[Any] | None = None
    if masked is None or not masked.any():
        if array.dtype.kind in "biuf":
            numbers = array if array.dtype.itemsize <= 8 else array.astype(np.float64)
        elif array.dtype.kind not in "mM":
            numbers = _as_floats(array)
    check_shape(name, *array.shape)
    if numbers is not None and not (numbers.dtype.kind == "f" and np.isnan(numbers.min())):
        table = Table(name, numbers, native=array)
        check_finite(table)
        return table
    if array.dtype.kind in "US":  # numpy makes text of the numbers and of None in a list
        array = as_array(source, name, object)
    if masked is not None:
        array = array.astype(object)
        array[masked] = None
    cells = [cells_of_array(column, f"column {k} of {name}") for k, column in enumerate(array.T)]
    return Table.from_cells(name, cells, native=array)


def _from_file(source: str | Path | Piped, name: str, selection: ColumnSelection) -> Table:
    name = f"{name} ({source})"
    path = Path(str(source))
    text = check_text(source.content, name) if isinstance(source, Piped) else text_or_parquet(path, name)
    if text is None:
        return _from_parquet(path, name, selection)
    header, names, columns = read_csv(text, name, selection)
    return from_columns(name, header, names, columns, selection)


def from_columns(
    name: str,
    header: Sequence[str] | None,
    names: Sequence[str] | None,
    columns: Sequence[Column],
    selection: ColumnSelection,
) -> Table:
    """Return the columns of a CSV file as a table; `names` are those that were read, `header` is all of them."""
    check_shape(name, len(columns[0]) if columns else 0, len(columns))
    apart = {*selection.extra, *selection.optional} if names else set()
    labeled = list(zip(names or map(str, range(len(columns))), columns, strict=True))
    cells = [object_cells(c) if isinstance(c, list) else c for label, c in labeled if label not in apart]
    features = tuple(label for label, _ in labeled if label not in apart) if names else None
    check_shape(name, len(columns[0]), len(cells))
    extra = {label: np.array(column) for label, column in labeled if label in apart}
    dropped = tuple(h for h in header or () if h in selection.drop)
    return Table.from_cells(name, cells, features, extra=extra, dropped=dropped)


def _from_parquet(path: Path, name: str, selection: ColumnSelection) -> Table:
    columns, numbers = read_numbers(path, name, selection)
    dropped = tuple(c for c in columns if c in selection.drop)
    if numbers is None:
        frame = read_frame(path, name, [c for c in columns if c not in selection.drop])
        return replace(from_frame(frame, name, selection), dropped=dropped, native=None)
    values, frame = numbers
    apart = nw.from_native(frame, eager_only=True)
    extra = {c: extra_column(apart[c]) for c in apart.columns}
    names = tuple(c for c in columns if c not in extra and c not in selection.drop)
    check_shape(name, *values.shape)
    if np.isnan(values.min()):
        cells = [column.astype(np.float64) for column in values.T]
        return Table.from_cells(name, cells, names, extra=extra, dropped=dropped)
    table = Table(name, values, names, extra, dropped)
    check_finite(table)
    return table
