"""TableEncoder: categories, dates and missing cells of a table as numbers.

A column of text becomes a column of 0 and 1 for each level, the rare levels together; a column of numbers or dates
stays one, with a further column where cells are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.errors import ColumnWarning, InputError
from priorshift.formatting import drop_hint, shell_option
from priorshift.io.cells import (
    DATE_ORDERS,
    LEVEL_WORDS,
    Cells,
    as_date,
    as_dates,
    as_levels,
    as_number,
    durations_in_days,
    find_date_orders,
    is_missing,
)
from priorshift.io.files import Fields
from priorshift.io.parameters import check_count
from priorshift.io.readers import read_table
from priorshift.io.tables import LARGEST, Origin, Table, match_columns
from priorshift.warning_records import warn

_MISSING = "(missing)"  # the level of a cell without a value
_RARE = "(rare)"
_YEAR = 365.2425  # days
_FEW_LEVELS = 20  # number of levels that is always allowed
_FEW_ROWS = 2  # a text in at most this many rows hardly repeats
_LONGEST_NAME = 60  # characters of a column's name in the summary line
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates", "left out": "left out"}
# keys that the stored header of a column of each kind has besides name, kind, became and missing
_HEADER_KEYS = {"number": "median gaps", "date": "median gaps order", "category": "kept rare", "left out": ""}
_DATE_EXAMPLES = {"year-first": "2024-03-31", "day-first": "31.03.2024", "month-first": "03/31/2024"}


@dataclass(frozen=True)
class Levels:
    """Levels of a category: a column of 0 and 1 for each frequent level, and one for all rare and unseen levels."""

    frequent: tuple[str, ...]  # levels with a column of their own, sorted
    rare_count: int  # number of rare levels; if it is 0 there is no column for rare and unseen levels
    rare: tuple[str, ...] = ()  # names of the rare levels; empty after `from_header`

    @classmethod
    def fit(cls, cells: Cells, min_frequency: int) -> Levels:
        """Find the levels of a column of text; those with fewer than `min_frequency` rows are rare."""
        levels, counts = np.unique(_name_missing(cells), return_counts=True)
        rare = tuple(levels[counts < min_frequency].tolist())
        return cls(tuple(levels[counts >= min_frequency].tolist()), len(rare), rare)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that `encode` returns: the frequent levels, and "(rare)" if any level is rare."""
        return (*self.frequent, _RARE) if self.rare_count else self.frequent

    def __str__(self) -> str:
        """Describe the encoding, as in "3 levels and 2 rare ones together"."""
        text = "1 level" if len(self.frequent) == 1 else f"{len(self.frequent)} levels"
        if self.rare_count:
            text += f" and {self.rare_count} rare {'one' if self.rare_count == 1 else 'ones'} together"
        return text

    def unseen(self, cells: Cells) -> list[str | None]:
        """Return those cells of a column of text whose level the fitted sample lacks; None is a missing cell."""
        known = {*self.frequent, *self.rare}
        return [cell for cell, level in zip(cells, _name_missing(cells), strict=True) if level not in known]

    def encode(self, cells: Cells) -> Floats:
        """Return a column of text as one-hot columns, in the order of `names`."""
        column_of_level = {level: k for k, level in enumerate(self.frequent)}
        shared_column = len(self.frequent)  # of rare and unseen levels
        one_hot = np.zeros((len(cells), shared_column + 1))
        one_hot[
            np.arange(len(cells)), [column_of_level.get(level, shared_column) for level in _name_missing(cells)]
        ] = 1
        return one_hot[:, : len(self.names)]  # without rare levels, an unseen level is 0 in all columns


def _name_missing(cells: Cells) -> Cells:
    """Return a column of text with "(missing)" in place of None, so that missing is a level like any other."""
    return np.array([_MISSING if cell is None else cell for cell in cells], dtype=object)


_NO_LEVELS = Levels((), 0)


