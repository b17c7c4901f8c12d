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
_DAY = np.timedelta64(1, "D")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?$")
_KINDS: tuple[tuple[str, Any], ...] = (
    ("duration", (timedelta, time, np.timedelta64)),  # before numbers: numpy's durations are numbers too
    ("date", (date, np.datetime64)),
    ("number", (bool, int, float, Decimal, np.number, np.bool_)),
    ("text", str),
)
# "argument must be … string … number" is the wording that scikit-learn's estimator checks look for.
_REMEDY = "but a cell argument must be a string, a number or a date; split it into several columns, or drop it."


def is_missing_word(text: str) -> bool:
    """Return whether a text means that there is no value."""
    return text.strip().lower() in MISSING_WORDS


def is_missing_value(value: Any) -> bool:
    """Return whether a value of a data frame or list is missing: None, NaN, NaT, NA or blank text."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or is_missing_word(str(value))


def as_text(value: Any) -> str:
    """Return a value as text; 7, 7.0 and "7" give the same text."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_number(text: str) -> float | None:
    """Return the finite number in a text; None if it is not one."""
    with suppress(ValueError):
        number = float(text)
        return number if "_" not in text and np.isfinite(number) else None
    return None


def as_date(text: str) -> np.datetime64 | None:
    """Return the moment in UTC of an ISO 8601 text, None if it is not one; without a time zone it is not converted."""
    if _ISO.match(text):
        with suppress(ValueError):
            return _as_moment(datetime.fromisoformat(text))
    return None


def as_dates(cells: Cells) -> Cells | None:
    """Return text cells as dates; None if one is neither a date nor missing."""
    dates = {cell: as_date(cell) for cell in set(cells.tolist()) - {None}}
    if None in dates.values():
        return None
    return np.array([dates.get(cell, np.datetime64("NaT", "us")) for cell in cells], dtype="datetime64[us]")


def is_missing(cells: Cells) -> NDArray[np.bool_]:
    """Return which cells have no value."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells)


def object_cells(cells: Iterable[Any]) -> Cells:
    """Return text and None as an array of objects."""
    return np.array(list(cells), dtype=object)


def cells_of_array(column: Cells, where: str) -> Cells:
    """Return a column of an array in one of the three forms; `where` is its name in messages."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]")
    if column.dtype.kind == "m":
        return _as_days(column)
    cells = cells_of_values(column.tolist(), where)
    if cells.dtype != object or is_missing(cells).all():
        return cells
    numbers = [np.nan if cell is None else as_number(cell) for cell in cells]
    return cells if None in numbers else np.array(numbers, dtype=np.float64)


def cells_of_series(series: Any, where: str) -> Cells:
    """Return a column of a narwhals frame in one of the three forms."""
    kind = series.dtype
    if kind in (nw.List, nw.Array, nw.Struct, nw.Binary):
        raise InputTypeError(f"{where} holds cells of type {kind}, {_REMEDY}")
    if kind in (nw.Date, nw.Datetime):
        if kind == nw.Date:
            series = series.cast(nw.Datetime("us"))
        elif kind.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[us]")
    if kind == nw.Duration:
        return _as_days(np.asarray(series.to_numpy()))
    missing = series.is_null().to_list()
    is_plain = (kind.is_numeric() or kind == nw.Boolean) and kind not in (nw.Decimal, nw.Int128, nw.UInt128)
    if is_plain and not any(missing):
        return np.asarray(series.to_numpy()).astype(np.float64)
    values = [None if no else value for value, no in zip(series.to_list(), missing, strict=True)]
    if is_plain:
        return np.array(values, dtype=np.float64)
    if kind in (nw.Categorical, nw.Enum):
        return object_cells(None if value is None else as_text(value) for value in values)
    if kind == nw.String:  # strip each distinct text once
        words = {value: value.strip() or None for value in set(values) if value is not None}
        return object_cells(words.get(value) for value in values)
    return cells_of_values(values, where)


def cells_of_values(values: Sequence[Any], where: str) -> Cells:
    """Return Python values in one of the three forms: all numbers, all dates, all durations (in days), or text."""
    cells = [None if is_missing_value(value) else value for value in values]
    kinds: dict[str, Any] = {}  # with the first cell of each
    for cell in cells:
        if cell is not None:
            kinds.setdefault(next((name for name, types in _KINDS if isinstance(cell, types)), "other"), cell)
    if "other" in kinds:
        shown, of_type = repr(kinds["other"]), type(kinds["other"]).__name__
        raise InputTypeError(f"{where} holds {shown[:30]}{'…' * (len(shown) > 30)} (type {of_type}), {_REMEDY}")
    if list(kinds) == ["number"]:
        try:
            return np.array(cells, dtype=np.float64)
        except OverflowError:
            raise InputError(f"{where} holds a whole number too large for a float; rescale it.") from None
    if list(kinds) == ["date"]:
        return np.array([_as_moment(cell) for cell in cells], dtype="datetime64[us]")
    if list(kinds) == ["duration"]:
        return np.array([np.nan if cell is None else _in_days(cell) for cell in cells], dtype=np.float64)
    return object_cells(None if cell is None else as_text(cell) for cell in cells)


def join_cells(columns: Sequence[Cells]) -> Cells:
    """Return columns one below the other: in the form of those that hold a value, or as text where forms differ."""
    forms = {column.dtype.kind for column in columns if not is_missing(column).all()}
    form = forms.pop() if len(forms) == 1 else "O" if forms else "f"
    joined = []
    for column in columns:
        if column.dtype.kind == form:
            joined.append(column)
        elif form == "O":
            pairs = zip(column.tolist(), is_missing(column), strict=True)
            joined.append(object_cells(None if missing else as_text(cell) for cell, missing in pairs))
        else:  # the column has no value at all
            nothing = np.datetime64("NaT", "us") if form == "M" else np.nan
            joined.append(np.full(len(column), nothing))
    return np.concatenate(joined)


def _as_days(column: Cells) -> Floats:
    return np.where(np.isnat(column), np.nan, column / _DAY).astype(np.float64)


def _in_days(value: Any) -> float:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return float(np.timedelta64(value) / _DAY)


def _as_moment(value: Any) -> np.datetime64:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64("NaT", "us") if value is None else np.datetime64(value, "us")
