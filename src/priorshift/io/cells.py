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
from priorshift.formatting import shell_option

Cells = NDArray[Any]
# Words that mean "no value" in text (CSV files, labels, audits, ids, names of targets), in lower case. The last three
# may also be levels, as in none / mild / severe: in a feature they mean "no value" only among numbers and dates.
LEVEL_WORDS = frozenset({"none", "?", "."})
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "<na>", "nat"}) | LEVEL_WORDS
TRUTH_VALUES = {"true": 1.0, "false": 0.0}
DATE_ORDERS = ("year-first", "day-first", "month-first")
_R_MISSING = -(2**31)  # R's missing integer, which reticulate passes on as a number
_DAY = np.timedelta64(1, "D")
_NO_DATE = np.datetime64("NaT", "us")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?$")
_CLOCK = re.compile(r"(\d{1,9}):(\d{2})(?::(\d{2}(?:\.\d{1,9})?))?")  # a time of day or a duration
_TIME = r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))? ?(?P<half>[AaPp][Mm])?)?"
# a and b are day and month, in either order
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})(?P<mark>[./])(?P<a>\d{1,2})(?P=mark)(?P<b>\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4})" + _TIME)
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
    """Return a value as text; 7, 7.0 and "7" give the same text, and 90 minutes are 01:30:00."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, timedelta) and value >= timedelta(0):
        seconds, fraction = divmod(value, timedelta(seconds=1))
        text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{text}.{fraction.microseconds:06d}" if fraction else text
    return str(value).strip()


def as_number(text: str) -> float | None:
    """Parse a finite number; return None if the text is not one."""
    with suppress(ValueError):
        number = float(text)
        # float() also accepts 1_000, "nan" and "inf", which are not numbers here
        return number if "_" not in text and np.isfinite(number) else None
    return None


def parse_cell(cell: str) -> float | None:
    """Return the number in a cell, with a decimal point or comma, or 1 and 0 for "true" and "false"; None otherwise."""
    if "," in cell:
        if cell.count(",") > 1 or "." in cell:
            return None
        cell = cell.replace(",", ".")
    try:
        return float(cell) if "_" not in cell else None  # float() accepts 1_000
    except ValueError:
        return TRUTH_VALUES.get(cell.strip().lower())


def as_date(text: str, order: str = "year-first") -> np.datetime64 | None:
    """Parse a date, with or without a time; return None if the text is not one.

    `order` is one of DATE_ORDERS. "year-first" reads ISO 8601, converted to UTC if it has a time zone, and 2020/06/15;
    the others read 15.06.2020, 15/06/2020 and 15-06-2020, or 06/15/2020.
    """
    with suppress(ValueError, OverflowError):  # such as the 31st of June, or a time after the year 9999
        if order == "year-first":
            if _ISO.match(text):
                return _as_datetime64(datetime.fromisoformat(text))
            match = _YEAR_FIRST.fullmatch(text)
        else:
            match = _YEAR_LAST.fullmatch(text)
        if match is None:
            return None
        first, second = int(match["a"]), int(match["b"])
        month, day = (second, first) if order == "day-first" else (first, second)
        hour = int(match["hour"] or 0)
        if match["half"]:
            hour = hour % 12 + 12 * (match["half"].lower() == "pm")
        moment = datetime(int(match["year"]), month, day, hour, int(match["minute"] or 0), int(match["second"] or 0))
        return _as_datetime64(moment)
    return None


def find_date_orders(cells: Cells) -> list[str]:
    """Return those of DATE_ORDERS in which every text of a column is a date; none if the column holds no dates.

    Two of them are possible where no day is above 12, unless dates have points (15.06.2020), which put the day first.
    """
    texts = {cell for cell in cells.tolist() if cell is not None and cell.lower() not in LEVEL_WORDS}
    possible = [order for order in DATE_ORDERS if texts and all(as_date(text, order) is not None for text in texts)]
    if len(possible) > 1 and any("." in text.partition(":")[0] for text in texts):
        return ["day-first"]
    return possible


def as_dates(cells: Cells, order: str) -> Cells:
    """Parse a column of text (None where missing) as dates in one of DATE_ORDERS; a text that is not a date is NaT."""
    date_of_text = {text: _NO_DATE if text is None else as_date(text, order) for text in set(cells.tolist())}
    dates = [date_of_text[cell] for cell in cells]  # each distinct text is parsed once
    return np.array([_NO_DATE if date is None else date for date in dates], dtype="datetime64[us]")


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


def cell_type_error(where: str, dtype: Any) -> InputTypeError:
    """Return the error for a column, `where` in messages, whose type is not one of single cells."""
    return InputTypeError(f"{where} holds cells of type {dtype}, {_REMEDY}")


def cells_of_series(series: Any, where: str) -> Cells:
    """Return a column of a narwhals frame as floats (durations in days), dates or text; `where` is for messages."""
    try:
        return _cells_of_series(series, where)
    except InputError:
        raise
    except (ValueError, OverflowError, KeyError) as error:  # dates out of range, unknown time zones, text not in UTF-8
        reason = str(error).partition("\n")[0].strip(" .'\"")
        raise InputError(f"{where} holds a value that cannot be read ({reason}); correct or drop the column.") from None


def _cells_of_series(series: Any, where: str) -> Cells:
    """Convert a column; values that its library cannot convert raise that library's error."""
    dtype = series.dtype
    if dtype in (nw.List, nw.Array, nw.Struct, nw.Binary):
        raise cell_type_error(where, dtype)
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


