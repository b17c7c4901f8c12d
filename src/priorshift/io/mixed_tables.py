"""Tables as users have them, before they are numbers: columns of numbers, text and dates, with cells that are empty.

A :class:`MixedTable` keeps every column in one of three forms: floats with NaN, dates (datetime64, without a time zone)
with NaT, or text with None. Which form a column of the source has decides how it is encoded; see
:mod:`priorshift.io.encoding`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError, InputTypeError
from priorshift.io.csv_text import Column, read_csv
from priorshift.io.files import Piped, check_text, is_pipe, read_pipe, text_or_parquet
from priorshift.io.parquet import read_frame
from priorshift.io.tables import Table, as_array, check_columns, check_shape, frame_of, read_table, set_aside

Cells = NDArray[Any]  # float64 with NaN, datetime64[us] with NaT, or objects: str and None
_DAY = np.timedelta64(1, "D")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?$")
_NO_VALUE = ("nan", "NaN", "<NA>", "NaT", "None")  # what the libraries' missing values print as


@dataclass(frozen=True, eq=False)
class MixedTable:
    """A named table of columns of several kinds, and the columns set aside from it."""

    name: str
    cells: tuple[Cells, ...]
    columns: tuple[str, ...] | None = None
    aside: dict[str, NDArray[Any]] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    native: Any = None  # its features as the user passed them, a frame or an array; None for a file

    @classmethod
    def of(cls, table: Table) -> MixedTable:
        """A table of numbers as one."""
        cells = tuple(column.astype(np.float64) for column in table.values.T)
        return cls(table.name, cells, table.columns, table.aside, table.dropped)

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    @property
    def width(self) -> int:
        return len(self.cells)

    def column(self, number: int) -> str:
        return f"column {self.columns[number]!r}" if self.columns else f"column {number}"

    def label(self, number: int) -> str:
        return self.columns[number] if self.columns else str(number)

    def arranged(self, order: Sequence[int], columns: tuple[str, ...]) -> MixedTable:
        """The same columns in another order."""
        native = self.native
        if native is not None:
            native = nw.to_native(nw.from_native(native, eager_only=True).select(*columns))
        return replace(self, cells=tuple(self.cells[k] for k in order), columns=columns, native=native)

    def take(self, rows: NDArray[np.bool_], name: str) -> MixedTable:
        """Some of its rows, under another name."""
        aside = {key: column[rows] for key, column in self.aside.items()}
        native = self.native
        if native is not None:
            native = nw.to_native(nw.from_native(native, eager_only=True).filter(rows.tolist()))
        return replace(self, name=name, cells=tuple(c[rows] for c in self.cells), aside=aside, native=native)


def read_columns(
    source: Any, name: str, aside: Sequence[str] = (), drop: Sequence[str] = (), optional: Sequence[str] = ()
) -> Table | MixedTable:
    """Read what :func:`priorshift.io.tables.read_table` reads, and what it refuses because it is not all numbers.

    Numbers alone come as a Table, exactly as `read_table` gives it.

    Examples
    --------
    >>> from priorshift.io.mixed_tables import read_columns
    >>> mixed = read_columns([[1, "a"], [None, "b"]], "target")
    >>> [column.tolist() for column in mixed.cells]
    [[1.0, nan], ['a', 'b']]
    """
    source = read_pipe(source, name) if is_pipe(source) else source  # which can be read only once
    try:
        return read_table(source, name, aside, drop, optional)
    except InputError:
        return read_mixed(source, name, aside, drop, optional)  # or what is wrong is said here


def read_mixed(
    source: Any, name: str, aside: Sequence[str] = (), drop: Sequence[str] = (), optional: Sequence[str] = ()
) -> MixedTable:
    """Read a table of any kind of columns; see `read_columns`."""
    if isinstance(source, MixedTable):
        return source
    if isinstance(source, Table):
        return MixedTable.of(source)
    if isinstance(source, (str, Path, Piped)):
        made = _from_file(Path(source) if isinstance(source, str) else source, name, aside, drop, optional)
    elif (frame := frame_of(source, name)) is not None:
        made = replace(_from_frame(frame, name, aside, drop, optional), native=_features(frame, aside, drop, optional))
    else:
        made = _from_array(source, name)
        for column in aside:
            raise InputError(
                f"{name} is an array without column names, so it has no column {column!r}; pass a data frame."
            )
    refuse_infinity(made)
    return made


def refuse_infinity(table: MixedTable) -> None:
    """Numbers are finite or missing."""
    for number, cells in enumerate(table.cells):
        if cells.dtype.kind == "f" and np.isinf(cells).any():
            row = int(np.isinf(cells).argmax())
            raise InputError(
                f"{table.name} contains infinity (inf) in row {row} (counting from 0), {table.column(number)}; replace "
                "it by a number, or leave the cell empty if it is not known."
            )


def _features(frame: Any, *others: Sequence[str]) -> Any:
    """The frame without columns that are no features."""
    gone = {column for columns in others for column in columns}
    made = nw.from_native(frame, eager_only=True)
    return nw.to_native(made.drop([c for c in made.columns if c in gone]))


def _from_file(
    source: Path | Piped, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]
) -> MixedTable:
    name = f"{name} ({source})"

    def check(found: list[str]) -> None:
        check_columns(name, found, aside)

    text = check_text(source.content, name) if isinstance(source, Piped) else text_or_parquet(source, name)
    if text is None:
        found, frame = read_frame(Path(str(source)), name, set(drop), check)
        table = _from_frame(frame, name, aside, (), optional)
        return replace(table, dropped=tuple(c for c in found if c in drop))
    header, names, columns = read_csv(text, name, aside, drop, check, optional, mixed=True)
    return of_text(name, header, names, columns, {*aside, *optional}, drop)


def of_text(
    name: str,
    header: Sequence[str] | None,
    names: Sequence[str] | None,
    columns: Sequence[Column],
    apart: Collection[str],
    drop: Sequence[str],
) -> MixedTable:
    """The table of what `read_csv` gives, some of whose columns are set apart."""
    check_shape(name, len(columns[0]) if columns else 0, len(columns))
    labels = names or [str(k) for k in range(len(columns))]
    apart = apart if names else ()
    named = list(zip(labels, columns, strict=True))
    cells = tuple(_objects(column) if isinstance(column, list) else column for h, column in named if h not in apart)
    kept = {h: np.array(column) for h, column in named if h in apart}
    features = tuple(h for h in labels if h not in apart) if names else None
    return MixedTable(name, cells, features, kept, tuple(h for h in header or () if h in drop))


def as_frame(table: MixedTable) -> Any:
    """The features as a transformer takes them: as they were passed, or a data frame of what a file holds."""
    if table.native is not None:
        return table.native
    columns = {table.label(k): cells for k, cells in enumerate(table.cells)}
    try:
        import pandas

        return pandas.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame({name: c.tolist() if c.dtype == object else c for name, c in columns.items()})
    except ImportError:
        raise InputError(
            f"an encoder needs {table.name} as a data frame, for which pandas or polars must be installed; install one "
            "of them, or pass encoder='auto'."
        ) from None


def _from_frame(
    source: Any, name: str, aside: Sequence[str], drop: Sequence[str], optional: Sequence[str]
) -> MixedTable:
    columns = [str(c) for c in getattr(source, "column_names", None) or source.columns]
    check_columns(name, columns, aside)
    frame = nw.from_native(source, eager_only=True)
    apart = [c for c in columns if c in (*aside, *optional) and c not in drop]
    names = tuple(c for c in columns if c not in apart and c not in drop)
    check_shape(name, len(frame), len(names))
    cells = tuple(_of_series(frame[c], f"{name} holds", f"column {c!r}") for c in names)
    kept = {c: set_aside(frame[c]) for c in apart}
    return MixedTable(name, cells, names, kept, tuple(c for c in columns if c in drop))


def _from_array(source: Any, name: str) -> MixedTable:
    masked = np.ma.getmaskarray(source) if np.ma.isMaskedArray(source) else None
    array = as_array(source, name)
    if array.dtype.kind in "US":  # numpy makes text of the numbers and of None in a list
        array = as_array(source, name, object)
    check_shape(name, *array.shape)
    if masked is not None:
        array = array.astype(object)
        array[masked] = None
    cells = tuple(_of_values(column, f"{name} holds", f"column {k}") for k, column in enumerate(array.T))
    return MixedTable(name, cells, native=array)


def _of_values(column: Cells, holds: str, where: str) -> Cells:
    """A column of an array; what is text in an array of objects may be a number."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]")
    if column.dtype.kind == "m":
        return _days(column)
    cells = of_objects(column.tolist(), holds, where)
    numbers = as_numbers(cells) if cells.dtype == object else None
    return cells if numbers is None or is_missing(numbers).all() else numbers