@dataclass(frozen=True)
class EncodedColumn:
    """How one column is encoded."""

    name: str
    kind: str  # "number", "category", "date" or "left out"
    became: str  # description of the encoding, for users
    missing: float  # share of missing cells in the fitted sample
    median: float = 0.0  # of the numbers, or of the dates in days since 1970
    has_missing: bool = False  # whether numbers or dates were missing in the fitted sample
    levels: Levels = _NO_LEVELS  # of a category
    date_order: str = "year-first"  # one of DATE_ORDERS, in which dates are written as text

    @classmethod
    def fit(cls, name: str, cells: Cells, min_frequency: int, date_order: str = "year-first") -> EncodedColumn:
        """Decide from a column of the fitted sample how it is encoded: numbers, dates or levels of text."""
        is_empty = is_missing(cells)
        missing_share = float(is_empty.mean())
        if is_empty.all():
            return cls(name, "left out", "nothing", missing_share)
        if cells.dtype == object:
            levels = Levels.fit(cells, min_frequency)
            return cls(name, "category", str(levels), missing_share, levels=levels)
        kind = "date" if cells.dtype.kind == "M" else "number"
        median = float(np.nanmedian(_numbers_or_days(cells)))
        became = "itself" if kind == "number" else "days, sine and cosine of the time of the year"
        if missing_share > 0:
            shown = np.datetime64(int(median), "D") if kind == "date" else f"{median:.4g}"
            became += f", median {shown} where missing; and whether it is missing"
        return cls(name, kind, became, missing_share, median, missing_share > 0, date_order=date_order)

    @property
    def is_quantity(self) -> bool:
        """Whether the column is encoded as one number: a number itself, or a date in days."""
        return self.kind in ("number", "date")

    def to_header(self) -> dict[str, Any]:
        """Return the encoding as JSON values, without the names of rare levels, which may identify a person."""
        header: dict[str, Any] = {"name": self.name, "kind": self.kind, "became": self.became, "missing": self.missing}
        if self.is_quantity:
            header |= {"median": self.median, "gaps": self.has_missing}
        if self.kind == "date":
            header["order"] = self.date_order
        if self.kind == "category":
            header |= {"kept": list(self.levels.frequent), "rare": self.levels.rare_count}
        return header

    @classmethod
    def from_header(cls, header: Any) -> EncodedColumn:
        """Build a column from what `to_header` returned, and check it: the file may come from someone else."""
        kind = header.get("kind") if isinstance(header, dict) else None
        further_keys = _HEADER_KEYS.get(str(kind), "")
        fields = Fields(header, f"name kind became missing {further_keys}", "an encoded column")
        if not isinstance(kind, str) or kind not in _HEADER_KEYS:
            raise fields.refused(f"its kind is {str(kind)[:40]!r}")
        column = cls(fields.text("name"), kind, fields.text("became"), fields.number("missing", 0, 1))
        if column.kind == "category":
            levels = Levels(fields.texts("kept"), fields.whole("rare"))
            if not levels.names:
                raise fields.refused("it has no level")
            return replace(column, levels=levels)
        if column.kind == "date":
            column = replace(column, date_order=fields.text("order"))
            if column.date_order not in DATE_ORDERS:
                raise fields.refused(f"its dates are {column.date_order[:40]!r}")
        if column.is_quantity:
            return replace(column, median=fields.number("median", -LARGEST, LARGEST), has_missing=fields.flag("gaps"))
        return column


