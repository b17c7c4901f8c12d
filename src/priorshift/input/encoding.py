"""Mixed columns as numbers: an encoding that is fitted on the unlabelled source sample and applied to all three.

Label shift holds for every function of a row, so an encoding costs no validity, as long as it is one and the same
function for all rows. It must not be fitted on the target, whose levels and gaps would then tell which sample a row is
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from priorshift.arrays import Floats
from priorshift.errors import ColumnWarning, InputError, warn
from priorshift.input.mixed import Cells, MixedTable, as_date, as_dates, as_number, as_text, is_missing, read_mixed
from priorshift.input.tables import Origin, Table, match_columns

_FEW_LEVELS = 20  # which are never too many
_HARDLY = 2  # rows that a text stands in
_DAY = np.timedelta64(1, "D")
_YEAR = 365.2425  # days
_MISSING = "(missing)"  # the level of a cell without value
_RARE = "(rare)"
_PLURALS = {"number": "numbers", "category": "categories", "date": "dates"}


@dataclass(frozen=True)
class EncodedColumn:
    """What was done with one column."""

    name: str
    kind: str  # "number", "category", "date" or "left out"
    became: str
    missing: float  # share of the rows that it was fitted on


@dataclass(frozen=True)
class EncodingSummary:
    """What was done with each column; it prints as a table.

    Examples
    --------
    >>> from priorshift import TableEncoder
    >>> print(TableEncoder(min_frequency=1).fit([[1.5, "a"], [None, "b"], [2.5, "a"]]).summary_)
    column  kind      missing  became
    0       number    33.3%    itself, median 2 where missing; 1 where missing
    1       category  0%       2 levels
    """

    columns: tuple[EncodedColumn, ...]

    def __str__(self) -> str:
        rows = [("column", "kind", "missing", "became")]
        rows += [(c.name, c.kind, f"{100 * c.missing:.3g}%", c.became) for c in self.columns]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def line(self) -> str:
        """One line: how many columns of each kind, with the names of all but the numbers."""
        parts = []
        for kind in ("number", "category", "date", "left out"):
            names = [c.name for c in self.columns if c.kind == kind]
            if names:
                told = f"{len(names)} {kind if len(names) == 1 else _PLURALS.get(kind, kind)}"
                parts.append(told if kind == "number" else f"{told} ({', '.join(names)})")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Give plain words and numbers, by the names of the columns.

        Returns
        -------
        dict
            With "kind", "became" and "missing" for each.
        """
        return {c.name: {"kind": c.kind, "became": c.became, "missing": round(c.missing, 4)} for c in self.columns}


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make numbers of a table with categories, dates and missing cells.

    What a column is, is decided by the sample that it is fitted on, the unlabelled source sample:

    - Numbers and truth values stay as they are. Where that sample has missing cells, they become its median, and a
      column more says where.
    - Text, categoricals and other objects become a column of 0 and 1 for each level; rare levels are one, together
      with levels that were not there; a missing cell is a level like any other.
    - Dates become days, and sine and cosine of the time of the year; a time zone is brought to UTC. Text is a date
      where every cell is one as ISO 8601 writes it. Missing dates are as missing numbers.
    - Durations and times of the day become days.

    A column without any value is left out, with a warning. Text that most rows share with hardly another one is
    refused: it is a name or an id rather than a category.

    Parameters
    ----------
    min_frequency : int
        Rows of a level below which it is rare.

    Attributes
    ----------
    summary_ : EncodingSummary
        What is done with each column.
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
        """Decide what each column is.

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
        whole = isinstance(self.min_frequency, (int, np.integer)) and not isinstance(self.min_frequency, bool)
        if not (whole and self.min_frequency >= 1):
            raise InputError(
                f"min_frequency is {self.min_frequency!r}, but it must be a whole number of rows from 1 on, such as 10."
            )
        mixed = read_mixed(table, "the table")
        self.n_features_in_ = mixed.width
        if mixed.columns:
            self.feature_names_in_ = np.asarray(mixed.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        cells = [_decided(column) for column in mixed.cells]
        kinds = [_kind(column) for column in cells]
        if all(kind == "left out" for kind in kinds):
            raise InputError(f"no column of {mixed.name} has a value; pass columns that have some.")
        for k in (k for k, kind in enumerate(kinds) if kind == "left out"):
            warn(
                f"Left out {mixed.column(k)}: it has no value in {mixed.name}, which decides how columns are "
                "encoded; drop it, or find out why it is empty.",
                ColumnWarning,
            )
        for k in (k for k, kind in enumerate(kinds) if kind == "category"):
            self._check_levels(cells[k], mixed, k)
        self._kinds = tuple(kinds)
        self._quantities = _numbers_of(kinds, "number", "date")
        self._dates, self._categories = _numbers_of(kinds, "date"), _numbers_of(kinds, "category")
        self._labels = tuple(mixed.label(k) for k in range(mixed.width))
        self._fit_parts(cells)
        self.summary_ = EncodingSummary(tuple(self._summary(k, cells[k]) for k in range(mixed.width)))
        return self

    def transform(self, table: Any) -> Floats:
        """Encode a table with the columns that `fit` was given.

        Parameters
        ----------
        table : data frame, array-like or path
            Of any sample; columns are matched by name where there are names.

        Returns
        -------
        ndarray of shape (rows, columns)
            Finite numbers.
        """
        check_is_fitted(self, "summary_")
        return self.encode(self.fitting(read_mixed(table, "the table")))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns that `transform` gives.

        Parameters
        ----------
        input_features : object
            Not used; the names are those of `fit`.

        Returns
        -------
        ndarray of object
        """
        check_is_fitted(self, "summary_")
        names = [self._quantity_name(k) for k in self._quantities]
        names += [f"{self._labels[k]} (missing)" for k in self._gaps]
        names += [f"{self._labels[k]} ({part} of the year)" for k in self._dates for part in ("sine", "cosine")]
        names += [f"{self._labels[k]} = {level}" for k in self._categories for level in self._levels[k]]
        return np.asarray(names, dtype=object)

    def fitting(self, table: MixedTable) -> MixedTable:
        """The table with every column in the form that it had when it was fitted, or a sentence about what is not."""
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        nothing = tuple(np.empty(0) for _ in range(self.n_features_in_))
        table = match_columns([MixedTable("the fitted table", nothing, names), table])[1]
        cells = []
        for k, (kind, column) in enumerate(zip(self._kinds, table.cells, strict=True)):
            if kind == "category":
                column = self._as_levels(column, k)
            elif kind in ("number", "date"):
                column = _converted(column, kind, table, k)
            cells.append(column)
        return MixedTable(table.name, tuple(cells), table.columns, table.aside, table.dropped)

    def encode(self, table: MixedTable) -> Floats:
        """The numbers of a table whose columns have the fitted form."""
        parts = []
        if self._quantities:
            numbers = _quantities(table.cells, self._quantities)
            gaps = np.isnan(numbers)
            parts.append(np.where(gaps, self._medians, numbers))
            parts.append(gaps[:, [k in self._gaps for k in self._quantities]])
        for k in self._dates:
            angle = 2 * np.pi * _of_year(table.cells[k])
            # a missing date lies in the middle
            parts.append(np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)]), nan=0.0))
        if self._categories:
            parts.append(self._one_hot.transform(_levels(table.cells, self._categories)))
        return np.column_stack(parts).astype(np.float64)

    def table(self, table: MixedTable) -> Table:
        """The encoded table, which knows where its columns come from."""
        names, of = tuple(self.get_feature_names_out()), [*self._quantities, *self._gaps]
        own = [False] * len(self._quantities) + [True] * (len(names) - len(self._quantities))
        of += [k for k in self._dates for _ in range(2)]
        of += [k for k in self._categories for _ in self._levels[k]]
        origin = Origin(np.array(of, dtype=np.intp), np.array(own), self.summary_.to_dict(), self.summary_.line())
        return Table(table.name, self.encode(table), names, table.aside, table.dropped, origin)

    def _fit_parts(self, cells: Sequence[Cells]) -> None:
        from sklearn.preprocessing import OneHotEncoder  # here: it takes longer to import than all of ours

        self._gaps: tuple[int, ...] = ()
        if self._quantities:
            numbers = _quantities(cells, self._quantities)
            self._medians = np.nanmedian(numbers, axis=0)
            gaps = np.asarray(np.isnan(numbers).any(axis=0))
            self._gaps = tuple(k for k, some in zip(self._quantities, gaps, strict=True) if some)
        self._levels: dict[int, list[str]] = {}
        if self._categories:
            # rare levels are one, and a level that was not there is among them
            self._one_hot = OneHotEncoder(
                min_frequency=self.min_frequency, handle_unknown="infrequent_if_exist", sparse_output=False
            )
            self._one_hot.fit(_levels(cells, self._categories))
            for at, k in enumerate(self._categories):
                rare = self._one_hot.infrequent_categories_[at]
                some = () if rare is None else set(rare)
                self._levels[k] = [level for level in self._one_hot.categories_[at] if level not in some]
                self._levels[k] += [_RARE] * (rare is not None)

    def _check_levels(self, cells: Cells, table: MixedTable, k: int) -> None:
        """A column most of whose texts hardly repeat is no category."""
        levels, counts = np.unique(_named(cells), return_counts=True)
        alone = counts[counts <= _HARDLY].sum() / len(cells)
        if len(levels) > _FEW_LEVELS and alone > 0.5:
            raise InputError(
                f"{table.name} has {len(levels)} different texts in {table.column(k)}, such as {levels[0]!r}, and "
                f"{alone:.0%} of its rows hold one that hardly another row has, so it is a name or an id rather than a "
                f"category; drop the column{_named_drop(table, k)}, pass it as groups (--group-column) if it says "
                "which rows belong together, join its texts to fewer, or pass an encoder that reads text, such as "
                "skrub's TableVectorizer()."
            )

    def _as_levels(self, cells: Cells, k: int) -> Cells:
        """Text, also of numbers and dates; a number that a file has made of a level such as 01 is that level again."""
        if cells.dtype == object:
            return cells
        known = {as_number(level): level for level in np.unique(self._known_levels(k))}
        made = np.empty(len(cells), dtype=object)
        made[:] = [
            None if missing else known.get(cell, as_text(cell)) if isinstance(cell, float) else str(cell)
            for cell, missing in zip(cells.tolist(), is_missing(cells), strict=True)
        ]
        return made

    def _known_levels(self, k: int) -> NDArray[Any]:
        return np.asarray(self._one_hot.categories_[self._categories.index(k)])

    def unseen(self, table: MixedTable, k: int) -> list[str | None]:
        """Of each row of a table whose level was not there when it was fitted, that level; None is a missing cell."""
        named = _named(table.cells[k])
        return [None if level == _MISSING else level for level in named[~np.isin(named, self._known_levels(k))]]

    def has_gaps(self, k: int) -> bool:
        """Whether a column of numbers or dates had missing cells when it was fitted."""
        return k in self._gaps

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column is."""
        return self._kinds

    def _quantity_name(self, k: int) -> str:
        return f"{self._labels[k]} (days)" if k in self._dates else self._labels[k]

    def _summary(self, k: int, cells: Cells) -> EncodedColumn:
        kind, missing = self._kinds[k], float(is_missing(cells).mean())
        if kind == "left out":
            return EncodedColumn(self._labels[k], kind, "nothing", missing)
        if kind == "category":
            kept = [level for level in self._levels[k] if level != _RARE]
            rare = len(self._known_levels(k)) - len(kept)
            became = f"{len(kept)} level{'s' * (len(kept) != 1)}"
            became += f" and {rare} rare one{'s' * (rare != 1)} together" * bool(rare)
            return EncodedColumn(self._labels[k], kind, became, missing)
        became = "itself" if kind == "number" else "days, sine and cosine of the time of the year"
        if k in self._gaps:
            median = self._medians[self._quantities.index(k)]
            filled = (
                f"{median:.4g}" if kind == "number" else str(np.datetime64(0, "D") + np.timedelta64(int(median), "D"))
            )
            became += f", median {filled} where missing; 1 where missing"
        return EncodedColumn(self._labels[k], kind, became, missing)


def _named_drop(table: MixedTable, k: int) -> str:
    return f" (drop=[{table.columns[k]!r}], --drop {table.columns[k]})" if table.columns else ""


def _numbers_of(kinds: Sequence[str], *wanted: str) -> tuple[int, ...]:
    return tuple(k for k, kind in enumerate(kinds) if kind in wanted)


def _decided(cells: Cells) -> Cells:
    """Text that is dates, as dates."""
    if cells.dtype != object or is_missing(cells).all():
        return cells
    dates = as_dates(cells)
    return cells if dates is None else dates


def _kind(cells: Cells) -> str:
    if is_missing(cells).all():
        return "left out"
    return {"f": "number", "M": "date"}.get(cells.dtype.kind, "category")


def _converted(cells: Cells, kind: str, table: MixedTable, k: int) -> Cells:
    """A column of another sample in the form that it has in the fitted one."""
    form = {"number": "f", "date": "M"}[kind]
    missing = is_missing(cells)
    if cells.dtype.kind == form:
        return cells
    if missing.all():
        return np.full(len(cells), np.nan if kind == "number" else np.datetime64("NaT"))
    read = as_number if kind == "number" else as_date
    made = np.full(len(cells), np.nan) if kind == "number" else np.full(len(cells), "NaT", dtype="datetime64[us]")
    for row in np.flatnonzero(~missing):
        value = read(cells[row]) if isinstance(cells[row], str) else None
        if value is None:
            shown = repr(cells[row]) if isinstance(cells[row], str) else str(cells[row])
            otherwise = "numbers" if kind == "number" else "dates such as 2024-03-31"
            raise InputError(
                f"{table.name} holds {shown} in row {row} (counting from 0), {table.column(k)}, but the unlabelled "
                f"source sample has {otherwise} there{_decimal_comma(cells[row])}; write it so, leave the cell empty "
                "if it is not known, or drop the column."
            )
        made[row] = value
    return made


def _decimal_comma(cell: Any) -> str:
    """A word on what it probably is."""
    if isinstance(cell, str) and cell.count(",") == 1 and as_number(cell.replace(",", ".")) is not None:
        return ", with a decimal point"
    return ""


def _quantities(cells: Sequence[Cells], wanted: Sequence[int]) -> Floats:
    """Numbers and days, with NaN."""
    return np.column_stack([_in_days(cells[k]) for k in wanted])


def _in_days(cells: Cells) -> Floats:
    if cells.dtype.kind != "M":
        return cells
    return np.where(np.isnat(cells), np.nan, (cells - np.datetime64(0, "us")) / _DAY).astype(np.float64)


def _of_year(cells: Cells) -> Floats:
    """How much of its year has passed at a date, from 0 to 1; NaN where there is none."""
    begin = cells.astype("datetime64[Y]")
    passed = (cells - begin.astype("datetime64[us]")) / _DAY / _YEAR
    return np.where(np.isnat(cells), np.nan, passed).astype(np.float64)


def _named(cells: Cells) -> Cells:
    return np.array([_MISSING if cell is None else cell for cell in cells], dtype=object)


def _levels(cells: Sequence[Cells], wanted: Sequence[int]) -> Cells:
    return np.column_stack([_named(cells[k]) for k in wanted])
