"""Arrays of whatever library: lists of rows, sparse matrices, tensors; and a sentence about what holds no table.

Reading what users have: arrays, lists, data frames of any library, CSV and Parquet files.

Everything becomes a :class:`Table`: a matrix of finite numbers, the names of its columns where it has any,
and the columns that were set aside (an id, a label)."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from priorshift.errors import InputError, InputTypeError
from priorshift.io.csv_text import read_csv
from priorshift.io.files import Piped, check_text, text_or_parquet
from priorshift.io.parquet import read_frame, read_numbers

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
    if type(source).__module__.startswith(("dask.dataframe", "dask.bag", "dask.delayed")):  # names would be lost
        raise InputTypeError(
            f"{name} is a Dask {type(source).__name__}, whose rows lie elsewhere; use priorshift.distributed, or call "
            ".compute() on it first."
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


LARGEST = 1e150  # squares of larger values overflow


@dataclass(frozen=True, eq=False)
class Origin:
    """What the columns of an encoded table were made of.

    Attributes
    ----------
    of : ndarray of int
        The number of the column, before it was encoded, that each column comes from.
    own_scale : ndarray of bool
        Whether a column has a scale of its own, as a 0 or 1 for a level, by which it must not be scaled again.
    columns : dict
        What became of each column, in plain words and numbers.
    line : str
        The same in one line.
    """

    of: NDArray[np.intp]
    own_scale: NDArray[np.bool_]
    columns: dict[str, Any] = field(default_factory=dict)
    line: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """A named matrix of finite numbers, and the columns set aside from it."""

    name: str
    values: NDArray[Any]
    columns: tuple[str, ...] | None = None
    aside: dict[str, NDArray[Any]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    origin: Origin | None = None  # of columns that were encoded

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def column(self, number: int) -> str:
        return f"column {self.columns[number]!r}" if self.columns else f"column {number}"

    def arranged(self, order: Sequence[int], columns: tuple[str, ...]) -> Table:
        """The same columns in another order."""
        return replace(self, values=self.values[:, order], columns=columns)

    def take(self, rows: NDArray[np.bool_], name: str) -> Table:
        """Some of its rows, under another name."""
        aside = {key: column[rows] for key, column in self.aside.items()}
        return replace(self, name=name, values=self.values[rows], aside=aside)


AnyTable = TypeVar("AnyTable", bound="_HasColumns")


class _HasColumns(Protocol):
    """A table of any kind, as far as its columns go."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[str, ...] | None: ...
    @property
    def dropped(self) -> tuple[str, ...]: ...
    @property
    def width(self) -> int: ...
    def arranged(self, order: Sequence[int], columns: tuple[str, ...]) -> Self: ...


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
    >>> from priorshift.io.tables import read_table
    >>> read_table([[1, 2.5], [3, 4]], "target").values
    array([[1. , 2.5],
           [3. , 4. ]])
    """
    if isinstance(source, (str, Path, Piped)):
        table = _from_file(Path(source) if isinstance(source, str) else source, name, aside, drop, optional)
    elif isinstance(source, Table):
        return source
    elif (frame := frame_of(source, name)) is not None:
        table = _from_frame(frame, name, aside, drop, optional)
    else:
        table = _from_array(source, name)
        for column in aside:
            raise InputError(
                f"{name} is an array without column names, so it has no column {column!r}; pass a data frame."
            )
    check_finite(table)
    return table


def frame_of(source: Any, name: str) -> Any:
    """What is passed as a frame that narwhals knows, with names that are text; None if it is none."""
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


def match_columns(tables: Sequence[AnyTable]) -> list[AnyTable]:
    """The same tables with the columns of the first one that has names, in its order.

    Columns are matched by name; a table without names is matched by position.
    """
    first = tables[0]
    named = next((table for table in tables if table.columns), first)
    expected = set(named.columns or ())
    matched = []
    for table in tables:
        if table.columns and named.columns:
            place = {c: k for k, c in enumerate(table.columns)}
            missing = [c for c in named.columns if c not in place]
            extra = [c for c in table.columns if c not in expected]
            if missing or extra:
                said = [f"lacks {quoted(missing)}"] * bool(missing) + [f"has {quoted(extra)} besides"] * bool(extra)
                raise InputError(
                    f"{table.name} {' and '.join(said)}, compared with {named.name}; pass the same columns "
                    "(their order does not matter), or drop those that are not features."
                )
            order = [place[c] for c in named.columns]
            if order != list(range(len(order))):
                table = table.arranged(order, named.columns)
        if table.width != first.width:
            raise InputError(
                f"{table.name} has {table.width} features but {first.name} has {first.width}; "
                "pass the same columns in the same order."
            )
        matched.append(table)
    return matched


def check_dropped(tables: Sequence[_HasColumns], drop: Iterable[str]) -> None:
    """A column to drop must be in one table at least: a misspelt name must not pass."""
    dropped = {column for table in tables for column in table.dropped}
    for wanted in drop:
        if wanted not in dropped:
            who = "no table has a" if len(tables) > 1 else f"{tables[0].name} has no"
            raise InputError(
                f"{who} column {wanted!r} to drop; the columns of {tables[0].name} are "
                f"{quoted(tables[0].columns or ('unnamed',))}."
            )


def _from_array(source: Any, name: str) -> Table:
    if np.ma.is_masked(source):
        raise InputError(f"{name} has masked cells, which have no value; fill them in or leave their rows out.")
    array = as_array(source, name)
    if array.dtype.kind in "biuf":
        return Table(name, array if array.dtype.itemsize <= 8 else array.astype(np.float64))
    if array.dtype.kind in "mM":
        raise InputError(
            f"{name} holds dates, but numbers are expected; encode them, for example as days since a date."
        )
    return Table(name, _to_float(array, name))


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
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    check_columns(name, columns, aside)
    aside = [*aside, *optional]
    frame = nw.from_native(source, eager_only=True)
    features = []
    kept = {}
    for column in columns:
        if column in drop:
            continue
        series = frame[column]
        if column in aside:
            kept[column] = set_aside(series)
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


def set_aside(series: Any) -> NDArray[Any]:
    """The cells of a column that is no feature; times as the clock showed them in their zone."""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _objects(series: Any) -> bool:
    return bool(series.dtype == nw.Object)


def check_columns(name: str, columns: Sequence[str], aside: Iterable[str]) -> None:
    """Columns have names, each its own, and those to set aside are there."""
    for column in columns:
        if not column or column.startswith("__index_level_"):
            raise InputError(
                f"{name} has a column named {column!r}, which looks like a data frame's row numbers; write the file "
                "without its index (index=False), or name the column."
            )
    twice = sorted(column for column, times in Counter(columns).items() if times > 1)
    if twice:
        raise InputError(f"{name} has more than one column named {quoted(twice)}; give every column its own name.")
    there = set(columns)
    for wanted in aside:
        if wanted not in there:
            raise InputError(f"{name} has no column {wanted!r}; its columns are {quoted(columns)}.")


def quoted(columns: Sequence[str]) -> str:
    """Some names, for a message."""
    shown = ", ".join(repr(c) for c in columns[:8])
    return shown + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")


def _from_file(
    source: Path | Piped, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]
) -> Table:
    name = f"{name} ({source})"
    text = check_text(source.content, name) if isinstance(source, Piped) else text_or_parquet(source, name)
    if text is None:
        return _from_parquet(Path(str(source)), name, aside, drop, optional)
    header, names, columns = read_csv(
        text, name, aside, drop, lambda found: check_columns(name, found, aside), optional
    )
    if names is None or header is None:
        return Table(name, np.column_stack([np.asarray(c) for c in columns]))
    kept = {h: np.array(c) for h, c in zip(names, columns, strict=True) if h in aside or h in optional}
    features = {h: np.asarray(c) for h, c in zip(names, columns, strict=True) if h not in kept}
    values = np.column_stack(list(features.values())) if features else np.empty((len(columns[0]) if columns else 0, 0))
    left_out = set(drop)
    return Table(name, values, tuple(features), kept, tuple(h for h in header if h in left_out))


def _from_parquet(path: Path, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]) -> Table:
    def check(found: list[str]) -> None:
        check_columns(name, found, aside)

    left_out = set(drop)
    found = read_numbers(path, name, {*aside, *optional}, left_out, check)
    if found is None:  # what is wrong is said, or mended, where frames are read
        columns, frame = read_frame(path, name, left_out, check)
        table = _from_frame(frame, name, aside, (), optional)
    else:
        columns, values, frame = found
        beside = nw.from_native(frame, eager_only=True)
        kept = {c: set_aside(beside[c]) for c in beside.columns}
        table = Table(name, values, tuple(c for c in columns if c not in kept and c not in left_out), kept)
    return replace(table, dropped=tuple(c for c in columns if c in left_out))


def check_shape(name: str, rows: int, features: int) -> None:
    """One row and one feature at least."""
    for number, what, missing in ((features, "feature", "columns"), (rows, "row", "rows")):
        if number == 0:
            raise InputError(
                f"{name} has 0 {what}(s) (shape={(rows, features)}) while a minimum of 1 is required; pass some "
                f"{missing}."
            )


def check_finite(table: Table) -> None:
    """Rows, features, finite numbers, of a size that can be squared."""
    name, values = table.name, table.values
    check_shape(name, *values.shape)
    if values.dtype.kind != "f":
        return
    # One number tells whether all is well; only then is it worth looking for the culprit.
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(abs(float(values.min())), abs(float(values.max())))
    if largest <= LARGEST:
        return
    bad = ~np.isfinite(values) if not np.isfinite(largest) else np.abs(values) > LARGEST
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