@dataclass(frozen=True)
class EncodingSummary:
    """How each column is encoded; it prints as a table.

    Examples
    --------
    >>> from priorshift import TableEncoder
    >>> print(TableEncoder(min_frequency=1).fit([[1.5, "a"], [None, "b"], [2.5, "a"]]).summary_)
    column  kind      missing  became
    0       number    33.3%    itself, median 2 where missing; and whether it is missing
    1       category  0%       2 levels
    """

    columns: tuple[EncodedColumn, ...]

    def __str__(self) -> str:
        rows = [("column", "kind", "missing", "became")]
        rows += [(c.name, c.kind, f"{100 * c.missing:.3g}%", c.became) for c in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in lines)

    def line(self) -> str:
        """Summarise the encoding in one line, such as "2 numbers, 1 date (birth), 2 categories (sex, ward)"."""
        parts = []
        for kind, plural in _PLURALS.items():
            names = [column.name for column in self.columns if column.kind == kind]
            if names:
                part = f"{len(names)} {kind if len(names) == 1 else plural}"
                if kind != "number":
                    short = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
                    part += f" ({', '.join(short)})"
                parts.append(part)
        return ", ".join(parts)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return kind, encoding and share of missing cells of each column, by its name.

        Returns
        -------
        dict
            With "kind", "became" and "missing" for each.
        """
        return {c.name: {"kind": c.kind, "became": c.became, "missing": round(c.missing, 4)} for c in self.columns}


def _numbers_or_days(cells: Cells) -> Floats:
    """Return a column of numbers as it is, and one of dates in days since 1970, with NaN where missing."""
    if cells.dtype.kind != "M":  # numbers
        return cells
    return durations_in_days(cells - np.datetime64(0, "us"))


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table with categories, dates and missing cells as numbers.

    The sample that the encoder is fitted on, the unlabelled source sample, decides how each column is encoded:

    - Numbers and truth values stay as they are. If that sample has missing cells, they become its median, and a
      further column marks them.
    - Text, categoricals and other objects become a column of 0 and 1 for each level. Rare levels share one column with
      levels that the sample lacks. A missing cell is a level like any other.
    - Dates become days, and sine and cosine of the time of the year; times with a zone are converted to UTC. Text is
      read as dates if every cell is one, such as 2020-06-15, 15.06.2020 or 06/15/2020. If no date shows whether the
      day or the month comes first, the column is refused. Missing dates are treated like missing numbers.
    - Durations and times of the day become days.

    A column without any value is left out, with a warning. Text that hardly repeats is refused: it is a name or an id
    rather than a category.

    Parameters
    ----------
    min_frequency : int
        A level with fewer rows is rare. Default 10.

    Attributes
    ----------
    summary_ : EncodingSummary
        How each column is encoded.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from priorshift import TableEncoder
    >>> source = pd.DataFrame({"age": [30, None, 50], "sex": ["f", "m", "f"]})
    >>> encoder = TableEncoder(min_frequency=1).fit(source)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age (missing)', 'sex = f', 'sex = m']
    >>> encoder.transform(source)
    array([[30.,  0.,  1.,  0.],
           [40.,  1.,  0.,  1.],
           [50.,  0.,  1.,  0.]])
    """

    def __init__(self, *, min_frequency: int = 10) -> None:
        self.min_frequency = min_frequency

    def fit(self, table: Any, y: Any = None) -> Self:
        """Decide how each column is encoded.

        Parameters
        ----------
        table : data frame, array-like or path
            The unlabelled source sample.
        y : object
            Not used.

        Returns
        -------
        Self
            The fitted encoder.
        """
        check_count("min_frequency", self.min_frequency, 1)
        sample = read_table(table, "the table").as_cells()
        self.n_features_in_ = sample.width
        if sample.columns:
            self.feature_names_in_ = np.asarray(sample.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        columns = []
        for k, cells in enumerate(sample.cells):
            order = _date_order(cells, sample, k) if cells.dtype == object else None
            cells = cells if order is None else as_dates(cells, order)
            columns.append(EncodedColumn.fit(sample.column_name(k), cells, self.min_frequency, order or "year-first"))
            if columns[-1].kind == "category":
                _check_repeats(cells, sample, k)
        if all(column.kind == "left out" for column in columns):
            raise InputError(f"no column of {sample.name} has a value; pass columns that have some.")
        for k, column in enumerate(columns):
            if column.kind == "left out":
                warn(f"Left out {sample.column(k)}: it has no value in {sample.name}; drop or fill it.", ColumnWarning)
        self.summary_ = EncodingSummary(tuple(columns))
        return self

    def transform(self, table: Any) -> Floats:
        """Encode a table with the columns that `fit` was given.

        Parameters
        ----------
        table : data frame, array-like or path
            Any sample; columns are matched by name if they have names.

        Returns
        -------
        ndarray of shape (rows, columns)
            Finite numbers.
        """
        check_is_fitted(self, "summary_")
        return self.encode(self.convert(read_table(table, "the table").as_cells(), "the fitted table"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : object
            Not used; the names are those of `fit`.

        Returns
        -------
        ndarray of object
        """
        check_is_fitted(self, "summary_")
        return np.asarray([name for name, _ in self._encoded_columns()], dtype=object)

    def _encoded_columns(self) -> list[tuple[str, int]]:
        """Return the name of each column that `encode` returns, in its order, and the position of its original."""
        columns = list(enumerate(self.summary_.columns))
        dates = [(k, c) for k, c in columns if c.kind == "date"]
        encoded = [(f"{c.name} (days)" if c.kind == "date" else c.name, k) for k, c in columns if c.is_quantity]
        encoded += [(f"{c.name} (missing)", k) for k, c in columns if c.has_missing]
        encoded += [(f"{c.name} ({part} of the year)", k) for k, c in dates for part in ("sine", "cosine")]
        encoded += [(f"{c.name} = {level}", k) for k, c in columns for level in c.levels.names]
        return encoded

    def convert(self, table: Table, fitted_name: str = "the unlabelled source sample") -> Table:
        """Return a table with the fitted columns in their fitted order, each column in its fitted form.

        Numbers become floats, dates datetime64, and categories text. `fitted_name` is the fitted sample in messages.
        """
        fitted = Table(fitted_name, np.empty((0, self.n_features_in_)), self.names)
        [_, table] = match_columns([fitted, table])
        cells = []
        for k, (column, received) in enumerate(zip(self.summary_.columns, table.cells, strict=True)):
            if column.kind == "category":
                levels = (*column.levels.frequent, *column.levels.rare)
                is_text = received.dtype == object
                cells.append(received if is_text else as_levels(received, levels, table.name, column.name))
            elif column.is_quantity:
                cells.append(convert_column(received, column.kind, table, k, fitted_name, column.date_order))
            else:
                cells.append(received)
        return replace(table, cells=tuple(cells), native=None)

    def encode(self, table: Table) -> Floats:
        """Encode a table that `convert` returned, as an array of shape (rows, encoded columns).

        The order of columns is: all numbers and dates (in days), missing flags, time of the year of dates, levels.
        """
        columns = list(zip(self.summary_.columns, table.cells, strict=True))
        quantities = [(column, cells) for column, cells in columns if column.is_quantity]
        parts = []
        if quantities:
            numbers = np.column_stack([_numbers_or_days(cells) for _, cells in quantities])
            missing = np.isnan(numbers)
            parts.append(np.where(missing, [column.median for column, _ in quantities], numbers))
            parts.append(missing[:, [column.has_missing for column, _ in quantities]])
        for column, cells in columns:
            if column.kind == "date":
                angle = 2 * np.pi * _share_of_year(cells)
                # a missing date is the centre of the circle, (0, 0)
                parts.append(np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)]), nan=0.0))
        parts += [column.levels.encode(cells) for column, cells in columns if column.kind == "category"]
        return np.column_stack(parts).astype(np.float64)

    @property
    def origin(self) -> Origin:
        """Which original column each encoded column comes from, and whether it has a scale of its own."""
        original = np.array([k for _, k in self._encoded_columns()], dtype=np.intp)
        quantities = sum(column.is_quantity for column in self.summary_.columns)
        own_scale = np.arange(len(original)) >= quantities  # quantities come first; the others lie within [−1, 1]
        return Origin(original, own_scale, self.summary_.to_dict(), self.summary_.line())

    def encode_table(self, table: Table) -> Table:
        """Return a table that `convert` returned as a table of numbers, with the origin of its columns."""
        names = tuple(self.get_feature_names_out())
        return Table(table.name, self.encode(table), names, table.extra, table.dropped, self.origin)

    def to_header(self) -> dict[str, Any]:
        """Return the fitted encoder as JSON values."""
        return {
            "min_frequency": int(self.min_frequency),
            "named": hasattr(self, "feature_names_in_"),
            "columns": [column.to_header() for column in self.summary_.columns],
        }

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """Build a fitted encoder from what `to_header` returned, and check it: the file may be someone else's."""
        fields = Fields(header, "min_frequency named columns", "an encoding")
        columns = [EncodedColumn.from_header(column) for column in fields.parts("columns")]
        if all(column.kind == "left out" for column in columns):
            raise fields.refused("no column is left")
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise fields.refused("two columns have one name")
        encoder = cls(min_frequency=fields.whole("min_frequency", 1))
        encoder.n_features_in_ = len(columns)
        if fields.flag("named"):
            encoder.feature_names_in_ = np.asarray(names, dtype=object)
        encoder.summary_ = EncodingSummary(tuple(columns))
        return encoder

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the fitted columns, if they have any."""
        return tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None


def _check_repeats(cells: Cells, table: Table, k: int) -> None:
    """Refuse column `k`, whose text is in `cells`, if most rows hold a text that hardly repeats: it is an id."""
    levels, counts = np.unique(_name_missing(cells), return_counts=True)
    rare_share = counts[counts <= _FEW_ROWS].sum() / len(cells)
    if len(levels) > _FEW_LEVELS and rare_share > 0.5:
        hint = f" {drop_hint(table.columns[k])}" if table.columns else ""
        raise InputError(
            f"{table.name} has {len(levels)} different texts in {table.column(k)}, such as {levels[0]!r}, that hardly "
            f"repeat, so it is an id rather than a category; drop the column{hint}, pass it as groups (--group-column) "
            "if it identifies groups, or pass an encoder that reads text, such as skrub's TableVectorizer()."
        )


def _date_order(cells: Cells, table: Table, k: int) -> str | None:
    """Return the order of day, month and year in the dates of column `k`, a column of text; None if it has no dates.

    Refuse dates that may be written with the day or with the month first.
    """
    orders = find_date_orders(cells)
    if len(orders) < 2:
        return orders[0] if orders else None
    shown = next(cell for cell in cells if cell is not None and cell.lower() not in LEVEL_WORDS)
    hint = "convert it to dates"
    if table.columns:
        name = table.columns[k]
        options = " or ".join(shell_option(f"--{order}", name) for order in orders)
        hint = f"pass columns={{{name!r}: 'day-first'}} or 'month-first' ({options})"
    raise InputError(
        f"{table.name} has the date {shown!r} in {table.column(k)}, and no date there shows whether the day or the "
        f"month comes first; {hint}."
    )


def convert_column(
    cells: Cells, kind: str, table: Table, k: int, fitted_name: str, date_order: str = "year-first"
) -> Cells:
    """Convert column `k` of a table to its fitted kind, "number" (floats) or "date" (datetime64).

    A cell that is not of this kind is refused; `fitted_name` is the fitted sample in messages, and `date_order` the
    order of day, month and year in its dates.
    """
    if cells.dtype.kind == ("f" if kind == "number" else "M"):
        return cells
    converted = np.full(len(cells), np.nan if kind == "number" else np.datetime64("NaT", "us"))
    for row in np.flatnonzero(~is_missing(cells)):
        cell, value = cells[row], None
        if isinstance(cell, str):
            if cell.lower() in LEVEL_WORDS:  # missing among numbers and dates
                continue
            value = as_number(cell) if kind == "number" else as_date(cell, date_order)
        if value is None:
            expected = "numbers" if kind == "number" else f"dates such as {_DATE_EXAMPLES[date_order]}"
            if isinstance(cell, str) and cell.count(",") == 1 and as_number(cell.replace(",", ".")) is not None:
                expected += ", with a decimal point"
            shown = f"{repr(cell) if isinstance(cell, str) else cell} in {table.place(int(row), k)}"
            raise InputError(
                f"{table.name} holds {shown}, but {fitted_name} has {expected}; correct or empty the cell."
            )
        converted[row] = value
    return converted


def _share_of_year(cells: Cells) -> Floats:
    """Return the share of the year that has passed at each date, from 0 to 1; NaN where a date is missing."""
    new_year = cells.astype("datetime64[Y]").astype("datetime64[us]")
    return durations_in_days(cells - new_year) / _YEAR
