"""Cells of tables: what counts as missing, and numbers, dates and text in one form.

A column has one of three forms: floats with NaN, dates (datetime64[us], without a time zone) with NaT, or objects,
which are text or None. The form decides how the column is encoded (:mod:`priorshift.io.encoding`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from priorshift.arrays import Floats
from priorshift.errors import InputError, InputTypeError

Cells = NDArray[Any]
# Words that mean "no value" in text (CSV files, labels, audits, ids, names of targets), in lower case.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat", "?", "."})
_R_MISSING = -(2**31)  # R's missing integer, which reticulate passes on as a number
_DAY = np.timedelta64(1, "D")
_NO_DATE = np.datetime64("NaT", "us")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?$")
_KINDS: tuple[tuple[str, Any], ...] = (
    ("duration", (timedelta, time, np.timedelta64)),  # before numbers: numpy's durations are numbers too
    ("date", (date, np.datetime64)),
    ("number", (bool, int, float, Decimal, np.number, np.bool_)),
    ("text", str),
)
# scikit-learn expects the words "argument must be a string … number"
_REMEDY = "but a cell argument must be a string, a number or a date; split it into several columns, or drop it."


def is_missing_word(text: str) -> bool:
    """Return whether a text is one of the words for a missing value, such as "NA" or ""."""
    return text.strip().lower() in MISSING_WORDS


def is_missing_value(value: Any) -> bool:
    """Return whether a value of a data frame or list is missing: None, NaN, NaT, NA or blank text."""
    if isinstance(value, str):  # a text such as "NA" is a value here, unlike in a CSV file
        return not value.strip()
    return is_missing_word(str(value))


def as_text(value: Any) -> str:
    """Return a value as text; 7, 7.0 and "7" give the same text."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_number(text: str) -> float | None:
    """Parse a finite number; return None if the text is not one."""
    with suppress(ValueError):
        number = float(text)
        # float() also accepts 1_000, "nan" and "inf", which are not numbers here
        return number if "_" not in text and np.isfinite(number) else None
    return None


def as_date(text: str) -> np.datetime64 | None:
    """Parse an ISO 8601 date or time, converted to UTC if it has a time zone; return None if the text is not one."""
    if _ISO.match(text):
        with suppress(ValueError):
            return _as_datetime64(datetime.fromisoformat(text))
    return None


def as_dates(cells: Cells) -> Cells | None:
    """Parse a column of text (None where missing) as dates; return None if any text is not a date."""
    date_of_text = {text: as_date(text) for text in set(cells.tolist()) if text is not None}  # each distinct text once
    if None in date_of_text.values():
        return None
    return np.array([date_of_text.get(cell, _NO_DATE) for cell in cells], dtype="datetime64[us]")