def _of_series(series: Any, holds: str, where: str) -> Cells:
    """A column of a data frame, by its type."""
    kind = series.dtype
    if kind in (nw.List, nw.Array, nw.Struct, nw.Binary):
        raise InputTypeError(
            f"{holds} cells of type {kind} in {where}, but numbers, text and dates can be encoded; make columns of "
            "its parts, or drop it."
        )
    missing = np.asarray(series.is_null().to_list(), dtype=bool)
    if kind in (nw.Date, nw.Datetime):
        if kind == nw.Date:
            series = series.cast(nw.Datetime("us"))
        elif kind.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[us]")
    if kind == nw.Duration:
        return _days(np.asarray(series.to_numpy()))
    if (kind.is_numeric() or kind == nw.Boolean) and kind not in (nw.Decimal, nw.Int128, nw.UInt128):
        if not missing.any():
            return np.asarray(series.to_numpy()).astype(np.float64)
        return np.array([np.nan if no else v for v, no in zip(series.to_list(), missing, strict=True)], dtype=float)
    values = [None if no else value for value, no in zip(series.to_list(), missing, strict=True)]
    if kind in (nw.Categorical, nw.Enum):
        return _objects(None if value is None else as_text(value) for value in values)
    if kind == nw.String:  # as below, but once for each text
        words = {value: value.strip() or None for value in set(values) if value is not None}
        return _objects(words.get(value) for value in values)
    return of_objects(values, holds, where)


