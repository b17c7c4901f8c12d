"""Reading arrays, lists, data frames of any library, CSV, Excel and Parquet files into a :class:`Table`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from priorshift.errors import InputError, InputTypeError
from priorshift.io.cells import (
    DATE_ORDERS,
    Cells,
    as_dates,
    as_levels,
    cell_type_error,
    cells_of_array,
    cells_of_series,
    has_r_missing,
    is_missing,
    object_cells,
)
from priorshift.io.csv_text import Column, CsvLayout, read_csv
from priorshift.io.files import WORKBOOKS, Piped, check_text, kind, text_or_parquet
from priorshift.io.tables import (
    CellRules,
    ColumnSelection,
    Table,
    check_columns,
    check_finite,
    check_numbers,
    empty_table_error,
    largest_size,
)
from priorshift.io.workbooks import read_workbook

_ROWS = 65_536  # rows decoded at a time: a row group is often the whole file
_BUFFER = 1 << 20  # bytes of a column read at a time, instead of a whole row group
_MAX_DENSE = 1  # GiB up to which a sparse matrix is converted to a dense one
_TABLE = "a 2-D array, a list of rows, a data frame or the path of a CSV, Excel or Parquet file"
_ALL_FEATURES = ColumnSelection()
_DASK = ("dask", "dask_expr")  # packages of Dask's collections


def read_numeric_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read a table as `read_table` does; refuse a feature that has a missing cell or is not a column of numbers."""
    return check_numbers(read_table(source, name, selection))


def read_table(source: Any, name: str, selection: ColumnSelection = _ALL_FEATURES) -> Table:
    """Read an array, a list of rows, a data frame that narwhals knows, or the path of a CSV, Excel or Parquet file.

    Messages call the table `name`.
    """
    if isinstance(source, Table):
        return source
    return _apply_rules(_read_source(source, name, selection), selection.rules)


