"""Parquet files: the wanted columns alone, their numbers block by block to where they stay, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift.errors import InputError
from priorshift.io.tables import ColumnSelection, check_columns

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