def of_objects(values: Sequence[Any], holds: str, where: str) -> Cells:
    """Cells of Python's own kinds: all numbers, all dates, all durations, or else text."""
    there = [value for value in values if not is_nothing(value)]
    kinds = {_kind(value) for value in there}
    if "other" in kinds:
        odd = next(value for value in there if _kind(value) == "other")
        raise InputTypeError(
            f"{holds} {_short(odd)} (type {type(odd).__name__}) in {where}, but numbers, text and dates can be "
            "encoded; make columns of its parts, or drop it."
        )
    if kinds == {"number"}:
        try:
            return np.array([np.nan if is_nothing(v) else float(v) for v in values], dtype=np.float64)
        except OverflowError:
            raise InputError(f"{holds} a whole number too large for a float in {where}; rescale it.") from None
    if kinds == {"date"}:
        return np.array([_moment(None if is_nothing(v) else v) for v in values], dtype="datetime64[us]")
    if kinds == {"duration"}:
        return np.array([np.nan if is_nothing(v) else _in_days(v) for v in values], dtype=np.float64)
    return _objects(None if is_nothing(v) else as_text(v) for v in values)


def _kind(value: Any) -> str:
    kinds: tuple[tuple[str, Any], ...] = (
        ("duration", (timedelta, time, np.timedelta64)),  # numpy's is a number too
        ("date", (date, np.datetime64)),
        ("number", (bool, int, float, Decimal, np.number, np.bool_)),
        ("text", str),
    )
    return next((name for name, types in kinds if isinstance(value, types)), "other")


def is_nothing(value: Any) -> bool:
    """Whether a cell of Python's own kinds has no value."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return not isinstance(value, str) and str(value) in _NO_VALUE


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:30]}…"


def _objects(cells: Any) -> Cells:
    listed = list(cells)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def _days(column: Cells) -> Floats:
    return np.where(np.isnat(column), np.nan, column / _DAY).astype(np.float64)


def _in_days(value: Any) -> float:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return float(np.timedelta64(value) / _DAY)


def as_text(value: Any) -> str:
    """A level by its name, so that 1, 1.0 and "1" are one."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_numbers(cells: Cells) -> Floats | None:
    """Text as floats, where every cell that is there is a number."""
    try:
        return np.array([np.nan if cell is None else _number(cell) for cell in cells], dtype=np.float64)
    except ValueError:
        return None


def _number(text: str) -> float:
    if "_" in text or not np.isfinite(number := float(text)):
        raise ValueError
    return number


def as_number(text: str) -> float | None:
    """A cell as a float, if it is one."""
    with suppress(ValueError):
        return _number(text)
    return None


def as_dates(cells: Cells) -> Cells | None:
    """Text as dates, where every cell that is there is one, written as ISO 8601 has it."""
    made = {}
    for cell in {cell for cell in cells if cell is not None}:
        found = as_date(cell)
        if found is None:
            return None
        made[cell] = found
    return np.array([made.get(cell, np.datetime64("NaT", "us")) for cell in cells], dtype="datetime64[us]")


def as_date(text: str) -> np.datetime64 | None:
    """A cell as a moment in UTC, if it is a date or a date and a time; without a zone it is taken as it is."""
    if _ISO.match(text):
        with suppress(ValueError):
            return _moment(datetime.fromisoformat(text))
    return None


def _moment(value: Any) -> np.datetime64:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64("NaT", "us") if value is None else np.datetime64(value, "us")


def is_missing(cells: Cells) -> NDArray[np.bool_]:
    """Which cells have no value."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells)