def _read_source(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Read a table as `read_table` does, without the user's rules about cells, except that CSV text follows them."""
    if isinstance(source, (str, Path, Piped)):
        name = f"{name} ({source})"
        text = check_text(source.content, name) if isinstance(source, Piped) else text_or_parquet(Path(source), name)
        if text is not None:
            return from_columns(name, *read_csv(text, name, selection))
        path = Path(str(source))
        return (read_workbook if kind(path) == WORKBOOKS else _from_parquet)(path, name, selection)
    if (frame := frame_of(source, name)) is not None:
        return _from_frame(frame, name, selection)
    if selection.extra:
        as_array(source, name)  # an error of the table itself comes first
        unnamed = f"an array without column names, so it has no column {selection.extra[0]!r}"
        raise InputError(f"{name} is {unnamed}; pass a data frame.")
    return _from_array(source, name)


def _apply_rules(table: Table, rules: CellRules) -> Table:
    """Return a table in which the user's missing values are missing, and stated columns are categories or dates."""
    values, kinds = table.values, {column: kind for column, kind in rules.kinds.items() if column in table.names}
    has_missing = bool(rules.missing) and any(rules.is_missing(cells).any() for cells in table.cells or values.T)
    if not kinds and not has_missing:
        return table
    table = table.as_cells()
    columns = []
    for k, cells in enumerate(table.cells):
        is_gap, kind = rules.is_missing(cells), kinds.get(table.column_name(k))
        if is_gap.any():
            cells = cells.copy()
            cells[is_gap] = None if cells.dtype == object else np.nan
        if kind == "category" and cells.dtype != object:
            cells = as_levels(cells, (), table.name, table.column_name(k))
        elif kind in DATE_ORDERS:
            cells = _parse_dates(cells, str(kind), table, k)
        columns.append(cells)
    return replace(table, cells=tuple(columns), native=None)


def _parse_dates(cells: Cells, order: str, table: Table, k: int) -> Cells:
    """Return column `k`, which the user states to hold dates in an order such as "day-first", as dates."""
    if cells.dtype.kind == "M" or is_missing(cells).all():
        return cells
    if cells.dtype == object:
        dates = as_dates(cells, order)
        wrong = np.isnat(dates) & ~is_missing(cells)
        if not wrong.any():
            return dates
        row = int(wrong.argmax())
    else:
        row = 0
    shown = repr(str(cells[row]))
    raise InputError(
        f"{table.name} holds {shown} in {table.place(row, k)}, which is not a {order} date; correct the cell, or leave "
        "the column out of the options for dates."
    )


def from_columns(name: str, layout: CsvLayout, columns: Sequence[Column]) -> Table:
    """Build a table from the columns of CSV text, which are in the order of `layout.wanted`."""
    names = layout.header or [str(k) for k in range(layout.width)]
    extra, features = {}, {}
    for k, column in zip(layout.wanted, columns, strict=True):
        if k in layout.text_columns:
            extra[names[k]] = np.array(column)
        else:
            features[names[k]] = object_cells(column) if isinstance(column, list) else column
    if not features:
        raise empty_table_error(name, (len(columns[0]) if columns else 0, 0), [*layout.dropped, *extra])
    feature_names = tuple(features) if layout.header else None
    return Table.from_cells(name, list(features.values()), feature_names, extra=extra, dropped=layout.dropped)


def frame_of(source: Any, name: str) -> Any:
    """Return a data frame as narwhals takes it, with column names that are text; None if the source is not a frame."""
    if type(source).__name__ == "RecordBatch" and type(source).__module__.startswith("pyarrow"):
        import pyarrow

        return pyarrow.Table.from_batches([source])
    if not (isinstance(source, nw.DataFrame) or nw.dependencies.is_into_dataframe(source)):
        lazy = None if is_distributed(source) else nw.from_native(source, pass_through=True)
        return nw.to_native(lazy.collect()) if isinstance(lazy, nw.LazyFrame) else None  # of polars, DuckDB and others
    if nw.dependencies.is_pandas_dataframe(source):  # its names may be numbers, tuples or repeated
        return source.set_axis([str(c) for c in source.columns], axis=1)
    return source


def _from_frame(source: Any, name: str, selection: ColumnSelection) -> Table:
    """Read a data frame as a matrix if all its features are numbers, otherwise as columns of cells."""
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    check_columns(name, columns, selection.extra)
    frame = nw.from_native(source, eager_only=True)
    features, extra, dropped = selection.split(columns)
    if not (len(frame) and features):
        raise empty_table_error(name, (len(frame), len(features)), [*dropped, *extra], features)
    other_fields: dict[str, Any] = {
        "columns": tuple(features),
        "extra": {column: _extra_column(frame[column]) for column in extra},
        "dropped": tuple(dropped),
        "native": nw.to_native(frame.select(*features)),
    }
    numbers = [_numbers_of_series(frame[column]) for column in features]
    plain_numbers = [column for column in numbers if column is not None]
    if len(plain_numbers) == len(features):
        values = np.column_stack(plain_numbers)
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        largest = largest_size(values)
        if not np.isnan(largest):
            return check_finite(Table(name, values, **other_fields), largest)
    cells = [cells_of_series(frame[column], f"column {column!r} of {name}") for column in features]
    return Table.from_cells(name, cells, **other_fields)


def _numbers_of_series(series: Any) -> NDArray[Any] | None:
    """Return a narwhals column as numbers in its own precision; None if a cell is missing or is not a number."""
    dtype = series.dtype
    if series.null_count() or not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object)):
        return None
    if dtype in (nw.Int128, nw.UInt128, nw.Decimal, nw.Object):
        return _as_floats(np.array(series.to_list(), dtype=object))
    numbers = np.asarray(series.to_numpy())
    return None if has_r_missing(numbers) else numbers