def is_missing(cells: Cells) -> NDArray[np.bool_]:
    """Return a mask of the cells without a value: None in text, NaT in dates, NaN in numbers."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells)


def has_r_missing(numbers: Cells) -> bool:
    """Return whether 32-bit integers include the missing integer of R."""
    return numbers.dtype == np.int32 and bool(numbers.size) and int(numbers.min()) == _R_MISSING


def _as_floats(numbers: Cells) -> Floats:
    """Return booleans or numbers as floats; the missing integer of R becomes NaN."""
    floats = numbers.astype(np.float64)
    return np.where(floats == _R_MISSING, np.nan, floats) if has_r_missing(numbers) else floats


def object_cells(cells: Iterable[Any]) -> Cells:
    """Return cells of text and None as an array of objects."""
    return np.array(list(cells), dtype=object)


def cells_of_array(column: Cells, where: str) -> Cells:
    """Return a column of an array as floats (durations in days), dates or text; `where` names it in messages."""
    if column.dtype.kind in "biuf":  # booleans and numbers
        return _as_floats(column)
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]")
    if column.dtype.kind == "m":  # durations
        return durations_in_days(column)
    cells = cells_of_values(column.tolist(), where)
    if cells.dtype != object or is_missing(cells).all():
        return cells
    # a column of text becomes numbers if every cell with a value is a number
    numbers = [np.nan if cell is None else as_number(cell) for cell in cells]
    return cells if None in numbers else np.array(numbers, dtype=np.float64)


def cells_of_series(series: Any, where: str) -> Cells:
    """Return a column of a narwhals frame as floats (durations in days), dates or text; `where` is for messages."""
    dtype = series.dtype
    if dtype in (nw.List, nw.Array, nw.Struct, nw.Binary):
        raise InputTypeError(f"{where} holds cells of type {dtype}, {_REMEDY}")
    if dtype in (nw.Date, nw.Datetime):
        if dtype == nw.Date:
            series = series.cast(nw.Datetime("us"))
        elif dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[us]")
    if dtype == nw.Duration:
        return durations_in_days(np.asarray(series.to_numpy()))
    nulls = series.is_null().to_list()
    # numpy has no decimals and no 128-bit integers: these are converted value by value
    is_numpy_number = (dtype.is_numeric() or dtype == nw.Boolean) and dtype not in (nw.Decimal, nw.Int128, nw.UInt128)
    if is_numpy_number and not any(nulls):
        return _as_floats(np.asarray(series.to_numpy()))
    values = [None if is_null else value for value, is_null in zip(series.to_list(), nulls, strict=True)]
    if is_numpy_number:
        return np.array(values, dtype=np.float64)  # None becomes NaN
    if dtype in (nw.Categorical, nw.Enum):
        return object_cells(None if value is None else as_text(value) for value in values)
    if dtype == nw.String:  # strip each distinct text once; blank text is missing
        stripped = {value: value.strip() or None for value in set(values) if value is not None}
        return object_cells(stripped.get(value) for value in values)
    return cells_of_values(values, where)


def cells_of_values(values: Sequence[Any], where: str) -> Cells:
    """Return a column of Python values as floats (all numbers, or all durations, in days), as dates, or else as text.

    Missing values become NaN, NaT or None. `where` names the column in messages.
    """
    cells = [None if is_missing_value(value) else value for value in values]
    kinds = {_kind_of(cell, where) for cell in cells if cell is not None}
    if kinds == {"number"}:
        try:
            return np.array(cells, dtype=np.float64)
        except OverflowError:
            raise InputError(f"{where} holds a whole number too large for a float; rescale it.") from None
    if kinds == {"date"}:
        return np.array([_as_datetime64(cell) for cell in cells], dtype="datetime64[us]")
    if kinds == {"duration"}:
        return np.array([np.nan if cell is None else _duration_in_days(cell) for cell in cells], dtype=np.float64)
    return object_cells(None if cell is None else as_text(cell) for cell in cells)


def _kind_of(cell: Any, where: str) -> str:
    """Return "duration", "date", "number" or "text"; refuse a cell of another type in the column called `where`."""
    for kind, types in _KINDS:
        if isinstance(cell, types):
            return kind
    shown = repr(cell) if len(repr(cell)) <= 30 else f"{repr(cell)[:30]}…"
    raise InputTypeError(f"{where} holds {shown} (type {type(cell).__name__}), {_REMEDY}")


def join_cells(columns: Sequence[Cells]) -> Cells:
    """Concatenate columns, as text where their forms differ; a column without any value takes the others' form."""
    forms = {column.dtype.kind for column in columns if not is_missing(column).all()}
    form = "f"  # "f" for numbers, "M" for dates, "O" for text
    if forms:
        form = forms.pop() if len(forms) == 1 else "O"
    joined = []
    for column in columns:
        if column.dtype.kind == form:
            joined.append(column)
        elif form == "O":
            pairs = zip(column.tolist(), is_missing(column), strict=True)
            joined.append(object_cells(None if missing else as_text(cell) for cell, missing in pairs))
        else:  # the column has no value at all
            joined.append(np.full(len(column), _NO_DATE if form == "M" else np.nan))
    return np.concatenate(joined)


def durations_in_days(column: Cells) -> Floats:
    """Convert an array of durations to days; NaT becomes NaN."""
    return np.where(np.isnat(column), np.nan, column / _DAY).astype(np.float64)


def _duration_in_days(value: Any) -> float:
    """Convert one duration, or a time of day (as the time since midnight), to days."""
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return float(np.timedelta64(value) / _DAY)


def _as_datetime64(value: Any) -> np.datetime64:
    """Convert a date, or a date with a time, to datetime64[us] in UTC; None becomes NaT."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return _NO_DATE if value is None else np.datetime64(value, "us")
