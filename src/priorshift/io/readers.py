"""Reading arrays, lists, data frames of any library, CSV and Parquet files into a :class:`Table`."""

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
from priorshift.io.csv_text import Column, CsvLayout, read_csv
from priorshift.io.files import Piped, check_text, text_or_parquet
from priorshift.io.tables import ColumnSelection, Table, check_columns, check_finite, check_numbers, empty_table_error

_ROWS = 65_536  # rows decoded at a time: a row group is often the whole file
_BUFFER = 1 << 20  # bytes of a column read at a time, instead of a whole row group
_MAX_DENSE = 1  # GiB up to which a sparse matrix is converted to a dense one
_TABLE = "a 2-D array, a list of rows, a data frame or the path of a CSV or Parquet file"
_ALL_FEATURES = ColumnSelection()


def read_numeric_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read a table whose features must all be numbers."""
    return check_numbers(read_table(source, name, selection))


def read_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read an array, a list of rows, a data frame that narwhals knows, or the path of a CSV or Parquet file."""
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path, Piped)):
        name = f"{name} ({source})"
        text = check_text(source.content, name) if isinstance(source, Piped) else text_or_parquet(Path(source), name)
        if text is None:
            return _from_parquet(Path(str(source)), name, selection)
        return from_columns(name, *read_csv(text, name, selection))
    if (frame := frame_of(source, name)) is not None:
        return _from_frame(frame, name, selection)
    for column in selection.extra:
        as_array(source, name)  # an error of the table itself comes first
        raise InputError(f"{name} is an array without column names, so it has no column {column!r}; pass a data frame.")
    return _from_array(source, name)


def from_columns(name: str, layout: CsvLayout, columns: Sequence[Column]) -> Table:
    """Build a table from the columns of a CSV file, in the order of `layout.wanted`."""
    labels = layout.header or [str(k) for k in range(layout.width)]
    extra, features = {}, {}
    for k, column in zip(layout.wanted, columns, strict=True):
        if k in layout.text:
            extra[labels[k]] = np.array(column)
        else:
            features[labels[k]] = object_cells(column) if isinstance(column, list) else column
    if not features:
        raise empty_table_error(name, (len(columns[0]) if columns else 0, 0))
    names = tuple(features) if layout.header else None
    return Table.from_cells(name, list(features.values()), names, extra=extra, dropped=layout.dropped)


def frame_of(source: Any, name: str) -> Any:
    """Return the source as a data frame for narwhals, with column names that are text; None if it is not one."""
    if type(source).__name__ == "RecordBatch" and type(source).__module__.startswith("pyarrow"):
        import pyarrow

        return pyarrow.Table.from_batches([source])
    if isinstance(source, nw.LazyFrame) or type(source).__name__ == "LazyFrame":
        raise InputTypeError(f"{name} is a lazy frame, but its rows are needed; call .collect() on it first.")
    if not (isinstance(source, nw.DataFrame) or nw.dependencies.is_into_dataframe(source)):
        return None
    if nw.dependencies.is_pandas_dataframe(source):  # its names may be numbers, tuples or repeated
        return source.set_axis([str(c) for c in source.columns], axis=1)
    return source