def _as_floats(array: NDArray[Any]) -> NDArray[np.float64] | None:
    """Convert objects or text to floats; return None if one is not a number."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _extra_column(series: Any) -> NDArray[Any]:
    """Return the cells of a narwhals column that is not a feature; times lose their zone but keep their local time."""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _from_array(source: Any, name: str) -> Table:
    """Read an array-like as a matrix in its own precision if it holds numbers without NaN, otherwise as cells."""
    masked = np.ma.getmaskarray(source) if np.ma.isMaskedArray(source) else None
    array = as_array(source, name)
    if not array.size:
        raise empty_table_error(name, array.shape)
    numbers: NDArray[Any] | None = None
    if (masked is None or not masked.any()) and not has_r_missing(array):
        if array.dtype.kind in "biuf":
            numbers = array if array.dtype.itemsize <= 8 else array.astype(np.float64)  # no extended precision
        elif array.dtype.kind not in "mM":
            numbers = _as_floats(array)
    if numbers is not None and not np.isnan(largest := largest_size(numbers)):
        return check_finite(Table(name, numbers, native=array), largest)
    if array.dtype.kind in "US":  # numpy converts the numbers and None of a list to text
        array = as_array(source, name, object)
    if masked is not None:
        array = array.astype(object)
        array[masked] = None
    cells = [cells_of_array(column, f"column {k} of {name}") for k, column in enumerate(array.T)]
    return Table.from_cells(name, cells, native=array)


def as_array(source: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    """Return an array-like as a 2-D array, of the data type `dtype` if one is passed; refuse anything else."""
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
    if array.ndim == 3:
        bands, height, width = array.shape
        raise InputError(
            f"{name} has 3 dimensions ({bands} × {height} × {width}), but rows and columns are expected. For a raster "
            "with bands first, pass X.reshape(len(X), -1).T, without the cells outside of the area; for xarray, pass "
            "dataset.to_dataframe().dropna()."
        )
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
    if type(source).__module__.split(".")[0] in _DASK:  # must not be loaded into memory silently
        received = f"a Dask {type(source).__name__}, but rows in memory are needed here"
        raise InputTypeError(f"{name} is {received}; leave stream, encoder and several targets out, or .compute() it.")
    for types, received_and_remedy in refused:
        if isinstance(source, types):
            raise InputTypeError(f"{name} is {received_and_remedy}.")
    if not isinstance(source, (list, tuple)) or not source:
        return
    if isinstance(source[0], Mapping):
        raise InputTypeError(f"{name} is a list of mappings; pass pandas.DataFrame({name}).")
    if all(isinstance(item, os.PathLike) or (isinstance(item, str) and os.path.isfile(item)) for item in source):
        received = f"a list of files, such as {str(source[0])!r}, but a table is expected"
        raise InputError(f"{name} is {received}; pass one table, or leave out stream=False and encoder=None.")


def _to_dense(matrix: Any, name: str) -> NDArray[Any]:
    """Return a sparse matrix as a dense array, if that takes at most 1 GiB."""
    gib = float(np.prod(matrix.shape, dtype=float)) * matrix.dtype.itemsize / 2**30
    if gib > _MAX_DENSE:
        received = f"a sparse matrix of {' × '.join(map(str, matrix.shape))} cells, {gib:.3g} GiB when dense"
        raise InputTypeError(
            f"{name} is {received}, but at most {_MAX_DENSE} GiB are allowed; reduce its columns first."
        )
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
def _open_parquet(path: Path, name: str, buffer: int = 0, encoded: Sequence[str] = ()) -> Iterator[Any]:
    """Open a Parquet file as a pyarrow ParquetFile.

    With a `buffer` (in bytes) columns are read piece by piece, otherwise by whole row groups. The columns of text
    `encoded` are read as dictionaries of distinct values.
    """
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError:
        raise InputError(f'{name} needs pyarrow: pip install "priorshift[parquet]", or pass a CSV file.') from None
    try:
        options: dict[str, Any] = {"buffer_size": buffer, "pre_buffer": not buffer, "read_dictionary": list(encoded)}
        with parquet.ParquetFile(path, **options) as file:
            metadata = file.metadata
            if metadata.num_rows != sum(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)):
                raise damaged_parquet(name)
            yield file
    except (ArrowException, OSError, UnicodeDecodeError):
        raise damaged_parquet(name) from None


def damaged_parquet(name: str) -> InputError:
    """Return the error for a Parquet file that contradicts itself."""
    return InputError(f"{name} is a damaged Parquet file; write it again.")


def _from_parquet(path: Path, name: str, selection: ColumnSelection) -> Table:
    """Read a Parquet file as a matrix if all its features are numbers, otherwise as columns of cells."""
    with _open_parquet(path, name) as file:
        columns = list(file.schema_arrow.names)
        check_columns(name, columns, selection.extra)
        features, extra, dropped = selection.split(columns)
        if not features:
            raise empty_table_error(name, (file.metadata.num_rows, 0), [*dropped, *extra])
        _check_types(file.schema_arrow, features, name)
        values = _parquet_numbers(file, features, name)
        other_columns = [*features, *extra] if values is None else extra
        arrow_table = file.read(columns=other_columns).select(other_columns)
    if values is None:
        return replace(_from_frame(arrow_table, name, selection), dropped=tuple(dropped), native=None)
    frame = nw.from_native(arrow_table, eager_only=True)
    other_fields: dict[str, Any] = {
        "columns": tuple(features),
        "extra": {column: _extra_column(frame[column]) for column in extra},
        "dropped": tuple(dropped),
    }
    largest = largest_size(values)
    if np.isnan(largest):
        return Table.from_cells(name, [column.astype(np.float64) for column in values.T], **other_fields)
    return check_finite(Table(name, values, **other_fields), largest)


def _parquet_numbers(file: Any, features: Sequence[str], name: str) -> NDArray[Any] | None:
    """Read the features of a Parquet file as a matrix; None if one has a missing cell or does not hold plain numbers.

    A file whose pages have other numbers of rows than it states is refused.
    """
    from pyarrow import types

    schema = file.schema_arrow  # converted anew at each access, in time proportional to the number of columns
    arrow_types = [schema.field(column).type for column in features]
    are_numbers = (types.is_boolean, types.is_integer, types.is_floating)
    if not features or not all(any(check(dtype) for check in are_numbers) for dtype in arrow_types):
        return None
    common = np.result_type(*(np.dtype(dtype.to_pandas_dtype()) for dtype in arrow_types))
    values = np.empty((file.metadata.num_rows, len(features)), common if common.kind == "f" else np.float64)
    rows_before = 0
    for block in file.iter_batches(_ROWS, columns=list(features)):
        if rows_before + len(block) > len(values):
            raise damaged_parquet(name)
        for k, column in enumerate(features):
            cells = block.column(column)
            if cells.null_count:
                return None
            numbers = cells.to_numpy(zero_copy_only=False)
            if has_r_missing(numbers):
                return None
            values[rows_before : rows_before + len(block), k] = numbers
        rows_before += len(block)
    if rows_before != len(values):
        raise damaged_parquet(name)
    return values


def row_groups(path: Path, name: str) -> tuple[list[str], list[int]]:
    """Return the names of all columns of a Parquet file, and the number of rows of each row group."""
    with _open_parquet(path, name) as file:
        rows = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        return list(file.schema_arrow.names), rows


def _check_types(schema: Any, columns: Iterable[str], name: str) -> None:
    """Refuse columns of a Parquet file that hold lists, mappings or bytes, before these are read."""
    from pyarrow import types

    not_cells = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    for column in columns:
        dtype = stored = schema.field(column).type
        while hasattr(stored, "storage_type"):  # of a type of another library, such as an interval
            stored = stored.storage_type
        if any(check(stored) for check in not_cells):
            raise cell_type_error(f"column {column!r} of {name}", dtype)


def text_columns(path: Path, name: str) -> dict[str, int]:
    """Return the columns of a Parquet file whose cells become Python objects, with their decompressed bytes.

    Those are texts, decimals and times of day. Columns that hold lists, mappings or bytes are refused. Nothing but the
    metadata is read, which a damaged or forged file may state wrongly.
    """
    from pyarrow import types

    with _open_parquet(path, name) as file:
        schema, metadata = file.schema_arrow, file.metadata
        check_columns(name, schema.names, ())
        _check_types(schema, schema.names, name)
        becomes_array = (
            types.is_boolean, types.is_integer, types.is_floating, types.is_date, types.is_timestamp,
            types.is_duration,
        )  # fmt: skip
        texts = [k for k, field in enumerate(schema) if not any(check(field.type) for check in becomes_array)]
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        return {schema.names[k]: sum(group.column(k).total_uncompressed_size for group in groups) for k in texts}


def text_sizes(path: Path, name: str, columns: Sequence[str]) -> Iterator[int]:
    """Yield the bytes of the text cells in some columns of a Parquet file, one batch of rows of a column after another.

    A small file may contain a long text once, and refer to it in every row: cells are counted without being decoded.
    """
    from pyarrow import compute, types

    with _open_parquet(path, name, _BUFFER, columns) as file:
        for column in columns:
            for block in file.iter_batches(_ROWS, columns=[column], use_threads=False):
                cells = block.column(0)
                if not types.is_dictionary(cells.type):  # such as a type of another library
                    yield cells.nbytes
                    continue
                lengths = compute.binary_length(cells.dictionary).fill_null(0).to_numpy().astype(np.float64)
                used = cells.indices.drop_null().to_numpy()
                if len(used) and not 0 <= used.min() <= used.max() < len(lengths):
                    raise damaged_parquet(name)
                yield int(lengths @ np.bincount(used, minlength=len(lengths)))


def iter_frames(path: Path, name: str, columns: list[str], groups: Sequence[int], rows: int) -> Iterator[Any]:
    """Yield arrow tables of at most `rows` rows, in bounded memory, with some columns of the row groups `groups`."""
    import pyarrow

    with _open_parquet(path, name, _BUFFER) as file:
        for group in groups:  # one at a time, so that a table never depends on where reading began
            for block in file.iter_batches(rows, row_groups=[group], columns=columns):
                table = pyarrow.Table.from_batches([block]).select(columns)
                for k, field in enumerate(table.schema):
                    if str(field.type) == "string_view":  # arrow cannot take rows of this type
                        table = table.set_column(k, field.name, table.column(k).cast(pyarrow.large_string()))
                yield table


def is_distributed(sample: Any) -> bool:
    """Return whether a sample is a Dask collection, or a list of Delayed or Future tables."""
    first = sample[0] if isinstance(sample, (list, tuple)) and sample else sample
    packages = {base.__module__.split(".")[0] for base in type(first).__mro__}
    return not packages.isdisjoint(_DASK) or type(first).__module__.startswith("distributed.")


def dask_kind(value: Any) -> str:
    """Return "Array", "DataFrame", "Bag", "Delayed" or "Future" for an object of Dask; "" for one of other libraries.

    Another class of Dask gives "dask" and its name. Only the type is used, since a Delayed has every attribute.
    """
    if type(value).__module__.startswith("distributed."):
        return "Future"
    names = [base.__name__ for base in type(value).__mro__ if base.__module__.split(".")[0] in _DASK]
    for name in names:
        if name in ("Array", "DataFrame", "Bag", "Delayed"):
            return name
    return f"dask {names[0]}" if names else ""


def frame_library(*sources: Any) -> str | None:
    """Return "pandas" or "polars", the library of the first data frame in some samples; None if there is none.

    A list or a mapping of tables, such as several targets, counts by its first table.
    """
    for source in sources:
        tables = list(source.values()) if isinstance(source, Mapping) else source
        table = tables[0] if isinstance(tables, (list, tuple)) and tables else tables
        native = nw.to_native(table, pass_through=True)
        if nw.dependencies.is_pandas_dataframe(native):
            return "pandas"
        if nw.dependencies.is_polars_dataframe(native):
            return "polars"
    return None