def _may_be_missing(column: Cells) -> bool:
    """Return whether no cell of a column is surely a value: all are missing, or words such as "none"."""
    if column.dtype != object:
        return bool(is_missing(column).all())
    return all(cell is None or cell.lower() in LEVEL_WORDS for cell in column)


def as_levels(cells: Cells, levels: Iterable[str], table: str, column: str) -> Cells:
    """Return numbers or dates as text: as the `levels` from which they were read, such as 01, 0,5, TRUE or 08:00:00.

    Times and durations are numbers of days. Other numbers are written plainly. Refuse a number that several levels
    stand for, and missing cells if a word such as "none", which is missing among numbers, is a level. Messages name
    the table and the column.
    """
    is_gap = is_missing(cells)
    if cells.dtype.kind != "f":
        return object_cells(None if gap else as_text(cell) for cell, gap in zip(cells.tolist(), is_gap, strict=True))
    levels_of_number: dict[float, list[str]] = {}
    levels_of_time: dict[float, list[str]] = {}  # by seconds, to milliseconds
    words = []
    for level in sorted(levels):
        if level.lower() in LEVEL_WORDS:
            words.append(level)
        elif (number := parse_cell(level)) is not None:
            levels_of_number.setdefault(number, []).append(level)
        elif match := _CLOCK.fullmatch(level):
            seconds = 3600 * int(match[1]) + 60 * int(match[2]) + float(match[3] or 0)
            levels_of_time.setdefault(round(seconds, 3), []).append(level)
    numbers = np.unique(cells[~is_gap]).tolist()
    found = {
        number: levels_of_number.get(number) or levels_of_time.get(round(number * 86_400, 3), [as_text(number)])
        for number in numbers
    }  # fmt: skip
    several = [names for names in found.values() if len(names) > 1]
    if several or (words and is_gap.any()):
        what = f"a number, which may be {several[0][0]!r} or {several[0][1]!r}" if several else "no value in some cells"
        what += "" if several else f", which may be {words[0]!r}"
        remedy = f"pass columns={{{column!r}: 'category'}} ({shell_option('--category', column)}), or rename the level"
        raise InputError(f"{table} has {what}, in column {column!r}, whose text is elsewhere a level; {remedy}.")
    return object_cells(None if gap else found[cell][0] for cell, gap in zip(cells.tolist(), is_gap, strict=True))


def join_cells(columns: Sequence[Cells], table: str = "the table", column: str = "") -> Cells:
    """Concatenate columns, as text where their forms differ; a column without any value takes the others' form.

    So does a column with no text but words such as "none", which are missing among numbers and dates. Messages name
    the table and the column.
    """
    forms = {column.dtype.kind for column in columns if not _may_be_missing(column)}
    if not forms:
        forms = {column.dtype.kind for column in columns if not is_missing(column).all()}
    form = "f"  # "f" for numbers, "M" for dates, "O" for text
    if forms:
        form = forms.pop() if len(forms) == 1 else "O"
    levels = {cell for cells in columns if form == "O" and cells.dtype == object for cell in cells if cell is not None}
    joined = []
    for cells in columns:
        if cells.dtype.kind == form:
            joined.append(cells)
        elif form == "O":
            joined.append(as_levels(cells, levels, table, column))
        else:  # the column has no value at all
            joined.append(np.full(len(cells), _NO_DATE if form == "M" else np.nan))
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