def _from_frame(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Read a data frame as a matrix if all its features are numbers, otherwise as columns of cells."""
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    check_columns(name, columns, selection.extra)
    frame = nw.from_native(source, eager_only=True)
    extra = [c for c in columns if c in (*selection.extra, *selection.optional) and c not in selection.drop]
    names = tuple(c for c in columns if c not in extra and c not in selection.drop)
    if not (len(frame) and names):
        raise empty_table_error(name, (len(frame), len(names)))
    other_fields: dict[str, Any] = {
        "extra": {c: _extra_column(frame[c]) for c in extra},
        "dropped": tuple(c for c in columns if c in selection.drop),
        "native": nw.to_native(frame.select(*names)),
    }
    numbers = [_numbers_of_series(frame[c]) for c in names]
    if all(column is not None for column in numbers):
        values = np.column_stack([column for column in numbers if column is not None])
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        if not np.isnan(values.min()):
            return check_finite(Table(name, values, names, **other_fields))
    cells = [cells_of_series(frame[c], f"column {c!r} of {name}") for c in names]
    return Table.from_cells(name, cells, names, **other_fields)


def _numbers_of_series(series: Any) -> NDArray[Any] | None:
    """Return a column as numbers in its own precision; None if a cell is missing or is not a number."""
    kind = series.dtype
    if series.null_count() or not (kind.is_numeric() or kind in (nw.Boolean, nw.Object)):
        return None
    if kind in (nw.Int128, nw.UInt128, nw.Decimal, nw.Object):
        return _as_floats(np.array(series.to_list(), dtype=object))
    return np.asarray(series.to_numpy())


def _as_floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Convert objects or text to floats; return None if one is not a number."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _extra_column(series: Any) -> NDArray[Any]:
    """Return the cells of a column that is not a feature; times lose their zone but keep their local clock time."""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _from_array(source: Any, name: str) -> Table:
    """Read an array as a matrix in its own precision if it holds numbers without NaN, otherwise as columns of cells."""
    masked = np.ma.getmaskarray(source) if np.ma.isMaskedArray(source) else None
    array = as_array(source, name)
    if not array.size:
        raise empty_table_error(name, array.shape)
    numbers: NDArray[Any] | None = None
    if masked is None or not masked.any():
        if array.dtype.kind in "biuf":
            numbers = array if array.dtype.itemsize <= 8 else array.astype(np.float64)  # no extended precision
        elif array.dtype.kind not in "mM":
            numbers = _as_floats(array)
    # the minimum is NaN if any number is
    if numbers is not None and not (numbers.dtype.kind == "f" and np.isnan(numbers.min())):
        return check_finite(Table(name, numbers, native=array))
    if array.dtype.kind in "US":  # numpy converts the numbers and None of a list to text
        array = as_array(source, name, object)
    if masked is not None:
        array = array.astype(object)
        array[masked] = None
    cells = [cells_of_array(column, f"column {k} of {name}") for k, column in enumerate(array.T)]
    return Table.from_cells(name, cells, native=array)


def as_array(source: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    """Return an array-like as a 2-D array, of the data type `dtype` if one is passed."""
    try:
        if issparse(source):
            source = _to_dense(source, name)
        _check_array_like(source, name)
        if type(source).__module__.split(".")[0] == "torch":
            source = _from_tensor(source, name)
        array = np.asarray(source, dtype=dtype)
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; pass the same columns in every row.") from None
    except (TypeError, RuntimeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputTypeError(f"{name} cannot be made an array ({reason}); pass {_TABLE}.") from None
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


def _check_array_like(source: Any, name: str) -> None:
    """Refuse objects that are not tables, or that must not be loaded into memory as one."""
    refused: tuple[tuple[Any, str], ...] = (
        (type(None), f"None, but a table is expected; pass {_TABLE}"),
        (Mapping, f"a mapping, but a table is expected; pass pandas.DataFrame({name})"),
        (io.IOBase, "an open file, but a table or a path is expected; pass the file's path"),
        (Iterator, f"an iterator, which can be read only once; pass list({name})"),
        ((set, frozenset), "a set, whose rows have no order; pass a list of rows"),
    )
    if type(source).__module__.split(".")[0] in ("dask", "dask_expr"):  # must not be loaded into memory silently
        what = f"a Dask {type(source).__name__}, but rows in memory are needed here"
        raise InputTypeError(f"{name} is {what}; leave stream, encoder and several targets out, or .compute() it.")
    for types, what in refused:
        if isinstance(source, types):
            raise InputTypeError(f"{name} is {what}.")
    if not isinstance(source, (list, tuple)) or not source:
        return
    if isinstance(source[0], Mapping):
        raise InputTypeError(f"{name} is a list of mappings; pass pandas.DataFrame({name}).")
    if all(isinstance(item, os.PathLike) or (isinstance(item, str) and os.path.isfile(item)) for item in source):
        what = f"a list of files, such as {str(source[0])!r}, but a table is expected"
        raise InputError(f"{name} is {what}; pass one table, or leave out stream=False and encoder=None.")


def _to_dense(matrix: Any, name: str) -> NDArray[Any]:
    """Return a sparse matrix as a dense array, if that takes at most 1 GiB."""
    gib = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize / 2**30
    if gib > _MAX_DENSE:
        what = f"a sparse matrix of {' × '.join(map(str, matrix.shape))} cells, {gib:.3g} GiB when dense"
        raise InputTypeError(f"{name} is {what}, but at most {_MAX_DENSE} GiB are allowed; reduce its columns first.")
    return np.asarray(matrix.toarray(order="C"))


def _from_tensor(tensor: Any, name: str) -> NDArray[Any]:
    """Return a PyTorch tensor on any device as an array; types that NumPy lacks, such as bfloat16, become float32."""
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


@contextmanager
def _open_parquet(path: Path, name: str, buffer: int = 0) -> Iterator[Any]:
    """Open a Parquet file; with a `buffer` (in bytes) it is read piece by piece instead of by whole row groups."""
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError:
        raise InputError(f'{name} needs pyarrow: pip install "priorshift[parquet]", or pass a CSV file.') from None
    try:
        with parquet.ParquetFile(path, buffer_size=buffer, pre_buffer=not buffer) as file:
            yield file
    except (ArrowException, OSError):
        raise InputError(f"{name} is a damaged Parquet file; write it again.") from None


def _from_parquet(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a Parquet file as a matrix if all its features are numbers, otherwise as columns of cells."""
    with _open_parquet(path, name) as file:
        columns = list(file.schema_arrow.names)
        check_columns(name, columns, selection.extra)
        wanted = [c for c in columns if c not in selection.drop]
        extra = [c for c in wanted if c in (*selection.extra, *selection.optional)]
        names = tuple(c for c in wanted if c not in extra)
        values = _parquet_numbers(file, names)
        read = wanted if values is None else extra
        frame = file.read(columns=read).select(read)
    dropped = tuple(c for c in columns if c in selection.drop)
    if values is None:
        return replace(_from_frame(frame, name, selection), dropped=dropped, native=None)
    series = nw.from_native(frame, eager_only=True)
    other_fields: dict[str, Any] = {"extra": {c: _extra_column(series[c]) for c in extra}, "dropped": dropped}
    if values.size and np.isnan(values.min()):
        return Table.from_cells(name, [column.astype(np.float64) for column in values.T], names, **other_fields)
    return check_finite(Table(name, values, names, **other_fields))


def _parquet_numbers(file: Any, features: Sequence[str]) -> NDArray[Any] | None:
    """Read the features as a matrix; None if one has a null cell or does not hold plain numbers."""
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


def row_groups(path: Path, name: str) -> tuple[list[str], list[int]]:
    """Return the names of all columns of a Parquet file, and the number of rows of each row group."""
    with _open_parquet(path, name) as file:
        rows = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        return list(file.schema_arrow.names), rows


def text_sizes(path: Path, name: str, rows: int) -> Iterator[int]:
    """Yield the bytes in memory of each batch of text cells: a small file may decompress to very large ones."""
    from pyarrow import types

    with _open_parquet(path, name, _BUFFER) as file:
        fixed = (types.is_primitive, types.is_boolean, types.is_null)
        wanted = [field.name for field in file.schema_arrow if not any(check(field.type) for check in fixed)]
        for block in file.iter_batches(rows, columns=wanted) if wanted else ():
            yield block.nbytes


def iter_frames(path: Path, name: str, wanted: list[str], groups: Sequence[int], rows: int) -> Iterator[Any]:
    """Yield arrow tables of at most `rows` rows, with the columns `wanted` of some row groups, in bounded memory."""
    import pyarrow

    with _open_parquet(path, name, _BUFFER) as file:
        for group in groups:  # one at a time, so that a table never depends on where reading began
            for block in file.iter_batches(rows, row_groups=[group], columns=wanted):
                table = pyarrow.Table.from_batches([block]).select(wanted)
                for k, field in enumerate(table.schema):
                    if str(field.type) == "string_view":  # arrow cannot take rows of this type
                        table = table.set_column(k, field.name, table.column(k).cast(pyarrow.large_string()))
                yield table


def is_distributed(sample: Any) -> bool:
    """Return whether a sample is a Dask collection, or a list of Delayed or Future tables."""
    first = sample[0] if isinstance(sample, (list, tuple)) and sample else sample
    return bool(kind_of(first))


def kind_of(value: Any) -> str:
    """Return the name of a Dask class, empty for anything else; by type only, since a Delayed has every attribute."""
    if type(value).__module__.startswith("distributed."):
        return "Future"
    names = [base.__name__ for base in type(value).__mro__ if base.__module__.split(".")[0] in ("dask", "dask_expr")]
    known = ("Array", "DataFrame", "Bag", "Delayed")
    return next((name for name in names if name in known), f"dask {names[0]}" if names else "")


def frame_library(*sources: Any) -> str | None:
    """Return "pandas" or "polars", the library of the first data frame in some sources; None if there is none."""
    for source in sources:
        tables = list(source.values()) if isinstance(source, Mapping) else source
        table = tables[0] if isinstance(tables, (list, tuple)) and tables else tables
        native = nw.to_native(table, pass_through=True)
        if nw.dependencies.is_pandas_dataframe(native):
            return "pandas"
        if nw.dependencies.is_polars_dataframe(native):
            return "polars"
    return None
